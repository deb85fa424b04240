// SPDX-License-Identifier: Apache-2.0
// Synchronisation through locations of memory: what those who released to a location hand to those
// who acquire from it, by scope (PTX ISA 8.5, 8.9.4). A location keeps all that was ever released
// to it, and past a bound locations are not told apart: more counts as ordered then, never less.
// Shared by the clusters of a run, or of one cluster for its shared memory.
#pragma once

#include "sim/thread_order.h"

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace jitgemm::sim {

// Who synchronises: numbers of its CTA and its cluster in the grid.
struct SyncPlace {
  uint64_t cta = 0;
  uint64_t cluster = 0;
};

class SyncLocations {
 public:
  void release(uint64_t address, SyncScope scope, const SyncPlace& place,
               const ForeignPointer& clock);
  // What an acquire of that scope learns; null if nothing.
  ForeignPointer acquire(uint64_t address, SyncScope scope, const SyncPlace& place);

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kMaxLocations = 1 << 16;  // of a shard
  static constexpr size_t kMaxKnown = 1 << 19;      // entries of the clocks of a shard
  struct Slot {                                     // releases of one scope
    SyncPlace place;
    bool several_ctas = false;
    ForeignPointer clock;
  };
  using Entry = std::array<Slot, 3>;
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, Entry> entries;
    size_t known = 0;  // entries of clocks, those that locations share counted for each
    Entry others;      // of locations beyond the bounds
  };
  static void merge(Slot& slot, const SyncPlace& place, const ForeignPointer& clock);
  static uint64_t location(uint64_t address) { return address >> 2; }
  Shard& shard(uint64_t at) { return shards_[at % kShards]; }
  std::array<Shard, kShards> shards_;
};

}  // namespace jitgemm::sim
