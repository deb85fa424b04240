// SPDX-License-Identifier: Apache-2.0
// What a caller may force of a plan, and its JSON form: command lines and the tuning database name
// plans by it.
#pragma once

#include "plan/gemm_plan.h"
#include "support/result.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace jitgemm {

// Fields that are not set are the planner's.
struct PlanOverrides {
  std::optional<KernelFamily> family;
  std::optional<int32_t> tile_m;
  std::optional<int32_t> tile_n;
  std::optional<int32_t> stages;
  std::optional<int32_t> cluster;
  std::optional<int32_t> split_k;
  // Whether rows that TMA cannot address are copied to where it can before the product. It is about
  // the operation and no part of a product's plan.
  std::optional<bool> align_rows;
  // Constants that the family alone has, by their name in the Spec.
  std::vector<SpecField> constants;

  bool any() const {
    return family || tile_m || tile_n || stages || cluster || split_k || !constants.empty();
  }
  bool operator==(const PlanOverrides&) const = default;
};

// Everything of the plan that can be forced: a planner that is given it makes this plan again.
PlanOverrides overrides_of(const GemmPlan& plan);

// {"kernel": "sm90", "tile_m": 128, "tile_n": 192, "stages": 5, "cluster": 2, "split_k": 1,
//  "kWarpgroupColumns": 2}; names that begin with k and a capital are constants.
nlohmann::ordered_json overrides_to_json(const PlanOverrides& overrides);
// CORRUPT_DATA, naming the field.
Result<PlanOverrides> overrides_from_json(const nlohmann::json& object);

}  // namespace jitgemm
