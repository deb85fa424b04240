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

Status read_override(const std::string& name, const nlohmann::json& value,
                     PlanOverrides& overrides) {
  if (name == "kernel") {
    if (value.is_string()) overrides.family = parse_kernel_family(value.get<std::string>());
    if (overrides.family) return ok_status();
    return invalid_argument("--plans: kernel: expected one of " + kernel_family_list());
  }
  if (!value.is_number_integer()) {
    return invalid_argument(fmt::format("--plans: {}: expected an integer", printable(name)));
  }
  const auto number = value.get<int64_t>();
  const std::map<std::string, std::optional<int32_t>*> fields = {
      {"tile_m",  &overrides.tile_m },
      {"tile_n",  &overrides.tile_n },
      {"stages",  &overrides.stages },
      {"cluster", &overrides.cluster},
      {"split_k", &overrides.split_k}
  };
  if (const auto field = fields.find(name); field != fields.end()) {
    *field->second = static_cast<int32_t>(number);
    return ok_status();
  }
  if (name.size() > 1 && name[0] == 'k' && name[1] >= 'A' && name[1] <= 'Z') {
    overrides.constants.emplace_back(name, number);
    return ok_status();
  }
  return invalid_argument(fmt::format(
      "--plans: {} is no field of a plan; there are kernel, tile_m, tile_n, stages, cluster, "
      "split_k and constants such as kWarpgroupColumns",
      printable(name)));
}

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
    if (!object.is_object()) return invalid_argument("--plans: expected an array of objects");
    PlanOverrides overrides;
    for (const auto& [name, value] : object.items()) {
      JITGEMM_TRY(read_override(name, value, overrides));
    }
    list.push_back(std::move(overrides));
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

Result<std::vector<OperationPlan>> choose_plans(const GemmProblem& problem, int sm_count,
                                                const std::string& choice) {
  if (choice == "auto") {
    JITGEMM_ASSIGN(OperationPlan plan, plan_operation(problem, {sm_count, {}}));
    return std::vector<OperationPlan>{std::move(plan)};
  }
  if (choice.starts_with("model:")) {
    int wanted = 0;
    const char* end = choice.data() + choice.size();
    const auto [stop, error] = std::from_chars(choice.data() + 6, end, wanted);
    if (error != std::errc() || stop != end || wanted < 1) {
      return invalid_argument(fmt::format("--plans: expected model:N, found '{}'", choice));
    }
    JITGEMM_ASSIGN(std::vector<OperationPlan> ranked,
                   operation_candidates(problem, {sm_count, {}}));
    return varied_candidates(std::move(ranked), wanted);
  }
  JITGEMM_ASSIGN(const std::vector<PlanOverrides> list, parse_plan_overrides(choice));
  std::vector<OperationPlan> plans;
  std::set<std::string> seen;
  for (const PlanOverrides& overrides : list) {
    Result<OperationPlan> plan = plan_operation(problem, {sm_count, overrides});
    // One list may serve many shapes; what does not fit one of them is left out there.
    if (!plan && plan.error().code() == StatusCode::kUnsupported) continue;
    if (!plan) return plan.error();
    if (seen.insert(plan_identity(plan->product())).second) plans.push_back(std::move(*plan));
  }
  if (plans.empty()) return unsupported("--plans: no plan of the list fits " + to_string(problem));
  return plans;
}

}  // namespace jitgemm::bench
