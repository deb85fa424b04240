// SPDX-License-Identifier: Apache-2.0
// What quantising kernels share: codes of two values, the scale of a block. The arithmetic is that
// of the host quantiser (src/verify/quantizer.h), operation by operation. Of Spec it needs kTypeA,
// kScaleType and kPowerOfTwo.
#pragma once

#include "device/convert.cuh"

// Two fp32 as FP8 codes, saturating, NaN becoming the code 0x7f; `low` in the low byte.
__device__ __forceinline__ unsigned encode_pair(float low, float high) {
  unsigned short codes;
  if constexpr (Spec::kTypeA == kE4M3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(high), "f"(low));
  }
  return codes;
}

// The larger of two; a NaN of either side stays. fmaxf would drop it.
__device__ __forceinline__ float propagating_max(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ __forceinline__ float block_scale(float amax) {
  const float largest = Spec::kTypeA == kE4M3 ? 448.0f : 57344.0f;
  float scale = propagating_max(__fdiv_rn(amax, largest), 1e-10f);
  const unsigned bits = __float_as_uint(scale);
  if (bits > 0x7f800000u) {
    return __uint_as_float(0x7fc00000u);  // one NaN, wherever it came from
  }
  if constexpr (Spec::kPowerOfTwo) {
    scale = __uint_as_float((bits + 0x7fffffu) & 0xff800000u);  // infinity stays
  }
  return scale;
}

__device__ __forceinline__ void store_scale(void* scales, long long index, float scale) {
  if constexpr (Spec::kScaleType == 0) {
    static_cast<float*>(scales)[index] = scale;
  } else {
    static_cast<unsigned char*>(scales)[index] =
        static_cast<unsigned char>(__float_as_uint(scale) >> 23);  // 255 is NaN
  }
}
