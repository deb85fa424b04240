// SPDX-License-Identifier: Apache-2.0
// Text for people: the report of a fault (who, where, what, which rule), the operands of an op in a
// lane, and who waits for what in a deadlock.
#pragma once

#include "sim/machine_state.h"

#include <span>
#include <string>

namespace jitgemm::sim {

// The text of the op's line of PTX, without the blanks around it.
std::string source_line(const GridState& grid, const Op& op);
// The other side of a fault: a warp of a cluster, a lane of it (-1: all of it), and what it did.
std::string describe_thread(const GridState& grid, uint64_t cluster, uint32_t warp, int32_t lane,
                            uint32_t op);
std::string describe_operands(const Warp& warp, const Op& op, int32_t lane);
// What the op has written, in a lane; empty if it writes no register.
std::string describe_results(const Warp& warp, const Op& op, uint32_t lane);
std::string describe_fault(const GridState& grid, const Fault& fault);
// One line for each split of the cluster that waits.
std::string describe_waits(const Cluster& cluster);
Report make_report(const GridState& grid, std::span<const OpCount> counts);

}  // namespace jitgemm::sim
