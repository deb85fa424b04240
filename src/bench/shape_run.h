// SPDX-License-Identifier: Apache-2.0
// One shape: operands drawn, contenders made, each checked, then timed in the regimes asked for.
#pragma once

#include "bench/contest.h"
#include "bench/cublaslt_contender.h"
#include "bench/grouped_shapes.h"
#include "bench/peer_module.h"
#include "plan/operation_plan.h"

#include <vector>

namespace jitgemm::bench {

struct ShapeRunOptions {
  TimingOptions timing;
  bool tensorwise = true;  // with the peers, the product without block scales
  // Peers from outside; they outlive the run.
  std::vector<const PeerModule*> modules;
};

// `plans` are those of ours that take part, all of one shape. `peers` may be null.
Result<ShapeResult> run_shape(GpuSession& session, const std::vector<OperationPlan>& plans,
                              CublasLt* peers, const ShapeRunOptions& options);
// The same for groups: plans of grouped_problems(), in that order.
Result<ShapeResult> run_grouped_shape(GpuSession& session, const GroupedShape& shape,
                                      const std::vector<OperationPlan>& plans, CublasLt* peers,
                                      const ShapeRunOptions& options);

}  // namespace jitgemm::bench
