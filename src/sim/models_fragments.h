// SPDX-License-Identifier: Apache-2.0
// Which matrix element a lane holds in which register of mma.sync (PTX ISA 9.7.14.5) and wgmma
// (9.7.15.5.1.1). One rule covers all shapes: a register holds 32 / bits neighbours along k, four
// lanes hold neighbouring registers, eight groups of lanes hold rows. Pure functions.
#pragma once

#include <cstdint>

namespace jitgemm::sim {

struct MatrixIndex {
  int row = 0;
  int column = 0;
};

// Element i of register r of A (m x k), `rows` 8 or 16 a warp; column is k. bits: 4, 8, 16, 32, 64.
constexpr MatrixIndex a_fragment(int rows, int bits, int lane, int r, int i) {
  const int per_register = bits >= 32 ? 1 : 32 / bits;
  const int row_groups = rows / 8;
  return {lane / 4 + 8 * (r % row_groups),
          (lane % 4) * per_register + i + 4 * per_register * (r / row_groups)};
}

// Element i of register r of B (k x n, n = 8); row is k.
constexpr MatrixIndex b_fragment(int bits, int lane, int r, int i) {
  const int per_register = bits >= 32 ? 1 : 32 / bits;
  return {(lane % 4) * per_register + i + 4 * per_register * r, lane / 4};
}

// Register r of an accumulator of 32- or 64-bit elements, `rows` 8 or 16 a warp, any n: columns
// come in blocks of 8, each block with all row groups.
constexpr MatrixIndex d_fragment(int rows, int lane, int r) {
  const int row_groups = rows / 8;
  const int pair = r / 2;
  return {lane / 4 + 8 * (pair % row_groups), 8 * (pair / row_groups) + 2 * (lane % 4) + r % 2};
}

// Half i of register r of an accumulator of 16-bit elements.
constexpr MatrixIndex d_fragment_half(int rows, int lane, int r, int i) {
  return d_fragment(rows, lane, 2 * r + i);
}

}  // namespace jitgemm::sim
