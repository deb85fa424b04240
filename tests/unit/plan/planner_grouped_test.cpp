// SPDX-License-Identifier: Apache-2.0
// Planning grouped products: every candidate is legal, tiles follow the rows of a group, kernels
// stay few, and the plan says what it chose.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace jitgemm::planner_grouped_test {
namespace {

GemmProblem problem(Arch arch, GroupLayout layout, int64_t groups, int64_t m, int64_t expected_m) {
  GemmProblem p;
  p.arch = arch;
  p.m = m;
  p.n = 4096;
  p.k = 7168;
  p.m_policy = MPolicy::kClass;
  p.grouping.layout = layout;
  p.grouping.groups = groups;
  p.grouping.expected_m = expected_m;
  return p;
}

bool swapped(const GemmPlan& plan) {
  for (const auto& [name, value] : plan.extra_fields) {
    if (name == "kSwap") return value == 1;
  }
  return false;
}

class PlannerGrouped : public testing::TestWithParam<Arch> {};

TEST_P(PlannerGrouped, CandidatesKeepGroupsApartAndFitTheMachine) {
  for (const GroupLayout layout : {GroupLayout::kRowIndices, GroupLayout::kEndOffsets,
                                   GroupLayout::kRowPointers, GroupLayout::kMasked}) {
    for (const int64_t expected : {1, 30, 1000}) {
      const GemmProblem p = problem(GetParam(), layout, 8, 1024, expected);
      const PlannerInput input{p, expected, 132, {}};
      const std::vector<GemmPlan> plans =
          GetParam() == Arch::kSm90a ? sm90_candidates(input) : sm100_candidates(input);
      ASSERT_FALSE(plans.empty());
      for (const GemmPlan& plan : plans) {
        // Clusters share tiles; names of rows are read for 256 of them in one step.
        const std::map<std::string, int64_t> field(plan.extra_fields.begin(),
                                                   plan.extra_fields.end());
        const bool shares = GetParam() == Arch::kSm90a && field.at("kShare") != 0;
        EXPECT_EQ(plan.cluster, shares ? 2 : plan.split_k) << to_string(plan);
        EXPECT_TRUE(GetParam() == Arch::kSm90a || plan.split_k == 1) << to_string(plan);
        const bool two_windows = shares && !swapped(plan) && field.at("kShare") == 1;
        if (two_windows && layout == GroupLayout::kRowIndices) {
          EXPECT_LE(plan.tile_m * plan.cluster, 256) << to_string(plan);
        }
        EXPECT_FALSE(shares && plan.split_k > 1) << to_string(plan);
        EXPECT_LE(plan.shared_bytes, arch_info(GetParam()).shared_bytes_per_cta);
        EXPECT_GE(plan.stages, 2);
      }
    }
  }
}

TEST_P(PlannerGrouped, FewRowsAGroupSwapOperandsIntoNarrowWindows) {
  for (const int64_t expected : {1, 4, 16}) {
    const auto plan = plan_gemm(problem(GetParam(), GroupLayout::kMasked, 32, 1024, expected));
    ASSERT_TRUE(plan) << plan.error().to_string();
    EXPECT_TRUE(swapped(*plan)) << to_string(*plan);
    EXPECT_LE(plan->tile_m, 32) << to_string(*plan);
  }
}

TEST(PlannerGroupedSm90, KIsSplitWhereFewTilesLeaveSmsIdle) {
  const auto splits = [](DType codes, int64_t groups) {
    GemmProblem p = problem(Arch::kSm90a, GroupLayout::kMasked, groups, 64, 8);
    p.a_dtype = p.b_dtype = codes;
    const auto plans = plan_candidates(p);
    EXPECT_TRUE(plans) << plans.error().to_string();
    int most = 0;
    for (const GemmPlan& plan : *plans) most = std::max(most, plan.split_k);
    return most;
  };
  EXPECT_GT(splits(DType::kF8E4M3, 1), 1);
  EXPECT_EQ(splits(DType::kF8E4M3, 256), 1);
  EXPECT_EQ(splits(DType::kBF16, 1), 1) << "operands of 16 bits do not split k";
}

TEST_P(PlannerGrouped, ManyRowsAGroupTakeWideTiles) {
  const auto plan = plan_gemm(problem(GetParam(), GroupLayout::kRowIndices, 4, 32768, 0));
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_FALSE(swapped(*plan)) << to_string(*plan);
  EXPECT_EQ(plan->tile_m, 128) << "runs of that layout usually begin at multiples of 128";
  EXPECT_EQ(plan->store, Store::kTma);
}

TEST_P(PlannerGrouped, ReasonsSayWhatWasExpected) {
  const auto given = plan_gemm(problem(GetParam(), GroupLayout::kMasked, 32, 1024, 8));
  EXPECT_NE(to_string(*given).find("from expected_m"), std::string::npos) << to_string(*given);
  const auto counted = plan_gemm(problem(GetParam(), GroupLayout::kRowIndices, 32, 1024, 0));
  EXPECT_NE(to_string(*counted).find("from m / groups"), std::string::npos) << to_string(*counted);
  GemmProblem any = problem(GetParam(), GroupLayout::kRowIndices, 32, 1024, 0);
  any.m_policy = MPolicy::kAny;
  const auto for_any = plan_gemm(any);
  EXPECT_NE(to_string(*for_any).find("for any m"), std::string::npos) << to_string(*for_any);
  any.m = 1 << 20;
  EXPECT_EQ(plan_gemm(any)->tile_m, for_any->tile_m) << "one kernel for every m";
  const auto room = plan_gemm(problem(GetParam(), GroupLayout::kMasked, 32, 1024, 0));
  EXPECT_NE(to_string(*room).find("all that there is room for"), std::string::npos);
}

TEST_P(PlannerGrouped, KernelsStayFewOverAllExpectations) {
  std::set<std::tuple<KernelFamily, int, int, int>> kernels;
  for (int64_t expected = 1; expected <= 4096; ++expected) {
    const auto plan = plan_gemm(problem(GetParam(), GroupLayout::kMasked, 32, 4096, expected));
    ASSERT_TRUE(plan) << plan.error().to_string();
    kernels.insert({plan->family, plan->tile_m, plan->tile_n, plan->stages});
  }
  EXPECT_LE(kernels.size(), 16U);
}

TEST_P(PlannerGrouped, GroupsThatAreNoWholeRowsApartUseNoMap) {
  GemmProblem p = problem(GetParam(), GroupLayout::kMasked, 4, 64, 64);
  p.grouping.a_stride = 64 * 7168 + 16;
  p.grouping.b_stride = 4096 * 7168 + 4;
  p.grouping.out_stride = 64 * 4096 + 8;
  const auto plan = plan_gemm(p);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->feed_a, Feed::kCpAsync);
  EXPECT_EQ(plan->feed_b, Feed::kCpAsync);
  EXPECT_EQ(plan->store, Store::kDirect);
}

