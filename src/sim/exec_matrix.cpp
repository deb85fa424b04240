// SPDX-License-Identifier: Apache-2.0
#include "sim/exec_matrix.h"

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
