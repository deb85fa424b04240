// SPDX-License-Identifier: Apache-2.0
// The shapes that are timed: named suites, and lists from a command line.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace jitgemm::bench {

struct Shape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;

  bool operator==(const Shape&) const = default;
  // Of the product itself, whatever a kernel pads.
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// The fewest bytes that a product can move: codes and scales (1 x 128, 128 x 128) read once, the
// output written once.
double fewest_bytes(const Shape& shape, int out_bytes);

// "seed": the 24 published shapes; "decode": few rows, the weights of large models; "odd": sizes
// that are no multiple of a tile, each beside the next aligned one.
Result<std::vector<Shape>> suite_shapes(std::string_view suite);

// Every m with every (n, k). n and k are lists of one length, or one of them is a single number.
Result<std::vector<Shape>> listed_shapes(const std::vector<int64_t>& m,
                                         const std::vector<int64_t>& n,
                                         const std::vector<int64_t>& k);

}  // namespace jitgemm::bench
