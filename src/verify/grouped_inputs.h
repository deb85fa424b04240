// SPDX-License-Identifier: Apache-2.0
// Inputs of grouped products, and which rows belong to which group as the layouts define it: the
// judge's own reading of them, which shares nothing with planners or kernels.
#pragma once

#include "problem/gemm_problem.h"
#include "support/result.h"
#include "verify/host_tensor.h"
#include "verify/inputs.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace jitgemm {

// Dense, row-major: a and its scales over all rows (group after group, where they have rows of
// their own), b and its scales for each group.
struct GroupedTensors {
  HostTensor a;
  HostTensor a_scales;
  std::vector<HostTensor> b;
  std::vector<HostTensor> b_scales;
};
Result<GroupedTensors> make_grouped_tensors(const GemmProblem& problem, InputKind kind,
                                            uint64_t seed, const DrawOperand& draw = draw_operand);

// In the memory order of the problem; bytes that belong to nothing are 0xff.
Result<BlockScaledStorage> lay_out(const GemmProblem& problem, const GroupedTensors& tensors);

// The rows of a and out over all groups.
int64_t all_rows(const GemmProblem& problem);
// Where row i of those lies in out, in elements.
int64_t output_offset(const GemmProblem& problem, int64_t row);
// The group of each of those rows, -1 for none. `group_rows` is what a launch would be given.
std::vector<int32_t> groups_of_rows(const GemmProblem& problem,
                                    std::span<const int32_t> group_rows);

// How many rows each group gets.
enum class Routing {
  kEven,      // nearly the same
  kSkewed,    // a few groups take most, some have none: as routers of experts do
  kOneGroup,  // one group takes all
  kSingles,   // for layouts with an index for every row: a random group each
};
std::string_view routing_name(Routing routing);
std::vector<int64_t> draw_group_counts(int64_t groups, int64_t rows, Routing routing,
                                       uint64_t seed);

// A grouped problem's m and the integers of its launch, for counts of rows: groups begin at
// multiples of `alignment`, rows between them belong to none. MASKED keeps the problem's m.
struct GroupedRows {
  int64_t m = 0;
  std::vector<int32_t> group_rows;
};
GroupedRows place_groups(const GemmProblem& problem, std::span<const int64_t> counts,
                         int64_t alignment);

}  // namespace jitgemm
