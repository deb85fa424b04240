// SPDX-License-Identifier: Apache-2.0
// mma.sync (PTX ISA 9.7.14.5): the synchronous matrix instruction of one warp, for f16, bf16, tf32,
// fp8, 8-bit integers and f64, with sparse A too (9.7.14.6), and the f8f6f4 and block-scaled kinds
// of sm_120 (9.7.14.3). Fragments are in models_fragments, arithmetic in models_mma.
#include "sim/exec.h"
#include "sim/exec_matrix.h"
#include "sim/models_fragments.h"
#include "sim/models_sparse.h"

#include <fmt/format.h>

#include <bit>

namespace jitgemm::sim {
namespace {

int count(std::span<const Operand> registers) {
  return static_cast<int>(registers.size());
}

uint32_t code_of(uint32_t word, int bits, int i) {
  return bits == 32 ? word : word >> (i * bits) & ((1u << bits) - 1);
}

bool is_scaled(const ptx::Modifiers& m) {
  return m.has(ptx::Flag::kBlockScale);
}

// Bits from element to element in a register: of the kinds with mixed types a byte, which holds six
// bits low and four bits in its middle (9.7.14.5.9, as 9.7.16.10.4.3).
int element_bits(const ptx::Modifiers& m, NumberFormat format) {
  const bool mixed = m.mma_kind == ptx::MmaKind::kF8f6f4 || m.mma_kind == ptx::MmaKind::kMxf8f6f4;
  return mixed ? 8 : format_bits(format);
}

// The codes of a register, by element.
void register_codes(const ptx::Modifiers& m, NumberFormat format, uint32_t word,
                    uint32_t codes[8]) {
  const int bits = element_bits(m, format);
  if (bits <= 8 && format_bits(format) < 8) {
    unpack_tensor_word(format, bits == 4, word, codes);
    return;
  }
  for (int i = 0; i < 32 / bits; ++i) codes[i] = code_of(word, bits, i);
}

// Scale factors of a row, and how many the mnemonic may leave unsaid (9.7.14.3, Table 36); 0: no
// such combination.
int scales_per_row(const ptx::Modifiers& m) {
  using ptx::ScaleVector;
  const bool ue8m0 = m.types[3] == ptx::Type::kUe8m0;
  switch (m.mma_kind) {
    case ptx::MmaKind::kMxf8f6f4: return 1;
    case ptx::MmaKind::kMxf4: return ue8m0 && m.scale_vector != ScaleVector::k4X ? 2 : 0;
    case ptx::MmaKind::kMxf4nvf4:
      if (m.scale_vector == ScaleVector::k4X) return 4;
      return ue8m0 && m.scale_vector == ScaleVector::k2X ? 2 : 0;
    default: return 0;
  }
}

// Slots data, {byte id, thread id}. Of a quad of lanes, a pair holds the factors of rows r and r +
// 8 of A, one lane those of a column of B; the byte id says where in the word they begin.
Step read_scales(Warp& w, const Op& op, LaneMask active, uint32_t slot, bool is_a, int per_row,
                 std::vector<uint32_t>& out) {
  const Operand& data = op.slot(slot);
  uint64_t ids[2] = {};
  for (int i = 0; i < 2; ++i) {
    if (require_uniform(
            w, op, registers_of(w, op.slot(slot + 1))[static_cast<size_t>(i)], active,
            i == 0 ? "the byte id of the scale factors" : "the thread id of the scale factors",
            ids[i]) == Step::kFault) {
      return Step::kFault;
    }
  }
  const uint64_t threads = is_a ? 2 : 4;
  const auto step = static_cast<uint64_t>(per_row);
  if (ids[0] > 3 || ids[0] % step != 0 || ids[1] >= threads) {
    return w.fault(op, -1, FaultKind::kIllegalOperand,
                   fmt::format("byte id {} and thread id {} of the scale factors of {}, {} a row",
                               ids[0], ids[1], is_a ? "A" : "B", per_row));
  }
  const int rows = is_a ? 16 : 8;
  for (int row = 0; row < rows; ++row) {
    const int in_quad = static_cast<int>(ids[1]) * (is_a ? 2 : 1) + row / 8;
    const auto lane = static_cast<uint32_t>(row % 8 * 4 + in_quad);
    if (w.require_defined(op, data, LaneMask{1} << lane, "scale factors") == Step::kFault)
      return Step::kFault;
    const uint64_t word = w.value(data, lane);
    for (int i = 0; i < per_row; ++i)
      out.push_back(static_cast<uint32_t>(word >> (8 * (ids[0] + static_cast<uint64_t>(i)))) &
                    0xff);
  }
  return Step::kNext;
}

bool is_sparse(const ptx::Modifiers& m) {
  return m.has(ptx::Flag::kSparse) || m.has(ptx::Flag::kSparseOrdered);
}

Step exec_mma(Warp& w, const Op& op, LaneMask active) {
  if (require_inputs(w, op, active) == Step::kFault) return Step::kFault;
  const ptx::Modifiers& m = op.modifiers();
  const auto to = registers_of(w, op.slot(0)), from_a = registers_of(w, op.slot(1)),
             from_b = registers_of(w, op.slot(2)), from_c = registers_of(w, op.slot(3));
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
  std::vector<uint32_t> b(static_cast<size_t>(p.n * p.k));
  std::vector<uint32_t> d(static_cast<size_t>(p.m * p.n));
  const int a_bits = element_bits(m, p.a_format);
  const int b_bits = element_bits(m, p.b_format);
  const int a_columns = is_sparse(m) ? p.k / 2 : p.k;
  std::vector<uint32_t> a(static_cast<size_t>(p.m * a_columns));
  std::vector<uint32_t> places;
  if (is_sparse(m) && read_sparse_places(w, op, active, 4, m.m, a_bits, places) == Step::kFault)
    return Step::kFault;
  std::vector<uint32_t> scale_a, scale_b;
  if (is_scaled(m)) {
    const int per_row = scales_per_row(m);
    const uint32_t slot = is_sparse(m) ? 6 : 4;
    if (read_scales(w, op, active, slot, true, per_row, scale_a) == Step::kFault ||
        read_scales(w, op, active, slot + 2, false, per_row, scale_b) == Step::kFault) {
      return Step::kFault;
    }
    p.scale_block = p.k / per_row;
    p.scale_format = m.types[3] == ptx::Type::kUe4m3 ? NumberFormat::kUe4m3 : NumberFormat::kUe8m0;
    p.scale_a = scale_a;
    p.scale_b = scale_b;
  }
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int r = 0; r < count(from_a); ++r) {
      uint32_t codes[8];
      register_codes(m, p.a_format, w.lanes<uint32_t>(from_a[static_cast<size_t>(r)])[lane], codes);
      for (int i = 0; i < 32 / a_bits; ++i) {
        const MatrixIndex at = a_fragment(p.m, a_bits, lane, r, i);
        a[static_cast<size_t>(at.row * a_columns + at.column)] = codes[i];
      }
    }
    for (int r = 0; r < count(from_b); ++r) {
      uint32_t codes[8];
      register_codes(m, p.b_format, w.lanes<uint32_t>(from_b[static_cast<size_t>(r)])[lane], codes);
      for (int i = 0; i < 32 / b_bits; ++i) {
        const MatrixIndex at = b_fragment(b_bits, lane, r, i);
        b[static_cast<size_t>(at.column * p.k + at.row)] = codes[i];
      }
    }
    for (int r = 0; r < count(from_c); ++r) {
      const uint32_t word = w.lanes<uint32_t>(from_c[static_cast<size_t>(r)])[lane];
      for (int i = 0; i < (c_half ? 2 : 1); ++i) {
        const MatrixIndex at = c_half ? d_fragment_half(p.m, lane, r, i) : d_fragment(p.m, lane, r);
        d[static_cast<size_t>(at.row * p.n + at.column)] = c_half ? code_of(word, 16, i) : word;
      }
    }
  }
  const MissingInputs inputs(w, op, p.m, a_bits, b_bits);
  if (is_sparse(m)) {
    for (const size_t row : expand_sparse_rows(a, places, static_cast<size_t>(p.k))) {
      if (!inputs.has_row(row))
        return w.fault(op, -1, FaultKind::kIllegalOperand, misplaced_element(row));
    }
  }
  p.a = a;
  p.b = b;
  p.d = d;
  mma_accumulate(p, mma_numerics(w.cta.cluster.grid.options.numerics), MmaFamily::kMmaSync);
  // All of them before the first register of D, which may be one of C.
  std::vector<LaneMask> missing;
  missing.reserve(static_cast<size_t>(count(to)));
  for (int r = 0; r < count(to); ++r) missing.push_back(inputs.of_result(w, op, d_half, r));
  for (int r = 0; r < count(to); ++r) {
    const Operand& d_register = to[static_cast<size_t>(r)];
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      uint32_t word = 0;
      for (int i = 0; i < (d_half ? 2 : 1); ++i) {
        const MatrixIndex at = d_half ? d_fragment_half(p.m, lane, r, i) : d_fragment(p.m, lane, r);
        word |= d[static_cast<size_t>(at.row * p.n + at.column)] << (16 * i);
      }
      w.lanes<uint32_t>(d_register)[lane] = word;
    }
    w.set_undefined(d_register, missing[static_cast<size_t>(r)], active);
  }
  return Step::kNext;
}

