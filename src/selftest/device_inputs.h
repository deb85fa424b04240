// SPDX-License-Identifier: Apache-2.0
// Inputs drawn where they are needed: on a GPU the m-sized operand of a large problem is drawn and
// quantised by kernels whose bits are those of verify/inputs.h, and a sample of its rows is
// compared with that CPU twin. What is too small to matter is drawn on the CPU.
#pragma once

#include "runtime/context.h"
#include "verify/inputs.h"

#include <cstdint>
#include <vector>

namespace jitgemm {

// make_block_scaled_tensors, with the same result on every device.
Result<BlockScaledTensors> make_tensors_for(Context& context, Device& device,
                                            const GemmProblem& problem, InputKind kind,
                                            uint64_t seed);

// Codes and scales of a normal A, drawn on the device whatever its size: what
// make_block_scaled_tensors gives for InputKind::kSeed. The problem's a is FP8.
struct DrawnOperand {
  HostTensor codes;
  HostTensor scales;
};
Result<DrawnOperand> draw_normal_a(Context& context, Device& device, const GemmProblem& problem,
                                   uint64_t seed);

// Compiles into the cache what draw_normal_a needs.
Status compile_drawing(Context& context, const GemmProblem& problem);

// Standard normal numbers into memory of the device: those of RandomStream(seed, stream).
Status draw_normal(Context& context, Device& device, uint64_t address, int64_t count, uint64_t seed,
                   uint32_t stream);

}  // namespace jitgemm
