// SPDX-License-Identifier: Apache-2.0
// The forms of mma.sync that Hopper and later parts only emulate (PTX ISA 9.7.14.5): 4-bit
// integers, and m8n8k4 in f16, of which a warp computes four at once. Fragments of the former are
// those of models_fragments; the latter has its own (9.7.14.5.1).
#include "sim/exec_matrix.h"
#include "sim/models_fragments.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace jitgemm::sim {
namespace {

int count(std::span<const Operand> registers) {
  return static_cast<int>(registers.size());
}

uint32_t word_of(const Warp& w, std::span<const Operand> registers, int r, int lane) {
  return w.lanes<uint32_t>(registers[static_cast<size_t>(r)])[lane];
}

Step exec_nibbles(Warp& w, const Op& op, LaneMask active) {
  if (require_inputs(w, op, active) == Step::kFault) return Step::kFault;
  const ptx::Modifiers& m = op.modifiers();
  const auto to = registers_of(w, op.slot(0)), from_a = registers_of(w, op.slot(1)),
             from_b = registers_of(w, op.slot(2)), from_c = registers_of(w, op.slot(3));
  const int rows = m.m, columns = m.n, k = m.k;
  std::vector<int> a(static_cast<size_t>(rows * k)), b(static_cast<size_t>(columns * k));
  const auto nibble = [](uint32_t word, int i, ptx::Type type) {
    const int v = static_cast<int>(word >> (4 * i) & 15);
    return type == ptx::Type::kS4 && v > 7 ? v - 16 : v;
  };
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    for (int r = 0; r < count(from_a); ++r) {
      for (int i = 0; i < 8; ++i) {
        const MatrixIndex at = a_fragment(rows, 4, lane, r, i);
        a[static_cast<size_t>(at.row * k + at.column)] =
            nibble(word_of(w, from_a, r, lane), i, m.types[1]);
      }
    }
    for (int r = 0; r < count(from_b); ++r) {
      for (int i = 0; i < 8; ++i) {
        const MatrixIndex at = b_fragment(4, lane, r, i);
        b[static_cast<size_t>(at.column * k + at.row)] =
            nibble(word_of(w, from_b, r, lane), i, m.types[2]);
      }
    }
  }
  std::vector<std::array<uint32_t, kLanes>> d(static_cast<size_t>(count(to)));
  for (int r = 0; r < count(to); ++r) {
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      const MatrixIndex at = d_fragment(rows, lane, r);
      int64_t sum = static_cast<int32_t>(word_of(w, from_c, r, lane));
      for (int i = 0; i < k; ++i)
        sum += a[static_cast<size_t>(at.row * k + i)] * b[static_cast<size_t>(at.column * k + i)];
      if (m.has(ptx::Flag::kSatfinite)) {
        sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int32_t>::max());
      }
      d[static_cast<size_t>(r)][static_cast<size_t>(lane)] = static_cast<uint32_t>(sum);
    }
  }
  // All of them before the first register of D, which may be one of C.
  const MissingInputs inputs(w, op, rows, 4, 4);
  std::vector<LaneMask> missing;
  missing.reserve(to.size());
  for (int r = 0; r < count(to); ++r) missing.push_back(inputs.of_result(w, op, false, r));
  for (size_t r = 0; r < to.size(); ++r) {
    std::copy_n(d[r].data(), kLanes, w.lanes<uint32_t>(to[r]));
    w.set_undefined(to[r], missing[r], active);
  }
  return Step::kNext;
}

// Lanes 4 q to 4 q + 3 and 16 further compute product q of four.
struct QuadPair {
  int product = 0, quad_lane = 0;
  bool high = false;

  explicit QuadPair(int lane) : product(lane % 16 / 4), quad_lane(lane % 4), high(lane >= 16) {}
  int row() const { return quad_lane + (high ? 4 : 0); }
};

MatrixIndex quad_accumulator(int lane, int i, bool half) {
  const QuadPair q(lane);
  if (half) return {q.row(), i};
  return {(lane & 1) + (i & 2) + (q.high ? 4 : 0), (i & 4) + (lane & 2) + (i & 1)};
}

