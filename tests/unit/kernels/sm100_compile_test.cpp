// SPDX-License-Identifier: Apache-2.0
// The SM100 templates through the compiler: no warning, no spill, and the matrix instruction that
// the plan promises, for plans of every shape of operand feed, tile, cluster and scale group.
#include "unit/kernels/kernel_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm::sm100_compile_test {
namespace {

KernelCase blackwell(std::string name, int64_t m, int64_t n, int64_t k) {
  return {Arch::kSm100a, std::move(name), m, n, k};
}

std::vector<KernelCase> cases() {
  return {
      KernelCase(Arch::kSm103a, "large_on_b300", 4096, 4096, 7168),
      blackwell("widest_single", 4096, 4096, 4096).out(DType::kF32).tile(128, 256).alone(),
      blackwell("scale_a_column_widest", 512, 4096, 4096).groups(1, 128).tile(128, 192).alone(),
      blackwell("four_blocks_a_stage", 512, 4096, 4096).groups(128, 32),
      blackwell("blocks_that_straddle", 512, 4096, 4096).groups(64, 96),
      blackwell("plain_rows", 83, 576, 3883),
      blackwell("hardware_scales_straddle", 4096, 4096, 7168).pow2().groups(1, 96),
      blackwell("hardware_scales_widest", 4096, 4096, 7168).pow2().tile(128, 256).pair(),
      blackwell("hardware_scales_plain", 83, 576, 3883).pow2(),
  };
}

// Whose like tests/sass.py or a test of whole products compiles, too.
std::vector<KernelCase> more_cases() {
  return {
      blackwell("large", 4096, 4096, 7168),
      blackwell("fp32_out", 4096, 4096, 4096).out(DType::kF32),
      blackwell("widest_pair", 4096, 4096, 4096).tile(128, 256).pair(),
      blackwell("share_two", 4096, 4096, 4096).tile(128, 128).share(2),
      blackwell("one_token", 1, 4096, 7168),
      blackwell("split_eight", 64, 2112, 7168).tile(64, 128).split(8),
      blackwell("widest_swapped", 128, 4096, 7168).out(DType::kF16).tile(128, 128).alone(),
      blackwell("cp_async_rows", 83, 576, 3884).out(DType::kF16),
      blackwell("cp_async_rows_many", 4096, 4096, 3884),
      blackwell("plain_rows_many", 4096, 4096, 3883).out(DType::kF32),
      blackwell("hardware_scales", 4096, 4096, 7168).pow2(),
      blackwell("hardware_scales_fp32_out", 4096, 4096, 7168).pow2().out(DType::kF32),
      blackwell("hardware_scales_per_32", 4096, 4096, 7168).pow2().groups(1, 32),
      blackwell("hardware_scales_swapped", 16, 4096, 7168).pow2(),
      blackwell("hardware_scales_split", 64, 2112, 7168).pow2().tile(64, 128).split(4),
  };
}

class Sm100Compile : public testing::TestWithParam<KernelCase> {};

TEST_P(Sm100Compile, CleanAndWithTheMatrixInstruction) {
  const auto kernel = compile_clean(GetParam().problem, GetParam().overrides);
  ASSERT_TRUE(kernel);
  const bool hardware_scales = kernel->plan.family == KernelFamily::kSm100Mx;
  const bool pair = std::find(kernel->plan.extra_fields.begin(), kernel->plan.extra_fields.end(),
                              SpecField{"kPair", 2}) != kernel->plan.extra_fields.end();
  const std::string group = pair ? "2" : "1";
  const std::string instruction =
      "tcgen05.mma.cta_group::" + group +
      (hardware_scales ? ".kind::mxf8f6f4.block_scale" : ".kind::f8f6f4");
  EXPECT_NE(kernel->image.ptx.find(instruction), std::string::npos) << "no " << instruction;
}

INSTANTIATE_TEST_SUITE_P(Templates, Sm100Compile, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(MoreTemplates, Sm100Compile, testing::ValuesIn(more_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm::sm100_compile_test
