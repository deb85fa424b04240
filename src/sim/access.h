// SPDX-License-Identifier: Apache-2.0
// Memory accesses of one lane through the generic proxy, with every check of the sanitizer: space,
// bounds, alignment, permission, written, and the async proxy's shadow. For instructions that touch
// a few bytes; exec_memory.cpp has its own loops for ld and st, built on the same pieces.
#pragma once

#include "sim/machine_state.h"

#include <cstdint>

namespace jitgemm::sim {

// The memory space of a form's modifier; none means generic.
Space space_of(ptx::Space space);

// Where an address leads. `data` is host memory; for shared memory also the CTA and the offset in
// it.
struct Location {
  std::byte* data = nullptr;
  Space space = Space::kGeneric;  // kGlobal (also constants), kSharedCta, kLocal or kParam
  Cta* cta = nullptr;             // of shared memory
  uint64_t offset = 0;            // in shared, local (of this lane's thread) or parameter memory
  const GlobalMemory::Range* range = nullptr;
};

// Resolves [address, address + bytes) in `space` for one lane: window, bounds, alignment (0: none
// asked), life of the CTA. No check of contents. Faults and returns Step::kFault, or kNext.
Step locate(Warp& warp, const Op& op, uint32_t lane, Space space, uint64_t address, uint64_t bytes,
            uint64_t align, Location& location);

// The checks of a generic-proxy read or write at a resolved place. A write is recorded (written
// map, shadow, effects).
//
// `unwritten`: if given, and the program is not held to strict rules, shared or local memory that
// was never written is no fault but sets it; what was read counts as never written then, too.
Step check_read(Warp& warp, const Op& op, uint32_t lane, const Location& location, uint64_t bytes,
                bool* unwritten = nullptr);
// Of shared or local memory that check_read has let pass: has the part been written?
bool was_written(const Warp& warp, const Location& location, uint64_t offset, uint64_t bytes);
// What was stored there was itself never written. False where that must be a fault.
bool forget_written(Warp& warp, const Location& location, uint64_t offset, uint64_t bytes);
// `unchanged`: the bytes are there already, which races with nobody who writes or reads the same.
Step check_write(Warp& warp, const Op& op, uint32_t lane, const Location& location, uint64_t bytes,
                 bool unchanged = false);

// Faults if the grid before this one wrote these global bytes and the warp does not know that it
// has completed.
Step check_predecessor(Warp& warp, const Op& op, uint32_t lane, uint64_t address, uint64_t bytes);

// Offset of the first granule that the async proxy wrote and for whose completion the lane has not
// waited, by itself or through somebody that it has synchronised with; SharedShadow::kNone.
uint64_t find_unseen_async_write(const Warp& warp, uint32_t lane, const Cta& cta, uint64_t offset,
                                 uint64_t bytes);

// locate + check + copy.
Step load_bytes(Warp& warp, const Op& op, uint32_t lane, Space space, uint64_t address,
                uint64_t bytes, uint64_t align, void* destination, bool* unwritten = nullptr);
// `undefined`: the value was never written, which only shared and local memory may hold.
Step store_bytes(Warp& warp, const Op& op, uint32_t lane, Space space, uint64_t address,
                 uint64_t bytes, uint64_t align, const void* source, bool undefined = false);

// A shared::cta or shared::cluster address, or a generic address into the shared window, as CTA and
// offset: for mbarriers, destinations of bulk copies and matrix descriptors.
struct SharedPlace {
  Cta* cta = nullptr;
  uint32_t offset = 0;
};
Step locate_shared(Warp& warp, const Op& op, uint32_t lane, Space space, uint64_t address,
                   uint64_t bytes, uint64_t align, SharedPlace& place);

// Copies between host buffers and simulated memory. Aligned pieces of 1, 2, 4 and 8 bytes are one
// host atomic each, because clusters on other host threads may touch the same global memory.
inline void copy_in(void* destination, const std::byte* source, uint64_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(source);
  std::byte* to = static_cast<std::byte*>(destination);
  const auto piece = [&](auto type) {
    using T = decltype(type);
    for (uint64_t i = 0; i < bytes; i += sizeof(T)) {
      const T v = __atomic_load_n(reinterpret_cast<const T*>(source + i), __ATOMIC_RELAXED);
      std::memcpy(to + i, &v, sizeof(T));
    }
  };
  if (((at | bytes) & 7) == 0) {
    piece(uint64_t{});
  } else if (((at | bytes) & 3) == 0) {
    piece(uint32_t{});
  } else if (((at | bytes) & 1) == 0) {
    piece(uint16_t{});
  } else {
    piece(uint8_t{});
  }
}
inline void copy_out(std::byte* destination, const void* source, uint64_t bytes) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(destination);
  const std::byte* from = static_cast<const std::byte*>(source);
  const auto piece = [&](auto type) {
    using T = decltype(type);
    for (uint64_t i = 0; i < bytes; i += sizeof(T)) {
      T v;
      std::memcpy(&v, from + i, sizeof(T));
      __atomic_store_n(reinterpret_cast<T*>(destination + i), v, __ATOMIC_RELAXED);
    }
  };
  if (((at | bytes) & 7) == 0) {
    piece(uint64_t{});
  } else if (((at | bytes) & 3) == 0) {
    piece(uint32_t{});
  } else if (((at | bytes) & 1) == 0) {
    piece(uint16_t{});
  } else {
    piece(uint8_t{});
  }
}

}  // namespace jitgemm::sim
