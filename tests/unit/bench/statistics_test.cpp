// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.h"

#include <gtest/gtest.h>

namespace jitgemm::bench {
namespace {

TEST(Statistics, OfAnOddCountTheMedianIsTheMiddleSample) {
  const Summary summary = summarize(std::vector<double>{9, 1, 5});
  EXPECT_EQ(summary.count, 3);
  EXPECT_EQ(summary.median, 5);
  EXPECT_EQ(summary.mean, 5);
  EXPECT_EQ(summary.lowest, 1);
  EXPECT_EQ(summary.highest, 9);
  EXPECT_DOUBLE_EQ(summary.spread(), 8.0 / 5.0);
}

TEST(Statistics, OfAnEvenCountTheMedianIsBetweenTheMiddleTwo) {
  EXPECT_EQ(summarize(std::vector<double>{4, 1, 2, 100}).median, 3);
}

TEST(Statistics, OneSlowSampleMovesTheSpreadAndNotTheMedian) {
  const Summary summary = summarize(std::vector<double>{10, 10, 10, 10, 90});
  EXPECT_EQ(summary.median, 10);
  EXPECT_EQ(summary.spread(), 8);
}

TEST(Statistics, NoSamplesGiveZeros) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.count, 0);
  EXPECT_EQ(summary.median, 0);
  EXPECT_EQ(summary.spread(), 0);
}

TEST(Statistics, TheGeometricMeanOfRatiosAndTheirInversesIsOne) {
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{2, 0.5, 4, 0.25}), 1);
  EXPECT_EQ(geometric_mean({}), 0);
}

}  // namespace
}  // namespace jitgemm::bench
