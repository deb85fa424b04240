// SPDX-License-Identifier: Apache-2.0
#include "bench/regimes.h"

#include <algorithm>
#include <cmath>

namespace jitgemm::bench {
namespace {

// What a sample costs beside its pause and its unit: flush, spin, launches.
constexpr double kSampleOverheadMs = 0.6;

}  // namespace

double RestedSchedule::pause_ms(double unit_us) const {
  return std::clamp(pause_factor * unit_us / 1000, least_pause_ms, most_pause_ms);
}

int RestedSchedule::affordable_rounds(const std::vector<double>& unit_us) const {
  if (budget_s <= 0) return rounds;
  double round_ms = 0;
  for (const double unit : unit_us) round_ms += pause_ms(unit) + unit / 1000 + kSampleOverheadMs;
  int affordable = static_cast<int>(1000 * budget_s / std::max(round_ms, 1e-3));
  if (affordable % 2 == 0) --affordable;
  return std::min(rounds, std::max(affordable, 3));
}

std::vector<size_t> round_order(size_t contenders, int round) {
  std::vector<size_t> order(contenders);
  for (size_t i = 0; i < contenders; ++i) {
    order[i] = (i + static_cast<size_t>(round)) % contenders;
  }
  return order;
}

Result<std::vector<std::vector<double>>> measure_rested(Stage& stage, size_t contenders,
                                                        const RestedSchedule& schedule) {
  std::vector<double> unit_us;
  for (size_t i = 0; i < contenders; ++i) {
    // The first launch of a kernel may load it.
    JITGEMM_ASSIGN(const double first, stage.time_one(i));
    static_cast<void>(first);
    JITGEMM_ASSIGN(const double unit, stage.time_one(i));
    unit_us.push_back(unit);
  }
  std::vector<std::vector<double>> samples(contenders);
  const int rounds = schedule.affordable_rounds(unit_us);
  for (int round = 0; round < rounds; ++round) {
    for (const size_t i : round_order(contenders, round)) {
      stage.rest(schedule.pause_ms(unit_us[i]));
      JITGEMM_ASSIGN(const double sample, stage.time_one(i));
      samples[i].push_back(sample);
    }
  }
  return samples;
}

Result<SustainedFigure> measure_sustained(Stage& stage, size_t contender,
                                          const SustainedSchedule& schedule) {
  JITGEMM_ASSIGN(const double first, stage.time_many(contender, 1, nullptr));
  const auto units_for = [](double seconds, double unit_us) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(1e6 * seconds / unit_us)));
  };
  const int64_t warm = units_for(schedule.warm_s, std::max(first, 1.0));
  JITGEMM_ASSIGN(const double warm_us, stage.time_many(contender, warm, nullptr));
  SustainedFigure figure;
  figure.units = units_for(schedule.window_s, std::max(warm_us / static_cast<double>(warm), 1e-3));
  JITGEMM_ASSIGN(const double window_us, stage.time_many(contender, figure.units, &figure.state));
  figure.unit_us = window_us / static_cast<double>(figure.units);
  return figure;
}

int operand_sets(double flops, double bytes_a_set) {
  if (flops >= kGraphBelowFlops) return 1;
  const double wanted = std::ceil(kRotatedBytes / std::max(bytes_a_set, 1.0));
  return static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(kMostSets)));
}

}  // namespace jitgemm::bench
