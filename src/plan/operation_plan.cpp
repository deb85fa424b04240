// SPDX-License-Identifier: Apache-2.0
#include "plan/operation_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace jitgemm {
namespace {

int64_t round_up(int64_t value) {
  constexpr auto kMultiple = static_cast<int64_t>(kWorkspaceAlignment);
  return (value + kMultiple - 1) / kMultiple * kMultiple;
}

// What comes before the product, and what is then left to multiply.
struct Preparation {
  std::vector<LaunchPlan> launches;
  GemmProblem product;
  double estimate_us = 0;             // of what may be left out
  std::optional<GemmPlan> plan = {};  // of the product, where choosing took one
};

Preparation quantized(const GemmProblem& problem) {
  Preparation first;
  first.product = problem;
  if (!problem.quantizes_a()) return first;
  first.product.a_dtype = problem.a_code_dtype;
  first.product.a_code_dtype = GemmProblem().a_code_dtype;
  first.product.lda = plan_quantize(problem).code_ld;
  first.launches.emplace_back(plan_quantize(problem));
  return first;
}

// The same and rows that TMA can address, if some are not.
std::optional<Preparation> aligned(const Preparation& first) {
  std::optional<AlignPlan> align = plan_align(first.product);
  if (!align) return std::nullopt;
  Preparation second = first;
  const int64_t ld = align->pitch / first.product.operand_bytes();
  if (align->a) second.product.lda = ld;
  if (align->b) second.product.ldb = ld;
  const int64_t scale_ld = align->scale_pitch / dtype_info(DType::kF32).bytes;
  if (align->a_scales) second.product.a_scale_ld = scale_ld;
  if (align->b_scales) second.product.b_scale_ld = scale_ld;
  second.estimate_us = align->estimate_us;
  second.launches.emplace_back(std::move(*align));
  return second;
}

// Copying operands to where TMA can address them pays, unless they are small, and it has been
// measured on Hopper alone.
Result<Preparation> prepare(const GemmProblem& problem, const PlanRequest& request) {
  Preparation as_they_lie = quantized(problem);
  std::optional<Preparation> copied = aligned(as_they_lie);
  const std::optional<bool>& wanted = request.overrides.align_rows;
  if (!copied) {
    if (wanted.value_or(false)) {
      return unsupported(
          "overrides: align_rows: there are no rows to align, or they are of groups, or addresses "
          "may be no multiple of 16");
    }
    return as_they_lie;
  }
  if (wanted) return *wanted ? std::move(*copied) : std::move(as_they_lie);
  if (arch_info(problem.arch).compute_capability / 10 != 9) return as_they_lie;
  JITGEMM_ASSIGN(as_they_lie.plan, plan_gemm(as_they_lie.product, request));
  JITGEMM_ASSIGN(copied->plan, plan_gemm(copied->product, request));
  const bool pays = copied->plan->estimate_us + copied->estimate_us < as_they_lie.plan->estimate_us;
  return pays ? std::move(*copied) : std::move(as_they_lie);
}

}  // namespace

WorkspaceLayout workspace_layout(const OperationPlan& plan, int64_t m) {
  WorkspaceLayout layout;
  int64_t end = 0;
  const auto add = [&](int64_t bytes) {
    const int64_t begin = round_up(end);
    end = begin + bytes;
    return begin;
  };
  if (const auto* quantize = plan.before_product<QuantizePlan>()) {
    layout.a_codes = add(m * quantize->code_ld);
    layout.a_scales = add(m * quantize->scale_ld * dtype_info(quantize->scale_dtype).bytes);
  }
  if (const auto* align = plan.before_product<AlignPlan>()) {
    if (align->a) layout.aligned_a = add(m * align->pitch);
    if (align->b) layout.aligned_b = add(align->n * align->pitch);
    if (align->a_scales) layout.aligned_a_scales = add(m * align->scale_pitch);
    if (align->b_scales) layout.aligned_b_scales = add(align->n_blocks * align->scale_pitch);
  }
  layout.product = round_up(end);
  const int64_t product_bytes = plan.product().workspace_bytes;
  layout.bytes = product_bytes > 0 ? layout.product + product_bytes : end;
  return layout;
}

Result<OperationPlan> plan_operation(const GemmProblem& problem, const PlanRequest& request) {
  JITGEMM_TRY(validate(problem));
  JITGEMM_ASSIGN(Preparation first, prepare(problem, request));
  if (!first.plan) {
    JITGEMM_ASSIGN(first.plan, plan_gemm(first.product, request));
  }
  OperationPlan plan{normalized(problem), std::move(first.launches)};
  plan.launches.emplace_back(std::move(*first.plan));
  return plan;
}

Result<std::vector<OperationPlan>> operation_candidates(const GemmProblem& problem,
                                                        const PlanRequest& request) {
  JITGEMM_TRY(validate(problem));
  JITGEMM_ASSIGN(const Preparation first, prepare(problem, request));
  JITGEMM_ASSIGN(std::vector<GemmPlan> products, plan_candidates(first.product, request));
  std::vector<OperationPlan> plans;
  for (GemmPlan& product : products) {
    OperationPlan plan{normalized(problem), first.launches};
    plan.launches.emplace_back(std::move(product));
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::string_view launch_name(const LaunchPlan& launch) {
  if (const auto* product = std::get_if<GemmPlan>(&launch)) {
    return kernel_family_info(product->family).name;
  }
  return std::holds_alternative<AlignPlan>(launch) ? "align_rows" : "quantize_rows";
}

LaunchGeometry launch_geometry(const LaunchPlan& launch, int64_t m, int sm_count) {
  if (const auto* product = std::get_if<GemmPlan>(&launch)) {
    return launch_geometry(*product, m, sm_count);
  }
  if (const auto* align = std::get_if<AlignPlan>(&launch)) return launch_geometry(*align, m);
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
