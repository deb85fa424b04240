// SPDX-License-Identifier: Apache-2.0
// One shape: operands drawn, contenders made, each checked, then timed in the regimes asked for.
#pragma once

#include "bench/cublaslt_contender.h"
#include "bench/gpu_session.h"
#include "bench/peer_module.h"
#include "bench/result.h"
#include "plan/operation_plan.h"

#include <vector>

namespace jitgemm::bench {

struct ShapeRunOptions {
  bool rested = true;
  bool sustained = false;
  RestedSchedule rested_schedule;
  SustainedSchedule sustained_schedule;
  bool tensorwise = true;  // with the peers, the product without block scales
  // Peers from outside; they outlive the run.
  std::vector<const PeerModule*> modules;
};

// `plans` are those of ours that take part, all of one shape. `peers` may be null. A contender that
// cannot run, or whose result is wrong, is in the result with the reason and without a time.
Result<ShapeResult> run_shape(GpuSession& session, const std::vector<OperationPlan>& plans,
                              CublasLt* peers, const ShapeRunOptions& options);

}  // namespace jitgemm::bench
