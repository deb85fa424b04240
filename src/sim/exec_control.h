// SPDX-License-Identifier: Apache-2.0
// The ops that the decoder adds at the end of each function; they have no text of their own.
#pragma once

#include "sim/program.h"

#include <string_view>

namespace jitgemm::sim {

// Lanes that fall off the end of an entry exit.
Step execute_exit(Warp& warp, const Op& op, LaneMask active);
// The place where all returns of a device function meet: back to the call site.
Step execute_function_end(Warp& warp, const Op& op, LaneMask active);

// Functions that the compiler declares and a driver supplies, by name: vprintf prints where
// Options::print says and returns 0, __assertfail is a trap. Null for any other name.
ExecuteFn external_function(std::string_view name);

}  // namespace jitgemm::sim
