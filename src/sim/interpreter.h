// SPDX-License-Identifier: Apache-2.0
// Runs the ops of one warp until its splits wait or its turn is over: guards, reconvergence,
// .aligned, pending registers. What an op does is behind its function pointer; who runs when is the
// scheduler's.
#pragma once

#include "sim/machine_state.h"

#include <span>

namespace jitgemm::sim {

class Observer;

// Executes at most `budget` ops of the warp. Returns the number executed; 0: every split waits.
// With an observer, it is told of each op and each wait; without one this costs nothing.
uint32_t run_warp(Warp& warp, uint32_t budget, std::span<OpCount> counts, Observer* observer);

// True if some split of the warp could run (polls what the splits wait for).
bool can_run(Warp& warp);

}  // namespace jitgemm::sim
