// SPDX-License-Identifier: Apache-2.0
#include "sim/global_races.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

// The bytes of the word at `word` (a multiple of 4) that [address, end) covers.
uint8_t bytes_in_word(uint64_t word, uint64_t address, uint64_t end) {
  const uint64_t first = std::max(word, address) - word;
  const uint64_t last = std::min(word + GlobalRaces::kWord, end) - word;
  return static_cast<uint8_t>(((1U << (last - first)) - 1) << first);
}

}  // namespace

GlobalRaces::DeedId GlobalRaces::begin(uint64_t warp, uint32_t op, Epoch epoch) {
  const uint32_t id = next_deed_.fetch_add(1);
  const size_t block = id / kDeedsInBlock;
  if (block >= kMaxBlocks) {
    next_deed_.store(kMaxBlocks * kDeedsInBlock);  // never around to used ones
    return 0;
  }
  Deed* deeds = blocks_[block].load(std::memory_order_acquire);
  if (deeds == nullptr) {
    const std::lock_guard lock(growing_);
    deeds = blocks_[block].load(std::memory_order_relaxed);
    if (deeds == nullptr) {
      if (!grow(kDeedsInBlock * sizeof(Deed))) return 0;
      storage_.push_back(std::make_unique<Deed[]>(kDeedsInBlock));
      deeds = storage_.back().get();
      blocks_[block].store(deeds, std::memory_order_release);
    }
  }
  Deed& fresh = deeds[id % kDeedsInBlock];
  fresh.warp = fresh.agent = warp;
  fresh.op = op;
  fresh.epoch.store(epoch, std::memory_order_relaxed);
  return id;
}

const GlobalRaces::Deed& GlobalRaces::deed(DeedId id) const {
  return blocks_[id / kDeedsInBlock].load(std::memory_order_acquire)[id % kDeedsInBlock];
}

void GlobalRaces::complete(DeedId copy, uint64_t agent, Epoch epoch) {
  if (copy == 0) return;
  Deed& d = blocks_[copy / kDeedsInBlock].load(std::memory_order_acquire)[copy % kDeedsInBlock];
  if (d.epoch.load(std::memory_order_relaxed) != kPending) return;
  d.agent = agent;
  d.epoch.store(epoch, std::memory_order_release);
}

bool GlobalRaces::grow(uint64_t bytes) {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= limit_) return true;
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

GlobalRaces::Page* GlobalRaces::page(uint64_t number) {
  Shard& shard = shards_[number % kShards];
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.pages.find(number);
  if (found != shard.pages.end()) return found->second.get();
  if (!grow(sizeof(Page))) return nullptr;
  return shard.pages.emplace(number, std::make_unique<Page>()).first->second.get();
}

bool GlobalRaces::ordered(const Record& earlier, uint32_t lane, const ThreadView& view) const {
  const Deed& d = deed(earlier.deed);
  const Epoch epoch = d.epoch.load(std::memory_order_acquire);
  if (epoch == kPending) return false;
  const uint64_t in_cluster = d.agent - view.first_agent();
  const LaneMask lanes = LaneMask{1} << earlier.lane;
  if (in_cluster < view.agents())
    return view.knows(lane, static_cast<uint32_t>(in_cluster), lanes, epoch);
  return view.knows_foreign(lane, d.agent, lanes, epoch);
}

GlobalRaces::Other GlobalRaces::other(const Record& record, bool copy) const {
  const Deed& d = deed(record.deed);
  return {true, d.warp, d.op, record.lane, record.write != 0, copy};
}

