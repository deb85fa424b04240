// SPDX-License-Identifier: Apache-2.0
#include "plan/align_plan.h"

#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace jitgemm {
namespace {

constexpr int kWarp = 32;
constexpr int64_t kRunBytes = int64_t{kWarp} * 16 * 4;  // of align_rows.cu
constexpr int64_t kMaxCtas = 1 << 20;                   // a warp then takes more than one run
constexpr int64_t kLine = 128;                          // rows of the copies begin on whole lines
// Of one H200: a launch beside another, bytes read and written a nanosecond.
constexpr double kLaunchUs = 1.5;
constexpr double kBytesPerNs = 2800;

constexpr int64_t kScaleBytes = 4;

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Whether the product's kernel would take the scales by TMA, were their rows where they should be.
bool scales_by_tma(const GemmProblem& p) {
  return arch_info(p.arch).compute_capability / 10 == 9 && p.scaled() &&
         p.scale_dtype == DType::kF32 && p.a_scale_major == ScaleMajor::kRow &&
         p.b_scale_major == ScaleMajor::kRow;
}

}  // namespace

std::optional<AlignPlan> plan_align(const GemmProblem& p) {
  if (p.grouping.grouped() || p.alignment < 16) return std::nullopt;
  AlignPlan plan;
  plan.arch = p.arch;
  plan.n = p.n;
  plan.row_bytes = p.k_bytes();
  plan.a_pitch = p.lda_or_dense() * p.operand_bytes();
  plan.b_pitch = p.ldb_or_dense() * p.operand_bytes();
  plan.a = feed_a_for(p) != Feed::kTma;
  plan.b = feed_b_for(p) != Feed::kTma;
  plan.pitch = ceil_div(plan.row_bytes, kLine) * kLine;
  int64_t unit = std::gcd(plan.row_bytes, int64_t{8});
  if (plan.a) unit = std::gcd(unit, plan.a_pitch);
  if (plan.b) unit = std::gcd(unit, plan.b_pitch);
  plan.unit = static_cast<int32_t>(unit);

  plan.n_blocks = p.n_blocks();
  plan.scale_row_bytes = p.k_blocks() * kScaleBytes;
  plan.scale_pitch = ceil_div(plan.scale_row_bytes, 16) * 16;
  if (scales_by_tma(p)) {
    plan.a_scale_pitch = p.a_scale_ld_or_dense() * kScaleBytes;
    plan.b_scale_pitch = p.b_scale_ld_or_dense() * kScaleBytes;
    plan.a_scales = plan.a_scale_pitch % 16 != 0;
    plan.b_scales = plan.b_scale_pitch % 16 != 0;
  }
  if (plan.rows(1) == 0 && plan.scale_rows(1) == 0) return std::nullopt;

  const int64_t m = planned_m(p);
  const auto bytes = static_cast<double>(plan.rows(m) * plan.row_bytes +
                                         plan.scale_rows(m) * plan.scale_row_bytes);
  plan.estimate_us = kLaunchUs + 2 * bytes / kBytesPerNs / 1000;
  const auto reason = [&](std::string_view name, int64_t pitch, int64_t copied) {
    plan.reasons.push_back(fmt::format(
        "{}: rows {} bytes apart are illegal for TMA; they are copied {} bytes apart into the "
        "workspace",
        name, pitch, copied));
  };
  if (plan.a) reason("a", plan.a_pitch, plan.pitch);
  if (plan.b) reason("b", plan.b_pitch, plan.pitch);
  if (plan.a_scales) reason("a_scales", plan.a_scale_pitch, plan.scale_pitch);
  if (plan.b_scales) reason("b_scales", plan.b_scale_pitch, plan.scale_pitch);
  plan.reasons.push_back(
      fmt::format("{} bytes a load of operands: the most that rows allow; the model's estimate is "
                  "{:.1f} us",
                  plan.unit, plan.estimate_us));
  return plan;
}

LaunchGeometry launch_geometry(const AlignPlan& plan, int64_t m) {
  const int64_t runs = plan.rows(m) * ceil_div(plan.row_bytes, kRunBytes) +
                       plan.scale_rows(m) * ceil_div(plan.scale_row_bytes, kRunBytes);
  const int64_t ctas = ceil_div(runs, plan.threads / kWarp);
  LaunchGeometry geometry;
  geometry.grid = {static_cast<uint32_t>(std::min(ctas, kMaxCtas)), 1, 1};
  geometry.block = {static_cast<uint32_t>(plan.threads), 1, 1};
  return geometry;
}

std::string to_string(const AlignPlan& plan) {
  std::string names;
  const auto add = [&](bool copied, const char* name) {
    if (copied) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  };
  add(plan.a, "a");
  add(plan.b, "b");
  add(plan.a_scales, "a_scales");
  add(plan.b_scales, "b_scales");
  std::string text = fmt::format(
      "kernel     align_rows: the rows of {}\n"
      "warp       {} bytes a load, {} threads\n",
      names, plan.unit, plan.threads);
  for (const std::string& reason : plan.reasons) text += fmt::format("because    {}\n", reason);
  return text;
}

}  // namespace jitgemm
