// SPDX-License-Identifier: Apache-2.0
#include "runtime/quantize_launch.h"

#include "runtime/matrix_bytes.h"

#include <array>

namespace jitgemm {

Status launch_quantize(Device& device, const LoadedKernel& kernel, const QuantizePlan& plan,
                       const QuantizeParams& params, bool programmatic_dependence,
                       StreamHandle stream) {
  const std::array<MemoryRange, 3> ranges = {
      {
       {params.source,
           matrix_bytes(params.m, plan.k, params.source_ld, dtype_info(plan.source_dtype).bytes),
           false},
       {params.codes, matrix_bytes(params.m, plan.k, params.code_ld, 1), true},
       {params.scales,
           matrix_bytes(params.m, plan.scale_ld, plan.scale_ld, dtype_info(plan.scale_dtype).bytes),
           true},
       }
  };
  LaunchRequest request;
  request.geometry = launch_geometry(plan, params.m);
  request.params = &params;
  request.param_bytes = sizeof(params);
  request.ranges = ranges;
  request.programmatic_dependence = programmatic_dependence;
  return device.launch(kernel, request, stream);
}

}  // namespace jitgemm
