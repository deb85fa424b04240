// SPDX-License-Identifier: Apache-2.0
// The order of execution: clusters over host threads, warps of a cluster in turns, asynchronous
// effects when nothing else can run, deadlock and step limits. Deterministic for a seed as long as
// clusters do not race through global memory.
#pragma once

#include "sim/machine_state.h"

#include <cstdint>
#include <string>
#include <vector>

namespace jitgemm::sim {

struct GridResult {
  std::vector<OpCount> counts;  // by op
  uint64_t async_operations = 0;
  uint64_t peak_state_bytes = 0;
  std::string fault;  // report of the first fault; empty: none
  Statistics statistics;
};

GridResult run_grid(GridState& grid);

}  // namespace jitgemm::sim
