// SPDX-License-Identifier: Apache-2.0
// The SM90 template through the compiler: no warning, no spill, and wgmma for plans of every shape
// of operand feed, tile, split and scale group.
#include "unit/kernels/kernel_case.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace jitgemm::sm90_compile_test {
namespace {

KernelCase hopper(std::string name, int64_t m, int64_t n, int64_t k) {
  return {Arch::kSm90a, std::move(name), m, n, k};
}

std::vector<KernelCase> cases() {
  return {
      hopper("tallest", 4096, 4096, 4096).tile(256, 128),
      hopper("three_warpgroups_scaled", 4533, 2048, 2048).groups(1, 128).tile(192, 128),
      hopper("widest", 4096, 4096, 4096).tile(128, 256),
      hopper("scale_a_column", 4096, 4096, 4096).groups(1, 128),
      hopper("four_blocks_a_stage", 4096, 4096, 4096).groups(128, 32),
      hopper("blocks_that_straddle", 512, 4096, 4096).groups(64, 96),
      hopper("plain_rows_odd_n", 83, 577, 3883),
  };
}

// Whose like tests/sass.py or a test of whole products compiles, too.
std::vector<KernelCase> more_cases() {
  return {
      hopper("large", 4096, 4096, 7168),
      hopper("fp32_out", 4096, 4096, 4096).out(DType::kF32),
      hopper("narrow_runs", 4096, 4096, 4096).tile(256, 112),
      hopper("three_warpgroups", 4533, 2048, 2048).tile(192, 128),
      hopper("shared_rows", 65536, 2048, 2048).tile(256, 128),
      hopper("mixed_types", 512, 4096, 4096).types(DType::kF8E5M2, DType::kF8E4M3),
      hopper("scale_eight_columns", 4096, 4096, 4096).groups(8, 128),
      hopper("one_token", 1, 4096, 7168),
      hopper("split_eight", 64, 2112, 7168).tile(64, 64).split(8),
      hopper("widest_swapped", 128, 4096, 7168).out(DType::kF16).tile(128, 128),
      hopper("cp_async_rows", 83, 576, 3884).out(DType::kF16),
      hopper("cp_async_rows_many", 4096, 4096, 3884),
      hopper("plain_rows_many", 4096, 4096, 3883).out(DType::kF32),
  };
}

class Sm90Compile : public testing::TestWithParam<KernelCase> {};

TEST_P(Sm90Compile, CleanAndWithTheMatrixInstruction) {
  const auto kernel = compile_clean(GetParam().problem, GetParam().overrides);
  ASSERT_TRUE(kernel);
  EXPECT_NE(kernel->image.ptx.find("wgmma.mma_async.sync.aligned.m64n"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Templates, Sm90Compile, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(MoreTemplates, Sm90Compile, testing::ValuesIn(more_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm::sm90_compile_test
