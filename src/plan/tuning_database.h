// SPDX-License-Identifier: Apache-2.0
// Measured plans: which plan was fastest for a problem on a device. A versioned JSON file that can
// be merged, and data built into the library; planners look into it before they ask their model.
// It decides nothing and measures nothing.
#pragma once

#include "plan/plan_overrides.h"
#include "problem/gemm_problem.h"
#include "support/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace jitgemm {

struct TunedPlan {
  std::string problem;  // tuning_key
  std::string device;   // as the driver names it: "NVIDIA H200"
  int sm_count = 0;
  PlanOverrides plan;
  double time_us = 0;  // rested median
  double spread = 0;   // of its samples: highest less lowest, over the median
  // What the model's own choice took in the same run; 0 if the two are one.
  double model_time_us = 0;
  int candidates = 0;  // that were measured
  int driver_version = 0;
  std::string version;  // of this library
  std::string date;     // UTC, "2026-01-31T12:00:00Z": the later of two entries wins
};

// One line for all problems that one plan serves: m as far as its policy lets a plan see it,
// distances that say nothing left out.
std::string tuning_key(const GemmProblem& problem);

class TuningDatabase {
 public:
  // CORRUPT_DATA with what is wrong.
  static Result<TuningDatabase> parse(std::string_view json);
  // Rows sorted, so that equal databases are equal files.
  std::string to_json() const;

  // A row for each problem and device: of two, the later measurement stays.
  void put(TunedPlan plan);
  void merge(const TuningDatabase& other);
  // A text of to_json's form that lives as long as the database. Its rows are read one at a time,
  // when `find` meets them: whoever asks for a few problems does not wait for all. The functions
  // below do not see them.
  void add_unread(std::string_view json) { unread_.push_back(json); }
  // An empty device matches any of that SM count: what plans for a device that is not there then
  // meets what the device itself will plan.
  std::optional<TunedPlan> find(const GemmProblem& problem, std::string_view device,
                                int sm_count) const;

  size_t size() const { return rows_.size(); }
  std::vector<const TunedPlan*> rows() const;

 private:
  // By problem, SM count and device.
  std::map<std::tuple<std::string, int, std::string>, TunedPlan> rows_;
  std::vector<std::string_view> unread_;
};

// The text of the databases that the library ships, as they were when it was built.
std::vector<std::string_view> embedded_tuning_files();

}  // namespace jitgemm
