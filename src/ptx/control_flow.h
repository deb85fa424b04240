// SPDX-License-Identifier: Apache-2.0
// Basic blocks of a function and their immediate post-dominators, where diverged lanes meet again.
// A pass over resolved instructions; last step of the resolver.
#pragma once

#include "ptx/module.h"

namespace jitgemm::ptx {

// Fills function.blocks from its instructions.
void build_control_flow(Function& function);

}  // namespace jitgemm::ptx
