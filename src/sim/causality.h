// SPDX-License-Identifier: Apache-2.0
// Who knows of what: vector clocks over the warps of a cluster, so that the sanitizer tells an
// access that synchronisation orders from one that merely came later in this run (PTX ISA 8.8
// causality order). Three orders are kept apart, because different instructions establish them:
// plain causality; causality along which a proxy fence stands (8.9.4); and the order of tcgen05
// operations, which thread synchronisation hands on only between a pair of tcgen05 fences
// (9.7.16.6.3). A fourth, of single threads, is in thread_order.h. It knows nothing of memory or of
// instructions.
#pragma once

#include "sim/thread_order.h"

#include <cstdint>
#include <vector>

namespace jitgemm::sim {

// Agents of a cluster of n warps: the warps 0..n-1, the async proxy n, for each warp its own queue
// of tcgen05.mma, cp and shift, which the warp must wait for like for anybody else, and the grid
// that a launch with programmatic dependence may overtake.
struct Agents {
  uint32_t warps = 0;
  uint32_t async_proxy() const { return warps; }
  uint32_t tensor_pipe(uint32_t warp) const { return warps + 1 + warp; }
  uint32_t predecessor() const { return 2 * warps + 1; }
  uint32_t count() const { return 2 * warps + 2; }
};

// By agent, the last epoch whose events are known. Empty: nothing is.
class Clock {
 public:
  Epoch at(uint32_t agent) const { return agent < epochs_.size() ? epochs_[agent] : 0; }
  void set(uint32_t agent, Epoch epoch);
  void join(const Clock& other);
  void clear() { epochs_.clear(); }

 private:
  std::vector<Epoch> epochs_;
};

// The same for writes that a proxy fence has followed. A fence covers the lanes that execute it,
// and what the whole warp has synchronised (9.7.13.4).
class FencedClock {
 public:
  struct Part {
    Epoch all = 0;   // writes of every lane up to here
    Epoch some = 0;  // those of `lanes` up to here
    LaneMask lanes = 0;
  };
  bool covers(uint32_t agent, Epoch epoch, LaneMask lanes) const {
    if (agent >= parts_.size()) return false;
    const Part& p = parts_[agent];
    return p.all >= epoch || (p.some >= epoch && (lanes & ~p.lanes) == 0);
  }
  void raise(uint32_t agent, const Part& part);
  void join(const FencedClock& other);
  // All writes that `seen` knows of, other than those of `self`.
  void join_seen(const Clock& seen, uint32_t self, uint32_t warps);
  void clear() { parts_.clear(); }

 private:
  std::vector<Part> parts_;
};

// What a barrier, an mbarrier phase or a memory location hands from those who arrive to those who
// wait.
struct Handover {
  Clock seen;
  FencedClock fenced;
  Clock tensor;
  ThreadClock threads;
  void join(const Handover& other);
  void clear();
};

// The view of one warp. Lanes are told apart for proxy fences and in threads().
class WarpView {
 public:
  // `cluster`: its number in the grid.
  void begin(Agents agents, uint32_t self, bool tensor_fences, uint64_t cluster = 0);

  // The epoch of what the warp does now.
  Epoch now() const { return now_; }
  bool knows(uint32_t agent, Epoch epoch) const {
    return agent == self_ || seen_.at(agent) >= epoch;
  }
  bool knows_fenced(uint32_t agent, Epoch epoch, LaneMask lanes) const {
    return fenced_.covers(agent, epoch, lanes);
  }
  // Known when the last tcgen05.fence::after_thread_sync was executed: what an asynchronous tcgen05
  // operation that is issued now is ordered after.
  bool knew_before_issue(uint32_t agent, Epoch epoch) const {
    return agent == self_ || issue_.at(agent) >= epoch;
  }
  // Ordered before the asynchronous tcgen05 operations that the warp issues from now on.
  bool tensor_ordered(uint32_t agent, Epoch epoch) const {
    return agent == self_ || tensor_.at(agent) >= epoch;
  }
  // As above, but for a missing after_thread_sync.
  bool tensor_handed_over(uint32_t agent, Epoch epoch) const {
    return tensor_arrived_.at(agent) >= epoch;
  }

  // griddepcontrol.wait: the grid before this one has completed.
  void predecessor_completed() { seen_.set(agents_.predecessor(), 1); }
  bool predecessor_has_completed() const { return seen_.at(agents_.predecessor()) != 0; }

  // What single threads know of each other.
  const ThreadView& threads() const { return threads_; }

  // Release and acquire of `lanes` (all of them: every live one). `relaxed`: orders execution only,
  // until a fence.
  void release(Handover& to, bool relaxed, LaneMask lanes = kAllLanes);
  void acquire(const Handover& from, bool relaxed, LaneMask lanes = kAllLanes);
  // Writes that take effect now, of an asynchronous operation in the generic proxy, become part of
  // `to`.
  void release_writes(Handover& to);
  // What tcgen05.commit hands over once the operations before it are complete; it implies
  // before_thread_sync for those (9.7.16.6.4.2).
  Handover commit(LaneMask lanes = kAllLanes);
  void lanes_synchronised();
  // Some lanes have met, as far as data races go.
  void lanes_met(LaneMask lanes);
  void proxy_fence(LaneMask lanes, LaneMask live);
  void before_thread_sync();
  void after_thread_sync();
  // fence.acq_rel, fence.sc, membar: relaxed operations around it synchronise. `memory` stands for
  // all locations of memory by which warps may synchronise.
  void memory_fence(Handover& memory);
  // The same for one half of it: a release or an acquire of any location.
  void release_memory(Handover& memory) { release_warp(memory, false); }
  void acquire_memory(const Handover& memory) { acquire_warp(memory, false); }

  // --- Single threads, through locations of memory (sync_locations.h) ----------------------------
  void fence_threads(SyncScope scope, LaneMask lanes);
  // What a release of `lanes` to a location hands over.
  ForeignPointer release_threads(LaneMask lanes);
  void acquire_threads(const ForeignPointer& from, LaneMask lanes) {
    threads_.acquire(from, lanes);
  }
  // By a relaxed operation: known after the next fence.
  void acquire_threads_at_fence(const ForeignPointer& from) { threads_.acquire_at_fence(from); }

 private:
  void publish_tensor();
  void release_warp(Handover& to, bool relaxed);
  void acquire_warp(const Handover& from, bool relaxed);
  Agents agents_;
  uint32_t self_ = 0;
  bool tensor_fences_ = true;
  Epoch now_ = 1;
  Epoch lanes_synchronised_ = 0;
  Clock seen_, issue_, tensor_, tensor_arrived_, tensor_published_;
  FencedClock fenced_;
  Handover relaxed_;  // acquired by relaxed operations since the last fence
  ThreadView threads_;
};

}  // namespace jitgemm::sim
