// SPDX-License-Identifier: Apache-2.0
// The arithmetic of reducing copies (PTX ISA 9.7.9.25.4.2 and 9.7.9.25.5.3): one element of memory
// combined with one operand, atomically on the host, since clusters on other host threads may
// reduce into the same place. Knows nothing of copies.
#pragma once

#include "ptx/module.h"

#include <cstddef>
#include <cstdint>

namespace jitgemm::sim {

// kF32Ftz: subnormal operands and results are zero of their sign.
enum class ReduceType : uint8_t { kU32, kS32, kU64, kS64, kF16, kBf16, kF32, kF32Ftz, kF64 };
uint32_t reduce_bytes(ReduceType type);
bool reduce_is_legal(ptx::Operation operation, ReduceType type);
// `target` is aligned to the element; `operand` need not be.
void reduce_element(ptx::Operation operation, ReduceType type, std::byte* target,
                    const std::byte* operand);

}  // namespace jitgemm::sim
