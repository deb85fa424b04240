// SPDX-License-Identifier: Apache-2.0
#include "sim/race_check.h"

#include "fmt/format.h"
#include "sim/report.h"

#include <bit>

namespace jitgemm::sim {
namespace {

using ptx::Semantics;

bool judges(const Warp& w) {
  const Options& options = w.cta.cluster.grid.options;
  return options.sanitize && options.races;
}

// Done by the warp as one, whichever lane is named.
bool is_collective(const Op& op) {
  const ptx::Opcode opcode = op.instruction->opcode;
  return opcode == ptx::Opcode::kTcgen05Alloc || opcode == ptx::Opcode::kStmatrix;
}

bool is_atomic(const Op& op) {
  return op.instruction->opcode == ptx::Opcode::kAtom ||
         op.instruction->opcode == ptx::Opcode::kRed;
}

SyncScope scope_of(const Op& op) {
  switch (op.modifiers().scope) {
    case ptx::Scope::kCta: return SyncScope::kCta;
    case ptx::Scope::kCluster: return SyncScope::kCluster;
    default: return SyncScope::kGpu;
  }
}

SyncPlace place_of(const Warp& w) {
  const Cluster& cluster = w.cta.cluster;
  return {cluster.number * cluster.grid.ctas_per_cluster + w.cta.rank, cluster.number};
}

// Shared memory synchronises inside of a cluster, global memory everywhere.
SyncLocations& locations_of(Warp& w, const Location& at, uint64_t& address) {
  if (at.space == Space::kSharedCta) {
    address = uint64_t{at.cta->rank} << kSharedRankShift | at.offset;
    return w.cta.cluster.locations;
  }
  address = reinterpret_cast<uint64_t>(at.data);
  return w.cta.cluster.grid.locations;
}

// Volatile accesses and atomics without a word about order are relaxed ones (8.7), which order
// nothing without fences. Those of programs that are not held to strict rules do all the same.
bool is_half_of(const Op& op, Semantics half, bool strict) {
  const Semantics s = op.modifiers().semantics;
  return s == half || s == Semantics::kAcqRel || s == Semantics::kSc ||
         (!strict && (s == Semantics::kVolatile || is_atomic(op)));
}

// A lane of those that did `access`, of which `lane` does not know.
int32_t unknown_lane(const WarpView& view, uint32_t lane, const RaceShadow::Access& access) {
  for (LaneMask m = access.lanes; m != 0; m &= m - 1) {
    const LaneMask one = m & ~(m - 1);
    if (!view.threads().knows(lane, access.warp, one, access.epoch)) return std::countr_zero(one);
  }
  return -1;
}

Step check_shared(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint64_t offset, uint64_t bytes,
                  bool write, bool strong) {
  RaceShadow::Access access;
  access.epoch = w.view.now();
  access.lanes = is_collective(op) ? 0 : LaneMask{1} << lane;
  access.op = op.index;
  access.warp = static_cast<uint16_t>(w.cluster_warp);
  access.write = write;
  access.strong = strong;
  access.instance = static_cast<uint8_t>(w.instance);
  const RaceShadow::Access* other =
      cta.shared.races.access(offset, bytes, access, lane, w.view.threads());
  if (other == nullptr) [[likely]]
    return Step::kNext;
  const Cluster& cluster = w.cta.cluster;
  return w.fault(
      op, static_cast<int32_t>(lane), FaultKind::kDataRace,
      fmt::format("{} byte(s) at shared offset {:#x} of CTA rank {}; the other side is a {} by {}",
                  bytes, offset, cta.rank, other->write ? "write" : "read",
                  describe_thread(cluster.grid, cluster.number, other->warp,
                                  unknown_lane(w.view, lane, *other), other->op)));
}

Step race_in_global(Warp& w, const Op& op, uint32_t lane, uint64_t address, uint64_t bytes,
                    const GlobalRaces::Other& other) {
  const GridState& grid = w.cta.cluster.grid;
  const uint64_t agents = w.view.threads().agents();
  return w.fault(
      op, static_cast<int32_t>(lane), FaultKind::kDataRace,
      fmt::format(
          "{}; the other side is a {}{} by {}", grid.memory.describe(address, bytes),
          other.write ? "write" : "read", other.copy ? " of an asynchronous copy" : "",
          describe_thread(grid, other.warp / agents, static_cast<uint32_t>(other.warp % agents),
                          other.lane, other.op)));
}

// One deed for the lanes of an instruction that writes, and one for reads of an op in an epoch.
GlobalRaces::DeedId deed_of(Warp& w, const Op& op, bool write) {
  Warp::RaceDeed& last = w.race_deeds[op.index % w.race_deeds.size()];
  const uint32_t instance = write ? w.instance : 0;
  if (last.deed == 0 || last.op != op.index || last.epoch != w.view.now() ||
      last.instance != instance || last.write != write) {
    last.deed = w.cta.cluster.grid.races.begin(w.view.threads().first_agent() + w.cluster_warp,
                                               op.index, w.view.now());
    last.op = op.index;
    last.epoch = w.view.now();
    last.instance = instance;
    last.write = write;
  }
  return last.deed;
}

}  // namespace

bool is_strong(const Op& op) {
  const Semantics s = op.modifiers().semantics;
  return is_atomic(op) || (s != Semantics::kNone && s != Semantics::kWeak);
}

Step check_race(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint64_t offset, uint64_t bytes,
                bool write) {
  if (!judges(w)) return Step::kNext;
  return check_shared(w, op, lane, cta, offset, bytes, write, is_strong(op));
}

Step check_atomic_race(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint64_t offset,
                       uint64_t bytes) {
  if (!judges(w)) return Step::kNext;
  return check_shared(w, op, lane, cta, offset, bytes, false, true);
}

Step check_global_race(Warp& w, const Op& op, uint32_t lane, const GlobalMemory::Range& range,
                       uint64_t address, uint64_t bytes, bool write) {
  if (!range.writable || !judges(w)) return Step::kNext;
  const GlobalRaces::Access access = {deed_of(w, op, write), static_cast<uint8_t>(lane), write,
                                      is_strong(op)};
  const GlobalRaces::Other other =
      w.cta.cluster.grid.races.access(address, bytes, access, w.view.threads());
  if (!other.found) [[likely]]
    return Step::kNext;
  return race_in_global(w, op, lane, address, bytes, other);
}

GlobalRaces::DeedId begin_copy(Warp& w, const Op& op) {
  if (!judges(w)) return 0;
  return w.cta.cluster.grid.races.begin(w.view.threads().first_agent() + w.cluster_warp, op.index,
                                        GlobalRaces::kPending);
}

Step check_copy(Warp& w, const Op& op, uint32_t lane, GlobalRaces::DeedId copy, uint64_t address,
                uint64_t bytes, bool write, bool atomic) {
  if (!judges(w)) return Step::kNext;
  const GridState& grid = w.cta.cluster.grid;
  const GlobalMemory::Range* range = grid.memory.find(address, bytes, w.range_hint);
  if (range == nullptr || !range->writable) return Step::kNext;
  const GlobalRaces::Access access = {copy, static_cast<uint8_t>(lane), write, atomic};
  GlobalRaces& races = w.cta.cluster.grid.races;
  const GlobalRaces::Other other = write
                                       ? races.access(address, bytes, access, w.view.threads())
                                       : races.copy_read(address, bytes, access, w.view.threads());
  if (!other.found) [[likely]]
    return Step::kNext;
  return race_in_global(w, op, lane, address, bytes, other);
}

void copy_has_read(Cluster& cluster, GlobalRaces::DeedId copy, Epoch completion) {
  if (copy == 0) return;
  const uint64_t agents = cluster.agents.async_proxy() + 1;
  cluster.grid.races.complete(copy, cluster.number * agents + cluster.agents.async_proxy(),
                              completion);
}

void copy_was_awaited(Warp& w, GlobalRaces::DeedId copy) {
  w.cta.cluster.grid.races.complete(copy, w.view.threads().first_agent() + w.cluster_warp,
                                    w.view.now());
}

void release_to(Warp& w, const Op& op, LaneMask lanes, const Location& at) {
  if (!judges(w) || !is_strong(op)) return;
  uint64_t address = 0;
  SyncLocations& locations = locations_of(w, at, address);
  const SyncPlace place = place_of(w);
  const SyncScope scope = scope_of(op);
  if (is_half_of(op, Semantics::kRelease, w.cta.cluster.grid.options.strict)) {
    locations.release(address, scope, place, w.view.release_threads(lanes));
    return;
  }
  // The fences before it, as far as both reach.
  const ForeignPointer* last = nullptr;
  for (size_t s = static_cast<size_t>(scope) + 1; s-- > 0;) {
    const ForeignPointer& fenced = w.view.threads().fenced(static_cast<SyncScope>(s));
    if (fenced == nullptr || (last != nullptr && *last == fenced)) continue;
    locations.release(address, static_cast<SyncScope>(s), place, fenced);
    last = &fenced;
  }
}

void acquire_from(Warp& w, const Op& op, LaneMask lanes, const Location& at) {
  if (!judges(w) || !is_strong(op)) return;
  uint64_t address = 0;
  SyncLocations& locations = locations_of(w, at, address);
  const ForeignPointer learned = locations.acquire(address, scope_of(op), place_of(w));
  if (learned == nullptr) return;
  if (is_half_of(op, Semantics::kAcquire, w.cta.cluster.grid.options.strict)) {
    w.view.acquire_threads(learned, (lanes & w.live) == w.live ? kAllLanes : lanes);
  } else {
    w.view.acquire_threads_at_fence(learned);
  }
}

void fence_threads(Warp& w, const Op& op, LaneMask lanes) {
  if (!judges(w)) return;
  w.view.fence_threads(scope_of(op), (lanes & w.live) == w.live ? kAllLanes : lanes);
}

}  // namespace jitgemm::sim