GlobalRaces::Other GlobalRaces::access_word(Page& page, uint32_t word, const Record& now,
                                            const ThreadView& view) {
  const auto races = [&](const Record& earlier) {
    return earlier.deed != 0 && earlier.deed != now.deed && (earlier.bytes & now.bytes) != 0 &&
           (earlier.write || now.write) && !(earlier.strong && now.strong) &&
           !ordered(earlier, now.lane, view);
  };
  // Whatever is ordered after `now` is ordered after `earlier` too.
  const auto replaces = [&](const Record& earlier) {
    return earlier.deed == 0 ||
           ((earlier.bytes & ~now.bytes) == 0 && (now.write || !earlier.write) &&
            (earlier.deed == now.deed || ordered(earlier, now.lane, view)));
  };
  Record& write = page.writes[word];
  if (races(write)) return other(write, false);
  if (page.reads == nullptr && !now.write) {
    if (!grow(sizeof *page.reads)) {
      unjudged_.fetch_add(1, std::memory_order_relaxed);
      return {};
    }
    page.reads = std::make_unique<std::array<Record, kWords>>();
  }
  Record* read = page.reads == nullptr ? nullptr : &(*page.reads)[word];
  if (read != nullptr && races(*read)) return other(*read, false);
  if (write.more) {
    std::vector<Record>& more = page.more[word];
    for (const Record& earlier : more) {
      if (races(earlier)) return other(earlier, false);
    }
    bytes_.fetch_sub(std::erase_if(more, replaces) * sizeof(Record), std::memory_order_relaxed);
  }
  Record& place = now.write ? write : *read;
  // Of lanes that read a word by one instruction one is enough.
  if (!now.write && place.deed == now.deed && place.bytes == now.bytes) return {};
  if (now.write && read != nullptr && replaces(*read)) *read = Record{};
  const bool more = write.more;
  if (!replaces(place)) {
    std::vector<Record>& list = page.more[word];
    Record kept = place;
    kept.more = 0;
    if (list.size() == kMaxAccesses) {
      list.erase(list.begin());
      list.push_back(kept);
    } else if (grow(sizeof(Record))) {
      list.push_back(kept);
    } else {
      unjudged_.fetch_add(1, std::memory_order_relaxed);
    }
    place = now;
    write.more = 1;
    return {};
  }
  place = now;
  write.more = more;
  return {};
}

GlobalRaces::Other GlobalRaces::access(uint64_t address, uint64_t bytes, const Access& access,
                                       const ThreadView& view) {
  const uint64_t end = address + bytes;
  Page* p = nullptr;
  uint64_t at_page = ~uint64_t{0};
  std::unique_lock<std::mutex> lock;
  for (uint64_t word = address & ~(kWord - 1); word < end; word += kWord) {
    const uint64_t number = word / kPageBytes;
    if (number != at_page) {
      if (lock.owns_lock()) lock.unlock();
      at_page = number;
      p = access.deed == 0 ? nullptr : page(number);
      if (p != nullptr) lock = std::unique_lock(p->mutex);
    }
    if (p == nullptr) {
      unjudged_.fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    Record now;
    now.deed = access.deed;
    now.lane = access.lane & 31;
    now.write = access.write;
    now.strong = access.strong;
    now.bytes = bytes_in_word(word, address, end);
    if (access.write && !p->copies.empty()) {
      const uint64_t first = std::max(word, address) % kPageBytes;
      const uint64_t last = first + (std::min(word + kWord, end) - std::max(word, address));
      for (const Copy& copy : p->copies) {
        if (copy.begin >= last || first >= copy.end) continue;
        Record earlier;
        earlier.deed = copy.deed;
        earlier.lane = copy.lane & 31;
        if (!ordered(earlier, access.lane, view)) return other(earlier, true);
      }
    }
    if (const Other o =
            access_word(*p, static_cast<uint32_t>(word % kPageBytes / kWord), now, view);
        o.found)
      return o;
  }
  return {};
}

GlobalRaces::Other GlobalRaces::copy_read(uint64_t address, uint64_t bytes, const Access& access,
                                          const ThreadView& view) {
  for (uint64_t at = address; at < address + bytes;) {
    const uint64_t number = at / kPageBytes;
    const uint64_t end = std::min(address + bytes, (number + 1) * kPageBytes);
    Page* p = access.deed == 0 ? nullptr : page(number);
    if (p == nullptr) {
      unjudged_.fetch_add(1, std::memory_order_relaxed);
      at = end;
      continue;
    }
    const std::lock_guard lock(p->mutex);
    for (uint64_t word = at & ~(kWord - 1); word < end; word += kWord) {
      const auto index = static_cast<uint32_t>(word % kPageBytes / kWord);
      const uint8_t covered = bytes_in_word(word, at, end);
      const auto races = [&](const Record& earlier) {
        return earlier.deed != 0 && earlier.write && (earlier.bytes & covered) != 0 &&
               !ordered(earlier, access.lane, view);
      };
      if (races(p->writes[index])) return other(p->writes[index], false);
      if (!p->writes[index].more) continue;
      for (const Record& earlier : p->more[index]) {
        if (races(earlier)) return other(earlier, false);
      }
    }
    const Copy copy = {static_cast<uint16_t>(at % kPageBytes),
                       static_cast<uint16_t>(at % kPageBytes + (end - at)), access.deed,
                       access.lane};
    if (p->copies.size() == kMaxCopies) p->copies.erase(p->copies.begin());
    p->copies.push_back(copy);
    at = end;
  }
  return {};
}

}  // namespace jitgemm::sim
