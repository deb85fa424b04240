// SPDX-License-Identifier: Apache-2.0
#include "runtime/quantize_launch.h"

#include <array>

namespace jitgemm {
namespace {

// From the first byte of the first row to the last byte of the last.
uint64_t span_bytes(int64_t rows, int64_t columns, int64_t row_stride, int64_t element_bytes) {
  return static_cast<uint64_t>(((rows - 1) * row_stride + columns) * element_bytes);
}

}  // namespace

Status launch_quantize(Device& device, const LoadedKernel& kernel, const QuantizePlan& plan,
                       const QuantizeParams& params, bool programmatic_dependence,
                       StreamHandle stream) {
  const std::array<MemoryRange, 3> ranges = {
      {
       {params.source,
           span_bytes(params.m, plan.k, params.source_ld, dtype_info(plan.source_dtype).bytes),
           false},
       {params.codes, span_bytes(params.m, plan.k, params.code_ld, 1), true},
       {params.scales,
           span_bytes(params.m, plan.scale_ld, plan.scale_ld, dtype_info(plan.scale_dtype).bytes),
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
