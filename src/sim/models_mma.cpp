// SPDX-License-Identifier: Apache-2.0
#include "sim/models_mma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace jitgemm::sim {
namespace {

// Exponent of a term that takes no part in the search for the largest exponent. Two of them, plus
// scales, stay far from overflow and far below every real exponent.
constexpr int32_t kNoExponent = -1000000;

// One operand, decoded once per instruction: rows * k.
struct Decoded {
  std::vector<int32_t> exponent;
  std::vector<int32_t> significand;  // signed
  std::vector<uint8_t> row_special;  // the row holds an infinity or a NaN
};

Decoded decode(NumberFormat format, std::span<const uint32_t> codes, int rows, int k, bool negate) {
  Decoded out;
  out.exponent.resize(codes.size());
  out.significand.resize(codes.size());
  out.row_special.assign(static_cast<size_t>(rows), 0);
  for (size_t i = 0; i < codes.size(); ++i) {
    const Unpacked u = unpack(format, codes[i]);
    const bool finite = u.number_class == NumberClass::kFinite;
    out.exponent[i] = finite ? u.exponent : kNoExponent;
    const int32_t s = finite ? static_cast<int32_t>(u.significand) : 0;
    out.significand[i] = u.negative != negate ? -s : s;
    if (u.number_class == NumberClass::kInfinity || u.number_class == NumberClass::kNan) {
      out.row_special[i / static_cast<size_t>(k)] = 1;
    }
  }
  return out;
}

uint32_t pack(MmaResult result, double value) {
  if (std::isnan(value)) return result == MmaResult::kF16 ? kMmaNanF16 : kMmaNanF32;
  if (value == 0) return 0;
  if (result == MmaResult::kF16) return f16_from_double(value);
  return std::bit_cast<uint32_t>(static_cast<float>(value));
}

NumberFormat result_format(MmaResult result) {
  return result == MmaResult::kF16 ? NumberFormat::kF16 : NumberFormat::kF32;
}

double scaled_value(NumberFormat format, uint32_t code, bool negate) {
  const double value = to_double(format, code);
  return negate ? -value : value;
}

// The plain IEEE meaning of one output: what the window models give when an infinity or a NaN takes
// part (only infinities and NaN come out of those sums, so fp64 loses nothing).
double plain_dot(const MmaProblem& p, int m, int n) {
  const size_t k = static_cast<size_t>(p.k);
  double sum =
      p.read_d
          ? std::ldexp(to_double(result_format(p.result), p.d[static_cast<size_t>(m) * p.n + n]),
                       -p.d_shift)
          : 0.0;
  for (size_t i = 0; i < k; ++i) {
    double product = scaled_value(p.a_format, p.a[m * k + i], p.negate_a) *
                     scaled_value(p.b_format, p.b[n * k + i], p.negate_b);
    if (p.scale_block != 0) {
      const size_t blocks = k / static_cast<size_t>(p.scale_block);
      const size_t block = i / static_cast<size_t>(p.scale_block);
      product *= to_double(p.scale_format, p.scale_a[m * blocks + block]) *
                 to_double(p.scale_format, p.scale_b[n * blocks + block]);
    }
    sum += product;
  }
  return sum;
}

// --- exact
// ----------------------------------------------------------------------------------------

// All values of an operand as doubles, scales multiplied in: exact, since a code and a scale have
// at most 11 + 4 significant bits.
std::vector<double> values_of(NumberFormat format, std::span<const uint32_t> codes, int k,
                              bool negate, const MmaProblem& p, std::span<const uint32_t> scales) {
  std::vector<double> values(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) values[i] = scaled_value(format, codes[i], negate);
  if (p.scale_block == 0) return values;
  const size_t row_length = static_cast<size_t>(k);
  const size_t block = static_cast<size_t>(p.scale_block);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / row_length;
    values[i] *=
        to_double(p.scale_format, scales[row * (row_length / block) + i % row_length / block]);
  }
  return values;
}

