// SPDX-License-Identifier: Apache-2.0
// The SM90 template through the compiler: no warning, no spill, and wgmma for plans of every shape
// of operand feed, tile, split and scale group.
#include "compile/nvrtc_compiler.h"
#include "plan/planner.h"
#include "specialize/kernel_source.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm {
namespace {

struct Case {
  std::string name;
  GemmProblem problem;
  PlanOverrides overrides;

  Case(std::string case_name, int64_t m, int64_t n, int64_t k) : name(std::move(case_name)) {
    problem.arch = Arch::kSm90a;
    problem.m = m;
    problem.n = n;
    problem.k = k;
  }
  Case out(DType value) && {
    problem.out_dtype = value;
    return std::move(*this);
  }
  Case types(DType a, DType b) && {
    problem.a_dtype = a;
    problem.b_dtype = b;
    return std::move(*this);
  }
  Case groups(int32_t group_n, int32_t group_k) && {
    problem.group_n = group_n;
    problem.group_k = group_k;
    return std::move(*this);
  }
  Case tile(int32_t m, int32_t n, int32_t split = 1) && {
    overrides.tile_m = m;
    overrides.tile_n = n;
    overrides.split_k = split;
    return std::move(*this);
  }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  return {
      Case("large", 4096, 4096, 7168),
      Case("fp32_out", 4096, 4096, 4096).out(DType::kF32),
      Case("tallest", 4096, 4096, 4096).tile(256, 128),
      Case("narrow_runs", 4096, 4096, 4096).tile(256, 112),
      Case("three_warpgroups", 4533, 2048, 2048).tile(192, 128),
      Case("three_warpgroups_scaled", 4533, 2048, 2048).groups(1, 128).tile(192, 128),
      Case("shared_rows", 65536, 2048, 2048).tile(256, 128),
      Case("widest", 4096, 4096, 4096).tile(128, 256),
      Case("mixed_types", 512, 4096, 4096).types(DType::kF8E5M2, DType::kF8E4M3),
      Case("scale_a_column", 4096, 4096, 4096).groups(1, 128),
      Case("scale_eight_columns", 4096, 4096, 4096).groups(8, 128),
      Case("four_blocks_a_stage", 4096, 4096, 4096).groups(128, 32),
      Case("blocks_that_straddle", 512, 4096, 4096).groups(64, 96),
      Case("one_token", 1, 4096, 7168),
      Case("split_eight", 64, 2112, 7168).tile(64, 64, 8),
      Case("widest_swapped", 128, 4096, 7168).out(DType::kF16).tile(128, 128),
      Case("cp_async_rows", 83, 576, 3884).out(DType::kF16),
      Case("cp_async_rows_many", 4096, 4096, 3884),
      Case("plain_rows_odd_n", 83, 577, 3883),
      Case("plain_rows_many", 4096, 4096, 3883).out(DType::kF32),
  };
}

class Sm90Compile : public testing::TestWithParam<Case> {};

TEST_P(Sm90Compile, CleanAndWithTheMatrixInstruction) {
  const Case& c = GetParam();
  const GemmProblem& p = c.problem;
  PlanRequest request;
  request.overrides = c.overrides;
  const Result<GemmPlan> plan = plan_gemm(p, request);
  ASSERT_TRUE(plan) << plan.error().message();
  SCOPED_TRACE(to_string(*plan));

  const Result<KernelSource> source = specialize(*plan, TemplateStore());
  ASSERT_TRUE(source) << source.error().message();
  const Result<std::unique_ptr<NvrtcCompiler>> compiler = NvrtcCompiler::open("");
  ASSERT_TRUE(compiler) << compiler.error().message();
  const Result<KernelImage> image = (*compiler)->compile(*source);
  ASSERT_TRUE(image) << image.error().message();
  EXPECT_EQ(image->warnings, "");
  EXPECT_EQ(image->spill_bytes, 0);
  EXPECT_EQ(image->stack_bytes, 0);
  EXPECT_EQ(image->stack_bytes, 0);
  EXPECT_LE(plan->shared_bytes + image->static_shared_bytes,
            arch_info(p.arch).shared_bytes_per_cta);
  EXPECT_NE(image->ptx.find("wgmma.mma_async.sync.aligned.m64n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Templates, Sm90Compile, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm
