// SPDX-License-Identifier: Apache-2.0
// Grouped products that are timed: their shapes, how many rows each group has, and the forms in
// which callers have such rows in memory.
#pragma once

#include "bench/shapes.h"
#include "problem/gemm_problem.h"
#include "support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::bench {

struct GroupedShape {
  int64_t groups = 0;
  // Rows of every group; with `mean`, the rows that every group has room for.
  int64_t rows = 0;
  // Of masked groups: the mean that rows in use are drawn around, at 0.7 to 1.3 times of it.
  int64_t mean = 0;
  int64_t n = 0;
  int64_t k = 0;

  bool operator==(const GroupedShape&) const = default;
  bool masked() const { return mean != 0; }
};

// Rows in use of each group: a function of the shape alone.
std::vector<int64_t> group_counts(const GroupedShape& shape);
// All rows in use as one product: what FLOPs are counted by.
Shape product_of(const GroupedShape& shape);
// Rows in use, and b of the groups that have some, read once; the output written once.
double fewest_bytes(const GroupedShape& shape, int out_bytes);

// "contiguous": groups share the rows; "masked": each has rows of its own, not all of them in use;
// "grouped": both.
Result<std::vector<GroupedShape>> grouped_suite_shapes(std::string_view suite);
// Every count of groups with every number of rows, mean (none: not masked) and (n, k).
Result<std::vector<GroupedShape>> listed_grouped_shapes(const std::vector<int64_t>& groups,
                                                        const std::vector<int64_t>& rows,
                                                        const std::vector<int64_t>& means,
                                                        const std::vector<int64_t>& n,
                                                        const std::vector<int64_t>& k);

// How rows lie in memory.
enum class GroupedForm {
  kTight,   // groups one after the other
  kPadded,  // each begins at a multiple of 128, as peers ask for; rows between are zero
  kMasked,  // each has rows of its own
};
std::string_view grouped_form_name(GroupedForm form);

struct FormLayout {
  GroupedForm form = GroupedForm::kTight;
  int64_t rows = 0;      // of a and out, over all groups
  int64_t matrices = 1;  // that those rows are: kMasked has one a group
  int64_t rows_of_matrix() const { return rows / matrices; }
  // The length of a column of column-major scales: a multiple of 4.
  int64_t scale_rows() const { return (rows_of_matrix() + 3) / 4 * 4; }
  std::vector<int64_t> begins;  // the first row of each group
  // What a launch gets. kMasked: counts; else the group of each row, -1 for none.
  std::vector<int32_t> group_rows;
  // kTight: the first row of each group and the end of the last.
  std::vector<int32_t> row_pointers;
};
FormLayout form_layout(const GroupedShape& shape, GroupedForm form);
// The forms that differ: padding may change nothing.
std::vector<GroupedForm> forms_of(const GroupedShape& shape);
// The one that peers get.
GroupedForm peer_form(const GroupedShape& shape);

// The products of ours for a shape, one for each way to say which row is whose. The padded form is
// planned as callers of the drop-ins have it: without a hint about the rows of a group.
// `base` has dtypes, policy, arch, and the order of a's scales.
std::vector<GemmProblem> grouped_problems(const GroupedShape& shape, const GemmProblem& base);
// The form that such a problem reads.
GroupedForm form_of(const GroupedShape& shape, const GemmProblem& problem);

}  // namespace jitgemm::bench
