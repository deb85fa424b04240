// SPDX-License-Identifier: Apache-2.0
// The float64 reference of block_scaled_mm, whole or at chosen rows and columns, and a second,
// independent way to check a whole result: weighted sums along its rows or columns, which cost one
// pass over the operands instead of a matrix product. Knows nothing of kernels or devices.
//
//   out[m, n] = sum over k-blocks kb of
//       dot(a[m, kb], b[n, kb]) * (a_scales[m, kb] * b_scales[n / group_n, kb])
#pragma once

#include "problem/gemm_problem.h"
#include "support/result.h"
#include "verify/matrix_view.h"

#include <cstdint>
#include <span>
#include <vector>

namespace jitgemm {

struct BlockScaledInputs {
  MatrixView a;         // [m, k]
  MatrixView b;         // [n, k]
  MatrixView a_scales;  // [m, ceil(k / group_k)]
  MatrixView b_scales;  // [ceil(n / group_n), ceil(k / group_k)]
  int64_t group_n = 128;
  int64_t group_k = 128;
};

// The views that a problem's dtypes, layouts and leading dimensions give to four base addresses.
BlockScaledInputs make_inputs(const GemmProblem& problem, const void* a, const void* b,
                              const void* a_scales, const void* b_scales);

// How the two scales of a k-block are combined. Both are right to within the documented error; they
// differ where the product leaves the range of fp32, which is where infinities and NaN come from.
enum class ScaleProduct {
  kFloat64,  // the mathematical product
  kFloat32,  // rounded once to fp32, as the documented order of operations has it
};

struct ReferenceOptions {
  ScaleProduct scale_product = ScaleProduct::kFloat64;
  // Every factor replaced by its absolute value: the size that an element's rounding errors are
  // measured against, since a result can cancel to nothing.
  bool magnitudes = false;
  int threads = 0;  // 0: one a processor
};

// The result at rows x cols, row by row. A dot product of e4m3 codes over one k-block is exact in
// float64 up to group_k = 2^17, so the error is that of one product and one add a k-block.
Result<std::vector<double>> reference_block_scaled_mm(const BlockScaledInputs& inputs,
                                                      std::span<const int64_t> rows,
                                                      std::span<const int64_t> cols,
                                                      const ReferenceOptions& options = {});
Result<std::vector<double>> reference_block_scaled_mm(const BlockScaledInputs& inputs,
                                                      const ReferenceOptions& options = {});

struct Checksums {
  std::vector<double> sums;
  // The same sums with every factor replaced by its absolute value: the scale of any rounding
  // bound.
  std::vector<double> magnitudes;
};

// For each row m: the sum over n of out[m, n] * weights[n], computed as
// a_scales[m, kb] * (a[m, k] . sum over n of weights[n] * b_scales[n / group_n, kb] * b[n, k]).
Result<Checksums> row_checksums(const BlockScaledInputs& inputs, std::span<const double> weights,
                                const ReferenceOptions& options = {});
// For each column n: the sum over m of weights[m] * out[m, n].
Result<Checksums> column_checksums(const BlockScaledInputs& inputs, std::span<const double> weights,
                                   const ReferenceOptions& options = {});
// Weights with |w| in [0.5, 1.5), random signs, each with 8 fraction bits: with all ones, two
// swapped columns would go unnoticed.
std::vector<double> checksum_weights(int64_t count, uint64_t seed);

}  // namespace jitgemm
