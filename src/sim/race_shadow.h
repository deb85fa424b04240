// SPDX-License-Identifier: Apache-2.0
// Who touched each word of a CTA's shared memory last through the generic proxy, so that two
// accesses that nothing orders are told as a data race (PTX ISA 8.7.1), whichever came first in
// this run. Of concurrent readers the last two are kept. Lanes of a warp are not told apart. It
// knows clocks, not instructions.
#pragma once

#include "sim/causality.h"

#include <array>
#include <cstdint>
#include <vector>

namespace jitgemm::sim {

class RaceShadow {
 public:
  static constexpr uint64_t kWord = 4;

  struct Access {
    Epoch epoch = 0;  // of the warp; 0: none
    uint32_t op = 0;  // index in the kernel
    uint16_t warp = 0;
    uint8_t lane = 0;
    uint8_t bytes = 0;  // of the word, a bit each
  };

  struct Word {
    Access write;
    std::array<Access, 2> reads;
  };

  void resize(uint64_t bytes) { words_.assign((bytes + kWord - 1) / kWord, Word{}); }
  static constexpr uint64_t state_bytes(uint64_t bytes) { return bytes / kWord * sizeof(Word); }
  // An asynchronous operation has replaced the contents; its order is judged elsewhere.
  void clear(uint64_t offset, uint64_t bytes);

  // Records the access (its bytes are filled in) and returns an earlier one that it races with, or
  // null.
  const Access* read(uint64_t offset, uint64_t bytes, const Access& access, const WarpView& view);
  const Access* write(uint64_t offset, uint64_t bytes, const Access& access, const WarpView& view);

 private:
  std::vector<Word> words_;
};

}  // namespace jitgemm::sim
