// SPDX-License-Identifier: Apache-2.0
#include "runtime/align_launch.h"

#include "runtime/matrix_bytes.h"

#include <array>

namespace jitgemm {

Status launch_align(Device& device, const LoadedKernel& kernel, const AlignPlan& plan,
                    const AlignParams& params, int64_t m, bool programmatic_dependence,
                    StreamHandle stream) {
  std::array<MemoryRange, 4> ranges;
  size_t count = 0;
  for (int matrix = 0; matrix < 2; ++matrix) {
    const int64_t rows = params.rows[matrix];
    if (rows == 0) continue;
    ranges[count++] = {params.source[matrix],
                       matrix_bytes(rows, plan.row_bytes, params.source_pitch[matrix], 1), false};
    ranges[count++] = {params.destination[matrix], static_cast<uint64_t>(rows * plan.pitch), true};
  }
  LaunchRequest request;
  request.geometry = launch_geometry(plan, m);
  request.params = &params;
  request.param_bytes = sizeof(params);
  request.ranges = std::span(ranges.data(), count);
  request.programmatic_dependence = programmatic_dependence;
  return device.launch(kernel, request, stream);
}

}  // namespace jitgemm
