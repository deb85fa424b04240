// SPDX-License-Identifier: Apache-2.0
// Wrong products that a kernel could plausibly compute. Every comparison in use must refuse each of
// them, with the data and the limits that real results are judged by, and accept the right product.
#include "verify/compare.h"
#include "verify/inputs.h"
#include "verify/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <tuple>

namespace jitgemm {
namespace {

// The result that a kernel with one fault would give, by the reference on changed inputs.
struct Fault {
  const char* name;
  std::function<std::vector<double>(const GemmProblem&, const BlockScaledTensors&)> compute;
};

std::vector<double> product(const BlockScaledInputs& inputs) {
  return std::move(*reference_block_scaled_mm(inputs));
}

// Scales of k-block kb + 1 for block kb; the last block keeps its own.
HostTensor shift_columns(HostTensor scales) {
  const int64_t cols = scales.shape[1];
  for (int64_t row = 0; row < scales.shape[0]; ++row) {
    float* values = scales.data<float>() + row * cols;
    std::copy(values + 1, values + cols, values);
  }
  return scales;
}

// Scales of row + 1 for each row.
HostTensor shift_rows(HostTensor scales) {
  float* values = scales.data<float>();
  const int64_t cols = scales.shape[1];
  std::copy(values + cols, values + scales.element_count(), values);
  return scales;
}

std::vector<double> drop_last_k_block(const GemmProblem& problem, const BlockScaledTensors& t) {
  BlockScaledInputs views = t.views();
  const int64_t blocks = problem.k_blocks() - 1;
  views.a.cols = blocks * problem.group_k;
  views.b.cols = views.a.cols;
  views.a_scales.cols = blocks;
  views.b_scales.cols = blocks;
  return product(views);
}

// b . a instead of a . b, read as if it were the result: out[i, j] and out[j, i] change places as
// far as the shape allows, which is what a kernel with exchanged operands writes into an m x n
// buffer.
std::vector<double> swap_operands(const GemmProblem& problem, const BlockScaledTensors& t) {
  const std::vector<double> right = product(t.views());
  std::vector<double> swapped(right.size());
  for (int64_t row = 0; row < problem.m; ++row) {
    for (int64_t col = 0; col < problem.n; ++col) {
      swapped[static_cast<size_t>(col * problem.m + row)] =
          right[static_cast<size_t>(row * problem.n + col)];
    }
  }
  return swapped;
}

// The columns beyond k of the last k-block hold whatever follows in memory: here the next row.
std::vector<double> unmasked_k_tail(const GemmProblem& problem, const BlockScaledTensors& t) {
  GemmProblem wide = problem;
  wide.k = problem.k_blocks() * problem.group_k;
  BlockScaledTensors w = t;
  w.a = make_host_tensor("a", problem.a_dtype, {wide.m, wide.k});
  w.b = make_host_tensor("b", problem.b_dtype, {wide.n, wide.k});
  const auto spill = [&](const HostTensor& from, HostTensor& to) {
    const int64_t rows = from.shape[0];
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < wide.k; ++i) {
        const int64_t source = (row * problem.k + i) % from.element_count();
        to.data<uint8_t>()[row * wide.k + i] = from.data<uint8_t>()[source];
      }
    }
  };
  spill(t.a, w.a);
  spill(t.b, w.b);
  return product(w.views());
}

// The last row and the last column were taken for tail and not written.
std::vector<double> unwritten_edge(const GemmProblem& problem, const BlockScaledTensors& t) {
  std::vector<double> out = product(t.views());
  for (int64_t row = 0; row < problem.m; ++row) {
    for (int64_t col = 0; col < problem.n; ++col) {
      if (row == problem.m - 1 || col == problem.n - 1) {
        out[static_cast<size_t>(row * problem.n + col)] = 0.0;
      }
    }
  }
  return out;
}

template <HostTensor BlockScaledTensors::*kScales, HostTensor (*kShift)(HostTensor)>
std::vector<double> shifted(const GemmProblem&, const BlockScaledTensors& t) {
  BlockScaledTensors wrong = t;
  wrong.*kScales = kShift(t.*kScales);
  return product(wrong.views());
}

const Fault kFaults[] = {
    {"a scale of the next k-block",          shifted<&BlockScaledTensors::a_scales, shift_columns>},
    {"b scale of the next k-block",                                      shifted<&BlockScaledTensors::b_scales,                                               shift_columns>},
    {"a scale of the next row",                        shifted<&BlockScaledTensors::a_scales,               shift_rows>},
    {"b scale of the next block of rows",shifted<&BlockScaledTensors::b_scales,shift_rows>},
    {"last k-block dropped",    drop_last_k_block                          },
    {"operands swapped",                                      swap_operands                                                     },
    {"k tail unmasked",                                      unmasked_k_tail                               },
    {"edge not written",                                      unwritten_edge     },
};

