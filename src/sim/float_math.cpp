// SPDX-License-Identifier: Apache-2.0
#include "sim/float_math.h"

#include <limits>

namespace jitgemm::sim {

float float_from_f16(uint16_t v) {
  const uint32_t sign = uint32_t{v & 0x8000u} << 16;
  const uint32_t exponent = v >> 10 & 31, mantissa = v & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint32_t encode(double value, const SmallFormat& f, RoundTo mode, bool satfinite) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  const bool negative = (bits >> 63) != 0;
  const uint32_t sign = negative ? sign_bit : 0;
  if (value != value) return f.has_nan ? f.nan_code : f.max_code;
  const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
  if (std::isinf(value)) {
    if (f.has_infinity && !satfinite) return sign | infinity;
    return sign | (satfinite || !f.has_nan ? f.max_code : f.nan_code);
  }
  if (value == 0) return sign;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const int min_exponent = 1 - bias;
  int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  uint64_t significand = bits & ((uint64_t{1} << 52) - 1);
  if (exponent == -1023) {
    exponent = -1022;  // subnormal doubles are far below every format here
  } else {
    significand |= uint64_t{1} << 52;
  }
  // Units of the result: 2^(unit - mantissa_bits).
  const int unit = exponent < min_exponent ? min_exponent : exponent;
  const int drop = 52 - f.mantissa_bits + (unit - exponent);
  uint64_t kept = drop > 63 ? 0 : significand >> drop;
  const uint64_t rest = drop > 63 ? significand : significand & ((uint64_t{1} << drop) - 1);
  bool up = false;
  if (rest != 0) {
    const uint64_t half = drop > 63 ? ~uint64_t{0} : uint64_t{1} << (drop - 1);
    switch (mode) {
      case RoundTo::kNearest: up = rest > half || (rest == half && (kept & 1) != 0); break;
      case RoundTo::kNearestAway: up = rest >= half; break;
      case RoundTo::kZero: break;
      case RoundTo::kDown: up = negative; break;
      case RoundTo::kUp: up = !negative; break;
    }
  }
  if (up) ++kept;
  // kept counts units; with the implicit bit it runs into the exponent field by itself.
  const uint64_t code = kept + (static_cast<uint64_t>(unit - min_exponent) << f.mantissa_bits);
  if (code <= f.max_code) return sign | static_cast<uint32_t>(code);
  if (satfinite || (!f.has_infinity && !f.has_nan)) return sign | f.max_code;
  const bool away = mode == RoundTo::kNearest || mode == RoundTo::kNearestAway ||
                    (mode == RoundTo::kUp && !negative) || (mode == RoundTo::kDown && negative);
  if (!away) return sign | f.max_code;
  return sign | (f.has_infinity ? infinity : f.nan_code);
}

double decode(uint32_t code, const SmallFormat& f) {
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const uint32_t field = code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  const bool negative = (code >> (f.exponent_bits + f.mantissa_bits) & 1) != 0;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  double v;
  if (f.has_infinity && field == (1u << f.exponent_bits) - 1) {
    v = mantissa == 0 ? std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
  } else if (!f.has_infinity && f.has_nan &&
             (code & ((1u << (f.exponent_bits + f.mantissa_bits)) - 1)) == f.nan_code) {
    v = std::numeric_limits<double>::quiet_NaN();
  } else if (field == 0) {
    v = std::ldexp(static_cast<double>(mantissa), 1 - bias - f.mantissa_bits);
  } else {
    v = std::ldexp(static_cast<double>(mantissa | 1u << f.mantissa_bits),
                   static_cast<int>(field) - bias - f.mantissa_bits);
  }
  return negative ? -v : v;
}

double add_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  // The exact error of the sum (Knuth's two-sum).
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  if (error == 0) return sum;
  uint64_t bits = std::bit_cast<uint64_t>(sum);
  if ((bits & 1) != 0)
    return sum;  // odd already: the true value is on one of its sides, never a tie
  // The true value lies between sum and its neighbour towards the error; both neighbours are odd.
  const bool away_from_zero = (error > 0) == (sum > 0);
  bits += away_from_zero ? 1 : uint64_t(-1);
  return std::bit_cast<double>(bits);
}

float float_min_max(float a, float b, bool min, bool nan_propagates) {
  const bool nan_a = a != a, nan_b = b != b;
  if (nan_a || nan_b) {
    if (nan_propagates || (nan_a && nan_b)) return std::bit_cast<float>(kNanF32);
    return nan_a ? b : a;
  }
  if (a == b) return std::signbit(a) == min ? a : b;
  return (a < b) == min ? a : b;
}

double double_min_max(double a, double b, bool min) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) == min ? a : b;
  return (a < b) == min ? a : b;
}

}  // namespace jitgemm::sim
