// SPDX-License-Identifier: Apache-2.0
// The zero-column mask descriptor of tcgen05.mma.ws (PTX ISA 9.7.16.4.3): which columns of B count
// as zero, and by how many columns B is read further on. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitgemm::sim {

struct ZeroColumns {
  std::vector<bool> zero;  // by column of D
  uint32_t shift = 0;
  std::string error;  // the illegal field and why; empty: legal
};

// M is 32, 64 or 128: the mask has 128 / M parts with a start of their own. `max_shift`: what the
// instruction descriptor allows.
ZeroColumns decode_zero_columns(uint64_t bits, uint32_t m, uint32_t n, uint32_t max_shift);

}  // namespace jitgemm::sim
