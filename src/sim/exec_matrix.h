// SPDX-License-Identifier: Apache-2.0
// What the matrix instructions (mma.sync, wgmma, tcgen05.mma) share: names of types and numerics,
// and the checks of operands in shared memory. Not for other files.
#pragma once

#include "ptx/module.h"
#include "sim/async_state.h"
#include "sim/exec.h"
#include "sim/models_matrix_gather.h"
#include "sim/models_mma.h"
#include "sim/simulator.h"

namespace jitgemm::sim {

MmaNumerics mma_numerics(Numerics numerics);
// False for a type that no matrix instruction reads.
bool number_format(ptx::Type type, NumberFormat& format);

// Every lane must give the same value: descriptors and tensor-memory addresses.
Step require_uniform(Warp& warp, const Op& op, const Operand& operand, LaneMask active,
                     const char* what, uint64_t& value);

// The chunks of an operand as the async proxy will read them; on success they are marked as being
// read. `lane`: of the thread that issues the operation. Rows beyond the first that are not there
// (see check_async_source) are let pass where no strict rules hold, with a mark in `missing`
// (empty: none): production code multiplies whole tiles whose last rows nobody has loaded or will
// look at.
Step begin_operand_read(Warp& warp, const Op& op, Cta& cta, const MatrixOperand& operand,
                        const char* what, std::vector<uint32_t>& chunks, std::vector<bool>& missing,
                        uint32_t lane = 0);
// The forms of mma.sync that today's parts emulate; an empty choice for the others.
Choice choose_emulated_mma(const ptx::Instruction& instruction);

void end_operand_read(Cta& cta, const std::vector<uint32_t>& chunks);

}  // namespace jitgemm::sim
