// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_overrides.h"

#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <limits>

namespace jitgemm {
namespace {

struct Field {
  const char* name;
  std::optional<int32_t> PlanOverrides::*member;
};
constexpr std::array<Field, 5> kFields = {
    {{"tile_m", &PlanOverrides::tile_m},
     {"tile_n", &PlanOverrides::tile_n},
     {"stages", &PlanOverrides::stages},
     {"cluster", &PlanOverrides::cluster},
     {"split_k", &PlanOverrides::split_k}}
};

bool is_constant_name(const std::string& name) {
  return name.size() > 1 && name[0] == 'k' && name[1] >= 'A' && name[1] <= 'Z';
}

Status read_field(const std::string& name, const nlohmann::json& value, PlanOverrides& overrides) {
  if (name == "kernel") {
    if (value.is_string()) overrides.family = parse_kernel_family(value.get<std::string>());
    if (overrides.family) return ok_status();
    return corrupt_data("kernel: expected one of " + kernel_family_list());
  }
  if (name == "align_rows") {
    if (!value.is_boolean()) return corrupt_data("align_rows: expected true or false");
    overrides.align_rows = value.get<bool>();
    return ok_status();
  }
  if (!value.is_number_integer()) {
    return corrupt_data(fmt::format("{}: expected an integer", printable(name)));
  }
  const auto number = value.get<int64_t>();
  for (const Field& field : kFields) {
    if (name != field.name) continue;
    if (number < 1 || number > std::numeric_limits<int32_t>::max()) {
      return corrupt_data(fmt::format("{}: expected a positive number, found {}", name, number));
    }
    overrides.*field.member = static_cast<int32_t>(number);
    return ok_status();
  }
  if (is_constant_name(name)) {
    overrides.constants.emplace_back(name, number);
    return ok_status();
  }
  return corrupt_data(fmt::format(
      "{} is no field of a plan; there are kernel, tile_m, tile_n, stages, cluster, split_k, "
      "align_rows and constants such as kWarpgroupColumns",
      printable(name)));
}

}  // namespace

PlanOverrides overrides_of(const GemmPlan& plan) {
  PlanOverrides overrides;
  overrides.family = plan.family;
  overrides.tile_m = plan.tile_m;
  overrides.tile_n = plan.tile_n;
  overrides.stages = plan.stages;
  overrides.cluster = plan.cluster;
  overrides.split_k = plan.split_k;
  overrides.constants = plan.extra_fields;
  return overrides;
}

nlohmann::ordered_json overrides_to_json(const PlanOverrides& overrides) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (overrides.family) json["kernel"] = kernel_family_info(*overrides.family).name;
  for (const Field& field : kFields) {
    if (const auto& value = overrides.*field.member) json[field.name] = *value;
  }
  if (overrides.align_rows) json["align_rows"] = *overrides.align_rows;
  for (const auto& [name, value] : overrides.constants) json[name] = value;
  return json;
}

Result<PlanOverrides> overrides_from_json(const nlohmann::json& object) {
  if (!object.is_object()) return corrupt_data("expected an object that describes a plan");
  PlanOverrides overrides;
  for (const auto& [name, value] : object.items()) {
    JITGEMM_TRY(read_field(name, value, overrides));
  }
  return overrides;
}

}  // namespace jitgemm
