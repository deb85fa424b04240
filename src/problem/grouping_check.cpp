// SPDX-License-Identifier: Apache-2.0
#include "problem/grouping_check.h"

#include "problem/gemm_limits.h"

#include <fmt/format.h>

#include <string_view>

namespace jitgemm {
namespace {

constexpr int64_t kMaxGroups = 1 << 20;
constexpr int64_t kMaxElements = int64_t{1} << 60;
constexpr int32_t kMaxRowAlignment = 1 << 16;

Status check_group_stride(std::string_view name, int64_t value, int64_t least) {
  if (value == 0 || (value >= least && value <= kMaxElements)) return ok_status();
  return invalid_argument(fmt::format("{}: expected 0 (dense) or {} to {}, found {}", name, least,
                                      kMaxElements, value));
}

// What only a layout whose groups have rows of their own may set.
Status check_absent(std::string_view name, int64_t value, GroupLayout layout) {
  if (value == 0) return ok_status();
  return invalid_argument(
      fmt::format("{}: expected 0, since groups of layout {} share all rows, "
                  "found {}",
                  name, group_layout_name(layout), value));
}

Status check_groups_span(std::string_view name, int64_t groups, int64_t stride) {
  int64_t elements = 0;
  if (!__builtin_mul_overflow(groups, stride, &elements) && elements <= kMaxElements)
    return ok_status();
  return invalid_argument(
      fmt::format("{}: expected at most {} elements, found {} groups with a stride of {}", name,
                  kMaxElements, groups, stride));
}

}  // namespace

Status check_group_rows(const GemmProblem& p, int64_t m) {
  const Grouping& g = p.grouping;
  if (!g.separate_rows()) return ok_status();
  GemmProblem at_launch = p;
  at_launch.m = m;
  JITGEMM_TRY(check_groups_span("a", g.groups, at_launch.a_group_stride()));
  JITGEMM_TRY(check_groups_span("out", g.groups, at_launch.out_group_stride()));
  JITGEMM_TRY(check_groups_span("a_scales", g.groups, at_launch.a_scale_group_stride()));
  // Rows of two groups may interleave, but must not overlap.
  const int64_t stride = at_launch.out_group_stride();
  const int64_t ldo = p.ldo_or_dense();
  if (m == 0 || stride >= (m - 1) * ldo + p.n || ldo >= (g.groups - 1) * stride + p.n) {
    return ok_status();
  }
  return invalid_argument(
      fmt::format("out_group_stride: expected groups of {} rows that do not overlap, found {} with "
                  "ldo = {}",
                  m, stride, ldo));
}

Status check_grouping(const GemmProblem& p) {
  const Grouping& g = p.grouping;
  if (!g.grouped()) return ok_status();
  if (g.layout == GroupLayout::kColumns) {
    return unsupported(
        "layout: groups along k (the gradient of weights) have no kernel yet; a product for each "
        "group does the same");
  }
  const auto layout = static_cast<int32_t>(g.layout);
  if (layout < 1 || layout > static_cast<int32_t>(GroupLayout::kMasked)) {
    return invalid_argument(
        fmt::format("layout: expected 1 to 4 (JITGEMM_GROUPS_*), found {}", layout));
  }
  if (g.groups < 1 || g.groups > kMaxGroups) {
    return invalid_argument(
        fmt::format("groups: expected 1 to {}, found {}", kMaxGroups, g.groups));
  }
  if (g.expected_m < 0 || g.expected_m > kMaxExtent) {
    return invalid_argument(
        fmt::format("expected_m: expected 0 to {}, found {}", kMaxExtent, g.expected_m));
  }
  JITGEMM_TRY(check_group_stride("b_group_stride", g.b_stride, p.k));
  JITGEMM_TRY(check_group_stride("b_scale_group_stride", g.b_scale_stride, 1));
  if (g.separate_rows()) {
    JITGEMM_TRY(check_group_stride("a_group_stride", g.a_stride, p.k));
    JITGEMM_TRY(check_group_stride("out_group_stride", g.out_stride, p.n));
    JITGEMM_TRY(check_group_stride("a_scale_group_stride", g.a_scale_stride, 1));
  } else {
    JITGEMM_TRY(check_absent("a_group_stride", g.a_stride, g.layout));
    JITGEMM_TRY(check_absent("out_group_stride", g.out_stride, g.layout));
    JITGEMM_TRY(check_absent("a_scale_group_stride", g.a_scale_stride, g.layout));
  }
  if (g.row_alignment < 0 || g.row_alignment > kMaxRowAlignment) {
    return invalid_argument(fmt::format("row_alignment: expected 0 to {}, found {}",
                                        kMaxRowAlignment, g.row_alignment));
  }
  if (g.row_alignment != 0 && g.layout != GroupLayout::kEndOffsets &&
      g.layout != GroupLayout::kRowIndices) {
    return invalid_argument(fmt::format("row_alignment: expected 0 for layout {}, found {}",
                                        group_layout_name(g.layout), g.row_alignment));
  }
  JITGEMM_TRY(check_groups_span("b", g.groups, p.b_group_stride()));
  JITGEMM_TRY(check_groups_span("b_scales", g.groups, p.b_scale_group_stride()));
  return check_group_rows(p, p.m);
}

}  // namespace jitgemm
