// SPDX-License-Identifier: Apache-2.0
// problem -> plan. Each arch has a planner of its own: candidates -> legal -> best, every
// preference with its reason. This door validates, applies the m policy and overrides, and
// dispatches.
#pragma once

#include "plan/gemm_plan.h"
#include "plan/plan_overrides.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace jitgemm {

class TuningDatabase;

struct PlanRequest {
  int sm_count = 0;  // 0: the arch's default
  PlanOverrides overrides = {};
  // Measured plans, which win over the model and lose against overrides; null: none. They are
  // looked up for a device of this name; empty: of any, as long as the SM count is the same.
  const TuningDatabase* tuning = nullptr;
  std::string device_name = {};
};

// The product alone: UNSUPPORTED for a problem that quantises first (plan/operation_plan.h).
Result<GemmPlan> plan_gemm(const GemmProblem& problem, const PlanRequest& request = {});

// Every legal plan, the model's best first. Of a problem that quantises: UNSUPPORTED, as above.
Result<std::vector<GemmPlan>> plan_candidates(const GemmProblem& problem,
                                              const PlanRequest& request = {});

// Where groups of a row-index layout begin, if the caller says nothing: the habit of its callers.
inline constexpr int32_t kUsualRowAlignment = 128;

// The m that a plan for the problem is made for, as its policy says.
int64_t planned_m(const GemmProblem& problem);

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
// The feeds of a problem's operands.
Feed feed_a_for(const GemmProblem& problem);
Feed feed_b_for(const GemmProblem& problem);
// Whether every row of out begins at a multiple of 16 bytes.
bool aligned_output_rows(const GemmProblem& problem);
// Whether a tile may be stored by TMA: aligned rows, groups that are whole rows apart.
Store store_for(const GemmProblem& problem);

// What a problem asks of the device, as planners reckon it. Without groups: one, of planned_m rows.
struct GroupLoad {
  int64_t groups = 1;  // that have rows; each is reckoned with planned_m
  int64_t rows = 0;    // of all of them
};
GroupLoad group_load(const PlannerInput& input);
// Windows of tile_m rows over all groups, on average.
int64_t planned_windows(const PlannerInput& input, int tile_m);
// How many units one after the other the busiest of `resident` works on, where a window has
// units_n: the average over what rows of groups may come to. short_window: what one that is half
// empty takes of a whole one's time.
double average_turns(const PlannerInput& input, int tile_m, int64_t units_n, int64_t resident,
                     double short_window = 1);
// Why a grouped problem's windows are what they are; empty for any other problem.
std::string group_reason(const PlannerInput& input, int tile_m);

}  // namespace jitgemm
