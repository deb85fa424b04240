// SPDX-License-Identifier: Apache-2.0
// One grouped product run for real and judged: prepare, launch on guarded buffers, compare the rows
// of every group with the float64 reference and see that no other row was touched. What `jitgemm
// run`, the tests and the GPU check call, on any device.
#pragma once

#include "runtime/context.h"
#include "selftest/gemm_case.h"
#include "verify/grouped_inputs.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace jitgemm {

struct GroupedCaseOptions {
  bool verify = true;
  bool exact = false;  // bit for bit: for inputs whose result is exact
  // At most that many rows of each group, and columns, are compared: the ends and random ones. 0:
  // all.
  int64_t sampled_lines = 0;
  int timed_launches = 0;  // on a GPU, after the checked one
  uint64_t seed = 1;
};

struct GroupedCaseResult {
  GemmPlan plan;
  KernelImage image;
  bool from_cache = false;
  std::string device;
  ErrorMetrics errors;
  Verdict verdict;
  uint32_t invalid_count = 0;  // what the kernel counted, where the problem asks for it
  std::vector<std::byte> out;  // as it lies in memory, gaps and rows of no group included
  double prepare_ms = 0;
  double run_ms = 0;
  std::optional<double> kernel_us;  // median of the timed launches
};

// A Status that is not OK means that the case could not be run; a wrong result is a failed verdict.
Result<GroupedCaseResult> run_grouped_case(Context& context, Device& device,
                                           const GemmProblem& problem,
                                           const PlanOverrides& overrides,
                                           const GroupedTensors& tensors,
                                           std::span<const int32_t> group_rows,
                                           const GroupedCaseOptions& options);

}  // namespace jitgemm
