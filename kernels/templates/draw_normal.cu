// SPDX-License-Identifier: Apache-2.0
// Standard normal fp32 numbers by counter: number i is a function of (seed, stream, i) alone, with
// the bits of RandomStream::normal (device/random.cuh). A thread draws the two numbers of one
// Philox block at a time.
#ifndef JITGEMM_SPECIALIZED
#include "example/draw_normal_spec.cuh"
#endif

#include "device/random.cuh"

struct DrawParams {
  float* values;
  unsigned long long count;
  unsigned long long seed;
  unsigned stream;
  unsigned reserved;
};
static_assert(sizeof(DrawParams) == 32, "src/selftest/device_inputs.cpp mirrors this struct");

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ DrawParams p) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * Spec::kThreads;
  for (unsigned long long pair =
           static_cast<unsigned long long>(blockIdx.x) * Spec::kThreads + threadIdx.x;
       2 * pair < p.count; pair += step) {
    const float2 values = normal_pair(p.seed, p.stream, pair);
    p.values[2 * pair] = values.x;
    if (2 * pair + 1 < p.count) {
      p.values[2 * pair + 1] = values.y;
    }
  }
}
