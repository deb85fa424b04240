// SPDX-License-Identifier: Apache-2.0
// Conversions between storage formats and fp32: FP8 codes in, outputs out. Round to nearest even,
// no saturation, NaN and infinity kept. The numbering is that of Spec::kTypeA, kTypeB and kOut.
#pragma once

enum OperandType : int { kE4M3 = 0, kE5M2 = 1, kF16Operand = 2, kBF16Operand = 3 };
enum OutputType : int { kF32 = 0, kBF16 = 1, kF16 = 2 };

template <int kOutputType>
struct OutputStorage {
  using Type = unsigned short;
};
template <>
struct OutputStorage<kF32> {
  using Type = float;
};

// One FP8 code as fp32, exact. In integer arithmetic, so that any architecture can run it. OCP
// 8-bit floating point: e4m3 has one NaN code per sign (all ones) and no infinity; e5m2 is a short
// fp16.
template <int kOperandType>
__device__ __forceinline__ float decode_fp8(unsigned char code) {
  constexpr int kMantissaBits = kOperandType == kE4M3 ? 3 : 2;
  constexpr int kBias = kOperandType == kE4M3 ? 7 : 15;
  constexpr unsigned kExponentMax = kOperandType == kE4M3 ? 15u : 31u;
  constexpr unsigned kMantissaMax = (1u << kMantissaBits) - 1;
  const unsigned sign = static_cast<unsigned>(code & 0x80) << 24;
  const unsigned exponent = (code >> kMantissaBits) & kExponentMax;
  const unsigned mantissa = code & kMantissaMax;
  const bool is_nan = kOperandType == kE4M3 ? exponent == kExponentMax && mantissa == kMantissaMax
                                            : exponent == kExponentMax && mantissa != 0;
  if (is_nan) {
    return __uint_as_float(0x7fc00000u | sign);
  }
  if (kOperandType == kE5M2 && exponent == kExponentMax) {
    return __uint_as_float(0x7f800000u | sign);
  }
  if (exponent == 0) {  // subnormal: mantissa * 2^(1 - bias - mantissa bits)
    const float unit =
        __uint_as_float(static_cast<unsigned>(127 + 1 - kBias - kMantissaBits) << 23);
    const float magnitude = static_cast<float>(mantissa) * unit;
    return __uint_as_float(__float_as_uint(magnitude) | sign);
  }
  return __uint_as_float(sign | ((exponent + 127 - kBias) << 23) |
                         (mantissa << (23 - kMantissaBits)));
}

// One fp32 as the output type's bits.
template <int kOutputType>
__device__ __forceinline__ typename OutputStorage<kOutputType>::Type convert_output(float value) {
  if constexpr (kOutputType == kF32) {
    return value;
  } else {
    unsigned short bits;
    if constexpr (kOutputType == kBF16) {
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    } else {
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    }
    return bits;
  }
}

// Two fp32 as a pair of 16-bit outputs, `low` at the lower address.
template <int kOutputType>
__device__ __forceinline__ unsigned pack_outputs(float low, float high) {
  unsigned bits;
  if constexpr (kOutputType == kBF16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  } else {
    static_assert(kOutputType == kF16, "only 16-bit outputs are packed");
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  }
  return bits;
}