struct Comparison {
  const char* name;
  ErrorLimits limits;
  // Norms over a whole result see its largest elements only, so with scales of many sizes they are
  // no judge of the others; such data are judged element by element.
  bool for_wide_scales;
};
// The limits in use: simulator fp32, GPU fp32 on two kinds of data, 16-bit outputs, the mean-ratio
// limit of the block FP8 grid, the dissimilarity limit common among peers, and equality.
const Comparison kComparisons[] = {
    {"relative L2 1e-6",   {.relative_l2 = 1e-6},   false},
    {"relative L2 1.4e-4", {.relative_l2 = 1.4e-4}, false},
    {"relative L2 2.5e-4", {.relative_l2 = 2.5e-4}, false},
    {"mean ratio 1e-3",    {.mean_ratio = 1e-3},    false},
    {"dissimilarity 1e-3", {.dissimilarity = 1e-3}, false},
    {"max scaled 2.5e-4",  {.max_scaled = 2.5e-4},  true },
    {"equality",           {.equal = true},         true },
};

class NegativeControls : public testing::TestWithParam<InputKind> {
 protected:
  void SetUp() override {
    problem_.m = 72;
    problem_.n = 264;
    problem_.k = 700;
    problem_.group_n = 64;
    auto tensors = make_block_scaled_tensors(problem_, GetParam(), 21);
    ASSERT_TRUE(tensors);
    tensors_ = std::move(*tensors);
    right_ = product(tensors_.views());
    ASSERT_TRUE(round_values(right_, DType::kF32).ok());
    magnitudes_ = std::move(*reference_block_scaled_mm(tensors_.views(), {.magnitudes = true}));
  }

  std::vector<float> as_floats(const std::vector<double>& values) const {
    return {values.begin(), values.end()};
  }

  GemmProblem problem_;
  BlockScaledTensors tensors_;
  std::vector<double> right_;
  std::vector<double> magnitudes_;
};

TEST_P(NegativeControls, EveryComparisonAcceptsTheRightProductAndRefusesEachFault) {
  for (const Comparison& comparison : kComparisons) {
    const Verdict right = judge(measure_errors(right_, right_, magnitudes_), comparison.limits);
    EXPECT_TRUE(right.passed) << comparison.name << ": " << right.text;
  }
  for (const Fault& fault : kFaults) {
    std::vector<double> wrong = fault.compute(problem_, tensors_);
    ASSERT_TRUE(round_values(wrong, DType::kF32).ok());
    const ErrorMetrics metrics = measure_errors(wrong, right_, magnitudes_);
    for (const Comparison& comparison : kComparisons) {
      if (GetParam() == InputKind::kWideScales && !comparison.for_wide_scales) continue;
      const Verdict verdict = judge(metrics, comparison.limits);
      EXPECT_FALSE(verdict.passed)
          << comparison.name << " missed " << fault.name << ": " << verdict.text;
    }
  }
}

TEST_P(NegativeControls, BothChecksumsAcceptTheRightProductAndRefuseEachFault) {
  const std::vector<double> by_column = checksum_weights(problem_.n, 5);
  const std::vector<double> by_row = checksum_weights(problem_.m, 6);
  const auto rows = row_checksums(tensors_.views(), by_column);
  const auto cols = column_checksums(tensors_.views(), by_row);
  ASSERT_TRUE(rows && cols);
  // Six times the loosest limit on the relative L2 of fp32 output.
  constexpr double kLimit = 6 * 2.5e-4;
  const auto check = [&](const std::vector<double>& values) {
    const std::vector<float> out = as_floats(values);
    const MatrixView view = row_major_view(out.data(), DType::kF32, problem_.m, problem_.n);
    return std::pair(check_row_sums(view, by_column, *rows, kLimit),
                     check_column_sums(view, by_row, *cols, kLimit));
  };
  const auto [right_rows, right_cols] = check(right_);
  EXPECT_TRUE(right_rows.passed) << right_rows.text;
  EXPECT_TRUE(right_cols.passed) << right_cols.text;
  for (const Fault& fault : kFaults) {
    const auto [row_report, col_report] = check(fault.compute(problem_, tensors_));
    EXPECT_FALSE(row_report.passed) << fault.name << ": " << row_report.text;
    EXPECT_FALSE(col_report.passed) << fault.name << ": " << col_report.text;
  }
}

// One element off by a tenth of its own size must show in its row's sum.
TEST_P(NegativeControls, ChecksumsShowOneWrongElement) {
  const std::vector<double> by_column = checksum_weights(problem_.n, 5);
  const auto rows = row_checksums(tensors_.views(), by_column);
  ASSERT_TRUE(rows);
  std::vector<float> out = as_floats(right_);
  const MatrixView view = row_major_view(out.data(), DType::kF32, problem_.m, problem_.n);
  const int64_t row = 17;
  // The largest element of the row: with scales of many sizes, a small one would be noise.
  const auto begin = out.begin() + row * problem_.n;
  const auto largest = std::max_element(
      begin, begin + problem_.n, [](float x, float y) { return std::fabs(x) < std::fabs(y); });
  *largest *= 1.1F;
  constexpr double kLimit = 6 * 2.5e-4;
  const ChecksumReport row_report = check_row_sums(view, by_column, *rows, kLimit);
  EXPECT_EQ(row_report.failures, 1);
  EXPECT_EQ(row_report.worst, row);
}

std::string kind_name(const testing::TestParamInfo<InputKind>& info) {
  return std::string(input_kind_name(info.param));
}

INSTANTIATE_TEST_SUITE_P(Data, NegativeControls,
                         testing::Values(InputKind::kSeed, InputKind::kUniformCodes,
                                         InputKind::kSmallIntegers, InputKind::kWideScales),
                         kind_name);

}  // namespace
}  // namespace jitgemm
