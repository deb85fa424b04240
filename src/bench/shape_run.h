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

// Whether a launch may begin before the one in front of it has ended: nobody's, everybody's who
// can, or both side by side.
enum class PdlEdges { kOff, kOn, kBoth };

struct ShapeRunOptions {
  TimingOptions timing;
  bool tensorwise = true;  // with the peers, the product without block scales
  // Peers from outside; they outlive the run.
  std::vector<const PeerModule*> modules;
  PdlEdges pdl = PdlEdges::kOff;
  int repeats = 0;  // of each launch, its bits compared; nothing is timed then

  std::vector<bool> edges() const {
    switch (pdl) {
      case PdlEdges::kOff: return {false};
      case PdlEdges::kOn: return {true};
      case PdlEdges::kBoth: break;
    }
    return {false, true};
  }
};

// `plans` are those of ours that take part, all of one shape. `peers` may be null.
Result<ShapeResult> run_shape(GpuSession& session, const std::vector<OperationPlan>& plans,
                              CublasLt* peers, const ShapeRunOptions& options);
// The same for groups: plans of grouped_problems(), in that order.
Result<ShapeResult> run_grouped_shape(GpuSession& session, const GroupedShape& shape,
                                      const std::vector<OperationPlan>& plans, CublasLt* peers,
                                      const ShapeRunOptions& options);

}  // namespace jitgemm::bench
