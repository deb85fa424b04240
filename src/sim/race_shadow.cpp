// SPDX-License-Identifier: Apache-2.0
#include "sim/race_shadow.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

using Access = RaceShadow::Access;

// Nothing orders `earlier` before what `view` does now.
bool unordered(const Access& earlier, const WarpView& view) {
  return earlier.epoch != 0 && !view.knows(earlier.warp, earlier.epoch);
}

bool conflict(const Access& earlier, uint8_t bytes, const WarpView& view) {
  return (earlier.bytes & bytes) != 0 && unordered(earlier, view);
}

// The access takes the place of one that it follows in order; what the same warp did in the same
// epoch is joined.
void record(Access& place, Access access) {
  if (place.warp == access.warp && place.epoch == access.epoch) access.bytes |= place.bytes;
  place = access;
}

// The bytes of word `word` that [offset, offset + bytes) covers.
uint8_t covered(uint64_t word, uint64_t offset, uint64_t bytes) {
  const uint64_t first = std::max(word * RaceShadow::kWord, offset);
  const uint64_t end = std::min((word + 1) * RaceShadow::kWord, offset + bytes);
  const uint64_t shift = first - word * RaceShadow::kWord;
  return static_cast<uint8_t>(((1U << (end - first)) - 1) << shift);
}

}  // namespace

void RaceShadow::clear(uint64_t offset, uint64_t bytes) {
  if (words_.empty()) return;
  for (uint64_t w = offset / kWord; w * kWord < offset + bytes; ++w) words_[w] = Word{};
}

const Access* RaceShadow::read(uint64_t offset, uint64_t bytes, const Access& access,
                               const WarpView& view) {
  for (uint64_t w = offset / kWord; w * kWord < offset + bytes; ++w) {
    Word& word = words_[w];
    Access now = access;
    now.bytes = covered(w, offset, bytes);
    if (conflict(word.write, now.bytes, view)) return &word.write;
    // The own place, else one that is free or ordered before, else that of the older reader.
    const bool second = word.reads[0].warp != now.warp && unordered(word.reads[0], view);
    record(word.reads[second ? 1 : 0], now);
  }
  return nullptr;
}

const Access* RaceShadow::write(uint64_t offset, uint64_t bytes, const Access& access,
                                const WarpView& view) {
  for (uint64_t w = offset / kWord; w * kWord < offset + bytes; ++w) {
    Word& word = words_[w];
    Access now = access;
    now.bytes = covered(w, offset, bytes);
    for (const Access* earlier : {&word.write, &word.reads[0], &word.reads[1]}) {
      if (conflict(*earlier, now.bytes, view)) return earlier;
    }
    record(word.write, now);
  }
  return nullptr;
}

}  // namespace jitgemm::sim
