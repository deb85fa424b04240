// SPDX-License-Identifier: Apache-2.0
// Operations as lists of launches: which launches a problem gets, how the quantising one is laid
// out, and where intermediate results lie.
#include "plan/operation_plan.h"

#include <gtest/gtest.h>

namespace jitgemm::operation_plan_test {
namespace {

GemmProblem problem(DType a, int64_t m, int64_t k) {
  GemmProblem p;
  p.m = m;
  p.n = 512;
  p.k = k;
  p.a_dtype = a;
  return p;
}

TEST(OperationPlan, CodesNeedOneLaunchAndNoWorkspace) {
  const Result<OperationPlan> plan = plan_operation(problem(DType::kF8E5M2, 100, 512));
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_EQ(plan->launches.size(), 1U);
  EXPECT_EQ(workspace_layout(*plan, 100).bytes, 0);
}

TEST(OperationPlan, HigherPrecisionIsQuantisedFirst) {
  for (const DType a : {DType::kF32, DType::kBF16, DType::kF16}) {
    GemmProblem p = problem(a, 100, 500);
    p.a_code_dtype = DType::kF8E5M2;
    const Result<OperationPlan> plan = plan_operation(p);
    ASSERT_TRUE(plan) << plan.error().to_string();
    ASSERT_EQ(plan->launches.size(), 2U);
    EXPECT_EQ(launch_name(plan->launches[0]), "quantize_rows");
    const GemmProblem& product = plan->product().problem;
    EXPECT_EQ(product.a_dtype, DType::kF8E5M2);
    EXPECT_FALSE(product.quantizes_a());
    EXPECT_EQ(product.lda, 512) << "TMA reads rows of a multiple of 16 bytes only";
    EXPECT_EQ(plan->product().feed_a, Feed::kTma);
    EXPECT_EQ(plan->problem, p);
  }
}

TEST(OperationPlan, TextListsEachLaunchAndTheWorkspace) {
  const OperationPlan plan = *plan_operation(problem(DType::kBF16, 128, 512));
  const std::string text = to_string(plan, 132);
  for (const char* part : {"problem    block_scaled_mm sm_90a m=128", "bf16(e4m3)*e4m3",
                           "launch 1   grid 16 x 1 x 1, block 256", "kernel     quantize_rows",
                           "launch 2   grid", "workspace  67584 bytes, aligned to 256"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
}

GemmProblem unaligned(int64_t m, int64_t k) {
  GemmProblem p;
  p.arch = Arch::kSm90a;
  p.m = m;
  p.n = 4096;
  p.k = k;
  return p;
}

TEST(AlignPlan, RowsThatTmaCannotAddressAreCopiedFirst) {
  const auto plan = plan_operation(unaligned(64, 3884));
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_EQ(plan->launches.size(), 2U);
  EXPECT_EQ(launch_name(plan->launches[0]), "align_rows");
  EXPECT_EQ(plan->product().feed_a, Feed::kTma);
  EXPECT_EQ(plan->product().feed_b, Feed::kTma);
  EXPECT_EQ(plan->product().problem.lda, 3968);
  const WorkspaceLayout layout = workspace_layout(*plan, 64);
  EXPECT_EQ(layout.aligned_b, 64 * 3968);
  // Scales of 31 blocks, too.
  EXPECT_EQ(layout.aligned_a_scales, (64 + 4096) * 3968);
  EXPECT_EQ(layout.aligned_b_scales, (64 + 4096) * 3968 + 64 * 128);
  EXPECT_EQ(layout.bytes, (64 + 4096) * 3968 + (64 + 32) * 128);
}

TEST(AlignPlan, OnlyWhereItPaysOrIsAskedFor) {
  EXPECT_EQ(plan_operation(unaligned(64, 4096))->launches.size(), 1U);
  GemmProblem small = unaligned(16, 36);
  small.n = 64;
  EXPECT_EQ(plan_operation(small)->launches.size(), 1U);
  PlanRequest request;
  request.overrides.align_rows = true;
  EXPECT_EQ(plan_operation(small, request)->launches.size(), 2U);
  request.overrides.align_rows = false;
  EXPECT_EQ(plan_operation(unaligned(64, 3884), request)->launches.size(), 1U);
  GemmProblem blackwell = unaligned(64, 3884);
  blackwell.arch = Arch::kSm100a;  // where nobody has measured that it pays
  EXPECT_EQ(plan_operation(blackwell)->launches.size(), 1U);
}

TEST(AlignPlan, ScalesAloneAreWorthItForManyRows) {
  const auto many = plan_operation(unaligned(4096, 3968));
  ASSERT_EQ(many->launches.size(), 2U) << to_string(*many, 132);
  EXPECT_EQ(many->product().problem.a_scale_ld, 32);
  EXPECT_EQ(many->product().problem.b_scale_ld, 32);
  EXPECT_EQ(many->product().problem.lda, 0);
  EXPECT_EQ(plan_operation(unaligned(64, 3968))->launches.size(), 1U);
}

TEST(AlignPlan, NothingToAlignIsUnsupported) {
  PlanRequest request;
  request.overrides.align_rows = true;
  const auto plan = plan_operation(unaligned(64, 4096), request);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().to_string().find("there are no rows to align"), std::string::npos);
  GemmProblem anywhere = unaligned(64, 3884);
  anywhere.alignment = 4;
  EXPECT_FALSE(plan_operation(anywhere, request));
  EXPECT_EQ(plan_operation(anywhere)->launches.size(), 1U);
}

TEST(AlignPlan, LoadsAreAsWideAsRowsAllowAndOneOperandMayDo) {
  GemmProblem p = unaligned(10, 3880);
  EXPECT_EQ(plan_align(p)->unit, 8);
  p.lda = 3888;  // a's rows are where they should be
  ASSERT_TRUE(plan_align(p));
  EXPECT_FALSE(plan_align(p)->a);
  EXPECT_EQ(plan_align(p)->rows(10), 4096);
  p.ldb = 3882;
  EXPECT_EQ(plan_align(p)->unit, 2);
  p.k = 3881;
  EXPECT_EQ(plan_align(p)->unit, 1);
}

TEST(Normalized, BlocksThatEndBehindTheOperandAreTheSmallestThatDo) {
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    for (const ScaleValues values : {ScaleValues::kAnyFloat, ScaleValues::kPowerOfTwo}) {
      GemmProblem p;
      p.arch = arch;
      p.m = 64;
      p.n = 200;
      p.k = 300;
      p.scale_values = values;
      p.group_n = INT32_MAX;
      p.group_k = INT32_MAX / 32 * 32;
      const auto plan = plan_operation(p);
      ASSERT_TRUE(plan) << plan.error().to_string();
      EXPECT_EQ(plan->product().problem.group_n, 256);
      EXPECT_EQ(plan->product().problem.group_k, 384);
      EXPECT_EQ(plan->problem.k_blocks(), 1);
      p.group_n = p.group_k = 96;
      EXPECT_EQ(plan_operation(p)->product().problem.group_n, 96);
      EXPECT_EQ(plan_operation(p)->product().problem.group_k, 96);
    }
  }
}

TEST(Normalized, WhatOperandsWithoutScalesSayOfThemIsNotJudged) {
  GemmProblem p;
  p.m = 64;
  p.n = p.k = 256;
  p.a_dtype = p.b_dtype = DType::kBF16;
  p.grouping.layout = GroupLayout::kRowIndices;
  p.grouping.groups = 2;
  p.group_k = 100;
  p.group_n = -1;
  p.scale_dtype = DType::kBF16;
  p.a_scale_major = ScaleMajor::kPacked;
  p.a_scale_ld = 3;
  p.grouping.b_scale_stride = -1;
  const auto plan = plan_operation(p);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->problem.a_scale_ld, 0);
  p.a_dtype = p.b_dtype = DType::kF8E4M3;
  EXPECT_FALSE(plan_operation(p));
}

TEST(ReferencePlan, MoreTilesThanAGridHasRowsAreGoneOnTo) {
  GemmProblem p;
  p.m = 300'000;
  p.n = p.k = 1;
  p.m_policy = MPolicy::kAny;
  PlanRequest request;
  request.overrides.family = KernelFamily::kReference;
  const auto plan = plan_gemm(p, request);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(launch_geometry(*plan, p.m, 132).grid, (Dim3{1, 65535, 1}));
}

TEST(QuantizePlan, VectorsAreAsWideAsEverythingAllows) {
  const struct {
    const char* about;
    DType a;
    int64_t k;
    int64_t lda;
    int32_t group_k;
    int32_t alignment;
    int32_t vector;
  } cases[] = {
      {"four of a lane's block of 128",       DType::kBF16, 512, 0,   128, 16, 4},
      {"eight bf16 are 16 bytes",             DType::kBF16, 512, 0,   256, 16, 8},
      {"four fp32 are 16 bytes",              DType::kF32,  512, 0,   256, 16, 4},
      {"one of a lane's block of 32",         DType::kF32,  512, 0,   32,  16, 1},
      {"three do not make a vector",          DType::kF32,  512, 0,   96,  16, 1},
      {"k is no multiple of four",            DType::kF32,  514, 0,   128, 16, 2},
      {"rows are no multiple of two apart",   DType::kF32,  512, 513, 128, 16, 1},
      {"an address is a multiple of 4 bytes", DType::kBF16, 512, 0,   128, 4,  2},
  };
  for (const auto& c : cases) {
    GemmProblem p = problem(c.a, 64, c.k);
    p.lda = c.lda;
    p.group_k = c.group_k;
    p.alignment = c.alignment;
    EXPECT_EQ(plan_quantize(p).vector, c.vector) << c.about;
  }
}

TEST(QuantizePlan, BlocksBeyondKAreCutToWhatKNeeds) {
  GemmProblem p = problem(DType::kBF16, 64, 100);
  p.group_k = 4096;
  EXPECT_EQ(plan_quantize(p).group_k, 128);
  EXPECT_EQ(plan_quantize(p).scale_ld, 1);
}

TEST(QuantizePlan, GridIsBoundedForAnyM) {
  const QuantizePlan plan = plan_quantize(problem(DType::kBF16, 1, 16384));
  EXPECT_EQ(launch_geometry(plan, 1).grid.x, 4U);
  EXPECT_EQ(launch_geometry(plan, INT32_MAX - 1024).grid.x, 1U << 20);
}

TEST(OperationPlan, FieldsWithoutMeaningAreRefused) {
  GemmProblem p = problem(DType::kBF16, 64, 512);
  p.a_scale_ld = 8;
  EXPECT_EQ(validate(p).message(),
            "a_scale_major, a_scale_ld: expected the defaults, since the operation makes the "
            "scales of an a of BF16, found 0 and 8");
  p = problem(DType::kF8E4M3, 64, 512);
  p.a_code_dtype = DType::kF8E5M2;
  EXPECT_EQ(validate(p).message(),
            "a_code_dtype: expected the default, since a is F8_E4M3 already, found F8_E5M2");
  EXPECT_EQ(plan_gemm(problem(DType::kF32, 64, 512)).error().code(), StatusCode::kUnsupported)
      << "a product alone takes codes";
}

TEST(Arch, FamilyCodeRunsOnLaterMembersOnly) {
  EXPECT_TRUE(runs_on(Arch::kSm100f, Arch::kSm100a));
  EXPECT_TRUE(runs_on(Arch::kSm100f, Arch::kSm103a));
  EXPECT_TRUE(runs_on(Arch::kSm103f, Arch::kSm103a));
  EXPECT_FALSE(runs_on(Arch::kSm103f, Arch::kSm100a));
  EXPECT_FALSE(runs_on(Arch::kSm100a, Arch::kSm103a));
  EXPECT_FALSE(runs_on(Arch::kSm100f, Arch::kSm90a));
  EXPECT_EQ(*arch_for_compute_capability(10, 0), Arch::kSm100a) << "a device's own target";
}

}  // namespace
}  // namespace jitgemm::operation_plan_test