void accumulate_exact(const MmaProblem& p) {
  const size_t n = static_cast<size_t>(p.n);
  const size_t k = static_cast<size_t>(p.k);
  const std::vector<double> a = values_of(p.a_format, p.a, p.k, p.negate_a, p, p.scale_a);
  const std::vector<double> b = values_of(p.b_format, p.b, p.k, p.negate_b, p, p.scale_b);
  std::vector<double> b_by_k(n * k);
  for (size_t col = 0; col < n; ++col) {
    for (size_t i = 0; i < k; ++i) b_by_k[i * n + col] = b[col * k + i];
  }
  std::vector<double> sum(n);
  for (size_t row = 0; row < static_cast<size_t>(p.m); ++row) {
    uint32_t* d = p.d.data() + row * n;
    for (size_t col = 0; col < n; ++col) {
      sum[col] =
          !p.read_d ? 0.0 : std::ldexp(to_double(result_format(p.result), d[col]), -p.d_shift);
    }
    for (size_t i = 0; i < k; ++i) {
      const double value = a[row * k + i];
      const double* from = b_by_k.data() + i * n;
      double* to = sum.data();
      for (size_t col = 0; col < n; ++col) to[col] += value * from[col];
    }
    for (size_t col = 0; col < n; ++col) d[col] = pack(p.result, sum[col]);
  }
}

// --- integers
// -------------------------------------------------------------------------------------

// s32 wraps, or is clamped once at the end of the instruction with .satfinite (PTX ISA 9.7.15.5.2).
void accumulate_integer(const MmaProblem& p) {
  const size_t k = static_cast<size_t>(p.k);
  const Decoded a = decode(p.a_format, p.a, p.m, p.k, false);
  const Decoded b = decode(p.b_format, p.b, p.n, p.k, false);
  for (int row = 0; row < p.m; ++row) {
    for (int col = 0; col < p.n; ++col) {
      uint32_t& d = p.d[static_cast<size_t>(row) * p.n + col];
      int64_t sum = p.read_d ? static_cast<int32_t>(d) : 0;
      for (size_t i = 0; i < k; ++i) {
        sum += a.significand[row * k + i] * b.significand[col * k + i];
      }
      if (p.result == MmaResult::kS32Saturated) {
        sum = std::clamp<int64_t>(sum, std::numeric_limits<int32_t>::min(),
                                  std::numeric_limits<int32_t>::max());
      }
      d = static_cast<uint32_t>(sum);
    }
  }
}

// --- the alignment window
// -------------------------------------------------------------------------

// Every term is cut toward zero to a multiple of 2^(E - fraction), E being the largest exponent of
// all terms, then the terms are added exactly and the sum is converted as `finish` says.
enum class Finish : uint8_t { kF32, kE8m13, kF16 };
struct WindowRule {
  int fraction;
  Finish finish;
};

WindowRule window_rule(const MmaProblem& p, MmaNumerics numerics) {
  const bool fp8 = format_bits(p.a_format) <= 8;
  // Measured on an H200 with wgmma: 13 fraction bits for fp8, 25 for 16-bit types and tf32.
  const bool is_short = numerics == MmaNumerics::kHopper && fp8 && p.scale_block == 0;
  if (p.result == MmaResult::kF16) return {is_short ? 13 : 25, Finish::kF16};
  return {is_short ? 13 : 25, is_short ? Finish::kE8m13 : Finish::kF32};
}

uint32_t finish_sum(Finish finish, int64_t sum, int scale) {
  switch (finish) {
    case Finish::kF32: return f32_truncated(sum, scale);
    case Finish::kE8m13: return e8m13_truncated(sum, scale);
    case Finish::kF16: return f16_nearest_even(sum, scale);
  }
  return 0;
}

// |value| is a multiple of 2^-have; returns value * 2^-below cut toward zero at 2^-want.
int64_t aligned(int64_t value, int have, int want, int below) {
  const int right = below + have - want;
  const int64_t magnitude = value < 0 ? -value : value;
  int64_t cut = 0;
  if (right <= 0) {
    cut = magnitude << -right;
  } else if (right < 63) {
    cut = magnitude >> right;
  }
  return value < 0 ? -cut : cut;
}

struct Accumulator {
  bool special = false;
  int32_t exponent = kNoExponent;
  int64_t significand = 0;
};

Accumulator read_accumulator(const MmaProblem& p, size_t index) {
  if (!p.read_d) return {};
  const Unpacked u = unpack(result_format(p.result), p.d[index]);
  if (u.number_class == NumberClass::kZero) return {};
  if (u.number_class != NumberClass::kFinite) return {true, 0, 0};
  const int64_t significand = u.significand;
  return {false, u.exponent - p.d_shift, u.negative ? -significand : significand};
}

