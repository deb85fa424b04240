// SPDX-License-Identifier: Apache-2.0
// How the rows of a product belong to groups that have a b each: the part of a problem that makes
// it a grouped one. A plain value; which row is in which group comes with a launch, in device
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitgemm {

// The numbers are part of the C ABI (JITGEMM_GROUPS_*) and those of Spec::kGroupLayout.
enum class GroupLayout : int32_t {
  kNone = 0,         // one product: the dense case
  kRowIndices = 1,   // [m] group of each row, -1 for none; any order, any run length
  kEndOffsets = 2,   // [groups] end of each group's rows
  kRowPointers = 3,  // [groups + 1] begin of each group's rows, and the end of the last
  kMasked = 4,       // [groups] rows in use, from the first on, of each group's own m rows
  kColumns = 5,      // groups along k: known, and refused
};

struct Grouping {
  GroupLayout layout = GroupLayout::kNone;
  int64_t groups = 0;
  // Rows that a group has on average, a hint that only guides the choice of tiles; 0: unknown.
  int64_t expected_m = 0;
  // Distances between the matrices of neighbouring groups, in elements; 0: dense. Of a, out and
  // a_scales for kMasked only.
  int64_t a_stride = 0;
  int64_t b_stride = 0;
  int64_t out_stride = 0;
  int64_t a_scale_stride = 0;
  int64_t b_scale_stride = 0;
  // kEndOffsets: a group begins at the end of the one before, rounded up to a multiple of this.
  // kRowIndices: groups usually begin at multiples of it, a hint. 0: 1 and 128.
  int32_t row_alignment = 0;
  // Rows of no group become zero instead of staying untouched; of kMasked those not in use.
  bool zero_ungrouped = false;
  // Indices and bounds out of range are counted into the launch's `invalid` counter.
  bool count_invalid = false;

  bool grouped() const { return layout != GroupLayout::kNone; }
  // Whether each group has rows of its own instead of a range of all rows.
  bool separate_rows() const { return layout == GroupLayout::kMasked; }
  // Elements of the launch's group information.
  int64_t info_count(int64_t m) const {
    if (layout == GroupLayout::kRowIndices) return m;
    return groups + (layout == GroupLayout::kRowPointers ? 1 : 0);
  }

  bool operator==(const Grouping&) const = default;
};

// "row_indices" and so on; the names of `--layout` and of manifests.
std::string_view group_layout_name(GroupLayout layout);
// " layout=masked groups=8 ...", as a part of a problem's line.
std::string to_string(const Grouping& grouping);

}  // namespace jitgemm
