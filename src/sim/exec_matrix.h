// SPDX-License-Identifier: Apache-2.0
// What the matrix instructions (mma.sync, wgmma, tcgen05.mma) share: names of types and numerics,
// the checks of operands in registers and in shared memory, sparse operands. Not for other files
// but exec_matrix_move.cpp.
#pragma once

#include "ptx/module.h"
#include "sim/async_state.h"
#include "sim/exec.h"
#include "sim/models_fragments.h"
#include "sim/models_matrix_gather.h"
#include "sim/models_mma.h"
#include "sim/simulator.h"

#include <cstddef>
#include <string>
#include <vector>

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

// Registers of a fragment, or of an accumulator that is read, must have been written: under strict
// rules alone. Else what was never written goes where the fragment goes, and leaves nothing of its
// row, column or element of a product.
Step require_fragment(Warp& warp, const Op& op, const Operand& r, LaneMask lanes, const char* what);
Step require_fragments(Warp& warp, const Op& op, const Operand& list, LaneMask lanes,
                       const char* what);
// The same of A, B and C of mma.sync, in slots 1 to 3.
Step require_inputs(Warp& warp, const Op& op, LaneMask active);

// Of mma.sync: the rows of A and columns of B that something never written is in.
class MissingInputs {
 public:
  // `bits`: of elements of A and B in their registers.
  MissingInputs(const Warp& warp, const Op& op, int rows, int a_bits, int b_bits);
  bool has_row(size_t row) const { return any_ && rows_[row]; }
  // Lanes whose element of register r of D comes to nothing, also for its element of C.
  LaneMask of_result(const Warp& warp, const Op& op, bool half, int r) const;

 private:
  bool has(MatrixIndex at) const {
    return rows_[static_cast<size_t>(at.row)] || columns_[static_cast<size_t>(at.column)];
  }
  bool any_ = false;  // of A, B or C
  std::vector<bool> rows_, columns_;
};

// Sparse A of mma.sync and wgmma: the places of the elements that are stored, by row
// (models_sparse.h). `slot`: of the metadata; the selector is behind it. `bits`: of elements in
// their registers.
Step read_sparse_places(Warp& warp, const Op& op, LaneMask active, uint32_t slot, uint32_t rows,
                        int bits, std::vector<uint32_t>& places);
// Reports of metadata that mean nothing, and of an element that they place nowhere.
std::string illegal_index(size_t row);
std::string misplaced_element(size_t row);

// The forms of mma.sync that today's parts emulate; an empty choice for the others.
Choice choose_emulated_mma(const ptx::Instruction& instruction);

void end_operand_read(Cta& cta, const std::vector<uint32_t>& chunks);

}  // namespace jitgemm::sim