void accumulate_window(const MmaProblem& p, MmaNumerics numerics) {
  const WindowRule rule = window_rule(p, numerics);
  const size_t k = static_cast<size_t>(p.k);
  const int d_fraction = fraction_bits(result_format(p.result));
  const int product_fraction = fraction_bits(p.a_format) + fraction_bits(p.b_format);
  const Decoded a = decode(p.a_format, p.a, p.m, p.k, p.negate_a);
  const Decoded b = decode(p.b_format, p.b, p.n, p.k, p.negate_b);
  Decoded scale_a;
  Decoded scale_b;
  if (p.scale_block != 0) {
    scale_a = decode(p.scale_format, p.scale_a, p.m, 1, false);
    scale_b = decode(p.scale_format, p.scale_b, p.n, 1, false);
  }
  // Left shift that makes a product's magnitude a multiple of the window's unit at exponent E.
  const int lift = rule.fraction - product_fraction;
  for (size_t row = 0; row < static_cast<size_t>(p.m); ++row) {
    const int32_t* ea = a.exponent.data() + row * k;
    const int32_t* sa = a.significand.data() + row * k;
    for (size_t col = 0; col < static_cast<size_t>(p.n); ++col) {
      const size_t index = row * static_cast<size_t>(p.n) + col;
      const Accumulator acc = read_accumulator(p, index);
      bool special = acc.special || a.row_special[row] != 0 || b.row_special[col] != 0;
      int32_t scale_exponent = 0;
      if (p.scale_block != 0) {
        special = special || scale_a.row_special[row] != 0 || scale_b.row_special[col] != 0;
        scale_exponent = scale_a.exponent[row] + scale_b.exponent[col];
      }
      if (special) {
        p.d[index] = pack(p.result, plain_dot(p, static_cast<int>(row), static_cast<int>(col)));
        continue;
      }
      const int32_t* eb = b.exponent.data() + col * k;
      const int32_t* sb = b.significand.data() + col * k;
      int32_t top = kNoExponent;
      for (size_t i = 0; i < k; ++i) top = std::max(top, ea[i] + eb[i]);
      if (top > kNoExponent / 2) top += scale_exponent;
      top = std::max(top, acc.exponent);
      if (top < kNoExponent / 2) {
        p.d[index] = 0;
        continue;
      }
      int64_t sum = 0;
      const int32_t base = top - scale_exponent;
      for (size_t i = 0; i < k; ++i) {
        const int64_t product = static_cast<int64_t>(sa[i]) * sb[i];
        const int32_t below = std::min(base - (ea[i] + eb[i]), 63);
        const int64_t magnitude = ((product < 0 ? -product : product) << lift) >> below;
        sum += product < 0 ? -magnitude : magnitude;
      }
      if (acc.significand != 0) {
        sum += aligned(acc.significand, d_fraction, rule.fraction, top - acc.exponent);
      }
      p.d[index] = finish_sum(rule.finish, sum, top - rule.fraction);
    }
  }
}

// The 4-bit scaled kinds: products of a group of 16 are summed exactly, the group's significand is
// multiplied by the scales' significands and aligned by the scales' exponents alone, 35 fraction
// bits. A group whose products all vanish takes no part, one whose sum cancels does.
void accumulate_grouped(const MmaProblem& p) {
  constexpr int kGroup = 16;
  constexpr int kFraction = 35;
  const size_t k = static_cast<size_t>(p.k);
  const size_t groups = k / kGroup;
  const size_t blocks = k / static_cast<size_t>(p.scale_block);
  const size_t groups_per_block = groups / blocks;
  const int term_fraction = 2 * fraction_bits(p.a_format) + 2 * fraction_bits(p.scale_format);
  // fp4 exponents are 0..2, so a product is an integer in units of 2^-2.
  const Decoded a = decode(p.a_format, p.a, p.m, p.k, p.negate_a);
  const Decoded b = decode(p.b_format, p.b, p.n, p.k, p.negate_b);
  const Decoded scale_a = decode(p.scale_format, p.scale_a, p.m, static_cast<int>(blocks), false);
  const Decoded scale_b = decode(p.scale_format, p.scale_b, p.n, static_cast<int>(blocks), false);
  std::vector<int32_t> exponent(groups);
  std::vector<int64_t> significand(groups);
  for (size_t row = 0; row < static_cast<size_t>(p.m); ++row) {
    for (size_t col = 0; col < static_cast<size_t>(p.n); ++col) {
      const size_t index = row * static_cast<size_t>(p.n) + col;
      const Accumulator acc = read_accumulator(p, index);
      if (acc.special || scale_a.row_special[row] != 0 || scale_b.row_special[col] != 0) {
        p.d[index] = pack(p.result, plain_dot(p, static_cast<int>(row), static_cast<int>(col)));
        continue;
      }
      int32_t top = acc.exponent;
      for (size_t g = 0; g < groups; ++g) {
        int64_t sum = 0;
        bool any = false;
        for (size_t i = g * kGroup; i < (g + 1) * kGroup; ++i) {
          const int64_t product =
              static_cast<int64_t>(a.significand[row * k + i]) * b.significand[col * k + i];
          if (product == 0) continue;
          any = true;
          sum += product * (int64_t{1} << (a.exponent[row * k + i] + b.exponent[col * k + i]));
        }
        const size_t sa = row * blocks + g / groups_per_block;
        const size_t sb = col * blocks + g / groups_per_block;
        significand[g] = sum * scale_a.significand[sa] * scale_b.significand[sb];
        any = any && scale_a.significand[sa] != 0 && scale_b.significand[sb] != 0;
        exponent[g] = any ? scale_a.exponent[sa] + scale_b.exponent[sb] : kNoExponent;
        top = std::max(top, exponent[g]);
      }
      if (top < kNoExponent / 2) {
        p.d[index] = 0;
        continue;
      }
      int64_t sum = 0;
      for (size_t g = 0; g < groups; ++g) {
        sum += aligned(significand[g], term_fraction, kFraction, top - exponent[g]);
      }
      if (acc.significand != 0) {
        sum += aligned(acc.significand, fraction_bits(NumberFormat::kF32), kFraction,
                       top - acc.exponent);
      }
      p.d[index] = f32_truncated(sum, top - kFraction);
    }
  }
}

