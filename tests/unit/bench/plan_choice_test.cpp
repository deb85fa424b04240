// SPDX-License-Identifier: Apache-2.0
#include "bench/plan_choice.h"

#include <gtest/gtest.h>

#include <set>

namespace jitgemm::bench::plan_choice_test {
namespace {

GemmProblem problem() {
  GemmProblem p;
  p.m = 4096;
  p.n = 4096;
  p.k = 4096;
  return p;
}

TEST(PlanOverrides, FieldsAndConstantsAreRead) {
  const auto list = parse_plan_overrides(
      R"([{}, {"kernel": "sm90", "tile_m": 128, "tile_n": 192, "cluster": 2, "kShare": 1}])");
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_FALSE((*list)[0].any());
  EXPECT_EQ((*list)[1].family, KernelFamily::kSm90);
  EXPECT_EQ((*list)[1].tile_n, 192);
  EXPECT_EQ((*list)[1].constants, (std::vector<SpecField>{
                                      {"kShare", 1}
  }));
}

TEST(PlanOverrides, WhatIsNoPlanIsRefusedByName) {
  for (const char* text : {"", "{}", "[]", "[1]", R"([{"tile": 1}])", R"([{"tile_m": "128"}])",
                           R"([{"kernel": "fast"}])", R"([{"tile_m": 1, "tile_m": 2}])"}) {
    const auto list = parse_plan_overrides(text);
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(list.error().message().find("--plans"), std::string::npos) << text;
  }
}

TEST(PlanChoice, AutoIsThePlannersOwnAndTheFirstCandidate) {
  const auto own = choose_plans(problem(), {132}, "auto");
  const auto candidates = choose_plans(problem(), {132}, "model:6");
  ASSERT_TRUE(own && candidates);
  ASSERT_EQ(own->size(), 1u);
  ASSERT_EQ(candidates->size(), 6u);
  EXPECT_EQ(plan_identity((*own)[0].product()), plan_identity((*candidates)[0].product()));
}

TEST(PlanChoice, CandidatesAreDistinctAndRanked) {
  const auto plans = choose_plans(problem(), {132}, "model:12");
  ASSERT_TRUE(plans);
  std::set<std::string> seen;
  double last = 0;
  for (const OperationPlan& plan : *plans) {
    EXPECT_TRUE(seen.insert(plan_identity(plan.product())).second);
    EXPECT_GE(plan.product().estimate_us, last);
    last = plan.product().estimate_us;
  }
}

TEST(PlanChoice, AnOverrideIsLabelledAndAConstantHolds) {
  const auto plans =
      choose_plans(problem(), {132}, R"([{"tile_m": 128, "tile_n": 128, "kWarpgroupColumns": 2}])");
  ASSERT_TRUE(plans);
  EXPECT_EQ((*plans)[0].product().source, PlanSource::kOverride);
  EXPECT_NE(plan_identity((*plans)[0].product()).find("kWarpgroupColumns=2"), std::string::npos);
}

TEST(PlanChoice, PlansThatDoNotFitAShapeAreLeftOutUnlessNoneIsLeft) {
  EXPECT_EQ(choose_plans(problem(), {132}, R"([{"tile_m": 7}, {}])")->size(), 1u);
  const auto none = choose_plans(problem(), {132}, R"([{"tile_m": 7}])");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), StatusCode::kUnsupported);
}

TEST(PlanChoice, ANumberOfCandidatesIsPositive) {
  for (const char* text : {"model:", "model:0", "model:x"}) {
    EXPECT_FALSE(choose_plans(problem(), {132}, text)) << text;
  }
}

TEST(PlanChoice, ArrangementsHoldEverySplitOnceAndTheChoiceFirst) {
  GemmProblem few = problem();
  few.m = 64;
  few.n = 2112;
  few.k = 7168;
  const auto plans = choose_plans(few, {132}, "arrangements");
  const auto own = choose_plans(few, {132}, "model:1");
  ASSERT_TRUE(plans && own);
  EXPECT_EQ(plan_identity((*plans)[0].product()), plan_identity((*own)[0].product()));
  std::set<std::pair<KernelFamily, int32_t>> splits;
  for (const OperationPlan& plan : *plans) {
    splits.emplace(plan.product().family, plan.product().split_k);
  }
  for (const KernelFamily family : {KernelFamily::kSm90, KernelFamily::kSm90Swap}) {
    for (const int32_t split : {1, 2, 3, 4}) {
      EXPECT_TRUE(splits.contains({family, split})) << kernel_family_info(family).name << split;
    }
  }
  EXPECT_LE(plans->size(), 30U);
}

}  // namespace
}  // namespace jitgemm::bench::plan_choice_test
