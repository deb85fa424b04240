// SPDX-License-Identifier: Apache-2.0
// The blocked reference and its checksums against the plainest possible loop.
#include "verify/reference.h"

#include "verify/compare.h"
#include "verify/fp8_reference.h"
#include "verify/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>

namespace jitgemm::reference_test {
namespace {

struct Case {
  const char* name;
  int64_t m, n, k, group_n, group_k;
  DType a = DType::kF8E4M3;
  DType b = DType::kF8E4M3;
  bool column_scales = false;
  int64_t padding = 0;  // added to each leading dimension
};

// Without it GoogleTest prints the bytes of a Case, padding included.
void PrintTo(const Case& c, std::ostream* stream) {
  *stream << c.name;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

double decode(DType dtype, uint8_t code) {
  return dtype == DType::kF8E4M3 ? decode_e4m3(code) : decode_e5m2(code);
}

// Random finite codes and scales in storage with the case's padding, and their plain product.
struct Fixture {
  explicit Fixture(const Case& c) : problem{} {
    problem.m = c.m;
    problem.n = c.n;
    problem.k = c.k;
    problem.a_dtype = c.a;
    problem.b_dtype = c.b;
    problem.group_n = static_cast<int32_t>(c.group_n);
    problem.group_k = static_cast<int32_t>(c.group_k);
    if (c.column_scales) {
      problem.a_scale_major = ScaleMajor::kColumn;
      problem.b_scale_major = ScaleMajor::kColumn;
    }
    problem.lda = c.k + c.padding;
    problem.ldb = c.k + 2 * c.padding;
    problem.a_scale_ld = problem.a_scale_ld_or_dense() + c.padding;
    problem.b_scale_ld = problem.b_scale_ld_or_dense() + c.padding;
    a = codes(c.m * problem.lda, 1, c.a);
    b = codes(c.n * problem.ldb, 2, c.b);
    const int64_t scale_area = problem.k_blocks() + c.padding;
    a_scales = scales((c.m + c.padding) * scale_area, 3);
    b_scales = scales((problem.n_blocks() + c.padding) * scale_area, 4);
  }

  BlockScaledInputs inputs() const {
    return make_inputs(problem, a.data(), b.data(), a_scales.data(), b_scales.data());
  }

  double plain(int64_t row, int64_t col) const {
    const GemmProblem& p = problem;
    double total = 0;
    for (int64_t kb = 0; kb < p.k_blocks(); ++kb) {
      double dot = 0;
      for (int64_t i = kb * p.group_k; i < std::min(p.k, (kb + 1) * p.group_k); ++i) {
        dot += decode(p.a_dtype, a[static_cast<size_t>(row * p.lda + i)]) *
               decode(p.b_dtype, b[static_cast<size_t>(col * p.ldb + i)]);
      }
      const int64_t nb = col / p.group_n;
      const bool row_major = p.a_scale_major == ScaleMajor::kRow;
      const int64_t ai = row_major ? row * p.a_scale_ld + kb : kb * p.a_scale_ld + row;
      const int64_t bi = row_major ? nb * p.b_scale_ld + kb : kb * p.b_scale_ld + nb;
      total += dot * (static_cast<double>(a_scales[static_cast<size_t>(ai)]) *
                      static_cast<double>(b_scales[static_cast<size_t>(bi)]));
    }
    return total;
  }

  static std::vector<uint8_t> codes(int64_t count, uint32_t stream, DType dtype) {
    const RandomStream random(17, stream);
    std::vector<uint8_t> result(static_cast<size_t>(count));
    const int32_t greatest = dtype == DType::kF8E4M3 ? 0x7e : 0x7b;
    for (size_t i = 0; i < result.size(); ++i) {
      const int32_t value = random.integer(i, -greatest, greatest);
      result[i] = static_cast<uint8_t>(value < 0 ? 0x80 | -value : value);
    }
    return result;
  }
  static std::vector<float> scales(int64_t count, uint32_t stream) {
    const RandomStream random(17, stream);
    std::vector<float> result(static_cast<size_t>(count));
    for (size_t i = 0; i < result.size(); ++i) result[i] = 0.01F + random.uniform(i);
    return result;
  }

  GemmProblem problem;
  std::vector<uint8_t> a, b;
  std::vector<float> a_scales, b_scales;
};

class ReferenceOnShape : public testing::TestWithParam<Case> {};

TEST_P(ReferenceOnShape, EqualsThePlainLoop) {
  const Fixture fixture(GetParam());
  const auto result = reference_block_scaled_mm(fixture.inputs(), {.threads = 3});
  ASSERT_TRUE(result) << result.error().to_string();
  const GemmProblem& p = fixture.problem;
  ASSERT_EQ(result->size(), static_cast<size_t>(p.m * p.n));
  double scale = 0;
  for (const double value : *result) scale = std::max(scale, std::fabs(value));
  for (int64_t row = 0; row < p.m; ++row) {
    for (int64_t col = 0; col < p.n; ++col) {
      ASSERT_NEAR((*result)[static_cast<size_t>(row * p.n + col)], fixture.plain(row, col),
                  1e-11 * scale)
          << row << ", " << col;
    }
  }
}

TEST_P(ReferenceOnShape, ChosenRowsAndColumnsEqualTheWhole) {
  const Fixture fixture(GetParam());
  const GemmProblem& p = fixture.problem;
  if (p.m == 0) return;
  const std::vector<int64_t> rows = {p.m - 1, 0, p.m / 2, p.m - 1};
  const std::vector<int64_t> cols = {p.n / 3, p.n - 1};
  const auto whole = reference_block_scaled_mm(fixture.inputs());
  const auto part = reference_block_scaled_mm(fixture.inputs(), rows, cols);
  ASSERT_TRUE(whole && part);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < cols.size(); ++j) {
      EXPECT_EQ((*part)[i * cols.size() + j],
                (*whole)[static_cast<size_t>(rows[i] * p.n + cols[j])]);
    }
  }
}

TEST_P(ReferenceOnShape, ChecksumsEqualTheSumsOfTheResult) {
  const Fixture fixture(GetParam());
  const GemmProblem& p = fixture.problem;
  const auto whole = reference_block_scaled_mm(fixture.inputs());
  ASSERT_TRUE(whole);
  std::vector<float> out(whole->begin(), whole->end());
  const MatrixView view = row_major_view(out.data(), DType::kF32, p.m, p.n);
  const std::vector<double> by_column = checksum_weights(p.n, 1);
  const std::vector<double> by_row = checksum_weights(p.m, 2);
  const auto rows = row_checksums(fixture.inputs(), by_column, {.threads = 2});
  const auto cols = column_checksums(fixture.inputs(), by_row, {.threads = 2});
  ASSERT_TRUE(rows && cols);
  constexpr double kLimit = 6 * 0x1p-24;
  const ChecksumReport row_report = check_row_sums(view, by_column, *rows, kLimit, 2);
  const ChecksumReport col_report = check_column_sums(view, by_row, *cols, kLimit, 2);
  EXPECT_TRUE(row_report.passed) << row_report.text;
  EXPECT_TRUE(col_report.passed) << col_report.text;
  EXPECT_EQ(row_report.count, p.m);
  EXPECT_EQ(col_report.count, p.n);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ReferenceOnShape,
    testing::Values(
        Case{"one_block", 4, 4, 32, 128, 32}, Case{"square", 70, 130, 256, 128, 128},
        Case{"k_tail", 5, 7, 301, 128, 128}, Case{"n_tail_of_a_group", 3, 200, 256, 128, 128},
        Case{"one_by_one", 1, 1, 1, 128, 128}, Case{"no_rows", 0, 5, 64, 128, 32},
        Case{"group_n_1", 9, 66, 256, 1, 128}, Case{"group_64_128", 9, 200, 256, 64, 128},
        Case{"group_128_64", 9, 200, 260, 128, 64},
        Case{"group_k_deeper_than_a_panel", 6, 6, 1500, 128, 640},
        Case{"e5m2_a", 20, 20, 200, 128, 128, DType::kF8E5M2},
        Case{"e5m2_both", 20, 20, 200, 128, 128, DType::kF8E5M2, DType::kF8E5M2},
        Case{"column_major_scales", 65, 140, 300, 128, 128, DType::kF8E4M3, DType::kF8E4M3, true},
        Case{"padded_everywhere", 65, 140, 300, 128, 128, DType::kF8E4M3, DType::kF8E5M2, false,
             13},
        Case{"padded_column_major", 65, 140, 300, 64, 32, DType::kF8E5M2, DType::kF8E4M3, true, 5}),
    case_name);

TEST(Reference, ScaleProductOutsideFp32FollowsTheChosenRule) {
  const uint8_t code = 0x38;
  const float a_scale = 0x1p100F;
  const float b_scale = 0x1p100F;
  const uint8_t zero = 0x00;
  BlockScaledInputs inputs;
  inputs.group_k = 32;
  inputs.a = row_major_view(&code, DType::kF8E4M3, 1, 1);
  inputs.b = row_major_view(&code, DType::kF8E4M3, 1, 1);
  inputs.a_scales = row_major_view(&a_scale, DType::kF32, 1, 1);
  inputs.b_scales = row_major_view(&b_scale, DType::kF32, 1, 1);
  EXPECT_EQ((*reference_block_scaled_mm(inputs))[0], 0x1p200);
  const ReferenceOptions rounded{.scale_product = ScaleProduct::kFloat32};
  EXPECT_TRUE(std::isinf((*reference_block_scaled_mm(inputs, rounded))[0]));
  inputs.b.data = &zero;
  EXPECT_EQ((*reference_block_scaled_mm(inputs))[0], 0.0);
  EXPECT_TRUE(std::isnan((*reference_block_scaled_mm(inputs, rounded))[0]));
}

TEST(Reference, UnsignedExponentScalesAreDecoded) {
  const uint8_t codes[2] = {0x38, 0x40};
  const uint8_t a_scale = 130;
  const uint8_t b_scale = 126;
  BlockScaledInputs inputs;
  inputs.a = row_major_view(codes, DType::kF8E4M3, 1, 2);
  inputs.b = row_major_view(codes, DType::kF8E4M3, 1, 2);
  inputs.a_scales = row_major_view(&a_scale, DType::kF8E8M0, 1, 1);
  inputs.b_scales = row_major_view(&b_scale, DType::kF8E8M0, 1, 1);
  EXPECT_EQ((*reference_block_scaled_mm(inputs))[0], (1.0 + 4.0) * 4.0);
}

TEST(Reference, MismatchedShapesAndIndicesAreRefusedByName) {
  const Fixture fixture({"", 4, 200, 300, 128, 128});
  const std::vector<int64_t> row = {0};
  const std::vector<int64_t> beyond = {200};
  struct Bad {
    const char* expected;
    Status status;
  };
  BlockScaledInputs b = fixture.inputs();
  b.b.cols = 299;
  BlockScaledInputs a_scales = fixture.inputs();
  a_scales.a_scales.cols = 2;
  BlockScaledInputs b_scales = fixture.inputs();
  b_scales.b_scales.rows = 3;
  BlockScaledInputs group = fixture.inputs();
  group.group_k = 0;
  const std::vector<double> weights(3, 1.0);
  std::vector<Bad> cases;
  const auto add = [&](const char* expected, Status status) {
    cases.push_back({expected, std::move(status)});
  };
  add("b: expected [200, 300], found [200, 299]", reference_block_scaled_mm(b).error());
  add("a_scales: expected [4, 3], found [4, 2]", reference_block_scaled_mm(a_scales).error());
  add("b_scales: expected [2, 3], found [3, 3]", reference_block_scaled_mm(b_scales).error());
  add("group: expected >= 1", reference_block_scaled_mm(group).error());
  add("cols: expected 0..199, found 200",
      reference_block_scaled_mm(fixture.inputs(), row, beyond).error());
  add("weights: expected 200, found 3", row_checksums(fixture.inputs(), weights).error());
  add("weights: expected 4, found 3", column_checksums(fixture.inputs(), weights).error());
  for (const Bad& bad : cases) {
    EXPECT_EQ(bad.status.code(), StatusCode::kInvalidArgument) << bad.expected;
    EXPECT_NE(bad.status.message().find(bad.expected), std::string::npos) << bad.status.message();
  }
}

}  // namespace
}  // namespace jitgemm::reference_test
