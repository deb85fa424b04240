// SPDX-License-Identifier: Apache-2.0
// State that the asynchronous and matrix instructions keep for a warp and a CTA: mbarrier objects,
// the order of tcgen05 operations, who still uses which part of tensor memory. Only the files that
// execute those instructions look inside; the core creates the objects and calls the exit checks.
#pragma once

#include "sim/async_engine.h"
#include "sim/machine_state.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace jitgemm::sim {

// An mbarrier object (PTX ISA 9.7.13.15). The eight bytes in shared memory hold an image of it, so
// that an ordinary store to them is noticed.
struct Mbarrier {
  uint32_t expected = 0;  // arrivals of a phase
  uint32_t pending = 0;   // arrivals still missing in this phase
  int64_t tx = 0;         // bytes announced less bytes completed
  uint64_t phase = 0;     // completed phases
  EventTime initialised = 0;
  uint32_t initialiser = 0;      // Warp::cluster_warp
  Handover arriving, completed;  // of this phase; of all phases before it
  // The same, for threads of other CTAs: handed on to waits of cluster scope alone.
  ThreadClock remote_arriving, remote_completed;

  uint64_t image() const;
};

// Part of tensor memory: 16 lanes of one column (the smallest part that an instruction can leave
// out).
struct TensorPart {
  uint16_t async_writers = 0;  // tcgen05.mma, tcgen05.cp: issued, not completed
  uint16_t async_readers = 0;
  uint16_t stores = 0;  // tcgen05.st without its wait::st
  uint16_t loads = 0;   // tcgen05.ld without its wait::ld
  // Agents of the cluster and their epochs (causality.h): who wrote it last, which warp's
  // tcgen05.ld read it last, which tensor pipe.
  uint16_t writer = 0, loader = 0, pipe = 0;
  Epoch written = 0, loaded = 0, used = 0;
  // For reports: the instructions, and the lanes of those that a single thread issues.
  static constexpr uint8_t kWholeWarp = 0xff;
  uint32_t writing_op = 0, loading_op = 0, using_op = 0;
  uint8_t writing_lane = kWholeWarp, using_lane = kWholeWarp;
};
inline constexpr uint32_t kTensorLaneGroups = 8;

// A region of tensor memory: lane groups (bit i: lanes 16i..16i+15) times columns.
struct TensorRegion {
  uint32_t lane_groups = 0;
  uint32_t column = 0;
  uint32_t columns = 0;
  uint32_t op = 0;  // of a load or store that is not waited for
};

struct AsyncWarpState {
  EventTime mbarrier_init_fence = 0;  // last fence.mbarrier_init
  struct TensorOperation {
    AsyncId id = 0;
    uint32_t lane = 0;  // the thread that issued it
  };
  std::vector<TensorOperation> tcgen05;  // complete ones go at the next commit
  std::vector<TensorRegion> loads;       // of tcgen05.ld before wait::ld
  std::vector<TensorRegion> stores;      // of tcgen05.st before wait::st
  std::vector<std::pair<Operand, LaneMask>> load_registers;
  // Registers of the wgmma operations of each group, oldest first; the last is the open one.
  struct WgmmaGroup {
    std::vector<AsyncId> ids;
    std::vector<std::pair<Operand, LaneMask>> registers;
  };
  std::vector<WgmmaGroup> wgmma = std::vector<WgmmaGroup>(1);
  AsyncId last_wgmma = 0;
  // Bulk stores whose completion has not been waited for.
  struct BulkStore {
    uint64_t group = 0;  // of the lane, by Warp::bulk_groups
    uint32_t copy = 0;   // GlobalRaces::DeedId
    uint32_t lane = 0;
  };
  std::vector<BulkStore> bulk_stores;
  // Sources of bulk stores: read until the lane that issued the store has waited for it.
  struct BulkSource {
    uint64_t group = 0;
    uint32_t cta_rank = 0, offset = 0, bytes = 0;
    uint32_t lane = 0;
    uint32_t op = 0;
  };
  std::vector<BulkSource> bulk_sources;
};

