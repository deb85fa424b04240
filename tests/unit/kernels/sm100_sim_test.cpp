// SPDX-License-Identifier: Apache-2.0
// Both SM100 kernels executed by the simulator, its sanitizer on, against the float64 reference:
// tails of m, n and k, scale groups, layouts, operand feeds, tiles, pairs, splits, output types.
// Random data must be within 1e-6 (relative L2, fp32 out); integer data must be exact.
#include "selftest/gemm_case.h"
#include "verify/inputs.h"

#include <gtest/gtest.h>

#include <memory>
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
    problem.out_dtype = DType::kF32;
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
  Case column_scales() && {
    problem.a_scale_major = ScaleMajor::kColumn;
    problem.b_scale_major = ScaleMajor::kColumn;
    return std::move(*this);
  }
  Case pow2() && {
    problem.scale_values = ScaleValues::kPowerOfTwo;
    return std::move(*this);
  }
  Case bytes() && {
    problem.scale_dtype = DType::kF8E8M0;
    return std::move(*this);
  }
  Case lds(int64_t lda, int64_t ldb, int64_t ldo) && {
    problem.lda = lda;
    problem.ldb = ldb;
    problem.ldo = ldo;
    return std::move(*this);
  }
  Case policy(MPolicy value) && {
    problem.m_policy = value;
    return std::move(*this);
  }
  Case arch(Arch value) && {
    problem.arch = value;
    return std::move(*this);
  }
  Case share(int32_t ctas) && {
    overrides.cluster = ctas;
    overrides.constants = {
        {"kShare", ctas}
    };
    return std::move(*this);
  }
  Case tile(int32_t m, int32_t n, int32_t cluster = 1, int32_t split = 1) && {
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
  constexpr DType kE4M3 = DType::kF8E4M3;
  constexpr DType kE5M2 = DType::kF8E5M2;
  return {
      // The exact kernel, one CTA.
      Case("one_tile", 128, 128, 512).tile(128, 128),
      Case("tails", 200, 176, 336).tile(128, 64),
      Case("narrowest", 130, 40, 272).tile(128, 16),
      Case("tile_of_48", 64, 100, 256).tile(128, 48),
      Case("widest", 140, 300, 256).tile(128, 256),
      Case("bf16_out", 150, 200, 256).out(DType::kBF16).tile(128, 128),
      Case("f16_out", 150, 200, 256).out(DType::kF16).tile(128, 64),
      Case("e4m3_e5m2", 64, 64, 256).types(kE4M3, kE5M2).tile(128, 64),
      Case("e5m2_e4m3", 64, 64, 256).types(kE5M2, kE4M3).tile(128, 64),
      Case("e5m2_e5m2", 64, 64, 256).types(kE5M2, kE5M2).tile(128, 64),
      Case("group_64_128", 64, 200, 384).groups(64, 128).tile(128, 128),
      Case("group_128_64", 64, 200, 384).groups(128, 64).tile(128, 128),
      Case("group_1_128", 64, 200, 384).groups(1, 128).tile(128, 64),
      Case("group_128_32", 64, 200, 400).groups(128, 32).tile(128, 128),
      Case("group_100_96", 64, 200, 400).groups(100, 96).tile(128, 64),
      Case("group_128_256", 64, 200, 700).groups(128, 256).tile(128, 64),
      Case("column_major_scales", 200, 300, 512).column_scales().tile(128, 128),
      Case("leading_dimensions", 70, 72, 200).lds(208, 224, 80).tile(128, 64),
      Case("run_time_m", 150, 96, 256).policy(MPolicy::kClass).tile(128, 64),
      Case("b300", 100, 96, 256).arch(Arch::kSm103a).tile(128, 64),
      Case("unaligned_out_rows", 70, 67, 256).tile(128, 64),
      // Rows that TMA cannot read.
      Case("cp_async_rows", 83, 70, 388).tile(128, 64),
      Case("plain_rows", 83, 70, 389).tile(128, 64),
      Case("plain_rows_short", 5, 7, 31),
      Case("mixed_feeds", 83, 70, 389).lds(392, 400, 0).tile(128, 64),
      // A pair of CTAs.
      Case("pair", 300, 128, 512).tile(128, 64, 2),
      Case("pair_widest", 300, 280, 256).tile(128, 256, 2),
      Case("pair_swapped", 40, 400, 256).tile(32, 128, 2),
      // CTAs that share the column operand by multicast.
      Case("share", 300, 128, 512).tile(128, 64).share(2),
      Case("share_four_tails", 700, 280, 336).tile(128, 96).share(4),
      Case("share_many_tiles", 1300, 100, 160).tile(128, 32).share(2),
      Case("share_swapped", 40, 700, 256).tile(32, 128).share(4),
      Case("hardware_share", 300, 280, 384).pow2().tile(128, 128).share(2),
      // Swapped operands and splits of k.
      Case("one_token", 1, 300, 512).tile(16, 128),
      Case("seven_tokens", 7, 300, 512).out(DType::kBF16).tile(16, 128),
      Case("swapped_two_tiles", 150, 200, 256).tile(128, 128),
      Case("swapped_groups", 20, 200, 320).groups(1, 32).tile(32, 128),
      Case("swapped_plain_rows", 20, 200, 333).tile(32, 128),
      Case("swapped_many_tiles", 40, 1500, 200).tile(16, 128),
      Case("split_many_tiles", 40, 1500, 640).tile(16, 128, 4, 4),
      Case("pair_many_tiles", 1300, 130, 160).tile(128, 32, 2),
      Case("many_tiles", 700, 160, 160).tile(128, 16),
      Case("split_two", 16, 200, 512).tile(16, 128, 2, 2),
      Case("split_eight", 40, 200, 1100).tile(48, 128, 8, 8),
      Case("split_straddling_groups", 40, 200, 1100).groups(128, 96).tile(64, 128, 2, 2),
      // Power-of-two scales in hardware.
      Case("hardware_one_tile", 128, 128, 512).pow2().tile(128, 128),
      Case("hardware_tails", 200, 176, 336).pow2().tile(128, 64),
      Case("hardware_bf16_out", 200, 176, 336).pow2().out(DType::kBF16).tile(128, 64),
      Case("hardware_two_blocks", 140, 300, 256).pow2().tile(128, 192),
      Case("hardware_e5m2_e4m3", 64, 64, 256).pow2().types(kE5M2, kE4M3).tile(128, 64),
      Case("hardware_group_1_32", 64, 200, 400).pow2().groups(1, 32).tile(128, 128),
      Case("hardware_group_64_64", 64, 200, 400).pow2().groups(64, 64).tile(128, 128),
      Case("hardware_group_100_96", 64, 200, 400).pow2().groups(100, 96).tile(128, 64),
      Case("hardware_bytes", 140, 200, 400).bytes().groups(1, 32).tile(128, 128),
      Case("hardware_column_major", 200, 300, 512).pow2().column_scales().tile(128, 128),
      Case("hardware_pair", 300, 280, 384).pow2().tile(128, 128, 2),
      Case("hardware_wide_many_tiles", 700, 500, 160).pow2().tile(128, 256),
      Case("hardware_wide_odd_columns", 600, 500, 288).pow2().out(DType::kBF16).tile(128, 240),
      Case("hardware_wide_pair_many_tiles", 1100, 500, 160).pow2().tile(128, 256, 2),
      Case("hardware_pair_widest", 300, 280, 384).pow2().tile(128, 256, 2),
      Case("hardware_many_tiles", 700, 160, 300).pow2().tile(128, 16),
      Case("hardware_swapped", 7, 300, 512).pow2().tile(16, 128),
      Case("hardware_split", 40, 200, 1100).pow2().tile(48, 128, 4, 4),
      Case("hardware_plain_rows", 83, 70, 389).pow2().tile(128, 64),
  };
}

class Sm100Sim : public testing::TestWithParam<Case> {};

std::shared_ptr<Context> context_with_seed(const std::string& seed) {
  ContextOptions options;
  options.sim_seed = seed;
  Result<std::shared_ptr<Context>> context = Context::create(options);
  EXPECT_TRUE(context) << context.error().to_string();
  return context ? *context : nullptr;
}

void run(const Case& c, InputKind kind, bool exact, const std::string& sim_seed) {
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
}  // namespace jitgemm
