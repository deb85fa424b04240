// SPDX-License-Identifier: Apache-2.0
#include "plan/tuning_database.h"

#include "plan/planner.h"
#include "support/strict_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace jitgemm {
namespace {

constexpr int kSchema = 1;

Status wrong(size_t row, std::string_view what) {
  return corrupt_data(fmt::format("tuning database: row {}: {}", row, what));
}

Status read_text(const nlohmann::json& row, const char* name, size_t index, std::string& text) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_string()) {
    return wrong(index, fmt::format("{}: expected a string", name));
  }
  text = found->get<std::string>();
  return ok_status();
}

template <typename Number>
Status read_number(const nlohmann::json& row, const char* name, size_t index, Number& number) {
  const auto found = row.find(name);
  if (found == row.end() || !found->is_number()) {
    return wrong(index, fmt::format("{}: expected a number", name));
  }
  number = found->get<Number>();
  return ok_status();
}

Result<TunedPlan> read_row(const nlohmann::json& row, size_t index) {
  if (!row.is_object()) return wrong(index, "expected an object");
  TunedPlan tuned;
  JITGEMM_TRY(read_text(row, "problem", index, tuned.problem));
  JITGEMM_TRY(read_text(row, "device", index, tuned.device));
  JITGEMM_TRY(read_number(row, "sm_count", index, tuned.sm_count));
  JITGEMM_TRY(read_number(row, "time_us", index, tuned.time_us));
  JITGEMM_TRY(read_number(row, "spread", index, tuned.spread));
  JITGEMM_TRY(read_number(row, "model_time_us", index, tuned.model_time_us));
  JITGEMM_TRY(read_number(row, "candidates", index, tuned.candidates));
  JITGEMM_TRY(read_number(row, "driver_version", index, tuned.driver_version));
  JITGEMM_TRY(read_text(row, "version", index, tuned.version));
  JITGEMM_TRY(read_text(row, "date", index, tuned.date));
  const auto plan = row.find("plan");
  if (plan == row.end()) return wrong(index, "plan: expected an object");
  Result<PlanOverrides> overrides = overrides_from_json(*plan);
  if (!overrides) return wrong(index, "plan: " + overrides.error().message());
  if (!overrides->any()) return wrong(index, "plan: expected at least one field");
  tuned.plan = std::move(*overrides);
  return tuned;
}

// Tiles of groups are chosen by the rows of an average group, whatever m and its policy are, so one
// row serves them all.
void forget_what_steers_no_tiles(GemmProblem& p) {
  Grouping& g = p.grouping;
  g.expected_m = planned_m(p);
  p.m = 0;
  p.m_policy = MPolicy::kExact;
  g.zero_ungrouped = false;
  g.count_invalid = false;
  if (g.row_alignment == 0)
    g.row_alignment = g.layout == GroupLayout::kRowIndices ? kUsualRowAlignment : 0;
}

// The rows of a problem in a text that to_json wrote, which puts the problem first and knows how
// far each line is from the margin.
std::vector<TunedPlan> rows_of(std::string_view text, const std::string& problem) {
  const std::string first_line = fmt::format("\n  {{\n   \"problem\": \"{}\",", problem);
  constexpr std::string_view kLastLine = "\n  }";
  std::vector<TunedPlan> rows;
  for (size_t begin = text.find(first_line); begin != text.npos;) {
    const size_t end = text.find(kLastLine, begin);
    if (end == text.npos) break;
    const Result<nlohmann::json> json =
        parse_strict_json(text.substr(begin, end + kLastLine.size() - begin), 8);
    Result<TunedPlan> row = json ? read_row(*json, 0) : Result<TunedPlan>(json.error());
    if (row) rows.push_back(std::move(*row));
    begin = text.find(first_line, end);
  }
  return rows;
}

}  // namespace

