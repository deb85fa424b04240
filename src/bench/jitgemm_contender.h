// SPDX-License-Identifier: Apache-2.0
// One plan of this library as a contender.
#pragma once

#include "bench/contender.h"
#include "plan/operation_plan.h"

namespace jitgemm::bench {

// Builds and loads the plan's kernels. `operands` outlives the contender.
Result<std::unique_ptr<Contender>> make_jitgemm_contender(GpuSession& session,
                                                          const OperationPlan& plan,
                                                          const Operands& operands);

}  // namespace jitgemm::bench
