// SPDX-License-Identifier: Apache-2.0
// Whether a contender's grouped product is right, before it is timed: every element of every
// group's rows finite, and a sample of rows, spread over the groups, within the error limit.
#pragma once

#include "bench/contender_check.h"
#include "bench/grouped_operands.h"

#include <cstdint>
#include <vector>

namespace jitgemm::bench {

class GroupedCheck final : public ContenderCheck {
 public:
  // Reads the sample of set 0 back, and computes what it must be.
  static Result<GroupedCheck> create(Workbench& bench, DType out_dtype,
                                     const GroupedOperands& operands);
  Result<CheckResult> run(Contender& contender) override;

 private:
  struct Row {
    size_t group;
    int64_t row;  // of that group's
  };
  GroupedCheck(Workbench& bench, DType out_dtype, const GroupedOperands& operands)
      : bench_(bench), out_dtype_(out_dtype), operands_(operands) {}
  void choose_rows();
  // The sampled rows from first up to, not including, last, all of one group.
  Status compute(size_t first, size_t last);

  Workbench& bench_;
  DType out_dtype_;
  const GroupedOperands& operands_;
  std::vector<Row> rows_;
  std::vector<int64_t> columns_;
  std::vector<double> expected_;
  DeviceMemory counter_;
};

}  // namespace jitgemm::bench
