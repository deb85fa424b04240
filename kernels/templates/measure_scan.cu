// SPDX-License-Identifier: Apache-2.0
// Reads memory once and counts the elements that are not finite: the check that a kernel wrote
// every element of an output that was filled with NaN before, and the ceiling of what a kernel can
// read.
#ifndef JITGEMM_SPECIALIZED
#include "example/measure_scan_spec.cuh"
#endif

struct MeasureScanParams {
  const unsigned char* data;
  unsigned long long bytes;  // from a 16-byte boundary on
  unsigned long long* found;
};
static_assert(sizeof(MeasureScanParams) == 24, "src/bench/gpu_kernels.cpp mirrors this struct");

enum ScanType : int { kScanF32 = 0, kScanBF16 = 1, kScanF16 = 2 };

// Of one 32-bit word: an exponent of all ones is NaN or infinity.
__device__ __forceinline__ unsigned not_finite(unsigned word) {
  if constexpr (Spec::kType == kScanF32) {
    return (word & 0x7f800000u) == 0x7f800000u ? 1 : 0;
  } else {
    constexpr unsigned kExponent = Spec::kType == kScanBF16 ? 0x7f80u : 0x7c00u;
    return ((word & kExponent) == kExponent ? 1 : 0) +
           ((word >> 16 & kExponent) == kExponent ? 1 : 0);
  }
}

__device__ __forceinline__ unsigned not_finite(uint4 words) {
  return not_finite(words.x) + not_finite(words.y) + not_finite(words.z) + not_finite(words.w);
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ MeasureScanParams p) {
  constexpr int kUnroll = 4;
  const uint4* vectors = reinterpret_cast<const uint4*>(p.data);
  const unsigned long long count = p.bytes / 16;
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * Spec::kThreads;
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * Spec::kThreads + threadIdx.x;
  unsigned found = 0;
  for (; i + (kUnroll - 1) * step < count; i += kUnroll * step) {
    uint4 words[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      words[u] = __ldcs(vectors + i + u * step);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      found += not_finite(words[u]);
    }
  }
  for (; i < count; i += step) {
    found += not_finite(vectors[i]);
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    for (unsigned long long byte = 16 * count; byte < p.bytes; byte += 2) {
      const unsigned short half = *reinterpret_cast<const unsigned short*>(p.data + byte);
      // Of fp32 the upper half holds the exponent.
      if (Spec::kType != kScanF32) {
        found += not_finite(static_cast<unsigned>(half));
      } else if (byte % 4 == 2) {
        found += not_finite(static_cast<unsigned>(half) << 16);
      }
    }
  }
  if (found != 0) atomicAdd(p.found, static_cast<unsigned long long>(found));
}
