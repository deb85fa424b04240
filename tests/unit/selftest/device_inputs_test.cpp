// SPDX-License-Identifier: Apache-2.0
// Inputs drawn by kernels have the bits of the CPU's: on the simulator of both archs.
#include "selftest/device_inputs.h"

#include "verify/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace jitgemm {
namespace {

class DeviceInputs : public testing::TestWithParam<Arch> {
 protected:
  void SetUp() override {
    context_ = Context::create({}).value();
    device_ = context_->device("sim", GetParam()).value();
  }
  std::shared_ptr<Context> context_;
  Device* device_ = nullptr;
};

TEST_P(DeviceInputs, NormalNumbersAreThoseOfTheCpu) {
  struct Draw {
    int64_t count;
    uint64_t seed;
    uint32_t stream;
  };
  for (const Draw draw : {
           Draw{4097, 1,                     1},
           Draw{1,    0xfedcba9876543210ULL, 7},
           Draw{2,    0,                     0}
  }) {
    std::vector<float> values(static_cast<size_t>(draw.count));
    const Status status =
        draw_normal(*context_, *device_, reinterpret_cast<uint64_t>(values.data()), draw.count,
                    draw.seed, draw.stream);
    ASSERT_TRUE(status.ok()) << status.to_string();
    const RandomStream twin(draw.seed, draw.stream);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), std::bit_cast<uint32_t>(twin.normal(i)))
          << i << ": " << values[i] << " and " << twin.normal(i);
    }
  }
}

// Tails of rows and columns, blocks of one row and of many, both code types, every kind of scale.
TEST_P(DeviceInputs, OperandsOfEveryKindAreThoseOfTheCpu) {
  struct Case {
    InputKind kind;
    int32_t group_n = 128;
    DType codes = DType::kF8E4M3;
    ScaleValues values = ScaleValues::kAnyFloat;
    DType scales = DType::kF32;
  };
  constexpr DType kE5m2 = DType::kF8E5M2;
  constexpr ScaleValues kPowers = ScaleValues::kPowerOfTwo;
  for (const Case& c : {
           Case{InputKind::kSeed},
           Case{InputKind::kAmax, 64, kE5m2},
           Case{InputKind::kSeed,           1, DType::kF8E4M3, kPowers},
           Case{InputKind::kAmax, 64, kE5m2, kPowers, DType::kF8E8M0},
           Case{InputKind::kUniformCodes },
           Case{InputKind::kWideScales,                128, kE5m2},
           Case{InputKind::kSmallIntegers,              128, kE5m2},
           Case{InputKind::kSpecialValues        },
  }) {
    SCOPED_TRACE(input_kind_name(c.kind));
    GemmProblem problem;
    problem.arch = GetParam();
    problem.m = 17;
    problem.n = 130;
    problem.k = 301;
    problem.group_n = c.group_n;
    problem.a_dtype = problem.b_dtype = c.codes;
    problem.scale_values = c.values;
    problem.scale_dtype = c.scales;
    const auto drawn = make_block_scaled_tensors(
        problem, c.kind, 5, 1,
        [&](const OperandDraw& draw) { return draw_operand_on(*context_, *device_, draw); });
    ASSERT_TRUE(drawn) << drawn.error().to_string();
    const BlockScaledTensors twin = make_block_scaled_tensors(problem, c.kind, 5).value();
    EXPECT_EQ(drawn->a.bytes, twin.a.bytes);
    EXPECT_EQ(drawn->b.bytes, twin.b.bytes);
    EXPECT_EQ(drawn->a_scales.bytes, twin.a_scales.bytes);
    EXPECT_EQ(drawn->b_scales.bytes, twin.b_scales.bytes);
  }
}

