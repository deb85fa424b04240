// SPDX-License-Identifier: Apache-2.0
#include "plan/gemm_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm {
namespace {

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

int64_t row_windows(const GemmPlan& plan, int64_t m) {
  const Grouping& g = plan.problem.grouping;
  const int64_t windows = ceil_div(m, plan.tile_m);
  switch (g.layout) {
    case GroupLayout::kNone:
    case GroupLayout::kRowIndices:
    case GroupLayout::kColumns: break;
    // Each group may end in a window that is not full, and so may the rows beside it that are
    // zeroed.
    case GroupLayout::kMasked: return g.groups * std::min(m, windows + (g.zero_ungrouped ? 1 : 0));
    case GroupLayout::kEndOffsets:
    case GroupLayout::kRowPointers:
      return std::min(m, windows + (g.zero_ungrouped ? 2 * g.groups + 1 : g.groups));
  }
  return windows;
}

LaunchGeometry launch_geometry(const GemmPlan& plan, int64_t m, int sm_count) {
  const int64_t tiles_m = row_windows(plan, m);
  const int64_t tiles_n = ceil_div(plan.problem.n, plan.tile_n);
  LaunchGeometry geometry;
  geometry.block = {static_cast<uint32_t>(plan.threads), 1, 1};
  geometry.cluster = {static_cast<uint32_t>(plan.cluster), 1, 1};
  geometry.shared_bytes = static_cast<uint32_t>(plan.shared_bytes);
  if (plan.grid == GridKind::kTiles) {
    // A grid's y extent has 16 bits (CUDA C++ Programming Guide, "Technical Specifications"); the
    // CTAs go on to the tiles behind it.
    constexpr int64_t kMost = 65535;
    geometry.grid = {static_cast<uint32_t>(tiles_n),
                     static_cast<uint32_t>(std::min(tiles_m, kMost)), 1};
    return geometry;
  }
  const int64_t units = tiles_m * tiles_n * plan.split_k;
  const int64_t resident =
      std::max<int64_t>(1, int64_t{sm_count} * plan.ctas_per_sm / plan.cluster);
  const int64_t clusters = std::min(ceil_div(units, plan.cluster), resident);
  geometry.grid = {static_cast<uint32_t>(clusters * plan.cluster), 1, 1};
  return geometry;
}

int64_t m_class_bound(int64_t m) {
  // Steps of a half octave or finer below 64, where a tile's waste costs most; octaves and their
  // midpoints above. 25 classes up to 16384.
  for (const int64_t bound : {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768}) {
    if (m <= bound) return bound;
  }
  for (int64_t octave = 1024;; octave *= 2) {
    if (m <= octave) return octave;
    if (m <= octave + octave / 2) return octave + octave / 2;
  }
}

bool row_bits_depend_on_m(const GemmPlan& plan) {
  const GemmProblem& p = plan.problem;
  // One plan serves every m, or every plan adds in the same order.
  const bool one_plan = p.m_policy == MPolicy::kAny || p.grouping.expected_m != 0;
  return !p.batch_invariant && !one_plan;
}

std::string plan_identity(const GemmPlan& plan) {
  std::string text =
      fmt::format("{} {}x{}x{} stages={} threads={} cluster={} split={} feeds={},{} store={}",
                  kernel_family_info(plan.family).name, plan.tile_m, plan.tile_n, plan.tile_k,
                  plan.stages, plan.threads, plan.cluster, plan.split_k, feed_name(plan.feed_a),
                  feed_name(plan.feed_b), plan.store == Store::kTma ? "tma" : "direct");
  for (const auto& [name, value] : plan.extra_fields) text += fmt::format(" {}={}", name, value);
  return text;
}

std::string_view feed_name(Feed feed) {
  switch (feed) {
    case Feed::kTma: return "tma";
    case Feed::kCpAsync: return "cp.async";
    case Feed::kPlain: return "plain";
  }
  return "?";
}

std::string_view plan_source_name(PlanSource source) {
  switch (source) {
    case PlanSource::kModel: return "model";
    case PlanSource::kDatabase: return "database";
    case PlanSource::kOverride: return "override";
  }
  return "?";
}

std::string to_string(const GemmPlan& plan) {
  std::string text = fmt::format(
      "kernel     {} ({})\n"
      "tile       {} x {} x {}, {} stages, {} threads, cluster {}, split-k {}\n"
      "feeds      a {}, b {}, store {}\n"
      "shared     {} bytes\n",
      kernel_family_info(plan.family).name, plan_source_name(plan.source), plan.tile_m, plan.tile_n,
      plan.tile_k, plan.stages, plan.threads, plan.cluster, plan.split_k, feed_name(plan.feed_a),
      feed_name(plan.feed_b), plan.store == Store::kTma ? "tma" : "direct", plan.shared_bytes);
  text +=
      fmt::format("row bits   {}\n", row_bits_depend_on_m(plan)
                                         ? "may depend on m, unless the problem is batch invariant"
                                         : "do not depend on m");
  for (const auto& [name, value] : plan.extra_fields)
    text += fmt::format("constant   {} = {}\n", name, value);
  for (const std::string& reason : plan.reasons) text += fmt::format("because    {}\n", reason);
  return text;
}

}  // namespace jitgemm
