// SPDX-License-Identifier: Apache-2.0
// The queue of asynchronous operations of one cluster. An operation is issued by an instruction and
// takes effect later: at the latest point that the program allows (something waits for it and
// nothing else can run), or, with a seed, at random legal points. It knows nothing of what
// operations do.
#pragma once

#include "sim/faults.h"
#include "sim/program.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace jitgemm::sim {

class Cluster;
using AsyncId = uint64_t;  // in the order of issue; 0 is none

struct AsyncOperation {
  const char* name = "";       // for reports
  Origin origin;               // the instruction that issued it
  std::vector<AsyncId> after;  // operations that must take effect before it
  // Optional: false while the operation may not take effect yet for another reason.
  std::function<bool(Cluster&)> ready;
  std::function<void(Cluster&)> complete;
  uint32_t cta_rank = 0;  // CTA whose shared or tensor memory it uses
};

class AsyncEngine {
 public:
  AsyncId submit(AsyncOperation operation);
  bool is_complete(AsyncId id) const { return operations_.find(id) == operations_.end(); }
  // Completes it now, and first what it must follow. For waits that must return.
  void complete(Cluster& cluster, AsyncId id);
  // Completes one operation that may complete: the oldest (random 0) or one chosen by `random`.
  // False if there is none.
  bool complete_one(Cluster& cluster, uint64_t random);
  // Completes the oldest one that needs nothing but others to be complete. False if there is none.
  bool complete_oldest(Cluster& cluster);
  bool empty() const { return operations_.empty(); }
  size_t size() const { return operations_.size(); }
  uint64_t issued() const { return next_ - 1; }
  // The pending operations, oldest first, for reports and exit checks.
  const std::map<AsyncId, AsyncOperation>& pending() const { return operations_; }

 private:
  std::map<AsyncId, AsyncOperation> operations_;
  AsyncId next_ = 1;
};

// Commit groups of one warp (cp.async, bulk copies, wgmma): PTX keeps them per thread; a group here
// has the lanes that committed it.
class AsyncGroups {
 public:
  void add(AsyncId id, LaneMask lanes) { open_.push_back({id, lanes}); }
  void commit(LaneMask lanes);
  // The number of the lane's open group. Numbers stay right where groups have been forgotten.
  uint64_t open_group(uint32_t lane) const { return committed_[lane]; }
  // Is a lane's group of this number one that a wait for all but the newest `keep` waits for?
  bool waits_for(uint32_t lane, uint64_t group, uint32_t keep) const {
    return group + keep < committed_[lane];
  }
  // Operations of all committed groups of any of `lanes` except each lane's newest `keep` groups;
  // with include_open also those not committed yet. The groups stay listed until forget_complete.
  std::vector<AsyncId> outstanding(LaneMask lanes, uint32_t keep, bool include_open = false) const;
  void forget_complete(const AsyncEngine& engine);
  bool empty() const { return open_.empty() && groups_.empty(); }
  size_t size() const { return open_.size() + groups_.size(); }

 private:
  struct Member {
    AsyncId id;
    LaneMask lanes;
  };
  struct Group {
    LaneMask lanes;
    std::vector<AsyncId> ids;
  };
  std::vector<Member> open_;
  std::deque<Group> groups_;
  std::array<uint64_t, kLanes> committed_{};  // groups, by lane
};

}  // namespace jitgemm::sim
