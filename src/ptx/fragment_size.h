// SPDX-License-Identifier: Apache-2.0
// How many registers a vector operand has: the count rules of the instruction table, fragments of
// the matrix instructions among them. Knows modifiers only.
#pragma once

#include "ptx/modifiers.h"

#include <optional>
#include <string_view>

namespace jitgemm::ptx {

// The number that a count rule demands: "4", "vec", "dim", "coordinates", "num", "tmem", "wgmma_d",
// "mma_a", "mma_b", "mma_c", "mma_d". Nothing for rules that leave it open ("any", "pack") and 0
// for modifiers that no fragment exists for.
std::optional<size_t> vector_count(std::string_view rule, const Modifiers& modifiers);

}  // namespace jitgemm::ptx
