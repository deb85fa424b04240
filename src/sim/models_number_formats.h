// SPDX-License-Identifier: Apache-2.0
// The number formats that the matrix instructions read, and the two that they write: how a code
// becomes sign, exponent and significand, and how an exact sum becomes a float again. Pure
// functions; nothing here knows of machines, memory or instructions.
// Formats: PTX ISA 5.2.2 (sub-byte and alternate floating point), 9.7.16.10.4 (packing).
#pragma once

#include <cstdint>
#include <string_view>

namespace jitgemm::sim {

enum class NumberFormat : uint8_t {
  kE4m3,   // fp8, no infinity, NaN is S.1111.111
  kE5m2,   // fp8, IEEE-like infinity and NaN
  kE2m3,   // fp6, finite only
  kE3m2,   // fp6, finite only
  kE2m1,   // fp4, finite only
  kUe8m0,  // scale: 2^(x-127), 255 is NaN
  kUe4m3,  // scale: e4m3 whose sign bit is ignored
  kF16,
  kBf16,
  kTf32,  // the low 13 bits of the 32-bit container are dropped
  kF32,
  kS8,
  kU8,
};

std::string_view format_name(NumberFormat format);
// Bits that carry the value: 4, 6, 8, 16 or 32 (the tf32 container).
int format_bits(NumberFormat format);
// Bits after the binary point of a significand; a normal number has one more bit before it.
int fraction_bits(NumberFormat format);

enum class NumberClass : uint8_t { kZero, kFinite, kInfinity, kNan };

// value = (negative ? -1 : 1) * significand * 2^(exponent - fraction_bits(format)).
// A subnormal keeps the smallest exponent and a significand below 2^fraction_bits.
struct Unpacked {
  NumberClass number_class = NumberClass::kZero;
  bool negative = false;
  int32_t exponent = 0;
  uint32_t significand = 0;
};

Unpacked unpack(NumberFormat format, uint32_t code);
double to_double(NumberFormat format, uint32_t code);

// sum * 2^scale, converted. `sum` is exact; the rest of the rounding is named by the function.
// NaN never comes out; magnitudes beyond the format become infinity; zero is +0.
uint32_t f32_truncated(int64_t sum, int scale);
// As f32_truncated, keeping 13 fraction bits (the result of Hopper's fp8 accumulator).
uint32_t e8m13_truncated(int64_t sum, int scale);
uint16_t f16_nearest_even(int64_t sum, int scale);
uint16_t f16_from_double(double value);
uint16_t f16_from_f32(float value);

inline constexpr uint32_t kMmaNanF32 = 0x7fffffff;
inline constexpr uint16_t kMmaNanF16 = 0x7fff;
// OOB-NaN (PTX ISA 5.5.3.3): what a tensor copy fills with, 16 bits after 16 bits whatever the
// type, and what fma.oob takes for out of bounds, of either sign. The ISA gives no bits; measured
// on an H200, for f16 and bf16 alike.
inline constexpr uint16_t kOobNan16 = 0x7ff7;

}  // namespace jitgemm::sim
