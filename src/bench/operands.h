// SPDX-License-Identifier: Apache-2.0
// Sets of operands of one shape in device memory, drawn there. Each set holds the same values in
// every layout that a contender wants, so that no contender converts anything while it is timed.
#pragma once

#include "bench/shapes.h"
#include "bench/workbench.h"
#include "problem/gemm_problem.h"

#include <cstdint>
#include <vector>

namespace jitgemm::bench {

// Addresses of one set.
struct OperandSet {
  uint64_t a = 0;                      // [m, k] codes
  uint64_t b = 0;                      // [n, k] codes
  uint64_t a_scales = 0;               // [m, k / 128], row by row
  uint64_t b_scales = 0;               // [n / 128, k / 128], row by row
  uint64_t out = 0;                    // room for padded_m rows, shared by the contenders
  uint64_t a_scales_column_major = 0;  // columns of padded_m
  uint64_t b_scales_padded = 0;        // rows of a multiple of 4
};

struct OperandLayout {
  int64_t padded_m = 0;  // a multiple of 4: rows that a, its scales and out have room for
  int64_t k_blocks = 0;
  int64_t padded_k_blocks = 0;  // a multiple of 4
};
OperandLayout operand_layout(const Shape& shape);

// Bytes of a, b and their scales once: what rotating sets are counted by.
double operand_bytes(const Shape& shape);

class Operands {
 public:
  // Of an FP8 block-scaled problem, 1 x 128 and 128 x 128.
  static Result<Operands> draw(Workbench& bench, const GemmProblem& problem, int sets);

  const std::vector<OperandSet>& sets() const { return sets_; }
  const OperandLayout& layout() const { return layout_; }
  size_t out_bytes() const { return out_bytes_; }

 private:
  OperandLayout layout_;
  size_t out_bytes_ = 0;
  DeviceMemory memory_;
  std::vector<OperandSet> sets_;
};

}  // namespace jitgemm::bench