std::string tuning_key(const GemmProblem& problem) {
  GemmProblem p = normalized(problem);
  const auto forget = [](int64_t& distance, int64_t dense) {
    if (distance == dense) distance = 0;
  };
  if (p.m_policy == MPolicy::kExact && !p.grouping.grouped()) {
    GemmProblem dense = p;
    dense.a_scale_ld = 0;
    dense.b_scale_ld = 0;
    forget(p.a_scale_ld, dense.a_scale_ld_or_dense());
    forget(p.b_scale_ld, dense.b_scale_ld_or_dense());
  } else {
    // A scale's column may be as long as the m of a launch, which is not known.
    p.a_scale_ld = 0;
    p.b_scale_ld = 0;
  }
  forget(p.lda, p.k);
  forget(p.ldb, p.k);
  forget(p.ldo, p.n);
  if (p.grouping.grouped()) {
    forget_what_steers_no_tiles(p);
  } else {
    p.m = p.m_policy == MPolicy::kAny ? 0 : planned_m(p);
  }
  return to_string(p);
}

Result<TuningDatabase> TuningDatabase::parse(std::string_view text) {
  Result<nlohmann::json> json = parse_strict_json(text, 8);
  if (!json) return corrupt_data("tuning database: " + json.error().message());
  if (!json->is_object() || json->value("schema", nlohmann::json()) != kSchema) {
    return corrupt_data(fmt::format("tuning database: expected \"schema\": {}", kSchema));
  }
  const auto rows = json->find("rows");
  if (rows == json->end() || !rows->is_array()) {
    return corrupt_data("tuning database: rows: expected an array");
  }
  TuningDatabase database;
  size_t index = 0;
  for (const nlohmann::json& row : *rows) {
    JITGEMM_ASSIGN(TunedPlan tuned, read_row(row, index++));
    database.put(std::move(tuned));
  }
  return database;
}

std::string TuningDatabase::to_json() const {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const auto& [key, tuned] : rows_) {
    rows.push_back({
        {"problem",        tuned.problem                },
        {"device",         tuned.device                 },
        {"sm_count",       tuned.sm_count               },
        {"plan",           overrides_to_json(tuned.plan)},
        {"time_us",        tuned.time_us                },
        {"spread",         tuned.spread                 },
        {"model_time_us",  tuned.model_time_us          },
        {"candidates",     tuned.candidates             },
        {"driver_version", tuned.driver_version         },
        {"version",        tuned.version                },
        {"date",           tuned.date                   }
    });
  }
  const Json document = {
      {"schema", kSchema},
      {"rows",   rows   }
  };
  return document.dump(1) + "\n";
}

void TuningDatabase::put(TunedPlan plan) {
  const std::tuple key(plan.problem, plan.sm_count, plan.device);
  const auto found = rows_.find(key);
  if (found != rows_.end() && found->second.date > plan.date) return;
  rows_.insert_or_assign(key, std::move(plan));
}

void TuningDatabase::merge(const TuningDatabase& other) {
  for (const auto& [key, plan] : other.rows_) put(plan);
}

std::optional<TunedPlan> TuningDatabase::find(const GemmProblem& problem, std::string_view device,
                                              int sm_count) const {
  if (rows_.empty() && unread_.empty()) return std::nullopt;
  const std::string key = tuning_key(problem);
  TuningDatabase of_problem;
  for (auto row = rows_.lower_bound(std::tuple(key, sm_count, std::string()));
       row != rows_.end() && row->second.problem == key && row->second.sm_count == sm_count;
       ++row) {
    of_problem.put(row->second);
  }
  for (const std::string_view text : unread_) {
    for (TunedPlan& row : rows_of(text, key)) {
      if (row.sm_count == sm_count) of_problem.put(std::move(row));
    }
  }
  for (auto& [row_key, row] : of_problem.rows_) {
    if (device.empty() || row.device == device) return std::move(row);
  }
  return std::nullopt;
}

std::vector<const TunedPlan*> TuningDatabase::rows() const {
  std::vector<const TunedPlan*> list;
  for (const auto& [key, plan] : rows_) list.push_back(&plan);
  return list;
}

}  // namespace jitgemm
