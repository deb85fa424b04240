// SPDX-License-Identifier: Apache-2.0
// Which threads of a launch have touched each word of global memory, so that two accesses that
// nothing orders are told as a data race (PTX ISA 8.7.1), also between CTAs and for asynchronous
// copies. State comes with the first access to a page; of memory that no thread may write nothing
// is kept. Past its bound pages stay without state, and accesses to them are counted instead of
// judged. Shared by the clusters of a run. It knows the order of threads, not instructions.
#pragma once

#include "sim/thread_order.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace jitgemm::sim {

class GlobalRaces {
 public:
  static constexpr uint64_t kWord = 4;
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr size_t kMaxAccesses = 32;    // of a word; then the oldest gives way
  static constexpr size_t kMaxCopies = 256;     // of a page; then the oldest gives way
  static constexpr Epoch kPending = ~Epoch{0};  // of a copy that nobody has waited for
  static constexpr uint64_t kNoLimit = ~uint64_t{0};

  // What the lanes of one instruction share, or an asynchronous copy.
  struct Deed {
    uint64_t warp = 0;            // agent of the grid that did it
    uint64_t agent = 0;           // by whose epochs it is ordered: the warp, or an async proxy
    uint32_t op = 0;              // index in the kernel
    std::atomic<Epoch> epoch{0};  // of a copy: set when it is known to be complete
  };
  using DeedId = uint32_t;

  struct Access {
    DeedId deed = 0;
    uint8_t lane = 0;
    bool write = false;
    bool strong = false;  // atomic, relaxed, acquire, release, volatile: no race among these
  };
  // The other side of a race.
  struct Other {
    bool found = false;
    uint64_t warp = 0;  // agent of the grid
    uint32_t op = 0;
    uint32_t lane = 0;
    bool write = false, copy = false;
  };

  void limit(uint64_t bytes) { limit_ = bytes; }

  DeedId begin(uint64_t warp, uint32_t op, Epoch epoch);
  // The copy is over for those who know of this epoch of this agent.
  void complete(DeedId copy, uint64_t agent, Epoch epoch);

  // Records an access of a lane and returns an earlier one that it races with.
  Other access(uint64_t address, uint64_t bytes, const Access& access, const ThreadView& view);
  // The same for the read of an asynchronous copy that `view` issues.
  Other copy_read(uint64_t address, uint64_t bytes, const Access& access, const ThreadView& view);

  uint64_t state_bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t unjudged() const { return unjudged_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kWords = kPageBytes / kWord;
  struct Record {
    DeedId deed = 0;  // 0: none
    uint8_t lane : 5 = 0;
    uint8_t write : 1 = 0;
    uint8_t strong : 1 = 0;
    uint8_t more : 1 = 0;  // others are in Page::more
    uint8_t bytes = 0;     // of the word, a bit each
  };
  struct Copy {
    uint16_t begin = 0, end = 0;  // bytes of the page
    DeedId deed = 0;
    uint8_t lane = 0;
  };
  struct Page {
    std::mutex mutex;
    std::array<Record, kWords> writes;
    std::unique_ptr<std::array<Record, kWords>> reads;
    std::unordered_map<uint32_t, std::vector<Record>> more;  // by word
    std::vector<Copy> copies;                                // reads of asynchronous copies
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  };
  static constexpr size_t kShards = 64;
  static constexpr size_t kDeedsInBlock = 4096;

  Page* page(uint64_t number);
  bool grow(uint64_t bytes);
  const Deed& deed(DeedId id) const;
  bool ordered(const Record& earlier, uint32_t lane, const ThreadView& view) const;
  Other other(const Record& record, bool copy) const;
  Other access_word(Page& page, uint32_t word, const Record& now, const ThreadView& view);

  std::array<Shard, kShards> shards_;
  // Blocks never move, so that a deed can be looked up without a lock.
  static constexpr size_t kMaxBlocks = 1 << 16;
  std::unique_ptr<std::atomic<Deed*>[]> blocks_ =
      std::unique_ptr<std::atomic<Deed*>[]>(new std::atomic<Deed*>[kMaxBlocks]());
  std::deque<std::unique_ptr<Deed[]>> storage_;
  std::mutex growing_;
  std::atomic<uint32_t> next_deed_{1};
  uint64_t limit_ = kNoLimit;
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> unjudged_{0};
};

}  // namespace jitgemm::sim
