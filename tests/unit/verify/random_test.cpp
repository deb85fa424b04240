// SPDX-License-Identifier: Apache-2.0
#include "verify/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace jitgemm {
namespace {

// The known answers that accompany the published generator.
TEST(Philox, GivesThePublishedKnownAnswers) {
  struct Case {
    PhiloxBlock counter;
    std::array<uint32_t, 2> key;
    PhiloxBlock expected;
  };
  const Case cases[] = {
      {{0, 0, 0, 0},                                     {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}                                                          },
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}                                                          },
  };
  for (const Case& c : cases) EXPECT_EQ(philox4x32(c.counter, c.key), c.expected);
}

TEST(RandomStream, UniformStaysInItsHalfOpenRangeAndHasTheRightMean) {
  const RandomStream stream(1, 2);
  double sum = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const float value = stream.uniform(static_cast<uint64_t>(i));
    ASSERT_GE(value, 0.0F);
    ASSERT_LT(value, 1.0F);
    sum += value;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
}

TEST(RandomStream, IntegerReachesBothEndsAndNothingBeyond) {
  const RandomStream stream(3, 0);
  int counts[9] = {};
  for (uint64_t i = 0; i < 9000; ++i) {
    const int32_t value = stream.integer(i, -4, 4);
    ASSERT_GE(value, -4);
    ASSERT_LE(value, 4);
    ++counts[value + 4];
  }
  for (const int count : counts) EXPECT_GT(count, 800);
}

TEST(RandomStream, NormalHasTheMomentsOfAStandardNormal) {
  const RandomStream stream(7, 1);
  double moments[5] = {};
  constexpr uint64_t kCount = 200000;
  for (uint64_t i = 0; i < kCount; ++i) {
    double power = 1;
    const double value = stream.normal(i);
    for (double& moment : moments) {
      moment += power / static_cast<double>(kCount);
      power *= value;
    }
  }
  EXPECT_NEAR(moments[1], 0.0, 0.01);
  EXPECT_NEAR(moments[2], 1.0, 0.02);
  EXPECT_NEAR(moments[3], 0.0, 0.04);
  EXPECT_NEAR(moments[4], 3.0, 0.1);
}

// The series must agree with libm to double precision; both results round to the same fp32 nearly
// always, and never differ by more than one unit in the last place.
TEST(RandomStream, NormalAgreesWithBoxMullerComputedByLibm) {
  const RandomStream stream(11, 5);
  int different = 0;
  for (uint64_t pair = 0; pair < 20000; ++pair) {
    const PhiloxBlock w = philox4x32({static_cast<uint32_t>(pair), 0, 5, 0}, {11, 0});
    const double u = (static_cast<double>((uint64_t{w[0]} << 32 | w[1]) >> 11) + 1.0) * 0x1p-53;
    const double t = static_cast<double>((uint64_t{w[2]} << 32 | w[3]) >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2.0 * std::log(u));
    const double expected[2] = {radius * std::cos(2 * M_PI * t), radius * std::sin(2 * M_PI * t)};
    const std::array<float, 2> found = stream.normal_pair(pair);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-6);
      if (found[i] != static_cast<float>(expected[i])) ++different;
    }
  }
  EXPECT_LE(different, 4);
}

TEST(RandomStream, SeedsAndStreamsAreIndependentAndIndicesBeyond32BitsDiffer) {
  EXPECT_NE(RandomStream(1, 0).bits(0), RandomStream(2, 0).bits(0));
  EXPECT_NE(RandomStream(1, 0).bits(0), RandomStream(1, 1).bits(0));
  EXPECT_NE(RandomStream(1, 0).bits(0), RandomStream(1, 0).bits(uint64_t{1} << 34));
  EXPECT_EQ(RandomStream(9, 4).bits(123), RandomStream(9, 4).bits(123));
}

}  // namespace
}  // namespace jitgemm
