// SPDX-License-Identifier: Apache-2.0
#include "verify/inputs.h"

#include "verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace jitgemm {
namespace {

GemmProblem small_problem() {
  GemmProblem problem;
  problem.m = 33;
  problem.n = 200;
  problem.k = 300;
  return problem;
}

const InputKind kAllKinds[] = {InputKind::kSeed,          InputKind::kAmax,
                               InputKind::kUniformCodes,  InputKind::kWideScales,
                               InputKind::kSmallIntegers, InputKind::kSpecialValues};

TEST(Inputs, EachKindHasANameThatParsesBack) {
  for (const InputKind kind : kAllKinds) EXPECT_EQ(parse_input_kind(input_kind_name(kind)), kind);
  EXPECT_FALSE(parse_input_kind("Seed").has_value());
}

TEST(Inputs, BytesDependOnTheSeedAndNotOnTheThreads) {
  for (const InputKind kind : kAllKinds) {
    const auto one = make_block_scaled_tensors(small_problem(), kind, 7, 1);
    const auto four = make_block_scaled_tensors(small_problem(), kind, 7, 4);
    const auto other = make_block_scaled_tensors(small_problem(), kind, 8, 4);
    ASSERT_TRUE(one && four && other);
    EXPECT_EQ(one->a.bytes, four->a.bytes) << input_kind_name(kind);
    EXPECT_EQ(one->b.bytes, four->b.bytes) << input_kind_name(kind);
    EXPECT_EQ(one->a_scales.bytes, four->a_scales.bytes) << input_kind_name(kind);
    EXPECT_EQ(one->b_scales.bytes, four->b_scales.bytes) << input_kind_name(kind);
    EXPECT_NE(one->a.bytes, other->a.bytes) << input_kind_name(kind);
    EXPECT_NE(one->b.bytes, other->b.bytes) << input_kind_name(kind);
  }
}

TEST(Inputs, ShapesAndDtypesAreTheProblems) {
  GemmProblem problem = small_problem();
  problem.a_dtype = DType::kF8E5M2;
  problem.scale_dtype = DType::kF8E8M0;
  for (const InputKind kind : kAllKinds) {
    const auto t = make_block_scaled_tensors(problem, kind, 1);
    ASSERT_TRUE(t);
    EXPECT_EQ(t->a.shape, (std::vector<int64_t>{33, 300}));
    EXPECT_EQ(t->b.shape, (std::vector<int64_t>{200, 300}));
    EXPECT_EQ(t->a_scales.shape, (std::vector<int64_t>{33, 3}));
    EXPECT_EQ(t->b_scales.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(t->a.dtype, DType::kF8E5M2);
    EXPECT_EQ(t->b.dtype, DType::kF8E4M3);
    EXPECT_EQ(t->a_scales.dtype, DType::kF8E8M0);
    EXPECT_EQ(t->b_scales.dtype, DType::kF8E8M0);
  }
}

// The largest |code| of each block: 448 with |x|; with the signed maximum, the positive end is 448
// and large negative values saturate, so both ends occur.
TEST(Inputs, TheSeedKindTakesTheSignedMaximumForBAlone) {
  const auto seed = make_block_scaled_tensors(small_problem(), InputKind::kSeed, 3);
  const auto amax = make_block_scaled_tensors(small_problem(), InputKind::kAmax, 3);
  ASSERT_TRUE(seed && amax);
  EXPECT_EQ(seed->a.bytes, amax->a.bytes);
  EXPECT_NE(seed->b.bytes, amax->b.bytes);
  const std::vector<double> seed_scales = read_matrix(view_of(seed->b_scales));
  const std::vector<double> amax_scales = read_matrix(view_of(amax->b_scales));
  int smaller = 0;
  for (size_t i = 0; i < seed_scales.size(); ++i) {
    EXPECT_LE(seed_scales[i], amax_scales[i]);
    if (seed_scales[i] < amax_scales[i]) ++smaller;
  }
  EXPECT_GT(smaller, 0);
}

TEST(Inputs, DeclaredPowersOfTwoAreExactlyThat) {
  GemmProblem problem = small_problem();
  problem.scale_values = ScaleValues::kPowerOfTwo;
  for (const InputKind kind : kAllKinds) {
    if (kind == InputKind::kSpecialValues) continue;  // has NaN scales
    const auto t = make_block_scaled_tensors(problem, kind, 5);
    ASSERT_TRUE(t);
    for (const HostTensor* scales : {&t->a_scales, &t->b_scales}) {
      for (const double scale : read_matrix(view_of(*scales))) {
        int exponent = 0;
        EXPECT_EQ(std::frexp(scale, &exponent), 0.5) << input_kind_name(kind) << " " << scale;
      }
    }
  }
}

TEST(Inputs, SmallIntegersKeepEveryIntermediateResultExact) {
  GemmProblem problem = small_problem();
  problem.k = 16384;
  const auto t = make_block_scaled_tensors(problem, InputKind::kSmallIntegers, 2);
  ASSERT_TRUE(t);
  double largest = 0;
  for (const double code : read_matrix(view_of(t->a))) {
    EXPECT_EQ(code, std::round(code));
    largest = std::max(largest, std::fabs(code));
  }
  EXPECT_EQ(largest, 4.0);
  const auto result = reference_block_scaled_mm(t->views());
  ASSERT_TRUE(result);
  for (const double value : *result) {
    ASSERT_EQ(value, std::round(value));
    ASSERT_LT(std::fabs(value), 0x1p24);
  }
}

TEST(Inputs, UniformCodesReachBothEndsAndScalesStayInTheirRange) {
  const auto t = make_block_scaled_tensors(small_problem(), InputKind::kUniformCodes, 2);
  ASSERT_TRUE(t);
  double low = 0;
  double high = 0;
  for (const double code : read_matrix(view_of(t->a))) {
    low = std::min(low, code);
    high = std::max(high, code);
  }
  EXPECT_EQ(low, -448.0);
  EXPECT_EQ(high, 448.0);
  for (const double scale : read_matrix(view_of(t->a_scales))) {
    EXPECT_GE(scale, 0.0);
    EXPECT_LT(scale, 0.01);
  }
}

TEST(Inputs, WideScalesHaveBothSignsAndManyExponents) {
  const auto t = make_block_scaled_tensors(small_problem(), InputKind::kWideScales, 2);
  ASSERT_TRUE(t);
  int lowest = 0;
  int highest = 0;
  int negative = 0;
  for (const double scale : read_matrix(view_of(t->a_scales))) {
    lowest = std::min(lowest, std::ilogb(scale));
    highest = std::max(highest, std::ilogb(scale));
    negative += scale < 0 ? 1 : 0;
  }
  EXPECT_GE(lowest, -30);
  EXPECT_LT(lowest, -20);
  EXPECT_LE(highest, 30);
  EXPECT_GT(highest, 20);
  EXPECT_GT(negative, 20);
}

TEST(Inputs, SpecialValuesGiveNanInfinitiesAndManyFiniteResults) {
  GemmProblem problem = small_problem();
  problem.a_dtype = DType::kF8E5M2;
  const auto t = make_block_scaled_tensors(problem, InputKind::kSpecialValues, 2);
  ASSERT_TRUE(t);
  const auto result =
      reference_block_scaled_mm(t->views(), {.scale_product = ScaleProduct::kFloat32});
  ASSERT_TRUE(result);
  int nans = 0;
  int infinities = 0;
  int finite = 0;
  for (const double value : *result) {
    nans += std::isnan(value) ? 1 : 0;
    infinities += std::isinf(value) ? 1 : 0;
    finite += std::isfinite(value) ? 1 : 0;
  }
  EXPECT_GT(nans, 200);
  EXPECT_GT(infinities, 200);
  EXPECT_GT(finite, 2000);
}

TEST(LayOut, StridedStorageReadsBackTheSameAndPaddingIsNan) {
  struct Case {
    const char* name;
    ScaleMajor major;
    int64_t padding;
  };
  const Case cases[] = {
      {"dense row-major",     ScaleMajor::kRow,    0},
      {"padded row-major",    ScaleMajor::kRow,    7},
      {"dense column-major",  ScaleMajor::kColumn, 0},
      {"padded column-major", ScaleMajor::kColumn, 7},
  };
  for (const Case& c : cases) {
    GemmProblem problem = small_problem();
    problem.a_scale_major = c.major;
    problem.b_scale_major = c.major;
    problem.lda = problem.lda_or_dense() + c.padding;
    problem.ldb = problem.ldb_or_dense() + c.padding;
    problem.a_scale_ld = problem.a_scale_ld_or_dense() + c.padding;
    problem.b_scale_ld = problem.b_scale_ld_or_dense() + c.padding;
    const auto t = make_block_scaled_tensors(problem, InputKind::kSeed, 4);
    ASSERT_TRUE(t);
    const auto storage = lay_out(problem, *t);
    ASSERT_TRUE(storage) << storage.error().to_string();
    const BlockScaledInputs strided =
        make_inputs(problem, storage->a.data(), storage->b.data(), storage->a_scales.data(),
                    storage->b_scales.data());
    const BlockScaledInputs dense = t->views();
    EXPECT_EQ(read_matrix(strided.a), read_matrix(dense.a)) << c.name;
    EXPECT_EQ(read_matrix(strided.b), read_matrix(dense.b)) << c.name;
    EXPECT_EQ(read_matrix(strided.a_scales), read_matrix(dense.a_scales)) << c.name;
    EXPECT_EQ(read_matrix(strided.b_scales), read_matrix(dense.b_scales)) << c.name;
    if (c.padding > 0) {
      EXPECT_EQ(storage->a[static_cast<size_t>(problem.k)], std::byte{0xff});
    }
    // Exactly to the last element, so that a bounds check there is tight.
    EXPECT_EQ(storage->a.size(), static_cast<size_t>((problem.m - 1) * problem.lda + problem.k));
  }
}

TEST(LayOut, ATensorOfAnotherShapeIsRefusedByName) {
  GemmProblem problem = small_problem();
  auto t = make_block_scaled_tensors(problem, InputKind::kSeed, 4);
  ASSERT_TRUE(t);
  problem.n = 129;
  const Status status = lay_out(problem, *t).error();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("b: expected F8_E4M3 [129, 300]"), std::string::npos);
}

TEST(Inputs, NormalTensorsRefuseOtherTypes) {
  EXPECT_EQ(make_normal_tensor("x", DType::kF8E4M3, {2, 2}, 0, 0).error().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace jitgemm
