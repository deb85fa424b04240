// SPDX-License-Identifier: Apache-2.0
// Inputs drawn by kernels have the bits of the CPU's: on the simulator of both archs.
#include "selftest/device_inputs.h"

#include "verify/random.h"

#include <gtest/gtest.h>

#include <bit>

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

TEST_P(DeviceInputs, AIsThatOfTheCpu) {
  for (const DType codes : {DType::kF8E4M3, DType::kF8E5M2}) {
    GemmProblem problem;
    problem.arch = GetParam();
    problem.m = 17;
    problem.n = 64;
    problem.k = 300;
    problem.a_dtype = codes;
    const Result<DrawnOperand> drawn = draw_normal_a(*context_, *device_, problem, 5);
    ASSERT_TRUE(drawn) << drawn.error().to_string();
    const BlockScaledTensors twin = make_block_scaled_tensors(problem, InputKind::kSeed, 5).value();
    EXPECT_EQ(drawn->codes.bytes, twin.a.bytes);
    EXPECT_EQ(drawn->scales.bytes, twin.a_scales.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, DeviceInputs, testing::Values(Arch::kSm90a, Arch::kSm100a));

}  // namespace
}  // namespace jitgemm
