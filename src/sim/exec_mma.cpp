// SPDX-License-Identifier: Apache-2.0
// mma.sync (PTX ISA 9.7.14.5): the synchronous matrix instruction of one warp, for f16, bf16, tf32,
// fp8, 8-bit integers and f64. Fragments are in models_fragments, arithmetic in models_mma.
#include "sim/exec.h"
#include "sim/exec_matrix.h"
#include "sim/models_fragments.h"

#include <bit>

namespace jitgemm::sim {
namespace {

const Operand& element(const Warp& w, const Operand& list, int i) {
  return list.kind == OperandKind::kList
             ? w.cta.cluster.grid.kernel->lists[list.offset + static_cast<uint32_t>(i)]
             : list;
}

int count(const Operand& list) {
  return list.kind == OperandKind::kList ? static_cast<int>(list.count) : 1;
}

Step require_list(Warp& w, const Op& op, const Operand& list, LaneMask active, const char* what) {
  for (int r = 0; r < count(list); ++r) {
    if (w.require_defined(op, element(w, list, r), active, what) == Step::kFault)
      return Step::kFault;
  }
  return Step::kNext;
}

Step require_inputs(Warp& w, const Op& op, LaneMask active) {
  if (require_list(w, op, op.slot(1), active, "a register of A") == Step::kFault ||
      require_list(w, op, op.slot(2), active, "a register of B") == Step::kFault ||
      require_list(w, op, op.slot(3), active, "a register of C") == Step::kFault) {
    return Step::kFault;
  }
  return Step::kNext;
}

uint32_t code_of(uint32_t word, int bits, int i) {
  return bits == 32 ? word : word >> (i * bits) & ((1u << bits) - 1);
}

Step exec_mma(Warp& w, const Op& op, LaneMask active) {
  if (require_inputs(w, op, active) == Step::kFault) return Step::kFault;
  const ptx::Modifiers& m = op.modifiers();
  MmaProblem p;
  p.m = m.m;
  p.n = m.n;
  p.k = m.k;
  number_format(m.types[1], p.a_format);
  number_format(m.types[2], p.b_format);
  const bool d_half = m.types[0] == ptx::Type::kF16;
  const bool c_half = m.types[3] == ptx::Type::kF16;
  p.result = d_half                          ? MmaResult::kF16
             : m.types[0] == ptx::Type::kF32 ? MmaResult::kF32
             : m.has(ptx::Flag::kSatfinite)  ? MmaResult::kS32Saturated
                                             : MmaResult::kS32;
  std::vector<uint32_t> a(static_cast<size_t>(p.m * p.k));
  std::vector<uint32_t> b(static_cast<size_t>(p.n * p.k));
  std::vector<uint32_t> d(static_cast<size_t>(p.m * p.n));
  const int a_bits = format_bits(p.a_format);
  const int b_bits = format_bits(p.b_format);
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int r = 0; r < count(op.slot(1)); ++r) {
      const uint32_t word = w.lanes<uint32_t>(element(w, op.slot(1), r))[lane];
      for (int i = 0; i < 32 / a_bits; ++i) {
        const MatrixIndex at = a_fragment(p.m, a_bits, lane, r, i);
        a[static_cast<size_t>(at.row * p.k + at.column)] = code_of(word, a_bits, i);
      }
    }
    for (int r = 0; r < count(op.slot(2)); ++r) {
      const uint32_t word = w.lanes<uint32_t>(element(w, op.slot(2), r))[lane];
      for (int i = 0; i < 32 / b_bits; ++i) {
        const MatrixIndex at = b_fragment(b_bits, lane, r, i);
        b[static_cast<size_t>(at.column * p.k + at.row)] = code_of(word, b_bits, i);
      }
    }
    for (int r = 0; r < count(op.slot(3)); ++r) {
      const uint32_t word = w.lanes<uint32_t>(element(w, op.slot(3), r))[lane];
      for (int i = 0; i < (c_half ? 2 : 1); ++i) {
        const MatrixIndex at = c_half ? d_fragment_half(p.m, lane, r, i) : d_fragment(p.m, lane, r);
        d[static_cast<size_t>(at.row * p.n + at.column)] = c_half ? code_of(word, 16, i) : word;
      }
    }
  }
  p.a = a;
  p.b = b;
  p.d = d;
  mma_accumulate(p, mma_numerics(w.cta.cluster.grid.options.numerics), MmaFamily::kMmaSync);
  for (int r = 0; r < count(op.slot(0)); ++r) {
    const Operand& to = element(w, op.slot(0), r);
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      uint32_t word = 0;
      for (int i = 0; i < (d_half ? 2 : 1); ++i) {
        const MatrixIndex at = d_half ? d_fragment_half(p.m, lane, r, i) : d_fragment(p.m, lane, r);
        word |= d[static_cast<size_t>(at.row * p.n + at.column)] << (16 * i);
      }
      w.lanes<uint32_t>(to)[lane] = word;
    }
    w.set_defined(to, active);
  }
  return Step::kNext;
}

