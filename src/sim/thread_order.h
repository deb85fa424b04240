// SPDX-License-Identifier: Apache-2.0
// Who knows what other threads have done, thread by thread: the order behind the reports of data
// races (PTX ISA 8.9.5, causality order). Threads of the own cluster are kept by warp, with lanes
// apart where they have not synchronised; threads of other clusters in lists that are shared and
// never changed. Where a bound is reached, more counts as known: a race may be missed, never
// invented. It knows nothing of memory or of instructions.
#pragma once

#include "sim/program.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace jitgemm::sim {

// Counts the synchronisations of one agent; events of the agent bear the epoch they fall into.
using Epoch = uint32_t;

// Events of `lanes` of a warp (or of all of an agent without lanes) up to an epoch.
struct KnownEvents {
  uint64_t agent = 0;  // of the grid: first agent of its cluster + agent in the cluster
  LaneMask lanes = 0;
  Epoch epoch = 0;
  friend bool operator==(const KnownEvents&, const KnownEvents&) = default;
};

// What is handed from cluster to cluster. Immutable once shared.
struct ForeignClock {
  static constexpr size_t kMaxEntries = 1 << 14;
  std::vector<KnownEvents> known;  // sorted by agent
  bool everything = false;         // there was too much to tell apart

  // Of `lanes`, those whose events of that epoch are not known.
  LaneMask missing(uint64_t agent, LaneMask lanes, Epoch epoch) const;
};
using ForeignPointer = std::shared_ptr<const ForeignClock>;
// Both; one of the two itself if it holds the other.
ForeignPointer join_foreign(const ForeignPointer& a, const ForeignPointer& b);

// Agents are numbers in the cluster.
class ThreadClock {
 public:
  LaneMask missing(uint32_t agent, LaneMask lanes, Epoch epoch) const {
    if (agent < whole_.size() && whole_[agent] >= epoch) return 0;
    return parts_.empty() ? lanes : missing_in_parts(agent, lanes, epoch);
  }
  const ForeignPointer& foreign() const { return foreign_; }
  void add(uint32_t agent, LaneMask lanes, Epoch epoch);
  void join(const ThreadClock& other);
  void join(const ForeignPointer& other, uint64_t first_agent, uint32_t agents);
  // As threads of any cluster understand it.
  ForeignPointer to_foreign(uint64_t first_agent) const;
  void clear();

 private:
  struct Part {
    uint32_t agent = 0;
    LaneMask lanes = 0;
    Epoch epoch = 0;
  };
  static constexpr uint32_t kMaxParts = 4;  // of one agent
  LaneMask missing_in_parts(uint32_t agent, LaneMask lanes, Epoch epoch) const;
  void fold(uint32_t agent);
  std::vector<Epoch> whole_;  // by agent: events of all lanes
  std::vector<Part> parts_;   // events of some lanes beyond those
  ForeignPointer foreign_;
};

// How far synchronisation through a location reaches (PTX ISA 8.5).
enum class SyncScope : uint8_t { kCta, kCluster, kGpu };

// The view of the threads of one warp.
class ThreadView {
 public:
  // `agents`: of a cluster; `first_agent`: of this one, in the grid.
  void begin(uint32_t self, uint64_t first_agent, uint32_t agents);

  uint64_t first_agent() const { return first_agent_; }
  uint32_t agents() const { return agents_; }
  // Lane `lane` knows of what `lanes` of an agent of its cluster did in that epoch. No lanes: the
  // warp did it as a whole, so any of them will do.
  bool knows(uint32_t lane, uint32_t agent, LaneMask lanes, Epoch epoch) const;
  bool knows_foreign(uint32_t lane, uint64_t agent, LaneMask lanes, Epoch epoch) const;

  void release(ThreadClock& to, Epoch now, LaneMask lanes) const;
  void acquire(const ThreadClock& from, LaneMask lanes);
  // Lanes `members` have met.
  void meet(LaneMask members, Epoch now);

  // What lanes publish by a release to a location.
  ForeignPointer snapshot(Epoch now, LaneMask lanes) const;
  // An acquire from a location.
  void acquire(const ForeignPointer& from, LaneMask lanes);

  // Relaxed operations synchronise with the fences around them (8.9.4).
  void fence(SyncScope scope, Epoch now, LaneMask lanes);
  // Published by relaxed operations after the last fence of at least that scope; may be null.
  const ForeignPointer& fenced(SyncScope scope) const {
    return fenced_[static_cast<size_t>(scope)];
  }
  const ThreadClock* fenced_in_cluster() const { return fenced_any_ ? &fenced_clock_ : nullptr; }
  // Learned by relaxed operations, known after a fence.
  void acquire_at_fence(const ForeignPointer& from);
  void acquire_at_fence(const ThreadClock& from);

 private:
  struct Partial {
    LaneMask lanes = 0;
    ThreadClock clock;
  };
  static constexpr size_t kMaxPartials = 8;
  ThreadClock& partial(LaneMask lanes);
  uint32_t self_ = 0;
  uint32_t agents_ = 0;
  uint64_t first_agent_ = 0;
  ThreadClock common_;             // known to all lanes
  std::vector<Partial> partials_;  // known to some
  std::array<ForeignPointer, 3> fenced_;
  ThreadClock fenced_clock_;
  bool fenced_any_ = false;
  ThreadClock pending_;  // to be known after the next fence
  bool has_pending_ = false;
  struct Recent {
    ForeignPointer clock;
    LaneMask lanes = 0;
  };
  std::array<Recent, 4> recent_;  // acquired last; polling comes upon the same again and again
  uint32_t next_recent_ = 0;
};

}  // namespace jitgemm::sim
