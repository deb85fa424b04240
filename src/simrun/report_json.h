// SPDX-License-Identifier: Apache-2.0
// The report of a run as one JSON document and as text for people; both are described in
// docs/simulator.md.
#pragma once

#include "simrun/kernel_run.h"

#include <string>

namespace jitgemm::simrun {

// "schema": 1 and "verb": "sim run" come first.
std::string to_json_text(const RunReport& report);
std::string to_text(const RunReport& report, bool statistics);

}  // namespace jitgemm::simrun