TEST_P(PlannerGrouped, ScalesOfMoreRowsThanAMapCountsUseNoMap) {
  GemmProblem p = problem(GetParam(), GroupLayout::kRowIndices, 2, 256, 128);
  const int64_t ld = p.b_scale_ld_or_dense();
  for (const auto& [rows, mapped] : {
           std::pair{int64_t{INT32_MAX} / 2,     GetParam() == Arch::kSm90a},
           std::pair{int64_t{INT32_MAX} / 2 + 1, false                     },
           std::pair{int64_t{1} << 32,           false                     }
  }) {
    p.grouping.b_scale_stride = rows * ld;
    const auto plan = plan_gemm(p);
    ASSERT_TRUE(plan) << plan.error().to_string();
    EXPECT_EQ(plan->b_scale_map.used, mapped) << rows;
  }
}

TEST_P(PlannerGrouped, TheReferenceKernelIsRefused) {
  PlanRequest request;
  request.overrides.family = KernelFamily::kReference;
  const auto plan = plan_gemm(problem(GetParam(), GroupLayout::kMasked, 4, 64, 64), request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), StatusCode::kUnsupported);
}

TEST(GroupedGeometry, WindowsBoundWhatCountsCanGive) {
  GemmPlan plan;
  plan.tile_m = 64;
  plan.problem.grouping.groups = 10;
  plan.problem.grouping.layout = GroupLayout::kRowIndices;
  EXPECT_EQ(row_windows(plan, 100), 2);
  plan.problem.grouping.layout = GroupLayout::kMasked;
  EXPECT_EQ(row_windows(plan, 100), 20);
  plan.problem.grouping.layout = GroupLayout::kRowPointers;
  EXPECT_EQ(row_windows(plan, 100), 12);
  EXPECT_EQ(row_windows(plan, 3), 3) << "no more windows than rows";
  // Rows to be zeroed have windows of their own: behind each group, before each and behind the
  // last.
  plan.problem.grouping.zero_ungrouped = true;
  EXPECT_EQ(row_windows(plan, 100), 23);
  plan.problem.grouping.layout = GroupLayout::kMasked;
  EXPECT_EQ(row_windows(plan, 100), 30);
  plan.problem.grouping.layout = GroupLayout::kRowIndices;
  EXPECT_EQ(row_windows(plan, 100), 2);
}

INSTANTIATE_TEST_SUITE_P(Archs, PlannerGrouped, testing::Values(Arch::kSm90a, Arch::kSm100a),
                         [](const auto& arch) {
                           return std::string(arch_info(arch.param).target);
                         });

}  // namespace
}  // namespace jitgemm::planner_grouped_test
