// SPDX-License-Identifier: Apache-2.0
// IEEE arithmetic as PTX defines it, on host floats and on the bits of the 16-bit and smaller
// formats: every result is rounded once, in the asked mode (PTX ISA 9.7.3 - 9.7.5, 9.7.9.21). Pure
// functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace jitgemm::sim {

// kNearestAway: ties away from zero (.rna).
enum class RoundTo : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

inline constexpr uint32_t kNanF32 = 0x7fffffff;
inline constexpr uint16_t kNan16 = 0x7fff;  // f16 and bf16

inline float flush(float v, bool ftz) {
  const uint32_t bits = std::bit_cast<uint32_t>(v);
  return ftz && (bits & 0x7f800000) == 0 ? std::bit_cast<float>(bits & 0x80000000) : v;
}
inline float saturate_unit(float v) {
  return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f;
}  // NaN gives +0
inline uint16_t flush_f16(uint16_t v) {
  return (v & 0x7c00) == 0 ? static_cast<uint16_t>(v & 0x8000) : v;
}

inline float float_from_bf16(uint16_t v) {
  return std::bit_cast<float>(uint32_t{v} << 16);
}
float float_from_f16(uint16_t v);

// A binary format of at most 24 significand bits.
struct SmallFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // exponent all ones is infinity and NaN, as in IEEE
  bool has_nan;
  uint32_t max_code;  // of the largest finite magnitude
  uint32_t nan_code;
};
inline constexpr SmallFormat kFormatF16 = {5, 10, true, true, 0x7bff, 0x7fff};
inline constexpr SmallFormat kFormatBf16 = {8, 7, true, true, 0x7f7f, 0x7fff};
inline constexpr SmallFormat kFormatF32 = {8, 23, true, true, 0x7f7fffff, kNanF32};
inline constexpr SmallFormat kFormatTf32 = {8, 10, true, true, 0x3fbff, 0x3ffff};
inline constexpr SmallFormat kFormatE4m3 = {4, 3, false, true, 0x7e, 0x7f};
inline constexpr SmallFormat kFormatE5m2 = {5, 2, true, true, 0x7b, 0x7f};
inline constexpr SmallFormat kFormatE2m3 = {2, 3, false, false, 0x1f, 0x1f};
inline constexpr SmallFormat kFormatE3m2 = {3, 2, false, false, 0x1f, 0x1f};
inline constexpr SmallFormat kFormatE2m1 = {2, 1, false, false, 0x7, 0x7};

// The code of `value` in `format`, rounded once. Overflow gives infinity (or the largest finite
// value where the mode rounds away from it), or the largest finite value with satfinite and in
// formats without infinity. `value` must be exact, or rounded to odd in double, so that one
// rounding remains.
uint32_t encode(double value, const SmallFormat& format, RoundTo mode, bool satfinite);
double decode(uint32_t code, const SmallFormat& format);

// a + b and a * b + c in double, rounded to odd: a second rounding to 24 bits or fewer is then
// exact.
double add_to_odd(double a, double b);
inline double product_sum_to_odd(float a, float b, float c) {
  return add_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c));
}

// The smaller or larger; NaN loses against a number unless `nan_propagates`; -0 is below +0.
float float_min_max(float a, float b, bool min, bool nan_propagates);
double double_min_max(double a, double b, bool min);

inline float canonical(float v) {
  return v != v ? std::bit_cast<float>(kNanF32) : v;
}

}  // namespace jitgemm::sim
