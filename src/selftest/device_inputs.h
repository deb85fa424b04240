// SPDX-License-Identifier: Apache-2.0
// Inputs drawn where they are needed: on a GPU the operands and scales of a large problem are
// drawn, and quantised, by kernels whose bits are those of verify/operand_draw.h, and a sample of
// their rows is compared with that CPU twin. What is too small to matter is drawn on the CPU.
#pragma once

#include "runtime/context.h"
#include "verify/grouped_inputs.h"
#include "verify/inputs.h"

#include <cstdint>

namespace jitgemm {

// make_block_scaled_tensors, with the same result on every device.
Result<BlockScaledTensors> make_tensors_for(Context& context, Device& device,
                                            const GemmProblem& problem, InputKind kind,
                                            uint64_t seed);

// make_grouped_tensors, likewise.
Result<GroupedTensors> make_grouped_tensors_for(Context& context, Device& device,
                                                const GemmProblem& problem, InputKind kind,
                                                uint64_t seed);

// draw_operand on the device, whatever its size, and compared with its twin.
Result<DrawnOperand> draw_operand_on(Context& context, Device& device, const OperandDraw& draw);

// Compiles into the cache what drawing a problem's operands on a GPU needs.
Status compile_drawing(Context& context, const GemmProblem& problem, InputKind kind);

// Standard normal numbers into memory of the device: those of RandomStream(seed, stream).
Status draw_normal(Context& context, Device& device, uint64_t address, int64_t count, uint64_t seed,
                   uint32_t stream);

}  // namespace jitgemm
