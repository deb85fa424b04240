// SPDX-License-Identifier: Apache-2.0
// Both SM100 kernels executed by the simulator, its sanitizer on, against the float64 reference:
// tails of m, n and k, scale groups, layouts, operand feeds, tiles, pairs, splits, output types.
// Random data must be within 1e-6 (relative L2, fp32 out); integer data must be exact.
#include "selftest/gemm_case.h"
#include "unit/kernels/kernel_case.h"
#include "verify/inputs.h"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm::sm100_sim_test {
namespace {

KernelCase product(std::string name, int64_t m, int64_t n, int64_t k) {
  return KernelCase(Arch::kSm100a, std::move(name), m, n, k).out(DType::kF32);
}

std::vector<KernelCase> cases() {
  constexpr DType kE4M3 = DType::kF8E4M3;
  constexpr DType kE5M2 = DType::kF8E5M2;
  return {
      // The exact kernel, one CTA.
      product("one_tile", 128, 128, 512).tile(128, 128).alone(),
      product("tails", 200, 176, 336).tile(128, 64).alone(),
      product("narrowest", 130, 40, 272).tile(128, 16).alone(),
      product("tile_of_48", 64, 100, 256).tile(128, 48).alone(),
      product("widest", 140, 300, 256).tile(128, 256).alone(),
      product("bf16_out", 150, 200, 256).out(DType::kBF16).tile(128, 128).alone(),
      product("f16_out", 150, 200, 256).out(DType::kF16).tile(128, 64).alone(),
      product("e4m3_e5m2", 64, 64, 256).types(kE4M3, kE5M2).tile(128, 64).alone(),
      product("e5m2_e4m3", 64, 64, 256).types(kE5M2, kE4M3).tile(128, 64).alone(),
      product("e5m2_e5m2", 64, 64, 256).types(kE5M2, kE5M2).tile(128, 64).alone(),
      product("group_64_128", 64, 200, 384).groups(64, 128).tile(128, 128).alone(),
      product("group_128_64", 64, 200, 384).groups(128, 64).tile(128, 128).alone(),
      product("group_1_128", 64, 200, 384).groups(1, 128).tile(128, 64).alone(),
      product("group_128_32", 64, 200, 400).groups(128, 32).tile(128, 128).alone(),
      product("group_100_96", 64, 200, 400).groups(100, 96).tile(128, 64).alone(),
      product("group_128_256", 64, 200, 700).groups(128, 256).tile(128, 64).alone(),
      product("column_major_scales", 200, 300, 512).column_scales().tile(128, 128).alone(),
      product("leading_dimensions", 70, 72, 200).lds(208, 224, 80).tile(128, 64).alone(),
      product("run_time_m", 150, 96, 256).policy(MPolicy::kClass).tile(128, 64).alone(),
      KernelCase(Arch::kSm103a, "b300", 100, 96, 256).out(DType::kF32).tile(128, 64).alone(),
      product("unaligned_out_rows", 70, 67, 256).tile(128, 64).alone(),
      // Rows that TMA cannot read.
      product("cp_async_rows", 83, 70, 388).tile(128, 64).alone(),
      product("plain_rows", 83, 70, 389).tile(128, 64).alone(),
      product("plain_rows_short", 5, 7, 31),
      product("mixed_feeds", 83, 70, 389).lds(392, 400, 0).tile(128, 64).alone(),
      // A pair of CTAs.
      product("pair", 300, 128, 512).tile(128, 64).pair(),
      product("pair_widest", 300, 280, 256).tile(128, 256).pair(),
      product("pair_swapped", 40, 400, 256).tile(32, 128).pair(),
      // CTAs that share the column operand by multicast.
      product("share", 300, 128, 512).tile(128, 64).share(2),
      product("share_four_tails", 700, 280, 336).tile(128, 96).share(4),
      product("share_many_tiles", 1300, 100, 160).tile(128, 32).share(2),
      product("share_swapped", 40, 700, 256).tile(32, 128).share(4),
      product("hardware_share", 300, 280, 384).pow2().tile(128, 128).share(2),
      // Swapped operands and splits of k.
      product("one_token", 1, 300, 512).tile(16, 128).alone(),
      product("seven_tokens", 7, 300, 512).out(DType::kBF16).tile(16, 128).alone(),
      product("swapped_two_tiles", 150, 200, 256).tile(128, 128).alone(),
      product("swapped_groups", 20, 200, 320).groups(1, 32).tile(32, 128).alone(),
      product("swapped_plain_rows", 20, 200, 333).tile(32, 128).alone(),
      product("swapped_many_tiles", 40, 1500, 200).tile(16, 128).alone(),
      product("split_many_tiles", 40, 1500, 640).tile(16, 128).split(4),
      product("pair_many_tiles", 1300, 130, 160).tile(128, 32).pair(),
      product("many_tiles", 700, 160, 160).tile(128, 16).alone(),
      product("split_two", 16, 200, 512).tile(16, 128).split(2),
      product("split_eight", 40, 200, 1100).tile(48, 128).split(8),
      product("split_straddling_groups", 40, 200, 1100).groups(128, 96).tile(64, 128).split(2),
      // Power-of-two scales in hardware.
      product("hardware_one_tile", 128, 128, 512).pow2().tile(128, 128).alone(),
      product("hardware_tails", 200, 176, 336).pow2().tile(128, 64).alone(),
      product("hardware_bf16_out", 200, 176, 336).pow2().out(DType::kBF16).tile(128, 64).alone(),
      product("hardware_two_blocks", 140, 300, 256).pow2().tile(128, 192).alone(),
      product("hardware_e5m2_e4m3", 64, 64, 256).pow2().types(kE5M2, kE4M3).tile(128, 64).alone(),
      product("hardware_group_1_32", 64, 200, 400).pow2().groups(1, 32).tile(128, 128).alone(),
      product("hardware_group_64_64", 64, 200, 400).pow2().groups(64, 64).tile(128, 128).alone(),
      product("hardware_group_100_96", 64, 200, 400).pow2().groups(100, 96).tile(128, 64).alone(),
      product("hardware_bytes", 140, 200, 400).bytes().groups(1, 32).tile(128, 128).alone(),
      product("hardware_column_major", 200, 300, 512).pow2().column_scales().tile(128, 128).alone(),
      product("hardware_pair", 300, 280, 384).pow2().tile(128, 128).pair(),
      product("hardware_wide_many_tiles", 700, 500, 160).pow2().tile(128, 256).alone(),
      product("hardware_wide_odd_columns", 600, 500, 288)
          .pow2()
          .out(DType::kBF16)
          .tile(128, 240)
          .alone(),
      product("hardware_wide_pair_many_tiles", 1100, 500, 160).pow2().tile(128, 256).pair(),
      product("hardware_pair_widest", 300, 280, 384).pow2().tile(128, 256).pair(),
      product("hardware_many_tiles", 700, 160, 300).pow2().tile(128, 16).alone(),
      product("hardware_swapped", 7, 300, 512).pow2().tile(16, 128).alone(),
      product("hardware_split", 40, 200, 1100).pow2().tile(48, 128).split(4),
      product("hardware_plain_rows", 83, 70, 389).pow2().tile(128, 64).alone(),
  };
}

class Sm100Sim : public testing::TestWithParam<KernelCase> {};

std::shared_ptr<Context> context_with_seed(const std::string& seed) {
  ContextOptions options;
  options.sim_seed = seed;
  Result<std::shared_ptr<Context>> context = Context::create(options);
  EXPECT_TRUE(context) << context.error().to_string();
  return context ? *context : nullptr;
}

void run(const KernelCase& c, InputKind kind, bool exact, const std::string& sim_seed) {
  SCOPED_TRACE(std::string(input_kind_name(kind)) + ", simulator seed " + sim_seed);
  const std::shared_ptr<Context> context = context_with_seed(sim_seed);
  ASSERT_NE(context, nullptr);
  const Result<Device*> device = context->device("sim", c.problem.arch);
  ASSERT_TRUE(device) << device.error().to_string();
  const Result<BlockScaledTensors> tensors = make_block_scaled_tensors(c.problem, kind, 7);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  GemmCaseOptions options;
  options.exact = exact;
  const Result<GemmCaseResult> result =
      run_gemm_case(*context, **device, c.problem, c.overrides, *tensors, options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->verdict.passed) << result->verdict.text << "\n" << to_string(result->plan);
  if (c.problem.out_dtype == DType::kF32 && !exact) {
    EXPECT_LE(result->errors.relative_l2, 1e-6);
  }
}

TEST_P(Sm100Sim, RandomDataIsWithinTheLimit) {
  run(GetParam(), InputKind::kSeed, false, "0");
}

TEST_P(Sm100Sim, IntegerDataIsExactUnderAnotherSchedule) {
  if (GetParam().problem.group_k > 128) {
    // Sums inside larger blocks leave the range in which every order gives the same bits.
    run(GetParam(), InputKind::kSeed, false, "11");
  } else {
    run(GetParam(), InputKind::kSmallIntegers, true, "11");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Sm100Sim, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm::sm100_sim_test