Step exec_mma_f64(Warp& w, const Op& op, LaneMask active) {
  if (require_inputs(w, op, active) == Step::kFault) return Step::kFault;
  const ptx::Modifiers& m = op.modifiers();
  const int rows = m.m, n = m.n, k = m.k;
  std::vector<double> a(static_cast<size_t>(rows * k)), b(static_cast<size_t>(n * k)),
      d(static_cast<size_t>(rows * n));
  const auto read = [&](const Operand& list, int r, int lane) {
    return std::bit_cast<double>(w.lanes<uint64_t>(element(w, list, r))[lane]);
  };
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int r = 0; r < count(op.slot(1)); ++r) {
      const MatrixIndex at = a_fragment(rows, 64, lane, r, 0);
      a[static_cast<size_t>(at.row * k + at.column)] = read(op.slot(1), r, lane);
    }
    for (int r = 0; r < count(op.slot(2)); ++r) {
      const MatrixIndex at = b_fragment(64, lane, r, 0);
      b[static_cast<size_t>(at.column * k + at.row)] = read(op.slot(2), r, lane);
    }
    for (int r = 0; r < count(op.slot(3)); ++r) {
      const MatrixIndex at = d_fragment(rows, lane, r);
      d[static_cast<size_t>(at.row * n + at.column)] = read(op.slot(3), r, lane);
    }
  }
  mma_accumulate_f64(rows, n, k, a, b, d);
  for (int r = 0; r < count(op.slot(0)); ++r) {
    const Operand& to = element(w, op.slot(0), r);
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      const MatrixIndex at = d_fragment(rows, lane, r);
      w.lanes<uint64_t>(to)[lane] =
          std::bit_cast<uint64_t>(d[static_cast<size_t>(at.row * n + at.column)]);
    }
    w.set_defined(to, active);
  }
  return Step::kNext;
}

Choice choose_mma(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  constexpr uint32_t kFlags = kOpAligned | kOpMatrix;
  if (m.has(ptx::Flag::kSparse)) return Choice::refuse("sparse mma is not simulated");
  if (m.mma_kind != ptx::MmaKind::kNone)
    return Choice::refuse(".kind forms of mma.sync exist on sm_120 only");
  if (m.types[1] == ptx::Type::kF64) return {exec_mma_f64, kFlags, 0, ""};
  if (m.m == 8 && m.types[1] == ptx::Type::kF16)
    return Choice::refuse("m8n8k4 of f16 is not simulated");
  NumberFormat format = NumberFormat::kF16;
  if (!number_format(m.types[1], format) || !number_format(m.types[2], format)) {
    return Choice::refuse("this operand type of mma.sync is not simulated");
  }
  if ((m.types[0] == ptx::Type::kF16) != (m.types[3] == ptx::Type::kF16)) {
    return Choice::refuse("mma.sync with different types of C and D is not simulated");
  }
  return {exec_mma, kFlags, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kMma, choose_mma}
};

}  // namespace

std::span<const OpcodeRow> mma_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
