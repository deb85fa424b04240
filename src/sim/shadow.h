// SPDX-License-Identifier: Apache-2.0
// Shadow state of one CTA's shared memory, a record per 16-byte granule: which asynchronous
// operations still read or write it, and who wrote it last. 16 bytes is the smallest unit of the
// bulk copies and of matrix descriptors (PTX ISA 9.7.9.25), so async operations always cover whole
// granules. It knows nothing of instructions; callers turn its answers into faults.
#pragma once

#include "sim/causality.h"

#include <cstdint>
#include <vector>

namespace jitgemm::sim {

// A point in the order of events of one cluster. 0 is before everything.
using EventTime = uint64_t;

class SharedShadow {
 public:
  static constexpr uint64_t kGranule = 16;
  static constexpr uint64_t kNone = ~uint64_t{0};

  struct Granule {
    Epoch epoch = 0;             // of the last write, 0: never written
    LaneMask lanes = 0;          // lanes of the writing warp in that epoch
    uint16_t writer = 0;         // agent of the cluster (causality.h)
    uint16_t async_writers = 0;  // issued and not completed
    uint16_t async_readers = 0;
  };

  void resize(uint64_t bytes) { granules_.assign((bytes + kGranule - 1) / kGranule, Granule{}); }
  Granule& at(uint64_t offset) { return granules_[offset / kGranule]; }

  // Async operations: begin at issue, end at completion. Offsets and sizes need not be aligned.
  void begin_async_write(uint64_t offset, uint64_t bytes) {
    for_each(offset, bytes, [](Granule& g) { ++g.async_writers; });
  }
  void end_async_write(uint64_t offset, uint64_t bytes, uint32_t async_proxy, Epoch now) {
    for_each(offset, bytes, [&](Granule& g) {
      --g.async_writers;
      g.epoch = now;
      g.writer = static_cast<uint16_t>(async_proxy);
      g.lanes = 0;
    });
  }
  void begin_async_read(uint64_t offset, uint64_t bytes) {
    for_each(offset, bytes, [](Granule& g) { ++g.async_readers; });
  }
  void end_async_read(uint64_t offset, uint64_t bytes) {
    for_each(offset, bytes, [](Granule& g) { --g.async_readers; });
  }

  // Offset of the first granule with an async write (or read) in flight, kNone if there is none.
  uint64_t find_async_write(uint64_t offset, uint64_t bytes) const {
    return find(offset, bytes, [](const Granule& g) { return g.async_writers != 0; });
  }
  uint64_t find_async_use(uint64_t offset, uint64_t bytes) const {
    return find(offset, bytes,
                [](const Granule& g) { return (g.async_writers | g.async_readers) != 0; });
  }

  // Offset of the first granule whose last write the predicate refuses, kNone if there is none.
  template <typename F>
  uint64_t find_write(uint64_t offset, uint64_t bytes, F refuses) const {
    return find(offset, bytes, [&](const Granule& g) { return g.epoch != 0 && refuses(g); });
  }

  void generic_write(uint64_t offset, uint64_t bytes, uint32_t writer, LaneMask lanes, Epoch now) {
    for_each(offset, bytes, [&](Granule& g) {
      if (g.writer != writer || g.epoch != now) g.lanes = 0;
      g.epoch = now;
      g.writer = static_cast<uint16_t>(writer);
      g.lanes |= lanes;
    });
  }

 private:
  template <typename F>
  void for_each(uint64_t offset, uint64_t bytes, F f) {
    if (bytes == 0) return;
    for (uint64_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) f(granules_[g]);
  }
  template <typename F>
  uint64_t find(uint64_t offset, uint64_t bytes, F f) const {
    if (bytes == 0) return kNone;
    for (uint64_t g = offset / kGranule; g <= (offset + bytes - 1) / kGranule; ++g) {
      if (f(granules_[g])) return g * kGranule;
    }
    return kNone;
  }
  std::vector<Granule> granules_;
};

}  // namespace jitgemm::sim
