// SPDX-License-Identifier: Apache-2.0
// Fills operands of timed products with random values where they are needed: codes of a clipped
// normal distribution, or uniform fp32 scales in any layout. Element (row, column) is a function of
// the seed and of its place alone, so one matrix in two layouts holds the same values. Fast rather
// than reproducible on a host: what checks a product reads the operands back.
#ifndef JITGEMM_SPECIALIZED
#include "example/measure_draw_spec.cuh"
#endif

#include "device/convert.cuh"

enum DrawKind : int { kDrawCodes = 0, kDrawScales = 1, kDrawBF16 = 2 };

struct MeasureDrawParams {
  void* values;
  unsigned long long rows;
  unsigned long long columns;
  long long row_stride;  // in elements
  long long column_stride;
  unsigned long long seed;
  float deviation;  // of codes, and of 16-bit values
  float low;        // of scales
  float high;
  unsigned reserved;
};
static_assert(sizeof(MeasureDrawParams) == 64, "src/bench/gpu_kernels.cpp mirrors this struct");

// A finaliser of 64 bits: every input bit reaches every output bit.
__device__ __forceinline__ unsigned long long mix(unsigned long long x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  return x;
}

__device__ __forceinline__ float2 normal_pair(unsigned long long bits) {
  const float u = (static_cast<float>(static_cast<unsigned>(bits >> 32)) + 1.0f) * 0x1p-32f;
  const float angle = static_cast<float>(static_cast<unsigned>(bits)) * (6.2831853f * 0x1p-32f);
  const float radius = sqrtf(-2.0f * __logf(u));
  return make_float2(radius * __cosf(angle), radius * __sinf(angle));
}

__device__ __forceinline__ unsigned short codes_pair(float2 values) {
  unsigned short bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(values.y), "f"(values.x));
  return bits;
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ MeasureDrawParams p) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * Spec::kThreads;
  const unsigned long long first =
      static_cast<unsigned long long>(blockIdx.x) * Spec::kThreads + threadIdx.x;
  const unsigned long long count = p.rows * p.columns;
  if constexpr (Spec::kKind == kDrawScales) {
    float* values = static_cast<float*>(p.values);
    for (unsigned long long i = first; i < count; i += step) {
      const unsigned long long row = i / p.columns;
      const unsigned long long column = i - row * p.columns;
      const float u = static_cast<float>(static_cast<unsigned>(mix(p.seed + i) >> 40)) * 0x1p-24f;
      values[static_cast<long long>(row) * p.row_stride +
             static_cast<long long>(column) * p.column_stride] = p.low + (p.high - p.low) * u;
    }
  } else {
    // Dense rows: pairs of neighbours. An odd last element is drawn alone.
    for (unsigned long long pair = first; 2 * pair < count; pair += step) {
      float2 values = normal_pair(mix(p.seed + pair));
      values.x *= p.deviation;
      values.y *= p.deviation;
      if constexpr (Spec::kKind == kDrawCodes) {
        const unsigned short codes = codes_pair(values);
        if (2 * pair + 1 < count) {
          static_cast<unsigned short*>(p.values)[pair] = codes;
        } else {
          static_cast<unsigned char*>(p.values)[2 * pair] = static_cast<unsigned char>(codes);
        }
      } else {
        unsigned short* out = static_cast<unsigned short*>(p.values);
        out[2 * pair] = convert_output<kBF16>(values.x);
        if (2 * pair + 1 < count) out[2 * pair + 1] = convert_output<kBF16>(values.y);
      }
    }
  }
}