Step exec_mma_f64(Warp& w, const Op& op, LaneMask active) {
  if (require_inputs(w, op, active) == Step::kFault) return Step::kFault;
  const ptx::Modifiers& m = op.modifiers();
  const auto to = registers_of(w, op.slot(0)), from_a = registers_of(w, op.slot(1)),
             from_b = registers_of(w, op.slot(2)), from_c = registers_of(w, op.slot(3));
  const int rows = m.m, n = m.n, k = m.k;
  std::vector<double> a(static_cast<size_t>(rows * k)), b(static_cast<size_t>(n * k)),
      d(static_cast<size_t>(rows * n));
  const auto read = [&](const Operand& r, int lane) {
    return std::bit_cast<double>(w.lanes<uint64_t>(r)[lane]);
  };
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int r = 0; r < count(from_a); ++r) {
      const MatrixIndex at = a_fragment(rows, 64, lane, r, 0);
      a[static_cast<size_t>(at.row * k + at.column)] = read(from_a[static_cast<size_t>(r)], lane);
    }
    for (int r = 0; r < count(from_b); ++r) {
      const MatrixIndex at = b_fragment(64, lane, r, 0);
      b[static_cast<size_t>(at.column * k + at.row)] = read(from_b[static_cast<size_t>(r)], lane);
    }
    for (int r = 0; r < count(from_c); ++r) {
      const MatrixIndex at = d_fragment(rows, lane, r);
      d[static_cast<size_t>(at.row * n + at.column)] = read(from_c[static_cast<size_t>(r)], lane);
    }
  }
  mma_accumulate_f64(rows, n, k, a, b, d);
  const MissingInputs inputs(w, op, rows, 64, 64);
  std::vector<LaneMask> missing;
  missing.reserve(static_cast<size_t>(count(to)));
  for (int r = 0; r < count(to); ++r) missing.push_back(inputs.of_result(w, op, false, r));
  for (int r = 0; r < count(to); ++r) {
    const Operand& d_register = to[static_cast<size_t>(r)];
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      const MatrixIndex at = d_fragment(rows, lane, r);
      w.lanes<uint64_t>(d_register)[lane] =
          std::bit_cast<uint64_t>(d[static_cast<size_t>(at.row * n + at.column)]);
    }
    w.set_undefined(d_register, missing[static_cast<size_t>(r)], active);
  }
  return Step::kNext;
}

Choice choose_mma(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  constexpr uint32_t kFlags = kOpAligned | kOpMatrix;
  if (is_scaled(m) && scales_per_row(m) == 0)
    return Choice::refuse("this scale vector size does not exist for this kind");
  if (m.types[1] == ptx::Type::kF64) return {exec_mma_f64, kFlags, 0, ""};
  if (Choice emulated = choose_emulated_mma(instruction);
      emulated.execute != nullptr || !emulated.unsupported.empty()) {
    return emulated;
  }
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
