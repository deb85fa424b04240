// SPDX-License-Identifier: Apache-2.0
// Blackwell: which tiles are legal, and which of them is best.
#include "plan/planner.h"

namespace jitgemm {

std::vector<GemmPlan> sm100_candidates(const PlannerInput&) {
  return {};
}

Result<GemmPlan> plan_sm100(const PlannerInput&) {
  return unsupported(
      "kernel: sm_100a has only the kernel 'reference' so far, which is chosen by override");
}

}  // namespace jitgemm
