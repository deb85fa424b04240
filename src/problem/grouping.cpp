// SPDX-License-Identifier: Apache-2.0
#include "problem/grouping.h"

#include <fmt/format.h>

namespace jitgemm {

std::string_view group_layout_name(GroupLayout layout) {
  switch (layout) {
    case GroupLayout::kNone: return "none";
    case GroupLayout::kRowIndices: return "row_indices";
    case GroupLayout::kEndOffsets: return "end_offsets";
    case GroupLayout::kRowPointers: return "row_pointers";
    case GroupLayout::kMasked: return "masked";
    case GroupLayout::kColumns: return "columns";
  }
  return "?";
}

std::string to_string(const Grouping& g) {
  std::string text = fmt::format(" layout={} groups={}", group_layout_name(g.layout), g.groups);
  if (g.expected_m != 0) text += fmt::format(" expected_m={}", g.expected_m);
  if (g.a_stride != 0) text += fmt::format(" a_group_stride={}", g.a_stride);
  if (g.b_stride != 0) text += fmt::format(" b_group_stride={}", g.b_stride);
  if (g.out_stride != 0) text += fmt::format(" out_group_stride={}", g.out_stride);
  if (g.a_scale_stride != 0) text += fmt::format(" a_scale_group_stride={}", g.a_scale_stride);
  if (g.b_scale_stride != 0) text += fmt::format(" b_scale_group_stride={}", g.b_scale_stride);
  if (g.row_alignment != 0) text += fmt::format(" row_alignment={}", g.row_alignment);
  if (g.zero_ungrouped) text += " zero_ungrouped";
  if (g.count_invalid) text += " count_invalid";
  return text;
}

}  // namespace jitgemm
