// SPDX-License-Identifier: Apache-2.0
#include "bench/tuner.h"

#include <algorithm>
#include <utility>

namespace jitgemm::bench {
namespace {

double median_of(const ContenderResult& contender) {
  return summarize(contender.rested_us).median;
}

ShapeRunOptions rested(int rounds) {
  ShapeRunOptions options;
  options.timing.rested_schedule.rounds = rounds;
  return options;
}

}  // namespace

std::vector<size_t> finalists(const ShapeResult& coarse, int wanted) {
  std::vector<size_t> timed;
  for (size_t i = 0; i < coarse.contenders.size(); ++i) {
    if (!coarse.contenders[i].rested_us.empty()) timed.push_back(i);
  }
  const bool model_timed = !timed.empty() && timed.front() == 0;
  std::stable_sort(timed.begin(), timed.end(), [&](size_t x, size_t y) {
    return median_of(coarse.contenders[x]) < median_of(coarse.contenders[y]);
  });
  if (timed.size() > static_cast<size_t>(wanted)) timed.resize(static_cast<size_t>(wanted));
  if (model_timed && std::find(timed.begin(), timed.end(), 0) == timed.end()) timed.push_back(0);
  return timed;
}

std::optional<size_t> winner(const ShapeResult& fine, double advantage) {
  std::optional<size_t> best;
  for (size_t i = 0; i < fine.contenders.size(); ++i) {
    if (fine.contenders[i].rested_us.empty()) continue;
    if (!best || median_of(fine.contenders[i]) < median_of(fine.contenders[*best])) best = i;
  }
  if (!best || *best == 0 || fine.contenders[0].rested_us.empty()) return best;
  const bool clear =
      median_of(fine.contenders[*best]) < (1 - advantage) * median_of(fine.contenders[0]);
  return clear ? *best : 0;
}

Result<TuneOutcome> tune_shape(GpuSession& session, const std::optional<GroupedShape>& groups,
                               const std::vector<OperationPlan>& ranked, const TuneOptions& options,
                               const std::string& version, const std::string& date) {
  const auto time = [&](const std::vector<OperationPlan>& plans, int rounds) {
    return groups ? run_grouped_shape(session, *groups, plans, nullptr, rested(rounds))
                  : run_shape(session, plans, nullptr, rested(rounds));
  };
  TuneOutcome outcome;
  JITGEMM_ASSIGN(outcome.coarse, time(ranked, options.coarse_rounds));
  std::vector<size_t> chosen = finalists(outcome.coarse, options.finalists);
  // The model's choice first, as winner() has it.
  std::stable_partition(chosen.begin(), chosen.end(), [](size_t i) { return i == 0; });
  if (chosen.empty()) {
    return Status(StatusCode::kVerificationFailed,
                  "tune: no candidate could be timed: " + outcome.coarse.contenders[0].not_timed);
  }
  std::vector<OperationPlan> plans;
  plans.reserve(chosen.size());
  for (const size_t i : chosen) plans.push_back(ranked[i]);
  JITGEMM_ASSIGN(outcome.fine, time(plans, options.fine_rounds));
  const std::optional<size_t> best = winner(outcome.fine, options.advantage);
  if (!best) {
    return Status(StatusCode::kVerificationFailed, "tune: no candidate could be timed twice: " +
                                                       outcome.fine.contenders[0].not_timed);
  }
  const GemmPlan& plan = plans[*best].product();
  const Summary summary = summarize(outcome.fine.contenders[*best].rested_us);
  const DeviceInfo& device = session.device().info();
  TunedPlan& row = outcome.row;
  row.problem = tuning_key(plan.problem);
  row.device = device.description;
  row.sm_count = device.sm_count;
  row.plan = overrides_of(plan);
  row.time_us = summary.median;
  row.spread = summary.spread();
  const bool other = chosen[*best] != 0 && chosen[0] == 0;
  row.model_time_us = other ? median_of(outcome.fine.contenders[0]) : 0;
  row.candidates = static_cast<int>(
      std::count_if(outcome.coarse.contenders.begin(), outcome.coarse.contenders.end(),
                    [](const ContenderResult& c) { return !c.rested_us.empty(); }));
  row.driver_version = device.driver_version;
  row.version = version;
  row.date = date;
  return outcome;
}

}  // namespace jitgemm::bench
