// SPDX-License-Identifier: Apache-2.0
#include "sim/async_engine.h"

#include "sim/exec_tma.h"
#include "sim/machine_state.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace jitgemm::sim {

AsyncId AsyncEngine::submit(AsyncOperation operation) {
  const AsyncId id = next_++;
  operations_.emplace(id, std::move(operation));
  return id;
}

void AsyncEngine::complete(Cluster& cluster, AsyncId id) {
  auto found = operations_.find(id);
  if (found == operations_.end()) return;
  // Dependencies are older, so the recursion ends.
  const std::vector<AsyncId> after = found->second.after;
  for (AsyncId earlier : after) complete(cluster, earlier);
  found = operations_.find(id);
  if (found == operations_.end()) return;
  AsyncOperation operation = std::move(found->second);
  operations_.erase(found);
  ++cluster.effects;
  operation.complete(cluster);
}

namespace {

// A bulk store need not happen before its own wait_group, however long others wait for other
// operations: the latest legal point is after all of these.
bool may_be_last(const AsyncOperation& operation) {
  return std::strcmp(operation.name, kBulkReadName) == 0 ||
         std::strcmp(operation.name, kBulkStoreName) == 0;
}

}  // namespace

bool AsyncEngine::complete_oldest(Cluster& cluster) {
  for (const auto& [id, operation] : operations_) {
    if (operation.ready) continue;
    complete(cluster, id);
    return true;
  }
  return false;
}

bool AsyncEngine::complete_one(Cluster& cluster, uint64_t random) {
  std::vector<AsyncId> candidates;
  AsyncId last = 0;
  for (const auto& [id, operation] : operations_) {
    const bool free = std::all_of(operation.after.begin(), operation.after.end(),
                                  [&](AsyncId earlier) { return is_complete(earlier); });
    if (!free || (operation.ready && !operation.ready(cluster))) continue;
    if (random == 0 && may_be_last(operation)) {
      if (last == 0) last = id;
      continue;
    }
    if (random == 0) {
      complete(cluster, id);
      return true;
    }
    candidates.push_back(id);
  }
  if (last != 0) {
    complete(cluster, last);
    return true;
  }
  if (candidates.empty()) return false;
  complete(cluster, candidates[random % candidates.size()]);
  return true;
}

void AsyncGroups::commit(LaneMask lanes) {
  Group group;
  group.lanes = lanes;
  for (Member& member : open_) {
    if ((member.lanes & lanes) == 0) continue;
    group.ids.push_back(member.id);
    member.lanes &= ~lanes;
  }
  std::erase_if(open_, [](const Member& m) { return m.lanes == 0; });
  for (LaneMask m = lanes; m != 0; m &= m - 1) ++committed_[std::countr_zero(m)];
  groups_.push_back(std::move(group));
}

std::vector<AsyncId> AsyncGroups::outstanding(LaneMask lanes, uint32_t keep,
                                              bool include_open) const {
  std::vector<AsyncId> ids;
  uint32_t newer[kLanes] = {};
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    bool wanted = false;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((group->lanes & lanes & (LaneMask{1} << lane)) != 0) wanted |= newer[lane]++ >= keep;
    }
    if (wanted) ids.insert(ids.end(), group->ids.begin(), group->ids.end());
  }
  if (include_open) {
    for (const Member& member : open_) {
      if ((member.lanes & lanes) != 0) ids.push_back(member.id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

void AsyncGroups::forget_complete(const AsyncEngine& engine) {
  std::erase_if(open_, [&](const Member& m) { return engine.is_complete(m.id); });
  // A group counts as one of the newest even when it is complete, so only a complete prefix may go.
  while (!groups_.empty()) {
    const Group& oldest = groups_.front();
    if (!std::all_of(oldest.ids.begin(), oldest.ids.end(),
                     [&](AsyncId id) { return engine.is_complete(id); })) {
      return;
    }
    groups_.pop_front();
  }
}

}  // namespace jitgemm::sim
