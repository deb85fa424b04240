// SPDX-License-Identifier: Apache-2.0
// Where the lanes that part at a branch meet again: the immediate post-dominator of its block,
// computed on the control-flow graph, whatever the order of the blocks in the text. Paths that end
// a thread do not count: a lane that exits is not waited for.
#pragma once

#include "ptx/module.h"

#include <cstdint>
#include <vector>

namespace jitgemm::sim {

inline constexpr uint32_t kFunctionEnd = ptx::kNoIndex - 1;

// For each block: the block where its successors meet, kFunctionEnd for the end of a device
// function, kNoIndex if they meet nowhere (or only to exit).
std::vector<uint32_t> reconvergence_blocks(const ptx::Function& function);

}  // namespace jitgemm::sim
