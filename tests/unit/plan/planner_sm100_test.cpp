// SPDX-License-Identifier: Apache-2.0
// Blackwell's planner: every candidate is legal, preferences follow the problem, reasons are given.
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace jitgemm::planner_sm100_test {
namespace {

GemmProblem problem(int64_t m, int64_t n, int64_t k) {
  GemmProblem p;
  p.arch = Arch::kSm100a;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

std::map<std::string, int64_t> fields(const GemmPlan& plan) {
  return {plan.extra_fields.begin(), plan.extra_fields.end()};
}

bool has_reason(const GemmPlan& plan, const std::string& words) {
  return std::any_of(plan.reasons.begin(), plan.reasons.end(), [&](const std::string& reason) {
    return reason.find(words) != std::string::npos;
  });
}

PlannerInput input_for(const GemmProblem& p) {
  PlannerInput input;
  input.problem = p;
  input.planned_m = std::max<int64_t>(p.m, 1);
  input.sm_count = 148;
  return input;
}

TEST(PlannerSm100, EveryCandidateFitsTheMachine) {
  for (const int64_t m : {1, 7, 83, 349, 4096}) {
    for (const int64_t n : {16, 576, 2112, 4096}) {
      for (const int64_t k : {31, 256, 3884, 7168}) {
        for (const int group_n : {1, 64, 128, 100}) {
          for (const ScaleValues values : {ScaleValues::kAnyFloat, ScaleValues::kPowerOfTwo}) {
            GemmProblem p = problem(m, n, k);
            p.group_n = group_n;
            p.scale_values = values;
            const std::vector<GemmPlan> candidates = sm100_candidates(input_for(p));
            ASSERT_FALSE(candidates.empty()) << to_string(p);
            for (const GemmPlan& plan : candidates) {
              std::map<std::string, int64_t> field = fields(plan);
              const bool swap = field["kSwap"] != 0;
              const int64_t columns = swap ? plan.tile_m : plan.tile_n;
              EXPECT_EQ(swap ? plan.tile_n : plan.tile_m, 128);
              EXPECT_TRUE(columns % 16 == 0 && columns >= 16 && columns <= 256);
              EXPECT_LE(plan.shared_bytes, arch_info(p.arch).shared_bytes_per_cta);
              EXPECT_GE(plan.stages, 2);
              EXPECT_LE(plan.threads, 512);
              EXPECT_EQ(plan.cluster, field["kPair"] * field["kShare"] * plan.split_k);
              const int64_t width = (columns + 31) / 32 * 32;
              const bool exact = plan.family == KernelFamily::kSm100;
              const int64_t stride = exact ? width : field["kAccumulatorStride"];
              EXPECT_GE(field["kAccumulators"], 2);
              EXPECT_LE((field["kAccumulators"] - 1) * stride + width, 512);
              EXPECT_LE(2 * (columns - stride), columns) << "at most half overlaps";
              EXPECT_EQ(plan.grid, GridKind::kPersistent);
              EXPECT_FALSE(plan.reasons.empty());
            }
          }
        }
      }
    }
  }
}

TEST(PlannerSm100, ArbitraryScalesGetTheExactKernel) {
  const Result<GemmPlan> plan = plan_gemm(problem(4096, 4096, 7168));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->family, KernelFamily::kSm100);
  EXPECT_TRUE(has_reason(*plan, "arbitrary fp32"));
}

TEST(PlannerSm100, DeclaredPowersOfTwoGetTheHardwareScaledKernel) {
  GemmProblem p = problem(4096, 4096, 7168);
  p.scale_values = ScaleValues::kPowerOfTwo;
  const Result<GemmPlan> plan = plan_gemm(p);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->family, KernelFamily::kSm100Mx);
  EXPECT_TRUE(has_reason(*plan, "declared powers of two"));
}

TEST(PlannerSm100, ScaleBytesGetTheHardwareScaledKernel) {
  GemmProblem p = problem(256, 512, 1024);
  p.scale_dtype = DType::kF8E8M0;
  const Result<GemmPlan> plan = plan_gemm(p);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->family, KernelFamily::kSm100Mx);
}

TEST(PlannerSm100, HardwareScalingOfUndeclaredScalesIsRefused) {
  PlanRequest request;
  request.overrides.family = KernelFamily::kSm100Mx;
  const Result<GemmPlan> plan = plan_gemm(problem(256, 512, 1024), request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(plan.error().message().find("not declared"), std::string::npos);
}

TEST(PlannerSm100, FewTokensSwapTheOperands) {
  const Result<GemmPlan> plan = plan_gemm(problem(7, 4096, 7168));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(fields(*plan)["kSwap"], 1);
  EXPECT_EQ(plan->tile_m, 16);
  EXPECT_EQ(plan->tile_n, 128);
  EXPECT_TRUE(has_reason(*plan, "operands swapped"));
}

TEST(PlannerSm100, TooFewTilesSplitK) {
  const Result<GemmPlan> plan = plan_gemm(problem(1, 576, 7168));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_GT(plan->split_k, 1);
  EXPECT_TRUE(has_reason(*plan, "k split"));
}

TEST(PlannerSm100, BatchInvariantPlansNeitherSwapNorSplit) {
  for (const int64_t m : {1, 64, 4096}) {
    GemmProblem p = problem(m, 576, 7168);
    p.batch_invariant = true;
    const Result<GemmPlan> plan = plan_gemm(p);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(fields(*plan)["kSwap"], 0);
    EXPECT_EQ(plan->split_k, 1);
  }
}

TEST(PlannerSm100, RowsThatTmaCannotReadAreFedByWarps) {
  struct Case {
    int64_t k;
    Feed feed;
  };
  for (const Case c : {
           Case{4096, Feed::kTma    },
           Case{3884, Feed::kCpAsync},
           Case{3885, Feed::kPlain  }
  }) {
    const Result<GemmPlan> plan = plan_gemm(problem(83, 576, c.k));
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->feed_a, c.feed);
    EXPECT_EQ(plan->feed_b, c.feed);
    EXPECT_EQ(plan->a_map.used, c.feed == Feed::kTma);
    EXPECT_EQ(has_reason(*plan, "illegal for TMA"), c.feed != Feed::kTma);
  }
}

TEST(PlannerSm100, OverridesThatLeaveNothingListWhatThereIs) {
  PlanRequest request;
  request.overrides.tile_n = 40;
  const Result<GemmPlan> plan = plan_gemm(problem(256, 512, 1024), request);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("in steps of 16"), std::string::npos);
}

TEST(PlannerSm100, B300PlansAsB200WithItsOwnTarget) {
  GemmProblem p = problem(349, 2048, 2048);
  const Result<GemmPlan> b200 = plan_gemm(p);
  p.arch = Arch::kSm103a;
  const Result<GemmPlan> b300 = plan_gemm(p);
  ASSERT_TRUE(b200 && b300);
  EXPECT_EQ(b200->tile_n, b300->tile_n);
  EXPECT_EQ(arch_info(b300->problem.arch).target, "sm_103a");
}

}  // namespace
}  // namespace jitgemm::planner_sm100_test
