// SPDX-License-Identifier: Apache-2.0
// Hopper's planner: every candidate is legal, preferences follow the problem, reasons are given.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace jitgemm::planner_sm90_test {
namespace {

GemmProblem problem(int64_t m, int64_t n, int64_t k) {
  GemmProblem p;
  p.arch = Arch::kSm90a;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

GemmPlan plan_of(const GemmProblem& p, const PlanOverrides& overrides = {}) {
  PlanRequest request;
  request.overrides = overrides;
  const Result<GemmPlan> plan = plan_gemm(p, request);
  EXPECT_TRUE(plan) << plan.error().message();
  return plan ? *plan : GemmPlan{};
}

std::map<std::string, int64_t> fields(const GemmPlan& plan) {
  return {plan.extra_fields.begin(), plan.extra_fields.end()};
}

bool has_reason(const GemmPlan& plan, const std::string& words) {
  return std::any_of(plan.reasons.begin(), plan.reasons.end(), [&](const std::string& reason) {
    return reason.find(words) != std::string::npos;
  });
}

TEST(PlannerSm90, EveryCandidateFitsTheMachine) {
  for (const int64_t m : {1, 7, 83, 349, 4096}) {
    for (const int64_t n : {16, 576, 2112}) {
      for (const int64_t k : {31, 256, 3884, 7168}) {
        for (const int group_n : {1, 64, 128, 100}) {
          GemmProblem p = problem(m, n, k);
          p.group_n = group_n;
          PlannerInput input;
          input.problem = p;
          input.planned_m = m;
          input.sm_count = 132;
          const std::vector<GemmPlan> candidates = sm90_candidates(input);
          ASSERT_FALSE(candidates.empty()) << to_string(p);
          for (const GemmPlan& plan : candidates) {
            std::map<std::string, int64_t> field = fields(plan);
            const bool swap = field["kSwap"] != 0;
            const int64_t rows = swap ? plan.tile_n : plan.tile_m;
            const int64_t columns = swap ? plan.tile_m : plan.tile_n;
            const int64_t warpgroups = field["kWarpgroupRows"] * field["kWarpgroupColumns"];
            EXPECT_EQ(rows % (64 * field["kWarpgroupRows"]), 0);
            EXPECT_EQ(columns % (8 * field["kWarpgroupColumns"]), 0);
            EXPECT_LE(columns, 256);
            EXPECT_EQ(plan.threads, 128 * (1 + warpgroups));
            EXPECT_LE(plan.shared_bytes, arch_info(p.arch).shared_bytes_per_cta);
            EXPECT_GE(plan.stages, 2);
            EXPECT_EQ(plan.cluster, field["kShare"] != 0 ? 2 : plan.split_k);
            EXPECT_EQ(plan.family, swap ? KernelFamily::kSm90Swap : KernelFamily::kSm90);
            EXPECT_EQ(plan.a_map.used, plan.feed_a == Feed::kTma);
            EXPECT_FALSE(plan.reasons.empty());
          }
        }
      }
    }
  }
}

TEST(PlannerSm90, TheReferenceKernelIsNeverChosen) {
  for (const int64_t m : {1, 83, 4096}) {
    for (const int64_t k : {1, 3883, 4096}) {
      EXPECT_NE(plan_of(problem(m, 576, k)).family, KernelFamily::kReference);
    }
  }
}

TEST(PlannerSm90, ManyRowsGetAWideTileAndTwoWarpgroups) {
  const GemmPlan plan = plan_of(problem(16384, 4096, 4096));
  EXPECT_EQ(plan.family, KernelFamily::kSm90);
  EXPECT_GE(plan.tile_m * plan.tile_n, 192 * 128);
  EXPECT_GE(plan.threads, 384);
  EXPECT_EQ(plan.split_k, 1);
  EXPECT_EQ(plan.cluster, 2);
  EXPECT_TRUE(has_reason(plan, "multicast"));
  EXPECT_EQ(plan.store, Store::kTma);
}

TEST(PlannerSm90, FewRowsSwapOperandsAndFitTheTileToThem) {
  for (const int64_t m : {1, 8, 16, 33}) {
    const GemmPlan plan = plan_of(problem(m, 7168, 2048));
    EXPECT_EQ(plan.family, KernelFamily::kSm90Swap) << m;
    EXPECT_EQ(plan.tile_m, (m + 7) / 8 * 8) << m;
    EXPECT_TRUE(has_reason(plan, "operands swapped")) << m;
  }
}

TEST(PlannerSm90, ManyScaleBlocksNeedNoMoreSlotsThanSome) {
  // Nor more work to reckon them, here or by the kernel's compiler.
  PlanOverrides same;
  same.tile_m = 64;
  same.tile_n = 32;
  same.split_k = 1;
  const GemmPlan some = plan_of(problem(128, 128, int64_t{1} << 14), same);
  const GemmPlan many = plan_of(problem(128, 128, int64_t{1} << 30), same);
  EXPECT_EQ(some.shared_bytes, many.shared_bytes);
  EXPECT_EQ(some.stages, many.stages);
}

TEST(PlannerSm90, KIsSplitWhereTilesLeaveSmsIdle) {
  const GemmPlan plan = plan_of(problem(1, 512, 16384));
  EXPECT_GT(plan.split_k, 1);
  EXPECT_EQ(plan.cluster, plan.split_k);
  EXPECT_TRUE(has_reason(plan, "k split"));
  EXPECT_EQ(plan_of(problem(4096, 4096, 7168)).split_k, 1);
}

TEST(PlannerSm90, ABatchInvariantRowNeverDependsOnM) {
  for (const int64_t m : {1, 64, 4096}) {
    GemmProblem p = problem(m, 2112, 7168);
    p.batch_invariant = true;
    const GemmPlan plan = plan_of(p);
    EXPECT_EQ(plan.split_k, 1);
    EXPECT_EQ(fields(plan)["kSwap"], 0);
    EXPECT_TRUE(has_reason(plan, "batch invariant"));
  }
}

TEST(PlannerSm90, RowsIllegalForTmaAreFedByTheBestCopy) {
  const GemmPlan words = plan_of(problem(83, 576, 3884));
  EXPECT_EQ(words.feed_a, Feed::kCpAsync);
  EXPECT_FALSE(words.a_map.used);
  EXPECT_TRUE(has_reason(words, "cp.async"));
  const GemmPlan bytes = plan_of(problem(83, 576, 3883));
  EXPECT_EQ(bytes.feed_b, Feed::kPlain);
}

TEST(PlannerSm90, OutputRowsThatAreNotAlignedGetSingleElementStores) {
  EXPECT_EQ(fields(plan_of(problem(83, 577, 4096)))["kStoreVector"], 0);
  EXPECT_EQ(fields(plan_of(problem(83, 576, 4096)))["kStoreVector"], 1);
}

TEST(PlannerSm90, OverridesAreTakenOrRefused) {
  PlanOverrides overrides;
  overrides.tile_m = 128;
  overrides.tile_n = 192;
  overrides.stages = 3;
  const GemmPlan plan = plan_of(problem(4096, 4096, 4096), overrides);
  EXPECT_EQ(plan.tile_m, 128);
  EXPECT_EQ(plan.tile_n, 192);
  EXPECT_EQ(plan.stages, 3);
  PlanRequest request;
  request.overrides.tile_m = 256;
  request.overrides.tile_n = 256;
  EXPECT_FALSE(plan_gemm(problem(4096, 4096, 4096), request));
}

TEST(PlannerSm90, ExponentScalesAreConvertedWithAReason) {
  GemmProblem p = problem(64, 512, 512);
  p.scale_dtype = DType::kF8E8M0;
  const Result<GemmPlan> plan = plan_gemm(p);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_NE(to_string(*plan).find("scales are F8_E8M0"), std::string::npos);
}

}  // namespace
}  // namespace jitgemm::planner_sm90_test
