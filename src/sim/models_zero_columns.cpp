// SPDX-License-Identifier: Apache-2.0
#include "sim/models_zero_columns.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::sim {
namespace {

uint32_t mask_field(uint64_t bits, int low, int count) {
  return static_cast<uint32_t>(bits >> low & ((uint64_t{1} << count) - 1));
}

}  // namespace

// The examples of 9.7.16.4.3 decide what a span is: "skip" counts columns that are zero, "use"
// those of which B is used.
ZeroColumns decode_zero_columns(uint64_t bits, uint32_t m, uint32_t n, uint32_t max_shift) {
  ZeroColumns out;
  out.zero.assign(n, false);
  out.shift = mask_field(bits, 56, 6);
  const uint32_t limit = std::min(max_shift, m == 32 ? 16u : 32u);
  if (mask_field(bits, 36, 3) != 0 || mask_field(bits, 62, 2) != 0) {
    out.error = "bits 36-38 and 62-63 of the zero-column mask are reserved and must be 0";
  } else if (out.shift > limit) {
    out.error = fmt::format("bits 56-61 of the zero-column mask (column shift) = {}: at most {}",
                            out.shift, limit);
  }
  if (mask_field(bits, 39, 1) == 0) return out;
  const uint32_t parts = 128 / m, width = n / parts;
  const uint32_t skip = mask_field(bits, 40, 8) + 1, use = mask_field(bits, 48, 8) + 1;
  for (uint32_t part = 0; part < parts; ++part) {
    const uint32_t start = mask_field(bits, static_cast<int>(8 * part), 8);
    const bool skips_first = mask_field(bits, static_cast<int>(32 + part), 1) != 0;
    for (uint32_t column = 0; column < width; ++column) {
      const uint32_t at = (column + start) % (skip + use);
      out.zero[part * width + column] = skips_first ? at < skip : at >= use;
    }
  }
  return out;
}

}  // namespace jitgemm::sim
