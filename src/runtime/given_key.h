// SPDX-License-Identifier: Apache-2.0
// Under which a problem that has been prepared is found again byte for byte as its caller wrote it:
// a lookup then converts and checks nothing. Knows nothing of what the bytes mean.
#pragma once

#include "device/device.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace jitgemm {

template <typename Struct>
struct GivenKey {
  static_assert(std::is_trivially_copyable_v<Struct> && sizeof(Struct) % sizeof(uint64_t) == 0 &&
                    std::has_unique_object_representations_v<Struct>,
                "equal problems have equal bytes");
  const Device* device;
  Struct given;

  bool operator==(const GivenKey& other) const {
    return device == other.device && std::memcmp(&given, &other.given, sizeof(Struct)) == 0;
  }
};

template <typename Struct>
struct GivenKeyHash {
  size_t operator()(const GivenKey<Struct>& key) const {
    uint64_t words[sizeof(Struct) / sizeof(uint64_t)];
    std::memcpy(words, &key.given, sizeof(Struct));
    auto hash = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(key.device));
    // Each word is multiplied by an odd number of its own: the products do not wait for each other.
    uint64_t factor = 0x9e3779b97f4a7c15ULL;
    for (const uint64_t word : words) {
      hash += word * factor;
      factor += 0x3c6ef372fe94f82aULL;
    }
    // The table takes the low bits, which the high ones have to reach.
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15ULL;
    return static_cast<size_t>(hash ^ (hash >> 29));
  }
};

}  // namespace jitgemm
