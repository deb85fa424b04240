// SPDX-License-Identifier: Apache-2.0
// The ops that the decoder adds at the end of each function; they have no text of their own.
#pragma once

#include "sim/program.h"

namespace jitgemm::sim {

// Lanes that fall off the end of an entry exit.
Step execute_exit(Warp& warp, const Op& op, LaneMask active);
// The place where all returns of a device function meet: back to the call site.
Step execute_function_end(Warp& warp, const Op& op, LaneMask active);

}  // namespace jitgemm::sim
