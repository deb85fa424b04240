// SPDX-License-Identifier: Apache-2.0
// The plan of the reference kernel: nothing to choose.
#include "plan/planner.h"

namespace jitgemm {

std::vector<GemmPlan> reference_candidates(const PlannerInput& input) {
  GemmPlan plan;
  plan.problem = input.problem;
  plan.family = KernelFamily::kReference;
  plan.planned_m = input.planned_m;
  plan.tile_m = 4;
  plan.tile_n = 32;
  plan.tile_k = input.problem.group_k;
  plan.threads = 128;
  plan.grid = GridKind::kTiles;
  plan.reasons = {"the reference kernel was asked for: one thread an output"};
  return {plan};
}

Result<GemmPlan> plan_reference(const PlannerInput& input) {
  const GemmProblem& p = input.problem;
  if (p.grouping.grouped() || p.a_scale_major == ScaleMajor::kPacked ||
      p.b_scale_major == ScaleMajor::kPacked) {
    return unsupported("kernel: 'reference' takes neither groups nor packed scales");
  }
  return reference_candidates(input)[0];
}

}  // namespace jitgemm
