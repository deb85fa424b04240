// SPDX-License-Identifier: Apache-2.0
#include "bench/plan_choice.h"

#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

namespace jitgemm::bench {
namespace {

// Of one arrangement, at most this many widths.
constexpr int kWidthsOfAKind = 2;

// What tells arrangements apart, their width left out.
auto kind_of(const GemmPlan& plan) {
  std::vector<SpecField> constants = plan.extra_fields;
  std::erase_if(constants, [](const SpecField& field) { return field.first == "kWalkColumns"; });
  const bool swapped =
      std::find(constants.begin(), constants.end(), SpecField{"kSwap", 1}) != constants.end();
  return std::tuple(plan.family, swapped ? plan.tile_n : plan.tile_m, plan.cluster, plan.split_k,
                    constants);
}

}  // namespace

Result<std::vector<PlanOverrides>> parse_plan_overrides(std::string_view text) {
  Result<nlohmann::json> json = parse_strict_json(text, 4);
  if (!json) return invalid_argument("--plans: " + json.error().message());
  if (!json->is_array() || json->empty()) {
    return invalid_argument("--plans: expected auto, model:N, or a JSON array of objects");
  }
  std::vector<PlanOverrides> list;
  for (const nlohmann::json& object : *json) {
    Result<PlanOverrides> overrides = overrides_from_json(object);
    if (!overrides) return invalid_argument("--plans: " + overrides.error().message());
    list.push_back(std::move(*overrides));
  }
  return list;
}

std::vector<OperationPlan> varied_candidates(std::vector<OperationPlan> ranked, int wanted) {
  std::vector<OperationPlan> chosen;
  std::map<decltype(kind_of(GemmPlan())), int> seen;
  for (OperationPlan& plan : ranked) {
    if (static_cast<int>(chosen.size()) >= wanted) break;
    if (++seen[kind_of(plan.product())] <= kWidthsOfAKind) chosen.push_back(std::move(plan));
  }
  return chosen;
}

std::vector<OperationPlan> one_of_each_arrangement(std::vector<OperationPlan> ranked) {
  std::vector<OperationPlan> chosen;
  std::set<std::tuple<KernelFamily, int32_t, int32_t, int64_t, int64_t>> seen;
  for (OperationPlan& plan : ranked) {
    const GemmPlan& product = plan.product();
    const auto constant = [&](std::string_view name) {
      for (const auto& [field, value] : product.extra_fields) {
        if (field == name) return value;
      }
      return int64_t{0};
    };
    if (seen.emplace(product.family, product.cluster, product.split_k, constant("kSwap"),
                     constant("kShare"))
            .second) {
      chosen.push_back(std::move(plan));
    }
  }
  return chosen;
}

Result<std::vector<OperationPlan>> choose_plans(const GemmProblem& problem,
                                                const PlanRequest& request,
                                                const std::string& choice) {
  if (choice == "auto") {
    JITGEMM_ASSIGN(OperationPlan plan, plan_operation(problem, request));
    return std::vector<OperationPlan>{std::move(plan)};
  }
  if (choice == "arrangements") {
    JITGEMM_ASSIGN(std::vector<OperationPlan> ranked, operation_candidates(problem, request));
    return one_of_each_arrangement(std::move(ranked));
  }
  if (choice.starts_with("model:")) {
    int wanted = 0;
    const char* end = choice.data() + choice.size();
    const auto [stop, error] = std::from_chars(choice.data() + 6, end, wanted);
    if (error != std::errc() || stop != end || wanted < 1) {
      return invalid_argument(fmt::format("--plans: expected model:N, found '{}'", choice));
    }
    JITGEMM_ASSIGN(std::vector<OperationPlan> ranked, operation_candidates(problem, request));
    return varied_candidates(std::move(ranked), wanted);
  }
  JITGEMM_ASSIGN(const std::vector<PlanOverrides> list, parse_plan_overrides(choice));
  std::vector<OperationPlan> plans;
  std::set<std::string> seen;
  for (const PlanOverrides& overrides : list) {
    PlanRequest forced = request;
    forced.overrides = overrides;
    Result<OperationPlan> plan = plan_operation(problem, forced);
    // One list may serve many shapes; what does not fit one of them is left out there.
    if (!plan && plan.error().code() == StatusCode::kUnsupported) continue;
    if (!plan) return plan.error();
    if (seen.insert(plan_identity(plan->product())).second) plans.push_back(std::move(*plan));
  }
  if (plans.empty()) return unsupported("--plans: no plan of the list fits " + to_string(problem));
  return plans;
}

}  // namespace jitgemm::bench
