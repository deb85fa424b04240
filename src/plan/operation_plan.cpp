// SPDX-License-Identifier: Apache-2.0
#include "plan/operation_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm {
namespace {

int64_t round_up(int64_t value) {
  constexpr auto kMultiple = static_cast<int64_t>(kWorkspaceAlignment);
  return (value + kMultiple - 1) / kMultiple * kMultiple;
}

// What is left to multiply once A is codes and scales in the workspace.
GemmProblem product_problem(const GemmProblem& problem) {
  if (!problem.quantizes_a()) return problem;
  GemmProblem product = problem;
  product.a_dtype = problem.a_code_dtype;
  product.a_code_dtype = GemmProblem().a_code_dtype;
  product.lda = plan_quantize(problem).code_ld;
  return product;
}

}  // namespace

WorkspaceLayout workspace_layout(const OperationPlan& plan, int64_t m) {
  WorkspaceLayout layout;
  int64_t end = 0;
  if (const auto* quantize = std::get_if<QuantizePlan>(&plan.launches.front())) {
    layout.a_codes = 0;
    layout.a_scales = round_up(m * quantize->code_ld);
    end = layout.a_scales + m * quantize->scale_ld * dtype_info(quantize->scale_dtype).bytes;
  }
  layout.product = round_up(end);
  const int64_t product_bytes = plan.product().workspace_bytes;
  layout.bytes = product_bytes > 0 ? layout.product + product_bytes : end;
  return layout;
}

Result<OperationPlan> plan_operation(const GemmProblem& problem, const PlanRequest& request) {
  JITGEMM_TRY(validate(problem));
  OperationPlan plan;
  plan.problem = problem;
  if (problem.quantizes_a()) plan.launches.emplace_back(plan_quantize(problem));
  JITGEMM_ASSIGN(GemmPlan product, plan_gemm(product_problem(problem), request));
  plan.launches.emplace_back(std::move(product));
  return plan;
}

Result<std::vector<OperationPlan>> operation_candidates(const GemmProblem& problem,
                                                        const PlanRequest& request) {
  JITGEMM_TRY(validate(problem));
  JITGEMM_ASSIGN(std::vector<GemmPlan> products,
                 plan_candidates(product_problem(problem), request));
  std::vector<OperationPlan> plans;
  for (GemmPlan& product : products) {
    OperationPlan plan;
    plan.problem = problem;
    if (problem.quantizes_a()) plan.launches.emplace_back(plan_quantize(problem));
    plan.launches.emplace_back(std::move(product));
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::string_view launch_name(const LaunchPlan& launch) {
  if (const auto* product = std::get_if<GemmPlan>(&launch)) {
    return kernel_family_info(product->family).name;
  }
  return "quantize_rows";
}

LaunchGeometry launch_geometry(const LaunchPlan& launch, int64_t m, int sm_count) {
  if (const auto* product = std::get_if<GemmPlan>(&launch)) {
    return launch_geometry(*product, m, sm_count);
  }
  return launch_geometry(std::get<QuantizePlan>(launch), m);
}

std::string to_string(const LaunchPlan& launch) {
  return std::visit([](const auto& plan) { return to_string(plan); }, launch);
}

std::string to_string(const OperationPlan& plan, int sm_count) {
  const int64_t m = std::max<int64_t>(plan.problem.m, 1);
  std::string text = fmt::format("problem    {}\n", to_string(plan.problem));
  int number = 0;
  for (const LaunchPlan& launch : plan.launches) {
    const LaunchGeometry geometry = launch_geometry(launch, m, sm_count);
    text += fmt::format("launch {}   grid {} x {} x {}, block {}, cluster {}, on {} SMs\n",
                        ++number, geometry.grid.x, geometry.grid.y, geometry.grid.z,
                        geometry.block.x, geometry.cluster.x, sm_count);
    text += to_string(launch);
  }
  text += fmt::format("workspace  {} bytes, aligned to {}\n",
                      workspace_layout(plan, plan.problem.m).bytes, kWorkspaceAlignment);
  return text;
}

}  // namespace jitgemm