struct AsyncCtaState {
  std::map<uint32_t, Mbarrier> mbarriers;  // by offset in shared memory
  std::vector<TensorPart>
      tensor_parts;          // lane group * 512 + column; empty until the first allocation
  AsyncId last_tcgen05 = 0;  // operations of a CTA pair take effect in order
  uint8_t cta_group = 0;     // of the first tcgen05 instruction
  // tcgen05.alloc with cta_group::2 waits for the same of the peer.
  struct PairAllocation {
    uint32_t columns = 0;  // 0: nobody waits
    bool granted = false;
    uint32_t column = 0;
  } pair;
  // tcgen05.dealloc with cta_group::2 too.
  struct PairRelease {
    bool waiting = false;
    bool granted = false;
    uint32_t column = 0;
    uint32_t columns = 0;
  } release;
  // What each warp of a warpgroup passed to its wgmma instructions, from the oldest that not all
  // four warps have issued. They must agree (9.7.15.5.2).
  struct WgmmaIssue {
    uint32_t op = 0;
    uint32_t warp = 0;
    uint64_t a = 0, b = 0;  // descriptors; a is 0 for registers
  };
  struct Warpgroup {
    std::deque<WgmmaIssue> issues;
    uint64_t first = 0;                   // number of issues.front()
    std::array<uint64_t, 4> issued = {};  // by warp
  };
  std::map<uint32_t, Warpgroup> warpgroups;
  bool permit_relinquished = false;
  bool exiting = false;  // its last thread has ended; completed arrivals still count

  TensorPart& part(uint32_t lane_group, uint32_t column) {
    return tensor_parts[lane_group * TensorMemory::kColumns + column];
  }
};

// --- mbarrier, for the operations that complete on one
// ---------------------------------------------- The object at an offset, null if there is none or
// its bytes were overwritten; `why` says which.
Mbarrier* find_mbarrier(Cta& cta, uint32_t offset, std::string& why);
// Arrivals and completed bytes on behalf of an asynchronous operation, and what those who wait
// learn by them. Faults go to the cluster.
void mbarrier_arrive(Cluster& cluster, Cta& cta, uint32_t offset, uint32_t count,
                     const Handover& handover, const Origin& origin);
void mbarrier_complete_tx(Cluster& cluster, Cta& cta, uint32_t offset, uint32_t bytes,
                          const Origin& origin);
// The check that an instruction makes when it names an mbarrier for a later completion.
Step require_mbarrier(Warp& warp, const Op& op, uint32_t lane, Cta& cta, uint32_t offset);

// An operation of the async proxy will complete on it: its initialisation must have been published
// by fence.mbarrier_init or a proxy fence (PTX ISA 9.7.13.4).
Step require_published_mbarrier(Warp& warp, const Op& op, uint32_t lane, Cta& cta, uint32_t offset);

// --- the async proxy
// -------------------------------------------------------------------------------- Bytes of shared
// memory that an asynchronous operation will read: in bounds, written, completed by the operations
// that write them, and generic writes ordered by a proxy fence.
// `missing`: if given, and the program is not held to strict rules, bytes that are not there (never
// written, or not yet by an operation in flight) are no fault but set it.
Step check_async_source(Warp& warp, const Op& op, uint32_t lane, Cta& cta, uint64_t offset,
                        uint64_t bytes, const char* what, bool* missing = nullptr);
// Bytes that it will write: in bounds and not in use by another one.
Step check_async_destination(Warp& warp, const Op& op, uint32_t lane, Cta& cta, uint64_t offset,
                             uint64_t bytes, const char* what);

// --- called by the core
// ------------------------------------------------------------------------------ The last thread of
// a CTA has ended: tensor memory must be free and no operation may still need its shared memory.
// `warp` is the warp that ended last, `op` its last instruction.
void check_cta_exit(Warp& warp, const Op& op);
// All CTAs have ended: what is left takes effect.
void drain_cluster(Cluster& cluster);

// AsyncOperation::cta_rank of an operation that no longer needs any CTA's shared or tensor memory.
inline constexpr uint32_t kNoCtaRank = ~uint32_t{0};

}  // namespace jitgemm::sim
