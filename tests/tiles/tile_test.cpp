// SPDX-License-Identifier: Apache-2.0
// A tile or two of every family of kernels, in every way of feeding it, on the simulator: little
// enough for the sanitizer presets, which tools/check runs it under. Whole products are the matter
// of tests/gemm and tests/grouped, whose cases this borrows.
#include "gemm/gemm_cases.h"
#include "grouped/grouped_cases.h"
#include "selftest/gemm_case.h"
#include "selftest/grouped_case.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm {
namespace {

constexpr DType kBf16 = DType::kBF16;
constexpr InputKind kIntegers = InputKind::kSmallIntegers;
constexpr ScaleValues kPowers = ScaleValues::kPowerOfTwo;

struct Tile {
  std::string name;
  KernelFamily family;
  Arch arch;
  GemmCase product;
  int32_t split_k = 0;
};

void PrintTo(const Tile& tile, std::ostream* out) {
  *out << tile.name;
}

std::vector<Tile> tiles() {
  using enum KernelFamily;
  constexpr Arch kHopper = Arch::kSm90a;
  constexpr Arch kBlackwell = Arch::kSm100a;
  const GemmCase few{.name = "few", .m = 5, .n = 64, .k = 128, .data = kIntegers};
  const GemmCase rows{.name = "rows", .m = 70, .n = 40, .k = 160, .data = kIntegers, .out = kBf16};
  const GemmCase four_bytes{.name = "four_bytes", .m = 9, .n = 40, .k = 132, .data = kIntegers};
  const GemmCase odd{.name = "odd", .m = 9, .n = 41, .k = 131, .data = kIntegers};
  const GemmCase deep{.name = "deep", .m = 8, .n = 64, .k = 512, .data = kIntegers};
  const GemmCase powers{
      .name = "powers", .m = 9, .n = 40, .k = 160, .data = kIntegers, .values = kPowers};
  const GemmCase exponents{
      .name = "exponents", .m = 9, .n = 40, .k = 160, .scales = DType::kF8E8M0};
  const GemmCase quantized{.name = "quantized", .m = 5, .n = 64, .k = 128, .a = DType::kF32};
  return {
      {"reference_sm_90a",     kReference, kHopper,            odd                  },
      {"reference_sm_100a",    kReference, kBlackwell,         odd                  },
      {"sm90",                 kSm90,      kHopper,            rows                 },
      {"sm90_rows_of_4_bytes", kSm90,      kHopper,            four_bytes           },
      {"sm90_odd_rows",        kSm90,      kHopper,            odd                  },
      {"sm90_swap",            kSm90Swap,  kHopper,            few                  },
      {"sm90_swap_split_k",    kSm90Swap,  kHopper,            deep,                  2},
      {"sm90_swap_odd_rows",                      kSm90Swap,             kHopper, odd  },
      {"sm90_quantized",                      kSm90Swap,                 kHopper,     quantized},
      {"sm100",                      kSm100,                          kBlackwell,                 rows  },
      {"sm100_few_rows",                      kSm100,                 kBlackwell,        few},
      {"sm100_split_k",                      kSm100,                  kBlackwell,         deep,   2},
      {"sm100_rows_of_4_bytes",                     kSm100,                               kBlackwell,                           four_bytes                   },
      {"sm100_odd_rows",            kSm100,                      kBlackwell,odd},
      {"sm100_quantized",                   kSm100,                             kBlackwell,                                 quantized                                              },
      {"sm100_mx",             kSm100Mx,                       kBlackwell,powers},
      {"sm100_mx_e8m0",                kSm100Mx,                          kBlackwell,                               exponents                                                                          },
  };
}

class Tiles : public testing::TestWithParam<Tile> {};

TEST_P(Tiles, MatchFloat64AndTouchNothingElse) {
  const Tile& tile = GetParam();
  const auto context = *Context::create({});
  const Result<Device*> device = context->device("sim", tile.arch);
  ASSERT_TRUE(device) << device.error().to_string();
  const GemmProblem problem = tile.product.problem(tile.arch);
  const Result<BlockScaledTensors> tensors =
      make_block_scaled_tensors(problem, tile.product.data, 1);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  PlanOverrides overrides;
  overrides.family = tile.family;
  if (tile.split_k > 0) overrides.split_k = tile.split_k;
  GemmCaseOptions options;
  options.exact = tile.product.data == kIntegers;
  const auto result = run_gemm_case(*context, **device, problem, overrides, *tensors, options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->verdict.passed) << result->verdict.text << "\n" << to_string(result->plan);
  EXPECT_EQ(result->plan.family, tile.family);
}

INSTANTIATE_TEST_SUITE_P(Dense, Tiles, testing::ValuesIn(tiles()),
                         [](const auto& tile) { return tile.param.name; });

class GroupedTiles : public testing::TestWithParam<std::pair<Arch, GroupedCase>> {};

std::vector<std::pair<Arch, GroupedCase>> grouped_tiles() {
  GroupedCase small;
  small.n = 40;
  small.k = 128;
  std::vector<GroupedCase> cases(4, small);
  GroupedCase& indices = cases[0];
  indices.name = "indices";
  indices.counts = {3, 0, 12};
  indices.zero_ungrouped = true;
  indices.alignment = 8;
  GroupedCase& masked = cases[1];
  masked.name = "masked_few_rows";
  masked.layout = GroupLayout::kMasked;
  masked.m = 6;
  masked.counts = {4, 0, 6};
  masked.expected_m = 4;
  GroupedCase& powers = cases[2];
  powers.name = "pointers_powers_of_two";
  powers.layout = GroupLayout::kRowPointers;
  powers.counts = {3, 0, 5};
  powers.values = kPowers;
  GroupedCase& unscaled = cases[3];
  unscaled.name = "offsets_bf16";
  unscaled.layout = GroupLayout::kEndOffsets;
  unscaled.counts = {3, 0, 5};
  unscaled.a = unscaled.b = kBf16;
  std::vector<std::pair<Arch, GroupedCase>> list;
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    for (const GroupedCase& c : cases) list.emplace_back(arch, c);
  }
  return list;
}

TEST_P(GroupedTiles, MatchFloat64AndTouchNothingElse) {
  const auto& [arch, c] = GetParam();
  const auto context = *Context::create({});
  const Result<Device*> device = context->device("sim", arch);
  ASSERT_TRUE(device) << device.error().to_string();
  const GemmProblem problem = c.problem(arch);
  const Result<GroupedTensors> tensors = make_grouped_tensors(problem, c.data, 1);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  GroupedCaseOptions options;
  options.exact = true;
  const auto result = run_grouped_case(*context, **device, problem, c.overrides(arch), *tensors,
                                       c.group_rows(), options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->verdict.passed) << result->verdict.text << "\n" << to_string(result->plan);
}

INSTANTIATE_TEST_SUITE_P(Grouped, GroupedTiles, testing::ValuesIn(grouped_tiles()),
                         [](const auto& tile) {
                           return std::string(arch_info(tile.param.first).target) + "_" +
                                  tile.param.second.name;
                         });

}  // namespace
}  // namespace jitgemm
