// SPDX-License-Identifier: Apache-2.0
// One launch of align_rows.cu: what it may read and write, and how it is launched.
#pragma once

#include "device/device.h"
#include "plan/align_params.h"
#include "plan/align_plan.h"

namespace jitgemm {

Status launch_align(Device& device, const LoadedKernel& kernel, const AlignPlan& plan,
                    const AlignParams& params, int64_t m, bool programmatic_dependence,
                    StreamHandle stream);

}  // namespace jitgemm
