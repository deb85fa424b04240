// SPDX-License-Identifier: Apache-2.0
#include "sim/exec_matrix.h"

#include "sim/models_sparse.h"

#include <fmt/format.h>

#include <bit>

namespace jitgemm::sim {

MmaNumerics mma_numerics(Numerics numerics) {
  switch (numerics) {
    case Numerics::kExact: return MmaNumerics::kExact;
    case Numerics::kHopper: return MmaNumerics::kHopper;
    case Numerics::kBlackwell: return MmaNumerics::kBlackwell;
  }
  return MmaNumerics::kExact;
}

bool number_format(ptx::Type type, NumberFormat& format) {
  switch (type) {
    case ptx::Type::kF16: format = NumberFormat::kF16; return true;
    case ptx::Type::kBf16: format = NumberFormat::kBf16; return true;
    case ptx::Type::kTf32: format = NumberFormat::kTf32; return true;
    case ptx::Type::kE4m3: format = NumberFormat::kE4m3; return true;
    case ptx::Type::kE5m2: format = NumberFormat::kE5m2; return true;
    case ptx::Type::kE2m3: format = NumberFormat::kE2m3; return true;
    case ptx::Type::kE3m2: format = NumberFormat::kE3m2; return true;
    case ptx::Type::kE2m1: format = NumberFormat::kE2m1; return true;
    case ptx::Type::kS8: format = NumberFormat::kS8; return true;
    case ptx::Type::kU8: format = NumberFormat::kU8; return true;
    default: return false;
  }
}

Step require_uniform(Warp& w, const Op& op, const Operand& operand, LaneMask active,
                     const char* what, uint64_t& value) {
  if (w.require_defined(op, operand, active, what) == Step::kFault) return Step::kFault;
  const bool is_address = operand.kind == OperandKind::kAddress;
  const auto first = static_cast<uint32_t>(std::countr_zero(active));
  value = is_address ? w.address(operand, first) : w.value(operand, first);
  for (LaneMask m = active; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    const uint64_t here = is_address ? w.address(operand, lane) : w.value(operand, lane);
    if (here != value) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("{} is {:#x} in lane {} and {:#x} in lane {}; it must be the same",
                                 what, value, first, here, lane));
    }
  }
  return Step::kNext;
}

Step require_fragment(Warp& w, const Op& op, const Operand& r, LaneMask lanes, const char* what) {
  return w.cta.cluster.grid.options.strict ? w.require_defined(op, r, lanes, what) : Step::kNext;
}

Step require_fragments(Warp& w, const Op& op, const Operand& list, LaneMask lanes,
                       const char* what) {
  for (const Operand& r : registers_of(w, list)) {
    if (require_fragment(w, op, r, lanes, what) == Step::kFault) return Step::kFault;
  }
  return Step::kNext;
}

Step require_inputs(Warp& w, const Op& op, LaneMask active) {
  if (require_fragments(w, op, op.slot(1), active, "a register of A") == Step::kFault ||
      require_fragments(w, op, op.slot(2), active, "a register of B") == Step::kFault) {
    return Step::kFault;
  }
  return require_fragments(w, op, op.slot(3), active, "a register of C");
}

MissingInputs::MissingInputs(const Warp& w, const Op& op, int rows, int a_bits, int b_bits) {
  for (uint32_t slot = 1; slot < 4; ++slot) {
    for (const Operand& r : registers_of(w, op.slot(slot))) any_ = any_ || w.undefined(r) != 0;
  }
  if (!any_) return;
  rows_.resize(static_cast<size_t>(rows));
  columns_.resize(8);
  const auto note = [&](const Operand& list, std::vector<bool>& which, auto index) {
    int i = 0;
    for (const Operand& r : registers_of(w, list)) {
      for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
        if ((w.undefined(r) >> lane & 1) != 0) which[static_cast<size_t>(index(lane, i))] = true;
      }
      ++i;
    }
  };
  note(op.slot(1), rows_,
       [&](int lane, int i) { return a_fragment(rows, a_bits, lane, i, 0).row; });
  note(op.slot(2), columns_,
       [&](int lane, int i) { return b_fragment(b_bits, lane, i, 0).column; });
}

