// SPDX-License-Identifier: Apache-2.0
// The launch that turns an A of fp32, bf16 or fp16 into FP8 codes and scales of 1 x group_k, ahead
// of a product. A plain value that prints. m is the launch's: one kernel serves every m.
#pragma once

#include "plan/gemm_plan.h"
#include "problem/gemm_problem.h"

#include <cstdint>
#include <string>
#include <vector>

namespace jitgemm {

struct QuantizePlan {
  Arch arch = Arch::kSm90a;
  DType source_dtype = DType::kBF16;
  DType code_dtype = DType::kF8E4M3;
  DType scale_dtype = DType::kF32;
  bool power_of_two = false;  // scales are rounded up to powers of two
  int64_t k = 0;
  int32_t group_k = 128;  // no longer than k needs
  int64_t source_ld = 0;  // elements between rows of A
  int64_t code_ld = 0;    // and of its codes: a multiple of 16, which TMA needs
  int64_t scale_ld = 0;   // and of its scales
  int32_t vector = 1;     // neighbouring elements that a lane loads at once
  int32_t blocks = 1;     // scale blocks that a warp holds at once
  int32_t threads = 256;
  // The product is launched with programmatic dependence: it sets itself up while the last rows are
  // quantised, and waits for them before it touches anything.
  bool product_begins_early = true;
  std::vector<std::string> reasons;
};

inline constexpr std::string_view kQuantizeTemplate = "quantize_rows.cu";

// For a problem whose A is to be quantised.
QuantizePlan plan_quantize(const GemmProblem& problem);

// m >= 1.
LaunchGeometry launch_geometry(const QuantizePlan& plan, int64_t m);

std::string to_string(const QuantizePlan& plan);

}  // namespace jitgemm
