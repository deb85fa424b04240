// SPDX-License-Identifier: Apache-2.0
// Grouped products that every kernel must get right, small enough for the simulator: every layout,
// groups that are empty, missing, repeated or one row long, and integers that are out of range.
#pragma once

#include "plan/planner.h"
#include "problem/gemm_problem.h"
#include "verify/grouped_inputs.h"
#include "verify/inputs.h"

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace jitgemm {

struct GroupedCase {
  std::string name;
  GroupLayout layout = GroupLayout::kRowIndices;
  // Rows of each group; groups begin at multiples of `alignment`.
  std::vector<int64_t> counts = {};
  int64_t alignment = 1;
  // In place of counts: the launch's integers as they are, for that many groups.
  std::vector<int32_t> integers = {};
  int64_t groups = 0;
  int64_t m = 0;  // with integers, and for kMasked: the rows that each group has room for
  int64_t n = 136;
  int64_t k = 256;
  InputKind data = InputKind::kSmallIntegers;
  DType out = DType::kF32;
  int64_t expected_m = 0;
  int32_t row_alignment = 0;
  bool zero_ungrouped = false;
  int invalid = -1;  // how many integers are out of range; -1: not counted
  int32_t group_n = 128;
  int32_t group_k = 128;
  DType a = DType::kF8E4M3;
  DType b = DType::kF8E4M3;
  ScaleMajor a_major = ScaleMajor::kRow;
  ScaleMajor b_major = ScaleMajor::kRow;
  DType scales = DType::kF32;
  ScaleValues values = ScaleValues::kAnyFloat;
  MPolicy policy = MPolicy::kClass;
  int64_t padding = 0;       // elements added to every leading dimension and group distance
  bool interleaved = false;  // kMasked: row by row, one of each group
  int32_t alignment_bytes = 16;
  // false: rows are in several groups, so only faults and guards are looked at.
  bool compared = true;
  // The sides of the operands, where the planner would not choose what a case is about: rows of a
  // on the wide side of a tile, or on the narrow one; or, for sm_90a, tiles of which the CTAs of a
  // cluster share the weights, or the rows, or whose k they split, or tiles of two stages.
  enum class Sides {
    kPlanned,
    kRows,
    kSwapped,
    kSharedWeights,
    kSharedNarrowWeights,
    kSharedRows,
    kSwappedSharedRows,
    kTwoStages,
    kSplit,
    kSwappedSplit
  } sides = Sides::kPlanned;

  GemmProblem problem(Arch arch) const;
  std::vector<int32_t> group_rows() const;
  PlanOverrides overrides(Arch arch) const;
};

std::vector<GroupedCase> grouped_cases();
// Those of clusters that share tiles, for sm_90a.
std::vector<GroupedCase> clustered_cases();
// And those that split k or have few stages, for sm_90a.
std::vector<GroupedCase> split_cases();

inline void PrintTo(const GroupedCase& c, std::ostream* out) {
  *out << c.name;
}

}  // namespace jitgemm
