// SPDX-License-Identifier: Apache-2.0
// The order of execution: clusters over host threads, warps of a cluster in turns, asynchronous
// effects when nothing else can run, deadlock and step limits. Deterministic for a seed as long as
// clusters do not race through global memory.
#pragma once

#include "sim/machine_state.h"

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace jitgemm::sim {

struct GridResult {
  std::vector<OpCount> counts;  // by op
  uint64_t async_operations = 0;
  uint64_t peak_state_bytes = 0;
  std::string fault;  // report of the first fault; empty: none
  Statistics statistics;
};

// Every grid that runs is one of these.
struct ScheduledGrid : GridState {
  // Takes the next cluster that has not started, which then never does: its first CTA's
  // coordinates. Nothing when all have started.
  std::function<std::optional<std::array<uint32_t, 3>>()> claim_cluster;
};

GridResult run_grid(ScheduledGrid& grid);

}  // namespace jitgemm::sim
