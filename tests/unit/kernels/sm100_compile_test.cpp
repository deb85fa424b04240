// SPDX-License-Identifier: Apache-2.0
// The SM100 templates through the compiler: no warning, no spill, and the matrix instruction that
// the plan promises, for plans of every shape of operand feed, tile, cluster and scale group.
#include "compile/nvrtc_compiler.h"
#include "plan/planner.h"
#include "specialize/kernel_source.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    problem.arch = Arch::kSm100a;
    problem.m = m;
    problem.n = n;
    problem.k = k;
  }
  Case arch(Arch value) && {
    problem.arch = value;
    return std::move(*this);
  }
  Case out(DType value) && {
    problem.out_dtype = value;
    return std::move(*this);
  }
  Case groups(int32_t group_n, int32_t group_k) && {
    problem.group_n = group_n;
    problem.group_k = group_k;
    return std::move(*this);
  }
  Case pow2() && {
    problem.scale_values = ScaleValues::kPowerOfTwo;
    return std::move(*this);
  }
  Case share(int32_t ctas) && {
    overrides.constants = {
        {"kShare", ctas}
    };
    return std::move(*this);
  }
  Case tile(int32_t m, int32_t n, int32_t cluster, int32_t split = 1) && {
    overrides.tile_m = m;
    overrides.tile_n = n;
    overrides.cluster = cluster;
    overrides.split_k = split;
    if (cluster == 2 && split == 1) {
      overrides.constants = {
          {"kPair", 2}
      };
    }
    return std::move(*this);
  }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  return {
      Case("large", 4096, 4096, 7168),
      Case("large_on_b300", 4096, 4096, 7168).arch(Arch::kSm103a),
      Case("fp32_out", 4096, 4096, 4096).out(DType::kF32),
      Case("widest_pair", 4096, 4096, 4096).tile(128, 256, 2),
      Case("widest_single", 4096, 4096, 4096).out(DType::kF32).tile(128, 256, 1),
      Case("scale_a_column_widest", 512, 4096, 4096).groups(1, 128).tile(128, 192, 1),
      Case("four_blocks_a_stage", 512, 4096, 4096).groups(128, 32),
      Case("blocks_that_straddle", 512, 4096, 4096).groups(64, 96),
      Case("share_two", 4096, 4096, 4096).tile(128, 128, 2).share(2),
      Case("one_token", 1, 4096, 7168),
      Case("split_eight", 64, 2112, 7168).tile(64, 128, 8, 8),
      Case("widest_swapped", 128, 4096, 7168).out(DType::kF16).tile(128, 128, 1),
      Case("cp_async_rows", 83, 576, 3884).out(DType::kF16),
      Case("cp_async_rows_many", 4096, 4096, 3884),
      Case("plain_rows", 83, 576, 3883),
      Case("plain_rows_many", 4096, 4096, 3883).out(DType::kF32),
      Case("hardware_scales", 4096, 4096, 7168).pow2(),
      Case("hardware_scales_fp32_out", 4096, 4096, 7168).pow2().out(DType::kF32),
      Case("hardware_scales_per_32", 4096, 4096, 7168).pow2().groups(1, 32),
      Case("hardware_scales_straddle", 4096, 4096, 7168).pow2().groups(1, 96),
      Case("hardware_scales_widest", 4096, 4096, 7168).pow2().tile(128, 256, 2),
      Case("hardware_scales_swapped", 16, 4096, 7168).pow2(),
      Case("hardware_scales_split", 64, 2112, 7168).pow2().tile(64, 128, 4, 4),
      Case("hardware_scales_plain", 83, 576, 3883).pow2(),
  };
}

class Sm100Compile : public testing::TestWithParam<Case> {};

TEST_P(Sm100Compile, CleanAndWithTheMatrixInstruction) {
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
  const bool hardware_scales = plan->family == KernelFamily::kSm100Mx;
  const bool pair = std::find(plan->extra_fields.begin(), plan->extra_fields.end(),
                              SpecField{"kPair", 2}) != plan->extra_fields.end();
  const std::string group = pair ? "2" : "1";
  const std::string instruction =
      "tcgen05.mma.cta_group::" + group +
      (hardware_scales ? ".kind::mxf8f6f4.block_scale" : ".kind::f8f6f4");
  EXPECT_NE(image->ptx.find(instruction), std::string::npos) << "no " << instruction;
}

INSTANTIATE_TEST_SUITE_P(Templates, Sm100Compile, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm
