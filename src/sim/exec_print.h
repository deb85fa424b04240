// SPDX-License-Identifier: Apache-2.0
// What vprintf and __assertfail say, the two functions that the compiler declares and a driver
// supplies. Formats and texts are the program's own, so everything is read through the checks of
// its memory and has a limit. Calls themselves are in exec_call.cpp. Not for other folders.
#pragma once

#include "sim/exec.h"

#include <string>

namespace jitgemm::sim {

// Gives Options::print, if there is one, what the lanes print, in their order. kFault if a lane
// passes what it may not read.
Step print_formatted(Warp& warp, const Op& op, LaneMask active);
// "text, at file:line, in function" of a failed assertion.
std::string describe_assertion(const Warp& warp, const Op& op, uint32_t lane);

}  // namespace jitgemm::sim
