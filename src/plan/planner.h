// SPDX-License-Identifier: Apache-2.0
// problem -> plan. Each arch has a planner of its own: candidates -> legal -> best, every
// preference with its reason. This door validates, applies the m policy and overrides, and
// dispatches.
#pragma once

#include "plan/gemm_plan.h"
#include "support/result.h"

#include <optional>
#include <string>
#include <vector>

namespace jitgemm {

// What a caller may force. Fields that are not set are the planner's.
struct PlanOverrides {
  std::optional<KernelFamily> family;
  std::optional<int32_t> tile_m;
  std::optional<int32_t> tile_n;
  std::optional<int32_t> stages;
  std::optional<int32_t> cluster;
  std::optional<int32_t> split_k;

  bool any() const { return family || tile_m || tile_n || stages || cluster || split_k; }
};

struct PlanRequest {
  int sm_count = 0;  // 0: the arch's default
  PlanOverrides overrides;
};

Result<GemmPlan> plan_gemm(const GemmProblem& problem, const PlanRequest& request = {});

// What every planner starts from: a valid problem, its planned m, the SM count resolved.
struct PlannerInput {
  GemmProblem problem;
  int64_t planned_m = 0;
  int sm_count = 0;
  PlanOverrides overrides;
};

// Every legal plan for the input, unordered; empty if the overrides leave none.
std::vector<GemmPlan> reference_candidates(const PlannerInput& input);
std::vector<GemmPlan> sm90_candidates(const PlannerInput& input);
std::vector<GemmPlan> sm100_candidates(const PlannerInput& input);
// The best of those, with its reasons.
Result<GemmPlan> plan_reference(const PlannerInput& input);
Result<GemmPlan> plan_sm90(const PlannerInput& input);
Result<GemmPlan> plan_sm100(const PlannerInput& input);

// The best feed that the row distance and base alignment of an operand of one-byte codes allow.
Feed feed_for(int64_t row_bytes, int32_t alignment);
// Whether a tile may be stored by TMA: 16-byte aligned base and rows.
Store store_for(const GemmProblem& problem);

}  // namespace jitgemm
