// SPDX-License-Identifier: Apache-2.0
// Hopper: which tiles are legal, and which of them is best.
#include "plan/planner.h"

namespace jitgemm {

std::vector<GemmPlan> sm90_candidates(const PlannerInput&) {
  return {};
}

Result<GemmPlan> plan_sm90(const PlannerInput&) {
  return unsupported(
      "kernel: sm_90a has only the kernel 'reference' so far, which is chosen by override");
}

}  // namespace jitgemm
