// SPDX-License-Identifier: Apache-2.0
#include "verify/compare.h"

#include "verify/fp8_reference.h"
#include "verify/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace jitgemm {
namespace {

// NaN is one value here: which NaN comes out of an operation is not specified.
bool same_value(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// A ratio of an error to a size, where no error of nothing is no error.
double ratio(double error, double size) {
  if (error == 0.0) return 0.0;
  return size == 0.0 ? std::numeric_limits<double>::infinity() : error / size;
}

// A sum hides which of its terms was not finite, so only finite against non-finite is a failure.
double sum_ratio(double sum, double expected, double slack, double norm) {
  if (!std::isfinite(expected) || !std::isfinite(sum)) {
    return std::isfinite(expected) == std::isfinite(sum) ? 0.0
                                                         : std::numeric_limits<double>::infinity();
  }
  return ratio(std::max(0.0, std::fabs(sum - expected) - slack), norm);
}

ChecksumReport check_sums(const MatrixView& out, std::span<const double> weights,
                          const Checksums& expected, double limit, int threads, const char* what) {
  std::vector<double> ratios(static_cast<size_t>(out.rows));
  const Decoder decode(out.dtype);
  // Strips of rows; the inner loop follows memory, along the row or, in a transposed view, across.
  constexpr int64_t kStrip = 64;
  parallel_for((out.rows + kStrip - 1) / kStrip, threads, [&](int64_t strip) {
    const int64_t first = strip * kStrip;
    const int64_t height = std::min(kStrip, out.rows - first);
    double sums[kStrip] = {};
    double squares[kStrip] = {};
    const auto add = [&](int64_t i, int64_t col) {
      const double term = decode(out, first + i, col) * weights[static_cast<size_t>(col)];
      sums[i] += term;
      squares[i] += term * term;
    };
    if (out.col_stride == 1) {
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t col = 0; col < out.cols; ++col) add(i, col);
      }
    } else {
      for (int64_t col = 0; col < out.cols; ++col) {
        for (int64_t i = 0; i < height; ++i) add(i, col);
      }
    }
    for (int64_t i = 0; i < height; ++i) {
      const auto row = static_cast<size_t>(first + i);
      // Both computations round in float64, by far less than this share of the magnitudes.
      const double slack = expected.magnitudes[row] * 0x1p-45;
      ratios[row] = sum_ratio(sums[i], expected.sums[row], slack, std::sqrt(squares[i]));
    }
  });
  ChecksumReport report;
  report.count = out.rows;
  for (int64_t row = 0; row < out.rows; ++row) {
    const double value = ratios[static_cast<size_t>(row)];
    if (!(value <= limit)) ++report.failures;
    if (report.worst < 0 || value > report.worst_ratio) {
      report.worst = row;
      report.worst_ratio = value;
    }
  }
  report.passed = report.failures == 0;
  report.text = fmt::format("{} {} sums, {} off; worst {:.3g} at {} (limit {:.3g})", report.count,
                            what, report.failures, report.worst_ratio, report.worst, limit);
  return report;
}

}  // namespace

ErrorMetrics measure_errors(std::span<const double> found, std::span<const double> reference,
                            std::span<const double> magnitudes) {
  ErrorMetrics metrics;
  metrics.count = static_cast<int64_t>(reference.size());
  double error_squares = 0;
  double found_squares = 0;
  double reference_squares = 0;
  double errors = 0;
  double sizes = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double x = found[i];
    const double y = reference[i];
    const auto index = static_cast<int64_t>(i);
    if (!same_value(x, y)) {
      if (metrics.differences++ == 0) metrics.first_difference = index;
    }
    if (!std::isfinite(y)) ++metrics.non_finite;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (!same_value(x, y) && metrics.non_finite_mismatches++ == 0) metrics.first_mismatch = index;
      continue;
    }
    const double error = std::fabs(x - y);
    if (error > metrics.max_abs || metrics.max_abs_index < 0) {
      metrics.max_abs = error;
      metrics.max_abs_index = index;
    }
    if (!magnitudes.empty()) {
      const double scaled = ratio(error, magnitudes[i]);
      if (scaled > metrics.max_scaled || metrics.max_scaled_index < 0) {
        metrics.max_scaled = scaled;
        metrics.max_scaled_index = index;
      }
    }
    error_squares += error * error;
    found_squares += x * x;
    reference_squares += y * y;
    errors += error;
    sizes += std::fabs(y);
  }
  metrics.relative_l2 = std::sqrt(ratio(error_squares, reference_squares));
  // 1 - 2 sum(xy) / sum(x^2 + y^2) = sum((x - y)^2) / sum(x^2 + y^2), free of cancellation.
  metrics.dissimilarity = ratio(error_squares, found_squares + reference_squares);
  metrics.mean_ratio = ratio(errors, sizes);
  return metrics;
}

