// SPDX-License-Identifier: Apache-2.0
// How far a result is from its reference, and whether that is near enough. Metrics and limits are
// plain values; a verdict prints what failed, by how much and where.
#pragma once

#include "problem/dtype.h"
#include "verify/matrix_view.h"
#include "verify/reference.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace jitgemm {

// Over the elements at which both sides are finite. Where one is not, both must be the same
// infinity or both NaN; anything else counts as a mismatch.
struct ErrorMetrics {
  int64_t count = 0;
  int64_t non_finite = 0;  // elements whose reference is not finite
  int64_t non_finite_mismatches = 0;
  int64_t first_mismatch = -1;  // the first of them
  double max_abs = 0;           // max |x - y|
  int64_t max_abs_index = -1;
  double relative_l2 = 0;    // |x - y| / |y|
  double dissimilarity = 0;  // 1 - 2 sum(x y) / sum(x^2 + y^2)
  double mean_ratio = 0;     // mean |x - y| / mean |y|
  double max_scaled = 0;     // max |x - y| / magnitude; 0 without magnitudes
  int64_t max_scaled_index = -1;
  int64_t differences = 0;  // elements of unequal value (NaN equals NaN, -0 equals 0)
  int64_t first_difference = -1;
};

// All spans have one length (magnitudes may be empty); indices count along them. Magnitudes are the
// reference of absolute values: with scales of many sizes the norms above see the largest elements
// only, and max_scaled is the measure that sees each one.
ErrorMetrics measure_errors(std::span<const double> found, std::span<const double> reference,
                            std::span<const double> magnitudes = {});

// What is not set is not judged; mismatches of non-finite elements always fail.
struct ErrorLimits {
  std::optional<double> max_abs = {};
  std::optional<double> relative_l2 = {};
  std::optional<double> dissimilarity = {};
  std::optional<double> mean_ratio = {};
  std::optional<double> max_scaled = {};
  bool equal = false;  // every value equal
};

struct Verdict {
  bool passed = false;
  std::string text;  // one line: the metrics, then what failed
};

Verdict judge(const ErrorMetrics& metrics, const ErrorLimits& limits);

// One line of numbers, as the CLI prints it.
std::string to_string(const ErrorMetrics& metrics);

// Each value rounded once to the output dtype (F32, BF16 or F16) and back to float64.
Status round_values(std::span<double> values, DType dtype);

// Bytes against bytes, for results that must be the same to the last bit. Both spans have one
// length.
struct BitComparison {
  int64_t differences = 0;  // elements
  int64_t first_difference = -1;
};
BitComparison compare_bits(std::span<const std::byte> found, std::span<const std::byte> expected,
                           int element_bytes);

// The weighted row (or column) sums of a whole result against their independent computation. A row
// passes when |sum(w x) - expected| <= limit * |w x|_2, the root of the sum of squares along it:
// independent element errors of relative size e add up to about e * |w x|_2, so a limit of six
// times the permitted relative L2 error stays clear of chance and still shows one wrong element.
struct ChecksumReport {
  bool passed = false;
  int64_t count = 0;
  int64_t failures = 0;
  int64_t worst = -1;      // index of the worst row or column
  double worst_ratio = 0;  // its |sum - expected| / |w x|_2
  std::string text;
};
ChecksumReport check_row_sums(const MatrixView& out, std::span<const double> weights,
                              const Checksums& expected, double limit, int threads = 0);
ChecksumReport check_column_sums(const MatrixView& out, std::span<const double> weights,
                                 const Checksums& expected, double limit, int threads = 0);

}  // namespace jitgemm