Step exec_quad_pairs(Warp& w, const Op& op, LaneMask active) {
  if (require_inputs(w, op, active) == Step::kFault) return Step::kFault;
  const ptx::Modifiers& m = op.modifiers();
  const auto to = registers_of(w, op.slot(0)), from_a = registers_of(w, op.slot(1)),
             from_b = registers_of(w, op.slot(2)), from_c = registers_of(w, op.slot(3));
  const bool a_by_column = m.layout == ptx::Layout::kCol;
  const bool b_by_row = m.layout2 == ptx::Layout::kRow;
  const bool d_half = m.types[0] == ptx::Type::kF16, c_half = m.types[3] == ptx::Type::kF16;
  std::array<std::array<uint32_t, 32>, 4> a{}, b{};
  std::array<std::array<uint32_t, 64>, 4> d{};
  // By product: rows of A, columns of B and elements of C that something never written is in.
  std::array<uint64_t, 4> missing_rows{}, missing_columns{}, missing_c{};
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
    const QuadPair q(lane);
    const auto product = static_cast<size_t>(q.product);
    for (int i = 0; i < 4; ++i) {
      const uint32_t shift = 16 * (static_cast<uint32_t>(i) % 2);
      const uint32_t code_a = word_of(w, from_a, i / 2, lane) >> shift & 0xffff;
      const uint32_t code_b = word_of(w, from_b, i / 2, lane) >> shift & 0xffff;
      const int own = i + (q.high ? 4 : 0);
      const auto r = static_cast<size_t>(i / 2);
      missing_rows[product] |= uint64_t{w.undefined(from_a[r]) >> lane & 1}
                               << (a_by_column ? own : q.row());
      missing_columns[product] |= uint64_t{w.undefined(from_b[r]) >> lane & 1}
                                  << (b_by_row ? own : q.row());
      a[product][static_cast<size_t>(a_by_column ? own * 4 + q.quad_lane : q.row() * 4 + i)] =
          code_a;
      b[product][static_cast<size_t>(b_by_row ? own * 4 + q.quad_lane : q.row() * 4 + i)] = code_b;
    }
    for (int i = 0; i < 8; ++i) {
      const MatrixIndex at = quad_accumulator(lane, i, c_half);
      const int r = c_half ? i / 2 : i;
      const uint32_t word = word_of(w, from_c, r, lane);
      missing_c[product] |= uint64_t{w.undefined(from_c[static_cast<size_t>(r)]) >> lane & 1}
                            << (at.row * 8 + at.column);
      const uint32_t code = c_half ? word >> (16 * (static_cast<uint32_t>(i) % 2)) & 0xffff : word;
      d[product][static_cast<size_t>(at.row * 8 + at.column)] =
          c_half && !d_half
              ? std::bit_cast<uint32_t>(static_cast<float>(to_double(NumberFormat::kF16, code)))
              : code;
    }
  }
  MmaProblem p;
  p.m = p.n = 8;
  p.k = 4;
  p.a_format = p.b_format = NumberFormat::kF16;
  p.result = d_half ? MmaResult::kF16 : MmaResult::kF32;
  p.read_d = true;
  for (size_t product = 0; product < 4; ++product) {
    p.a = a[product];
    p.b = b[product];
    p.d = d[product];
    mma_accumulate(p, mma_numerics(w.cta.cluster.grid.options.numerics), MmaFamily::kMmaSync);
  }
  for (int r = 0; r < count(to); ++r) {
    const Operand& d_register = to[static_cast<size_t>(r)];
    LaneMask missing = 0;
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      const auto product = static_cast<size_t>(QuadPair(lane).product);
      const auto at = [&](int i) {
        const MatrixIndex index = quad_accumulator(lane, i, d_half);
        const int place = index.row * 8 + index.column;
        if (((missing_rows[product] >> index.row | missing_columns[product] >> index.column |
              missing_c[product] >> place) &
             1) != 0)
          missing |= LaneMask{1} << lane;
        return d[product][static_cast<size_t>(place)];
      };
      w.lanes<uint32_t>(d_register)[lane] = d_half ? at(2 * r) | at(2 * r + 1) << 16 : at(r);
    }
    w.set_undefined(d_register, missing, active);
  }
  return Step::kNext;
}

}  // namespace

Choice choose_emulated_mma(const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  const auto narrow = [](ptx::Type type) {
    return type == ptx::Type::kS4 || type == ptx::Type::kU4;
  };
  constexpr uint32_t kFlags = kOpAligned | kOpMatrix;
  if (narrow(m.types[1]) && narrow(m.types[2])) return {exec_nibbles, kFlags, 0, ""};
  if (m.m == 8 && m.types[1] == ptx::Type::kF16) {
    if (m.types[0] == ptx::Type::kF16 && m.types[3] == ptx::Type::kF32)
      return Choice::refuse("C in f32 needs D in f32");
    return {exec_quad_pairs, kFlags, 0, ""};
  }
  return {};
}

}  // namespace jitgemm::sim
