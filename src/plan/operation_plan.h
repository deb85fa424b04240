// SPDX-License-Identifier: Apache-2.0
// An operation as a list of launches over one workspace: what runs, in which order, and where in
// the workspace its intermediate results lie. A plain value that prints; it launches nothing.
#pragma once

#include "plan/align_plan.h"
#include "plan/gemm_plan.h"
#include "plan/planner.h"
#include "plan/quantize_plan.h"
#include "support/result.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace jitgemm {

using LaunchPlan = std::variant<QuantizePlan, AlignPlan, GemmPlan>;

// A workspace must be aligned to this; 256 is what allocators of the driver give.
inline constexpr uint64_t kWorkspaceAlignment = 256;

struct OperationPlan {
  GemmProblem problem;               // as the caller has it, normalized
  std::vector<LaunchPlan> launches;  // in order; the last is the product

  // The product's problem is the caller's, but its A is always codes, and what launches before it
  // have written has their distance between rows.
  const GemmPlan& product() const { return std::get<GemmPlan>(launches.back()); }
  // What comes before it, where it does.
  template <typename Plan>
  const Plan* before_product() const {
    for (const LaunchPlan& launch : launches) {
      if (const auto* plan = std::get_if<Plan>(&launch)) return plan;
    }
    return nullptr;
  }
};

// Where in the workspace things lie for that m, in bytes from its start.
struct WorkspaceLayout {
  int64_t a_codes = 0;
  int64_t a_scales = 0;
  int64_t aligned_a = 0;
  int64_t aligned_b = 0;
  int64_t aligned_a_scales = 0;
  int64_t aligned_b_scales = 0;
  int64_t product = 0;  // what the product's kernel needs for itself
  int64_t bytes = 0;    // of all
};
WorkspaceLayout workspace_layout(const OperationPlan& plan, int64_t m);

Result<OperationPlan> plan_operation(const GemmProblem& problem, const PlanRequest& request = {});
// Every legal operation, the model's best first: those of the product's candidates.
Result<std::vector<OperationPlan>> operation_candidates(const GemmProblem& problem,
                                                        const PlanRequest& request = {});

// "quantize_rows", "align_rows", or the product's kernel family.
std::string_view launch_name(const LaunchPlan& launch);
// For an actual m on a device with that many SMs. m >= 1.
LaunchGeometry launch_geometry(const LaunchPlan& launch, int64_t m, int sm_count);
std::string to_string(const LaunchPlan& launch);
// The problem, each launch with its kernel, geometry and reasons, and the workspace.
std::string to_string(const OperationPlan& plan, int sm_count);

}  // namespace jitgemm
