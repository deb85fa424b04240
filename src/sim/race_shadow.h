// SPDX-License-Identifier: Apache-2.0
// Which threads have touched each word of a CTA's shared memory through the generic proxy, so that
// two accesses that nothing orders are told as a data race (PTX ISA 8.7.1), whichever came first in
// this run. Of each word the accesses stay that a later one might race with although it is ordered
// after all others: usually a write and a read, more where threads read at the same time. It knows
// the order of threads, not instructions.
#pragma once

#include "sim/thread_order.h"

#include <cstdint>
#include <vector>

namespace jitgemm::sim {

class RaceShadow {
 public:
  static constexpr uint64_t kWord = 4;
  static constexpr size_t kMaxAccesses = 64;  // of a word; then the oldest gives way

  struct Access {
    Epoch epoch = 0;        // of the warp; 0: none
    LaneMask lanes = 0;     // that did it; none: the warp as a whole
    uint32_t op = 0;        // index in the kernel
    uint16_t warp = 0;      // agent of the cluster
    uint8_t bytes : 4 = 0;  // of the word, a bit each
    uint8_t write : 1 = 0;
    uint8_t strong : 1 = 0;  // atomic, relaxed, acquire, release, volatile: no race among these
    uint8_t instance = 0;    // tells executions of one op apart
  };

  void resize(uint64_t bytes) {
    words_.assign((bytes + kWord - 1) / kWord, Word{});
    more_.clear();
    free_.clear();
  }
  static constexpr uint64_t state_bytes(uint64_t bytes) { return bytes / kWord * sizeof(Word); }
  // An asynchronous operation has replaced the contents; its order is judged elsewhere.
  void clear(uint64_t offset, uint64_t bytes);

  // Records the access of a lane (its bytes are filled in) and returns an earlier one that it races
  // with, or null. Lanes that write one word by one instruction don't race: one of them wins.
  const Access* access(uint64_t offset, uint64_t bytes, Access access, uint32_t lane,
                       const ThreadView& view);
  // The last write of a byte that is on record, or null.
  const Access* last_write(uint64_t offset) const;

 private:
  struct Word {
    Access last_write, last_read;
    uint32_t more = 0;  // 1 + index in more_; 0: no more
  };
  const Access* access_word(Word& word, const Access& now, uint32_t lane, const ThreadView& view);
  void keep(Word& word, const Access& access);
  void drop_more(Word& word);
  std::vector<Word> words_;
  std::vector<std::vector<Access>> more_;
  std::vector<uint32_t> free_;
};

}  // namespace jitgemm::sim
