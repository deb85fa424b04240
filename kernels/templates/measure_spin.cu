// SPDX-License-Identifier: Apache-2.0
// Keeps a stream busy for a given time with one thread, so that what is put behind it starts from
// the device's queue and not from the host.
#ifndef JITGEMM_SPECIALIZED
#include "example/measure_spin_spec.cuh"
#endif

struct MeasureSpinParams {
  unsigned long long nanoseconds;
};
static_assert(sizeof(MeasureSpinParams) == 8, "src/bench/gpu_kernels.cpp mirrors this struct");

__device__ __forceinline__ unsigned long long global_time() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ MeasureSpinParams p) {
  const unsigned long long start = global_time();
  while (global_time() - start < p.nanoseconds) {
  }
}
