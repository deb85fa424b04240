// SPDX-License-Identifier: Apache-2.0
// A kernel that does nothing: what compiling, loading and launching cost at least. Its parameters
// are as large as those of a product.
#ifndef JITGEMM_SPECIALIZED
#include "example/measure_floor_spec.cuh"
#endif

struct MeasureFloorParams {
  unsigned long long words[Spec::kParamWords];
};

extern "C" __global__ void __launch_bounds__(Spec::kThreads)
    jitgemm_kernel(const __grid_constant__ MeasureFloorParams) {}
