// SPDX-License-Identifier: Apache-2.0
// Sets of operands of one grouped shape in device memory, drawn there. The same values lie there in
// every form and order that a contender wants, so that none converts anything while it is timed.
#pragma once

#include "bench/grouped_shapes.h"
#include "bench/workbench.h"

#include <cstdint>
#include <vector>

namespace jitgemm::bench {

// What depends on how rows lie in memory. Of masked groups every matrix is one after the other.
struct GroupedRowSet {
  uint64_t a = 0;                      // [rows, k] codes; rows of no group are zero
  uint64_t a_scales = 0;               // [rows, k_blocks]
  uint64_t a_scales_column_major = 0;  // [k_blocks, scale_rows], of each matrix
  uint64_t out = 0;                    // [rows, n]
};

struct GroupedForms {
  FormLayout layout;
  uint64_t group_rows = 0;    // the integers of a launch
  uint64_t row_pointers = 0;  // where the form has them
  std::vector<GroupedRowSet> sets;
  size_t out_bytes = 0;
};

// What does not.
struct GroupedWeightSet {
  uint64_t b = 0;                // [groups, n, k] codes
  uint64_t b_scales = 0;         // [groups, n_blocks, k_blocks]
  uint64_t b_scales_padded = 0;  // [groups, n_blocks, k_blocks up to a multiple of 4]
  // Of each group a column-major matrix of its own, columns of its rows up to a multiple of 4.
  std::vector<uint64_t> a_scales_of_group;
};

class GroupedOperands {
 public:
  static Result<GroupedOperands> draw(Workbench& bench, const GroupedShape& shape, DType out_dtype,
                                      int sets);

  const GroupedShape& shape() const { return shape_; }
  const std::vector<int64_t>& counts() const { return counts_; }
  const std::vector<GroupedWeightSet>& weights() const { return weights_; }
  const GroupedForms& form(GroupedForm form) const;
  int64_t k_blocks() const { return (shape_.k + 127) / 128; }
  int64_t padded_k_blocks() const { return (k_blocks() + 3) / 4 * 4; }
  int64_t n_blocks() const { return (shape_.n + 127) / 128; }
  // Rows of a group's own matrix of scales.
  static int64_t padded_count(int64_t count) { return (count + 3) / 4 * 4; }

 private:
  uint64_t place_all(DType out_dtype, int sets);
  void relocate(uint64_t base);
  Status draw_weights(Workbench& bench, size_t set) const;
  Status draw_rows(Workbench& bench, size_t set) const;
  Status copy_integers(Workbench& bench) const;

  GroupedShape shape_;
  std::vector<int64_t> counts_;
  std::vector<GroupedWeightSet> weights_;
  std::vector<GroupedForms> forms_;
  DeviceMemory memory_;
};

}  // namespace jitgemm::bench