std::string to_string(const ErrorMetrics& metrics) {
  std::string text = fmt::format(
      "{} elements, max abs {:.3g}, relative L2 {:.3g}, 1-2Sxy/S(x2+y2) {:.3g}, mean ratio {:.3g}",
      metrics.count, metrics.max_abs, metrics.relative_l2, metrics.dissimilarity,
      metrics.mean_ratio);
  if (metrics.max_scaled_index >= 0) {
    text += fmt::format(", max scaled {:.3g}", metrics.max_scaled);
  }
  return text;
}

Verdict judge(const ErrorMetrics& metrics, const ErrorLimits& limits) {
  std::string failures;
  if (metrics.non_finite_mismatches > 0) {
    failures += fmt::format("; {} NaN or infinity mismatches, the first at {}",
                            metrics.non_finite_mismatches, metrics.first_mismatch);
  }
  const auto check = [&](const char* name, double value, const std::optional<double>& limit) {
    if (limit && !(value <= *limit)) {
      failures += fmt::format("; {} {:.4g} exceeds {:.4g}", name, value, *limit);
    }
  };
  check("max abs", metrics.max_abs, limits.max_abs);
  check("relative L2", metrics.relative_l2, limits.relative_l2);
  check("1-2Sxy/S(x2+y2)", metrics.dissimilarity, limits.dissimilarity);
  check("mean ratio", metrics.mean_ratio, limits.mean_ratio);
  check("max scaled error", metrics.max_scaled, limits.max_scaled);
  if (limits.equal && metrics.differences > 0) {
    failures += fmt::format("; {} elements differ, the first at {}", metrics.differences,
                            metrics.first_difference);
  }
  return {failures.empty(), to_string(metrics) + (failures.empty() ? "; passed" : failures)};
}

Status round_values(std::span<double> values, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      for (double& value : values) value = round_to_fp32(value);
      return ok_status();
    case DType::kBF16:
      for (double& value : values) value = decode_bf16(round_to_bf16(value));
      return ok_status();
    case DType::kF16:
      for (double& value : values) value = decode_fp16(round_to_fp16(value));
      return ok_status();
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0:
    case DType::kI32: break;
  }
  return invalid_argument(
      fmt::format("output dtype: expected F32, BF16 or F16, found {}", dtype_info(dtype).name));
}

BitComparison compare_bits(std::span<const std::byte> found, std::span<const std::byte> expected,
                           int element_bytes) {
  BitComparison comparison;
  const auto width = static_cast<size_t>(element_bytes);
  for (size_t i = 0; i * width < expected.size(); ++i) {
    if (std::memcmp(&found[i * width], &expected[i * width], width) == 0) continue;
    if (comparison.differences++ == 0) comparison.first_difference = static_cast<int64_t>(i);
  }
  return comparison;
}

ChecksumReport check_row_sums(const MatrixView& out, std::span<const double> weights,
                              const Checksums& expected, double limit, int threads) {
  return check_sums(out, weights, expected, limit, threads, "row");
}

ChecksumReport check_column_sums(const MatrixView& out, std::span<const double> weights,
                                 const Checksums& expected, double limit, int threads) {
  MatrixView transposed = out;
  std::swap(transposed.rows, transposed.cols);
  std::swap(transposed.row_stride, transposed.col_stride);
  return check_sums(transposed, weights, expected, limit, threads, "column");
}

}  // namespace jitgemm