LaneMask MissingInputs::of_result(const Warp& w, const Op& op, bool half, int r) const {
  if (!any_) return 0;
  const int rows = static_cast<int>(rows_.size());
  LaneMask missing = w.undefined(registers_of(w, op.slot(3))[static_cast<size_t>(r)]);
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    const bool bad =
        half ? has(d_fragment_half(rows, lane, r, 0)) || has(d_fragment_half(rows, lane, r, 1))
             : has(d_fragment(rows, lane, r));
    if (bad) missing |= LaneMask{1} << lane;
  }
  return missing;
}

// Metadata of a row fill 16, 32 or 64 bits. Lanes of a quad hold those of rows r and r + 8, as the
// selector says: one lane both rows, a pair, or all four. Of types of up to eight bits a lane has
// eight chunks of one row, of wider ones four of each (9.7.14.6.1, 9.7.15.6.2).
Step read_sparse_places(Warp& w, const Op& op, LaneMask active, uint32_t slot, uint32_t rows,
                        int bits, std::vector<uint32_t>& places) {
  const Sparsity sparsity = sparsity_of(bits);
  const uint32_t chunks = op.modifiers().k / chunk_elements(sparsity);
  const uint32_t lanes = chunks / 4;  // of a quad that hold metadata
  const auto selector = static_cast<uint32_t>(w.value(op.slot(slot + 1), 0));
  if (selector >= 4 / lanes) {
    return w.fault(op, -1, FaultKind::kIllegalOperand,
                   fmt::format("sparsity selector {}: below {} is legal", selector, 4 / lanes));
  }
  const LaneMask quad = ((LaneMask{1} << lanes) - 1) << (selector * lanes);
  if (w.require_defined(op, op.slot(slot), active & quad * 0x11111111u, "the sparsity metadata") ==
      Step::kFault) {
    return Step::kFault;
  }
  const bool narrow = bits <= 8;
  const uint32_t held = narrow ? 8 : 4;
  for (uint32_t row = 0; row < rows; ++row) {
    std::vector<uint8_t> metadata;
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const uint32_t in_quad =
          selector * lanes + (narrow ? row / 8 + 2 * (chunk / held) : chunk / held);
      const uint32_t shift = 4 * (chunk % held) + (narrow ? 0 : 16 * (row / 8));
      const uint64_t word = w.value(op.slot(slot), row % 8 * 4 + in_quad);
      metadata.push_back(static_cast<uint8_t>(word >> shift & 15));
    }
    const std::vector<uint32_t> of_row =
        sparse_places(sparsity, metadata, !w.cta.cluster.grid.options.strict);
    if (of_row.empty()) return w.fault(op, -1, FaultKind::kIllegalOperand, illegal_index(row));
    places.insert(places.end(), of_row.begin(), of_row.end());
  }
  return Step::kNext;
}

std::string illegal_index(size_t row) {
  return fmt::format("the sparsity metadata of row {} have an illegal index", row);
}

std::string misplaced_element(size_t row) {
  return fmt::format(
      "equal indices in the sparsity metadata of row {}, and a second element that is not zero",
      row);
}

Step begin_operand_read(Warp& w, const Op& op, Cta& cta, const MatrixOperand& operand,
                        const char* what, std::vector<uint32_t>& chunks, std::vector<bool>& missing,
                        uint32_t lane) {
  const std::vector<uint32_t> all = chunk_addresses(operand);
  chunks.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    bool absent = false;
    const RowRange rows = chunk_rows(operand, i);
    if (check_async_source(w, op, lane, cta, all[i], 16, what,
                           operand.first_row + rows.first == 0 ? nullptr : &absent) ==
        Step::kFault) {
      return Step::kFault;
    }
    if (!absent) {
      chunks.push_back(all[i]);
      continue;
    }
    missing.resize(operand.rows);
    for (uint32_t row = rows.first; row < rows.last; ++row) missing[row] = true;
  }
  for (const uint32_t at : chunks) cta.shared.shadow.begin_async_read(at, 16);
  return Step::kNext;
}

void end_operand_read(Cta& cta, const std::vector<uint32_t>& chunks) {
  for (const uint32_t at : chunks) cta.shared.shadow.end_async_read(at, 16);
}

}  // namespace jitgemm::sim
