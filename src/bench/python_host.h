// SPDX-License-Identifier: Apache-2.0
// A Python interpreter inside this process, opened at run time, that turns a Python file into the
// functions of a peer.
#pragma once

#include "bench/peer_module.h"

#include <string>

namespace jitgemm::bench {

// Runs the file and fills in `functions` and `name`. UNSUPPORTED where there is no interpreter;
// INVALID_ARGUMENT with Python's words where the file is wrong.
Status load_python_peer(const std::string& file, const std::string& python_library,
                        PeerFunctions& functions, std::string& name);

}  // namespace jitgemm::bench
