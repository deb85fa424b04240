// SPDX-License-Identifier: Apache-2.0
#include "runtime/align_launch.h"

#include "runtime/matrix_bytes.h"

#include <array>

namespace jitgemm {

Status launch_align(Device& device, const LoadedKernel& kernel, const AlignPlan& plan,
                    const AlignParams& params, int64_t m, bool programmatic_dependence,
                    StreamHandle stream) {
  std::array<MemoryRange, 8> ranges;
  size_t count = 0;
  const auto add = [&](const AlignedMatrix& matrix, int64_t row_bytes, int64_t pitch) {
    if (matrix.rows == 0) return;
    ranges[count++] = {matrix.source, matrix_bytes(matrix.rows, row_bytes, matrix.source_pitch, 1),
                       false};
    ranges[count++] = {matrix.destination, static_cast<uint64_t>(matrix.rows * pitch), true};
  };
  add(params.a, plan.row_bytes, plan.pitch);
  add(params.b, plan.row_bytes, plan.pitch);
  add(params.a_scales, plan.scale_row_bytes, plan.scale_pitch);
  add(params.b_scales, plan.scale_row_bytes, plan.scale_pitch);
  LaunchRequest request;
  request.geometry = launch_geometry(plan, m);
  request.params = &params;
  request.param_bytes = sizeof(params);
  request.ranges = std::span(ranges.data(), count);
  request.programmatic_dependence = programmatic_dependence;
  return device.launch(kernel, request, stream);
}

}  // namespace jitgemm
