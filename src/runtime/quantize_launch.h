// SPDX-License-Identifier: Apache-2.0
// One launch of the quantising kernel: from its parameters to the device. It checks nothing;
// whoever calls it has.
#pragma once

#include "device/device.h"
#include "plan/quantize_params.h"
#include "plan/quantize_plan.h"

namespace jitgemm {

// params.m >= 1.
Status launch_quantize(Device& device, const LoadedKernel& kernel, const QuantizePlan& plan,
                       const QuantizeParams& params, bool programmatic_dependence,
                       StreamHandle stream);

}  // namespace jitgemm
