// SPDX-License-Identifier: Apache-2.0
// The two ways of timing, as schedules: who runs when, and how long the device rests before. A
// power-limited GPU gives other figures when it is busy than when it is rested, so a figure belongs
// to a regime and is compared inside it only. Knows nothing of devices: a Stage runs what it asks.
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jitgemm::bench {

// What is read from the device while it works; 0 where it cannot be read.
struct DeviceState {
  double sm_clock_mhz = 0;
  double power_w = 0;
};

// Runs units of work of several contenders. A unit is one call, or a graph of some calls.
class Stage {
 public:
  virtual ~Stage() = default;
  // Leaves the device idle.
  virtual void rest(double milliseconds) = 0;
  // One unit with cold caches and without the host's latency; microseconds of the unit.
  virtual Result<double> time_one(size_t contender) = 0;
  // Units back to back; microseconds of all of them. `state` is read in their middle.
  virtual Result<double> time_many(size_t contender, int64_t units, DeviceState* state) = 0;
};

struct RestedSchedule {
  int rounds = 9;
  double pause_factor = 4;  // of a unit's own time
  double least_pause_ms = 4;
  double most_pause_ms = 30;
  // Rounds are left out, down to three, to stay below this; 0: no limit.
  double budget_s = 0;

  double pause_ms(double unit_us) const;
  // The rounds that the budget allows, an odd number, given each contender's unit.
  int affordable_rounds(const std::vector<double>& unit_us) const;
};

// The contenders in the order of a round: it turns by one each time.
std::vector<size_t> round_order(size_t contenders, int round);

// For each contender its samples, in microseconds a unit. One more unit of each runs before, unused
// but for the length of the pauses.
Result<std::vector<std::vector<double>>> measure_rested(Stage& stage, size_t contenders,
                                                        const RestedSchedule& schedule);

struct SustainedSchedule {
  double warm_s = 0.2;
  double window_s = 0.2;
};

struct SustainedFigure {
  double unit_us = 0;  // mean over the window
  int64_t units = 0;
  DeviceState state;
};

Result<SustainedFigure> measure_sustained(Stage& stage, size_t contender,
                                          const SustainedSchedule& schedule);

// Products below this are timed as graphs over rotating operands: a call alone would measure its
// launch, and find its weights in L2.
inline constexpr double kGraphBelowFlops = 150e9;
inline constexpr double kRotatedBytes = 280.0 * (1 << 20);
inline constexpr int kMostSets = 20;

// How many sets of operands a unit goes through: one a call of its graph, or 1 for a single call.
int operand_sets(double flops, double bytes_a_set);

}  // namespace jitgemm::bench
