// SPDX-License-Identifier: Apache-2.0
#include "plan/quantize_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm {
namespace {

constexpr int kLanes = 32;
constexpr int kValuesInFlight = 16;      // of a lane: enough loads to hide memory's latency
constexpr int64_t kMaxCtas = 1 << 20;    // a warp then takes more than one unit
constexpr int64_t kRowBytesForTma = 16;  // and for everything that reads the codes

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

QuantizePlan plan_quantize(const GemmProblem& p) {
  QuantizePlan plan;
  plan.arch = p.arch;
  plan.source_dtype = p.a_dtype;
  plan.code_dtype = p.a_code_dtype;
  plan.scale_dtype = p.scale_dtype;
  plan.power_of_two = p.power_of_two_scales();
  plan.k = p.k;
  plan.group_k = static_cast<int32_t>(std::min<int64_t>(p.group_k, round_up(p.k, kLanes)));
  plan.source_ld = p.lda_or_dense();
  plan.code_ld = round_up(p.k, kRowBytesForTma);
  plan.scale_ld = p.k_blocks();
  // The widest vector that a warp's share of a block, every row's start and k are multiples of.
  const int32_t element_bytes = dtype_info(p.a_dtype).bytes;
  const int32_t values = plan.group_k / kLanes;
  const auto fits = [&](int32_t vector) {
    return vector * element_bytes <= 16 && values % vector == 0 && p.k % vector == 0 &&
           plan.source_ld % vector == 0 && p.alignment % (vector * element_bytes) == 0;
  };
  while (fits(plan.vector * 2)) plan.vector *= 2;
  plan.blocks = static_cast<int32_t>(
      std::clamp<int64_t>(kValuesInFlight / std::max(values, 1), 1, ceil_div(p.k, plan.group_k)));
  plan.reasons = {
      fmt::format("a is {}: its codes and scales are made first, in the workspace",
                  dtype_info(p.a_dtype).name),
      fmt::format("{} elements a load: the most that group_k, k, rows and alignment allow",
                  plan.vector),
      fmt::format("rows of codes are {} bytes apart, so that TMA can read them", plan.code_ld),
      "the product begins early (programmatic dependence): it sets up while the last rows are "
      "quantised"};
  return plan;
}

LaunchGeometry launch_geometry(const QuantizePlan& plan, int64_t m) {
  const int64_t units = m * ceil_div(ceil_div(plan.k, plan.group_k), plan.blocks);
  const int64_t ctas = ceil_div(units, plan.threads / kLanes);
  LaunchGeometry geometry;
  geometry.grid = {static_cast<uint32_t>(std::min(ctas, kMaxCtas)), 1, 1};
  geometry.block = {static_cast<uint32_t>(plan.threads), 1, 1};
  return geometry;
}

std::string to_string(const QuantizePlan& plan) {
  std::string text = fmt::format(
      "kernel     quantize_rows: {} to {}, a {} scale for 1 x {} elements, {}\n"
      "warp       {} scale blocks, {} elements a load, {} threads\n",
      dtype_info(plan.source_dtype).name, dtype_info(plan.code_dtype).name,
      dtype_info(plan.scale_dtype).name, plan.group_k,
      plan.power_of_two ? "rounded up to a power of two" : "the largest |x| over the largest code",
      plan.blocks, plan.vector, plan.threads);
  for (const std::string& reason : plan.reasons) text += fmt::format("because    {}\n", reason);
  return text;
}

}  // namespace jitgemm
