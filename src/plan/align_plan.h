// SPDX-License-Identifier: Apache-2.0
// The launch that copies operands and scales whose rows TMA cannot address into rows that it can,
// ahead of a product. A plain value that prints. m is the launch's: one kernel serves every m.
#pragma once

#include "plan/gemm_plan.h"
#include "problem/gemm_problem.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jitgemm {

struct AlignPlan {
  Arch arch = Arch::kSm90a;
  bool a = false;  // which operands are copied
  bool b = false;
  bool a_scales = false;  // and which scales
  bool b_scales = false;
  int64_t n = 0;
  int64_t n_blocks = 0;
  int64_t row_bytes = 0;
  int64_t a_pitch = 0;  // bytes between the caller's rows
  int64_t b_pitch = 0;
  int64_t pitch = 0;  // and between those of the copies
  int32_t unit = 1;   // bytes that a load takes
  int64_t scale_row_bytes = 0;
  int64_t a_scale_pitch = 0;  // bytes, like those of operands
  int64_t b_scale_pitch = 0;
  int64_t scale_pitch = 0;
  int32_t threads = 256;
  // The product is launched with programmatic dependence, like behind quantising (QuantizePlan).
  bool product_begins_early = true;
  double estimate_us = 0;
  std::vector<std::string> reasons;

  int64_t rows(int64_t m) const { return (a ? m : 0) + (b ? n : 0); }
  int64_t scale_rows(int64_t m) const { return (a_scales ? m : 0) + (b_scales ? n_blocks : 0); }
};

inline constexpr std::string_view kAlignTemplate = "align_rows.cu";

// For a product whose codes are given; nothing where there is nothing to align, or where there is
// no such operation: for groups, for addresses that nobody promises to be a multiple of 16. Scales
// count only where a kernel would take them by TMA.
std::optional<AlignPlan> plan_align(const GemmProblem& problem);

// m >= 1.
LaunchGeometry launch_geometry(const AlignPlan& plan, int64_t m);

std::string to_string(const AlignPlan& plan);

}  // namespace jitgemm
