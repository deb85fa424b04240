// SPDX-License-Identifier: Apache-2.0
// A dense fp32 matrix to FP8 codes, with one scale for each block of kGroupRows x kGroupCols, as
// weights have them: for tests at full size, no operation uses it. A CTA takes a block at a time;
// its threads go along rows. kSigned: by the largest x instead of the largest |x|. The bits are
// those of the host quantiser (src/verify/quantizer.h).
#ifndef JITGEMM_SPECIALIZED
#include "example/quantize_blocks_spec.cuh"
#endif

#include "device/quantize.cuh"

struct QuantizeBlocksParams {
  const float* source;
  unsigned char* codes;
  void* scales;
  long long rows;
  long long cols;
};
static_assert(sizeof(QuantizeBlocksParams) == 40,
              "src/selftest/device_inputs.cpp mirrors this struct");

struct Block {
  long long row;
  long long col;
  int rows;
  int cols;

  // Calls f(offset) for each of this thread's elements.
  template <typename F>
  __device__ __forceinline__ void each(long long ld, const F& f) const {
    for (int i = static_cast<int>(threadIdx.x); i < rows * Spec::kGroupCols; i += Spec::kThreads) {
      const int in_col = i % Spec::kGroupCols;
      if (in_col < cols) {
        f((row + i / Spec::kGroupCols) * ld + col + in_col);
      }
    }
  }
};

__device__ __forceinline__ float block_maximum(float mine) {
  __shared__ float of_warps[Spec::kThreads / 32];
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    mine = propagating_max(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    of_warps[threadIdx.x / 32] = mine;
  }
  __syncthreads();
  float maximum = of_warps[0];
  for (int warp = 1; warp < Spec::kThreads / 32; ++warp) {
    maximum = propagating_max(maximum, of_warps[warp]);
  }
  return maximum;
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ QuantizeBlocksParams p) {
  const long long blocks_of_row = (p.cols + Spec::kGroupCols - 1) / Spec::kGroupCols;
  const long long blocks = (p.rows + Spec::kGroupRows - 1) / Spec::kGroupRows * blocks_of_row;
  for (long long i = blockIdx.x; i < blocks; i += gridDim.x) {
    const long long row = i / blocks_of_row * Spec::kGroupRows;
    const long long col = i % blocks_of_row * Spec::kGroupCols;
    const long long rows_left = p.rows - row;
    const long long cols_left = p.cols - col;
    const Block block{
        row, col,
        rows_left < Spec::kGroupRows ? static_cast<int>(rows_left) : int{Spec::kGroupRows},
        cols_left < Spec::kGroupCols ? static_cast<int>(cols_left) : int{Spec::kGroupCols}};
    // Below every value, so that a thread without any changes nothing.
    float maximum = __uint_as_float(0xff800000u);
    block.each(p.cols, [&](long long at) {
      const float value = p.source[at];
      maximum = propagating_max(maximum, Spec::kSigned ? value : fabsf(value));
    });
    const float scale = block_scale(block_maximum(maximum));
    if (threadIdx.x == 0) {
      store_scale(p.scales, i, scale);
    }
    block.each(p.cols, [&](long long at) {
      p.codes[at] = static_cast<unsigned char>(encode_pair(__fdiv_rn(p.source[at], scale), 0.0f));
    });
  }
}