// fp8 mma.sync has no datapath of its own on SM90: ptxas widens the operands to f16 and emits two
// f16 instructions, the first over k mod 4 < 2 from zero, the second over the rest on top of it,
// and adds D in floating point at the end. With D in f16 every step is in f16.
void accumulate_widened_fp8(const MmaProblem& p) {
  const size_t k = static_cast<size_t>(p.k);
  std::vector<uint32_t> sum(static_cast<size_t>(p.m) * static_cast<size_t>(p.n), 0);
  for (size_t part = 0; part < 2; ++part) {
    const auto widen = [&](NumberFormat format, std::span<const uint32_t> codes) {
      std::vector<uint32_t> out;
      for (size_t i = 0; i < codes.size(); ++i) {
        if (i % k % 4 / 2 == part) out.push_back(f16_from_double(to_double(format, codes[i])));
      }
      return out;
    };
    const std::vector<uint32_t> a = widen(p.a_format, p.a);
    const std::vector<uint32_t> b = widen(p.b_format, p.b);
    MmaProblem half = p;
    half.k = p.k / 2;
    half.a_format = NumberFormat::kF16;
    half.b_format = NumberFormat::kF16;
    half.a = a;
    half.b = b;
    half.d = sum;
    half.read_d = part == 1;
    accumulate_window(half, MmaNumerics::kHopper);
  }
  const NumberFormat format = result_format(p.result);
  for (size_t i = 0; i < sum.size(); ++i) {
    const double d = p.read_d ? to_double(format, p.d[i]) : 0.0;
    p.d[i] = pack(p.result, to_double(format, sum[i]) + d);
  }
}

}  // namespace

std::string_view mma_numerics_name(MmaNumerics numerics) {
  switch (numerics) {
    case MmaNumerics::kExact: return "exact";
    case MmaNumerics::kHopper: return "hopper";
    case MmaNumerics::kBlackwell: return "blackwell";
  }
  return "";
}

void mma_accumulate(const MmaProblem& p, MmaNumerics numerics, MmaFamily family) {
  if (p.result == MmaResult::kS32 || p.result == MmaResult::kS32Saturated) {
    return accumulate_integer(p);
  }
  if (numerics == MmaNumerics::kExact) return accumulate_exact(p);
  if (p.scale_block != 0 && p.k > 32) return accumulate_grouped(p);
  const bool fp8 = format_bits(p.a_format) == 8;
  if (numerics == MmaNumerics::kHopper && family == MmaFamily::kMmaSync && fp8) {
    return accumulate_widened_fp8(p);
  }
  accumulate_window(p, numerics);
}

void mma_accumulate_f64(int m, int n, int k, std::span<const double> a, std::span<const double> b,
                        std::span<double> d) {
  const auto at = [](int row, int column, int columns) {
    return static_cast<size_t>(row) * static_cast<size_t>(columns) + static_cast<size_t>(column);
  };
  for (int row = 0; row < m; ++row) {
    for (int col = 0; col < n; ++col) {
      double sum = d[at(row, col, n)];
      for (int i = 0; i < k; ++i) {
        sum = std::fma(a[at(row, i, k)], b[at(col, i, k)], sum);
      }
      d[at(row, col, n)] = sum;
    }
  }
}

}  // namespace jitgemm::sim
