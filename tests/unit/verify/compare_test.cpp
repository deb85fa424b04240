// SPDX-License-Identifier: Apache-2.0
#include "verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace jitgemm::compare_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ErrorMetrics, ComputedByHandOnFourElements) {
  const std::vector<double> found = {1.0, 2.0, 3.0, 5.0};
  const std::vector<double> reference = {1.0, 2.0, 4.0, 4.0};
  const ErrorMetrics metrics = measure_errors(found, reference);
  EXPECT_EQ(metrics.count, 4);
  EXPECT_EQ(metrics.max_abs, 1.0);
  EXPECT_EQ(metrics.max_abs_index, 2);
  EXPECT_DOUBLE_EQ(metrics.relative_l2, std::sqrt(2.0 / 37.0));
  EXPECT_NEAR(metrics.dissimilarity, 1 - 2 * (1.0 + 4 + 12 + 20) / (39.0 + 37.0), 1e-15);
  EXPECT_DOUBLE_EQ(metrics.mean_ratio, 2.0 / 11.0);
  EXPECT_EQ(metrics.differences, 2);
  EXPECT_EQ(metrics.first_difference, 2);
}

TEST(ErrorMetrics, TheScaledErrorIsTheWorstAgainstItsOwnMagnitude) {
  const std::vector<double> found = {1000.0, 2.5, 0.0};
  const std::vector<double> reference = {1001.0, 2.0, 0.0};
  const std::vector<double> magnitudes = {4000.0, 2.0, 0.0};
  const ErrorMetrics metrics = measure_errors(found, reference, magnitudes);
  EXPECT_EQ(metrics.max_scaled, 0.25);
  EXPECT_EQ(metrics.max_scaled_index, 1);
  EXPECT_FALSE(judge(metrics, {.max_scaled = 0.24}).passed);
  EXPECT_TRUE(judge(metrics, {.max_scaled = 0.25}).passed);
}

TEST(ErrorMetrics, NonFiniteElementsMustMatchInKindAndSign) {
  struct Case {
    const char* name;
    double found;
    double reference;
    bool matches;
  };
  const Case cases[] = {
      {"nan for nan",      kNan,  kNan,  true },
      {"inf for inf",      kInf,  kInf,  true },
      {"-inf for -inf",    -kInf, -kInf, true },
      {"-inf for inf",     -kInf, kInf,  false},
      {"inf for nan",      kInf,  kNan,  false},
      {"nan for inf",      kNan,  kInf,  false},
      {"nan for a number", kNan,  1.0,   false},
      {"inf for a number", kInf,  1.0,   false},
      {"a number for nan", 1.0,   kNan,  false},
      {"a number for inf", 1e300, kInf,  false},
  };
  for (const Case& c : cases) {
    const std::vector<double> found = {2.0, c.found};
    const std::vector<double> reference = {2.0, c.reference};
    const ErrorMetrics metrics = measure_errors(found, reference);
    EXPECT_EQ(metrics.non_finite_mismatches, c.matches ? 0 : 1) << c.name;
    EXPECT_EQ(metrics.first_mismatch, c.matches ? -1 : 1) << c.name;
    EXPECT_EQ(metrics.relative_l2, 0.0) << c.name;
    EXPECT_EQ(judge(metrics, {}).passed, c.matches) << c.name;
  }
}

TEST(ErrorMetrics, AnErrorAgainstAZeroReferenceIsInfiniteAndNoErrorIsZero) {
  const std::vector<double> zero = {0.0, 0.0};
  const std::vector<double> off = {0.0, 1e-30};
  EXPECT_EQ(measure_errors(zero, zero).relative_l2, 0.0);
  EXPECT_EQ(measure_errors(off, zero).relative_l2, kInf);
  EXPECT_EQ(measure_errors(off, zero).mean_ratio, kInf);
}

TEST(Verdict, EachLimitFailsAloneAndIsNamed) {
  const std::vector<double> found = {1.0, 2.0, 3.0, 5.0};
  const std::vector<double> reference = {1.0, 2.0, 4.0, 4.0};
  const ErrorMetrics metrics = measure_errors(found, reference);
  struct Case {
    const char* name;
    ErrorLimits tight;
    ErrorLimits loose;
  };
  const Case cases[] = {
      {"max abs",                           {.max_abs = 0.99},        {.max_abs = 1.0}        },
      {"relative L2",                       {.relative_l2 = 0.23},    {.relative_l2 = 0.24}   },
      {"1-2Sxy/S(x2+y2)",                   {.dissimilarity = 0.026}, {.dissimilarity = 0.027}},
      {"mean ratio",                        {.mean_ratio = 0.18},     {.mean_ratio = 0.19}    },
      {"2 elements differ, the first at 2", {.equal = true},          {}                      },
  };
  for (const Case& c : cases) {
    const Verdict failed = judge(metrics, c.tight);
    EXPECT_FALSE(failed.passed) << c.name;
    EXPECT_NE(failed.text.find(std::string("; ") + c.name), std::string::npos) << failed.text;
    EXPECT_TRUE(judge(metrics, c.loose).passed) << c.name;
  }
}

TEST(Verdict, ALimitOfNanDoesNotPass) {
  EXPECT_FALSE(judge(ErrorMetrics{}, {.relative_l2 = kNan}).passed);
}

TEST(RoundValues, RoundsOnceToTheOutputTypeAndRefusesOthers) {
  struct Case {
    DType dtype;
    double value;
    double expected;
  };
  const Case cases[] = {
      {DType::kF32,  1.0 + 0x1p-30,   1.0          },
      {DType::kBF16, 1.0 + 0x1p-8,    1.0          },
      {DType::kBF16, 1.0 + 0x1.8p-7,  1.0 + 0x1p-6 },
      {DType::kF16,  1.0 + 0x1.8p-11, 1.0 + 0x1p-10},
      {DType::kF16,  70000.0,         kInf         },
  };
  for (const Case& c : cases) {
    std::vector<double> values = {c.value};
    ASSERT_TRUE(round_values(values, c.dtype).ok());
    EXPECT_EQ(values[0], c.expected);
  }
  std::vector<double> values = {1.0};
  EXPECT_EQ(round_values(values, DType::kF8E4M3).code(), StatusCode::kInvalidArgument);
}

TEST(CompareBits, CountsElementsNotBytesAndSeesTheSignOfZero) {
  const float found[4] = {0.0F, 1.0F, -0.0F, 2.0F};
  const float expected[4] = {0.0F, 1.0F, 0.0F, 3.0F};
  const BitComparison comparison =
      compare_bits(std::as_bytes(std::span(found)), std::as_bytes(std::span(expected)), 4);
  EXPECT_EQ(comparison.differences, 2);
  EXPECT_EQ(comparison.first_difference, 2);
  const auto same = std::as_bytes(std::span(found));
  EXPECT_EQ(compare_bits(same, same, 4).first_difference, -1);
}

}  // namespace
}  // namespace jitgemm::compare_test