// Sources of each type for the quantiser, operands of 16 bits, and grouped ones.
TEST_P(DeviceInputs, OperandsSourcesAndScalesOfEveryKindAreThoseOfTheCpu) {
  struct Case {
    InputKind kind;
    DType a;
    DType b;
    ScaleValues values;
  };
  constexpr DType kHalf = DType::kF16;
  constexpr DType kBrain = DType::kBF16;
  constexpr DType kCodes = DType::kF8E4M3;
  constexpr ScaleValues kAny = ScaleValues::kAnyFloat;
  constexpr ScaleValues kPowers = ScaleValues::kPowerOfTwo;
  const std::vector<Case> cases = {
      {InputKind::kSeed,          DType::kF32, kCodes, kAny   },
      {InputKind::kUniformCodes,  kHalf,       kCodes, kAny   },
      {InputKind::kWideScales,    kHalf,       kCodes, kAny   },
      {InputKind::kWideScales,    kBrain,      kCodes, kPowers},
      {InputKind::kSmallIntegers, kBrain,      kCodes, kAny   },
      {InputKind::kSpecialValues, kHalf,       kCodes, kAny   },
      {InputKind::kSeed,          kHalf,       kHalf,  kAny   },
      {InputKind::kSmallIntegers, kBrain,      kBrain, kAny   },
      {InputKind::kWideScales,    kCodes,      kCodes, kAny   },
      {InputKind::kWideScales,    kCodes,      kCodes, kPowers},
      {InputKind::kSmallIntegers, kCodes,      kCodes, kAny   },
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(input_kind_name(c.kind));
    SCOPED_TRACE(dtype_info(c.a).name);
    GemmProblem problem;
    problem.arch = GetParam();
    problem.m = 9;
    problem.n = 130;
    problem.k = 301;
    problem.a_dtype = c.a;
    problem.b_dtype = c.b;
    problem.scale_values = c.values;
    const auto drawn = make_block_scaled_tensors(
        problem, c.kind, 5, 1,
        [&](const OperandDraw& draw) { return draw_operand_on(*context_, *device_, draw); });
    ASSERT_TRUE(drawn) << drawn.error().to_string();
    const BlockScaledTensors twin = make_block_scaled_tensors(problem, c.kind, 5).value();
    EXPECT_EQ(drawn->a_source.bytes, twin.a_source.bytes);
    EXPECT_EQ(drawn->a.bytes, twin.a.bytes);
    EXPECT_EQ(drawn->a_scales.bytes, twin.a_scales.bytes);
    EXPECT_EQ(drawn->b.bytes, twin.b.bytes);
    EXPECT_EQ(drawn->b_scales.bytes, twin.b_scales.bytes);
  }
}

TEST_P(DeviceInputs, GroupsAreThoseOfTheCpu) {
  GemmProblem problem;
  problem.arch = GetParam();
  problem.m = 7;
  problem.n = 40;
  problem.k = 160;
  problem.grouping.layout = GroupLayout::kMasked;
  problem.grouping.groups = 3;
  const auto drawn = make_grouped_tensors(
      problem, InputKind::kUniformCodes, 5,
      [&](const OperandDraw& draw) { return draw_operand_on(*context_, *device_, draw); });
  ASSERT_TRUE(drawn) << drawn.error().to_string();
  const GroupedTensors twin = make_grouped_tensors(problem, InputKind::kUniformCodes, 5).value();
  EXPECT_EQ(drawn->a.bytes, twin.a.bytes);
  EXPECT_EQ(drawn->a_scales.bytes, twin.a_scales.bytes);
  ASSERT_EQ(drawn->b.size(), 3u);
  for (size_t group = 0; group < 3; ++group) {
    EXPECT_EQ(drawn->b[group].bytes, twin.b[group].bytes);
    EXPECT_EQ(drawn->b_scales[group].bytes, twin.b_scales[group].bytes);
  }
}

TEST(OperandDraw, RowsThatAreDrawnAloneAreThoseOfTheWhole) {
  GemmProblem problem;
  problem.m = 5;
  problem.n = 300;
  problem.k = 301;
  for (const InputKind kind : {InputKind::kSeed, InputKind::kUniformCodes}) {
    const OperandDraw whole = operand_draws(problem, kind, 9)[1];
    const DrawnOperand all = draw_operand(whole).value();
    OperandDraw part = whole;
    part.first_row = 128;
    part.rows = 128;
    const DrawnOperand rows = draw_operand(part).value();
    const auto from = static_cast<std::ptrdiff_t>(128 * problem.k);
    EXPECT_TRUE(std::equal(rows.codes.bytes.begin(), rows.codes.bytes.end(),
                           all.codes.bytes.begin() + from));
    const auto scales = static_cast<std::ptrdiff_t>(rows.scales.bytes.size());
    EXPECT_TRUE(std::equal(rows.scales.bytes.begin(), rows.scales.bytes.end(),
                           all.scales.bytes.begin() + scales));
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, DeviceInputs, testing::Values(Arch::kSm90a, Arch::kSm100a));

}  // namespace
}  // namespace jitgemm
