// SPDX-License-Identifier: Apache-2.0
// Which plans of ours take part: the planner's own, its candidates, or plans that a command line
// describes.
#pragma once

#include "plan/operation_plan.h"
#include "support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::bench {

// A JSON array of objects such as {"kernel": "sm90", "tile_m": 128, "tile_n": 192, "stages": 5,
// "cluster": 2, "split_k": 1, "kWarpgroupColumns": 2}; names that begin with k are constants of the
// kernel. An empty object is the planner's own plan.
Result<std::vector<PlanOverrides>> parse_plan_overrides(std::string_view json);

// The candidates that are worth a measurement: the model's best first, and of those that differ in
// a tile's width alone only the best few, so that `wanted` plans cover different arrangements.
std::vector<OperationPlan> varied_candidates(std::vector<OperationPlan> ranked, int wanted);

// The best of each arrangement of work: kernel, sides of the operands, CTAs of a cluster, splits of
// k, whether CTAs share tiles.
std::vector<OperationPlan> one_of_each_arrangement(std::vector<OperationPlan> ranked);

// "auto": the planner's own; "model:N": N varied candidates; "arrangements": one of each; anything
// else is JSON of overrides.
// `request`: the SM count and the measured plans, which "auto" looks into.
Result<std::vector<OperationPlan>> choose_plans(const GemmProblem& problem,
                                                const PlanRequest& request,
                                                const std::string& choice);

}  // namespace jitgemm::bench
