// SPDX-License-Identifier: Apache-2.0
// FP8 codes of random values by counter: code i is a function of (seed, stream, i) alone, with the
// bits of what make_block_scaled_tensors (src/verify/inputs.h) draws on a CPU. kKind 0: uniform
// over +-largest; 1: integers -4..4. A thread makes the four codes of one Philox block at a time.
#ifndef JITGEMM_SPECIALIZED
#include "example/draw_codes_spec.cuh"
#endif

#include "device/quantize.cuh"
#include "device/random.cuh"

struct DrawParams {
  unsigned char* codes;
  unsigned long long count;
  unsigned long long seed;
  unsigned stream;
  unsigned reserved;
};
static_assert(sizeof(DrawParams) == 32, "src/selftest/device_inputs.cpp mirrors this struct");

__device__ __forceinline__ float value_of(unsigned bits) {
  if constexpr (Spec::kKind == 1) {
    return static_cast<float>(static_cast<int>(__umulhi(bits, 9u)) - 4);
  } else {
    const float largest = Spec::kTypeA == kE4M3 ? 448.0f : 57344.0f;
    const float unit = __fmul_rn(static_cast<float>(bits >> 8), 0x1p-24f);
    return __fmul_rn(__fadd_rn(__fmul_rn(2.0f, unit), -1.0f), largest);
  }
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ DrawParams p) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * Spec::kThreads;
  for (unsigned long long block =
           static_cast<unsigned long long>(blockIdx.x) * Spec::kThreads + threadIdx.x;
       4 * block < p.count; block += step) {
    const uint4 words = random_words(p.seed, p.stream, block);
    const unsigned low = encode_pair(value_of(words.x), value_of(words.y)) & 0xffffu;
    const unsigned high = encode_pair(value_of(words.z), value_of(words.w)) & 0xffffu;
    const unsigned codes = low | high << 16;
    if (4 * block + 4 <= p.count) {
      reinterpret_cast<unsigned*>(p.codes)[block] = codes;
    } else {
      for (unsigned i = 0; 4 * block + i < p.count; ++i) {
        p.codes[4 * block + i] = static_cast<unsigned char>(codes >> 8 * i);
      }
    }
  }
}
