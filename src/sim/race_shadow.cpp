// SPDX-License-Identifier: Apache-2.0
#include "sim/race_shadow.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

using Access = RaceShadow::Access;

bool ordered(const Access& earlier, uint32_t lane, const ThreadView& view) {
  return view.knows(lane, earlier.warp, earlier.lanes, earlier.epoch);
}

bool same_instruction(const Access& a, const Access& b) {
  return a.warp == b.warp && a.epoch == b.epoch && a.op == b.op && a.instance == b.instance;
}

bool races(const Access& earlier, const Access& now, uint32_t lane, const ThreadView& view) {
  if ((earlier.bytes & now.bytes) == 0 || !(earlier.write || now.write)) return false;
  if (earlier.strong && now.strong) return false;
  return !ordered(earlier, lane, view) && !same_instruction(earlier, now);
}

// Whatever is ordered after `now` is ordered after `earlier` too, so that `now` stands for both.
bool replaces(const Access& earlier, const Access& now, uint32_t lane, const ThreadView& view) {
  return earlier.epoch == 0 || ((earlier.bytes & ~now.bytes) == 0 &&
                                (now.write || !earlier.write) && ordered(earlier, lane, view));
}

// The same deed by another lane of the warp.
bool joins(const Access& earlier, const Access& now) {
  return earlier.warp == now.warp && earlier.epoch == now.epoch && earlier.bytes == now.bytes &&
         earlier.write == now.write && earlier.strong == now.strong && earlier.lanes != 0 &&
         now.lanes != 0;
}

void join(Access& earlier, const Access& now) {
  const LaneMask lanes = earlier.lanes | now.lanes;
  earlier = now;
  earlier.lanes = lanes;
}

// The bytes of word `word` that [offset, offset + bytes) covers.
uint8_t covered(uint64_t word, uint64_t offset, uint64_t bytes) {
  const uint64_t first = std::max(word * RaceShadow::kWord, offset);
  const uint64_t end = std::min((word + 1) * RaceShadow::kWord, offset + bytes);
  const uint64_t shift = first - word * RaceShadow::kWord;
  return static_cast<uint8_t>(((1U << (end - first)) - 1) << shift);
}

}  // namespace

void RaceShadow::drop_more(Word& word) {
  if (word.more == 0) return;
  more_[word.more - 1].clear();
  free_.push_back(word.more - 1);
  word.more = 0;
}

void RaceShadow::clear(uint64_t offset, uint64_t bytes) {
  if (words_.empty()) return;
  for (uint64_t w = offset / kWord; w * kWord < offset + bytes; ++w) {
    drop_more(words_[w]);
    words_[w] = Word{};
  }
}

void RaceShadow::keep(Word& word, const Access& access) {
  if (word.more == 0) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(more_.size()));
      more_.emplace_back();
    }
    word.more = free_.back() + 1;
    free_.pop_back();
  }
  std::vector<Access>& more = more_[word.more - 1];
  if (more.size() == kMaxAccesses) more.erase(more.begin());
  more.push_back(access);
}

const Access* RaceShadow::access_word(Word& word, const Access& now, uint32_t lane,
                                      const ThreadView& view) {
  if (word.last_write.epoch != 0 && races(word.last_write, now, lane, view))
    return &word.last_write;
  if (word.last_read.epoch != 0 && races(word.last_read, now, lane, view)) return &word.last_read;
  if (word.more != 0) {
    std::vector<Access>& more = more_[word.more - 1];
    for (const Access& earlier : more) {
      if (races(earlier, now, lane, view)) return &earlier;
    }
    std::erase_if(more, [&](const Access& e) { return replaces(e, now, lane, view); });
    for (Access& earlier : more) {
      if (!joins(earlier, now)) continue;
      join(earlier, now);
      return nullptr;
    }
    if (more.empty()) drop_more(word);
  }
  Access& place = now.write ? word.last_write : word.last_read;
  Access& other = now.write ? word.last_read : word.last_write;
  if (now.write && replaces(other, now, lane, view)) other = Access{};
  if (joins(place, now)) {
    join(place, now);
    return nullptr;
  }
  if (!replaces(place, now, lane, view)) keep(word, place);
  place = now;
  return nullptr;
}

const Access* RaceShadow::access(uint64_t offset, uint64_t bytes, Access access, uint32_t lane,
                                 const ThreadView& view) {
  for (uint64_t w = offset / kWord; w * kWord < offset + bytes; ++w) {
    access.bytes = covered(w, offset, bytes) & 0xf;
    if (const Access* other = access_word(words_[w], access, lane, view)) return other;
  }
  return nullptr;
}

const Access* RaceShadow::last_write(uint64_t offset) const {
  if (words_.empty()) return nullptr;
  const Word& word = words_[offset / kWord];
  return word.last_write.epoch != 0 ? &word.last_write : nullptr;
}

}  // namespace jitgemm::sim
