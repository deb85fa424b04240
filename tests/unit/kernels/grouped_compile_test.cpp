// SPDX-License-Identifier: Apache-2.0
// Grouped kernels of the sizes that models have, through the compiler: no warning, no spill, and
// the matrix instruction. The tests of whole products are too small for these tiles.
#include "unit/kernels/kernel_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace jitgemm::grouped_compile_test {
namespace {

struct Case {
  std::string name;
  GemmProblem problem;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    const auto add = [&](std::string name, GroupLayout layout, int64_t groups, int64_t m,
                         int64_t expected_m) -> GemmProblem& {
      GemmProblem p;
      p.arch = arch;
      p.m = m;
      p.n = 4096;
      p.k = 7168;
      p.m_policy = MPolicy::kClass;
      p.grouping.layout = layout;
      p.grouping.groups = groups;
      p.grouping.expected_m = expected_m;
      list.push_back({fmt::format("{}_{}", arch_info(arch).target, name), p});
      return list.back().problem;
    };
    add("masked_few_rows", GroupLayout::kMasked, 256, 128, 8);
    add("masked_many_rows", GroupLayout::kMasked, 32, 1024, 1024);
    add("indices_few_rows", GroupLayout::kRowIndices, 256, 2048, 8).grouping.zero_ungrouped = true;
    add("indices_many_rows", GroupLayout::kRowIndices, 4, 32768, 0);
    add("pointers_many_groups", GroupLayout::kRowPointers, 512, 8192, 0);
    add("offsets_counted", GroupLayout::kEndOffsets, 32, 8192, 0).grouping.count_invalid = true;
    add("f32_out", GroupLayout::kRowIndices, 4, 32768, 0).out_dtype = DType::kF32;
    add("n_576", GroupLayout::kMasked, 32, 1024, 64).n = 576;
    add("rows_of_4_bytes", GroupLayout::kRowPointers, 32, 8192, 0).k = 2004;
    GemmProblem& packed = add("packed_scales", GroupLayout::kMasked, 32, 1024, 256);
    packed.scale_dtype = DType::kF8E8M0;
    packed.group_n = 1;
    packed.a_scale_major = packed.b_scale_major = ScaleMajor::kPacked;
    GemmProblem& wide = add("bf16", GroupLayout::kRowIndices, 8, 32768, 0);
    wide.a_dtype = wide.b_dtype = DType::kBF16;
    GemmProblem& narrow = add("bf16_few_rows", GroupLayout::kMasked, 32, 128, 8);
    narrow.a_dtype = narrow.b_dtype = DType::kBF16;
  }
  return list;
}

class GroupedCompile : public testing::TestWithParam<Case> {};

TEST_P(GroupedCompile, WithoutWarningsAndSpills) {
  const auto kernel = compile_clean(GetParam().problem);
  ASSERT_TRUE(kernel);
  const bool hopper = GetParam().problem.arch == Arch::kSm90a;
  EXPECT_NE(kernel->image.ptx.find(hopper ? "wgmma.mma_async" : "tcgen05.mma"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Cases, GroupedCompile, testing::ValuesIn(cases()),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace jitgemm::grouped_compile_test
