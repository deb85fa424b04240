// SPDX-License-Identifier: Apache-2.0
// The reference product: one thread an output, ordinary loads, any architecture, shape and stride.
// It is chosen by override only. fp32 throughout, in this order: inside a scale block of k, dot =
// fma(a, b, dot) for rising k; then s = a_scale * b_scale and acc = fma(dot, s, acc), blocks in
// rising order; one rounding to the output type.
#ifndef JITGEMM_SPECIALIZED
#include "example/gemm_reference_spec.cuh"
#endif

#include "device/convert.cuh"
#include "device/params.cuh"

static_assert(Spec::kThreads % Spec::kTileN == 0, "a row of threads covers the tile's columns");
static_assert(Spec::kGroupK >= 1 && Spec::kGroupN >= 1, "scale blocks");

// A scale as fp32: itself, or the power of two that an E8M0 byte stands for (OCP microscaling
// formats: 2^(code - 127), 255 is NaN).
__device__ __forceinline__ float load_scale(const void* scales, long long index) {
  if constexpr (Spec::kScaleType == 0) {
    return static_cast<const float*>(scales)[index];
  } else {
    const unsigned code = static_cast<const unsigned char*>(scales)[index];
    return __uint_as_float(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23);
  }
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads, 1)
    jitgemm_kernel(const __grid_constant__ GemmParams p) {
  if constexpr (Spec::kArch >= 90) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
  }
  const int m = Spec::kM > 0 ? Spec::kM : p.m;
  const int thread = static_cast<int>(threadIdx.x);
  const int column = static_cast<int>(blockIdx.x) * Spec::kTileN + thread % Spec::kTileN;
  if (column >= Spec::kN) {
    return;
  }
  const unsigned char* b = p.b + column * p.ldb;
  // A tile has a row for each of the warps; the grid may have fewer tiles than there are.
  static_assert(Spec::kThreads == Spec::kTileM * Spec::kTileN, "a thread an output");
  for (long long row = static_cast<long long>(blockIdx.y) * Spec::kTileM + thread / Spec::kTileN;
       row < m; row += static_cast<long long>(gridDim.y) * Spec::kTileM) {
    const unsigned char* a = p.a + row * p.lda;
    float acc = 0.0f;
    for (int first = 0, block = 0; first < Spec::kK; first += Spec::kGroupK, ++block) {
      const int end = first + Spec::kGroupK < Spec::kK ? first + Spec::kGroupK : Spec::kK;
      float dot = 0.0f;
      for (int k = first; k < end; ++k) {
        dot = __fmaf_rn(decode_fp8<Spec::kTypeA>(a[k]), decode_fp8<Spec::kTypeB>(b[k]), dot);
      }
      const float a_scale =
          load_scale(p.a_scales, row * p.a_scale_stride_m + block * p.a_scale_stride_k);
      const float b_scale = load_scale(
          p.b_scales, column / Spec::kGroupN * p.b_scale_stride_n + block * p.b_scale_stride_k);
      acc = __fmaf_rn(dot, __fmul_rn(a_scale, b_scale), acc);
    }
    using Output = OutputStorage<Spec::kOut>::Type;
    static_cast<Output*>(p.out)[row * p.ldo + column] = convert_output<Spec::kOut>(acc);
  }
}
