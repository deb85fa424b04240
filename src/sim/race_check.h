// SPDX-License-Identifier: Apache-2.0
// Data races for the files that execute instructions: records an access and faults if an earlier
// one, which nothing orders before it, conflicts with it (PTX ISA 8.7.1); and the synchronisation
// of threads through strong accesses and fences (8.9.4). All of it does nothing unless the run
// looks for races.
#pragma once

#include "sim/access.h"
#include "sim/global_races.h"

#include <cstdint>

namespace jitgemm::sim {

// Atomic, relaxed, acquire, release or volatile: accesses that may conflict with each other.
bool is_strong(const Op& op);

// An access of a lane to shared memory of a CTA of its cluster.
Step check_race(Warp& warp, const Op& op, uint32_t lane, Cta& cta, uint64_t offset, uint64_t bytes,
                bool write);
// The same, atomic whatever the instruction says: of operations on mbarrier objects.
Step check_atomic_race(Warp& warp, const Op& op, uint32_t lane, Cta& cta, uint64_t offset,
                       uint64_t bytes);
// To global memory. Nothing is kept of memory that is not writable.
Step check_global_race(Warp& warp, const Op& op, uint32_t lane, const GlobalMemory::Range& range,
                       uint64_t address, uint64_t bytes, bool write);

// An asynchronous copy that is issued now; 0 if the run does not look for races.
GlobalRaces::DeedId begin_copy(Warp& warp, const Op& op);
// What it will read or write of global memory.
Step check_copy(Warp& warp, const Op& op, uint32_t lane, GlobalRaces::DeedId copy, uint64_t address,
                uint64_t bytes, bool write, bool atomic);
// Its global reads are over, for those who know of this completion by the async proxy.
void copy_has_read(Cluster& cluster, GlobalRaces::DeedId copy, Epoch completion);
// The warp's threads have waited for its writes.
void copy_was_awaited(Warp& warp, GlobalRaces::DeedId copy);

// Before the first byte of a strong write, and after the last one of a strong read.
void release_to(Warp& warp, const Op& op, LaneMask lanes, const Location& location);
void acquire_from(Warp& warp, const Op& op, LaneMask lanes, const Location& location);
void fence_threads(Warp& warp, const Op& op, LaneMask lanes);

}  // namespace jitgemm::sim
