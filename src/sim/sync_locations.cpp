// SPDX-License-Identifier: Apache-2.0
#include "sim/sync_locations.h"

namespace jitgemm::sim {
namespace {

// Whether a scope that one side names includes the other side.
bool includes(SyncScope scope, const SyncPlace& a, const SyncPlace& b) {
  switch (scope) {
    case SyncScope::kCta: return a.cta == b.cta;
    case SyncScope::kCluster: return a.cluster == b.cluster;
    case SyncScope::kGpu: return true;
  }
  return true;
}

}  // namespace

void SyncLocations::merge(Slot& slot, const SyncPlace& place, const ForeignPointer& clock) {
  if (slot.clock == nullptr) {
    slot.place = place;
  } else if (slot.place.cta != place.cta) {
    slot.several_ctas = true;
    slot.place = place;
  }
  slot.clock = join_foreign(slot.clock, clock);
}

void SyncLocations::release(uint64_t address, SyncScope scope, const SyncPlace& place,
                            const ForeignPointer& clock) {
  if (clock == nullptr) return;
  const uint64_t at = location(address);
  Shard& s = shard(at);
  const std::lock_guard lock(s.mutex);
  if (s.known > kMaxKnown) {
    // From here on all of them are one.
    for (const auto& [key, entry] : s.entries) {
      for (size_t i = 0; i < entry.size(); ++i) {
        if (entry[i].clock == nullptr) continue;
        merge(s.others[i], entry[i].place, entry[i].clock);
        s.others[i].several_ctas = true;
      }
    }
    s.entries.clear();
    s.known = 0;
  }
  auto found = s.entries.find(at);
  if (found == s.entries.end() && s.entries.size() < kMaxLocations)
    found = s.entries.try_emplace(at).first;
  Slot& slot = (found != s.entries.end() ? found->second : s.others)[static_cast<size_t>(scope)];
  const size_t before = slot.clock == nullptr ? 0 : slot.clock->known.size();
  merge(slot, place, clock);
  s.known += slot.clock->known.size() - before;
}

ForeignPointer SyncLocations::acquire(uint64_t address, SyncScope scope, const SyncPlace& place) {
  const uint64_t at = location(address);
  Shard& s = shard(at);
  const std::lock_guard lock(s.mutex);
  ForeignPointer learned;
  const auto learn = [&](const Entry& entry) {
    for (size_t i = 0; i < entry.size(); ++i) {
      const Slot& slot = entry[i];
      if (slot.clock == nullptr) continue;
      // Both scopes must include the other side; where several have released, who is not known.
      if (slot.several_ctas || (includes(static_cast<SyncScope>(i), slot.place, place) &&
                                includes(scope, place, slot.place))) {
        learned = join_foreign(learned, slot.clock);
      }
    }
  };
  if (const auto found = s.entries.find(at); found != s.entries.end()) learn(found->second);
  learn(s.others);
  return learned;
}

}  // namespace jitgemm::sim
