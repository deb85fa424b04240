// SPDX-License-Identifier: Apache-2.0
#include "verify/reference.h"

#include "verify/fp8_reference.h"
#include "verify/parallel.h"
#include "verify/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace jitgemm {
namespace {

// A tile of kTile x kTile results goes through the k-blocks, kDepth of k at a time; both packed
// panels (kTile x kDepth float64) and the two tiles of partial results stay in the L2 cache.
constexpr int64_t kTile = 64;
constexpr int64_t kDepth = 256;
// The register block of the inner loop: 4 x 4 results in eight registers of two float64.
constexpr int64_t kMicro = 4;
using Pair __attribute__((vector_size(16))) = double;

int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

Status check_shape(const char* name, const MatrixView& view, int64_t rows, int64_t cols) {
  if (view.rows == rows && view.cols == cols) return ok_status();
  return invalid_argument(fmt::format("reference: {}: expected [{}, {}], found [{}, {}]", name,
                                      rows, cols, view.rows, view.cols));
}

Status check_inputs(const BlockScaledInputs& inputs) {
  if (inputs.group_n < 1 || inputs.group_k < 1) {
    return invalid_argument(fmt::format("reference: group: expected >= 1, found n {} k {}",
                                        inputs.group_n, inputs.group_k));
  }
  const int64_t k_blocks = ceil_div(inputs.a.cols, inputs.group_k);
  JITGEMM_TRY(check_shape("b", inputs.b, inputs.b.rows, inputs.a.cols));
  JITGEMM_TRY(check_shape("a_scales", inputs.a_scales, inputs.a.rows, k_blocks));
  return check_shape("b_scales", inputs.b_scales, ceil_div(inputs.b.rows, inputs.group_n),
                     k_blocks);
}

Status check_indices(const char* name, std::span<const int64_t> indices, int64_t extent) {
  for (const int64_t index : indices) {
    if (index < 0 || index >= extent) {
      return invalid_argument(
          fmt::format("reference: {}: expected 0..{}, found {}", name, extent - 1, index));
    }
  }
  return ok_status();
}

Status check_weights(std::span<const double> weights, int64_t expected) {
  if (static_cast<int64_t>(weights.size()) == expected) return ok_status();
  return invalid_argument(
      fmt::format("reference: weights: expected {}, found {}", expected, weights.size()));
}

// Columns k0 .. k0+depth of the chosen rows, in groups of kMicro rows, k-major inside a group.
// Rows missing from the last group read as zero; their results are never looked at.
void pack(const Decoder& decode, const MatrixView& view, std::span<const int64_t> rows, int64_t k0,
          int64_t depth, bool magnitudes, double* packed) {
  for (int64_t base = 0; base < kTile; base += kMicro) {
    for (int64_t lane = 0; lane < kMicro; ++lane) {
      double* target = packed + base * depth + lane;
      const bool present = base + lane < static_cast<int64_t>(rows.size());
      const int64_t row = present ? rows[static_cast<size_t>(base + lane)] : 0;
      for (int64_t k = 0; k < depth; ++k) {
        const double value = present ? decode(view, row, k0 + k) : 0.0;
        target[k * kMicro] = magnitudes ? std::fabs(value) : value;
      }
    }
  }
}

// dots[0..4][0..4] += a . b over the depth.
void multiply_micro(const double* a, const double* b, int64_t depth, double* dots) {
  Pair sums[kMicro][2] = {};
  for (int64_t k = 0; k < depth; ++k, a += kMicro, b += kMicro) {
    const Pair b0 = {b[0], b[1]};
    const Pair b1 = {b[2], b[3]};
    for (int64_t i = 0; i < kMicro; ++i) {
      const Pair value = {a[i], a[i]};
      sums[i][0] += value * b0;
      sums[i][1] += value * b1;
    }
  }
  for (int64_t i = 0; i < kMicro; ++i) {
    for (int64_t j = 0; j < kMicro; ++j) dots[i * kTile + j] += sums[i][j / 2][j % 2];
  }
}

class TileReference {
 public:
  TileReference(const BlockScaledInputs& inputs, const ReferenceOptions& options)
      : inputs_(inputs),
        options_(options),
        decode_a_(inputs.a.dtype),
        decode_b_(inputs.b.dtype),
        decode_a_scale_(inputs.a_scales.dtype),
        decode_b_scale_(inputs.b_scales.dtype) {}

  // At most kTile rows and columns; out has the given distance between rows.
  void compute(std::span<const int64_t> rows, std::span<const int64_t> cols, double* out,
               int64_t out_stride) const {
    const auto row_count = static_cast<int64_t>(rows.size());
    const auto col_count = static_cast<int64_t>(cols.size());
    const int64_t k = inputs_.a.cols;
    const int64_t depth_limit = std::min({kDepth, inputs_.group_k, std::max<int64_t>(k, 1)});
    std::vector<double> a(static_cast<size_t>(kTile * depth_limit));
    std::vector<double> b(static_cast<size_t>(kTile * depth_limit));
    std::vector<double> dots(static_cast<size_t>(kTile * kTile));
    for (int64_t kb = 0; kb * inputs_.group_k < k; ++kb) {
      std::fill(dots.begin(), dots.end(), 0.0);
      const int64_t k_end = std::min(k, (kb + 1) * inputs_.group_k);
      for (int64_t k0 = kb * inputs_.group_k; k0 < k_end; k0 += depth_limit) {
        const int64_t depth = std::min(depth_limit, k_end - k0);
        pack(decode_a_, inputs_.a, rows, k0, depth, options_.magnitudes, a.data());
        pack(decode_b_, inputs_.b, cols, k0, depth, options_.magnitudes, b.data());
        for (int64_t i = 0; i < row_count; i += kMicro) {
          for (int64_t j = 0; j < col_count; j += kMicro) {
            multiply_micro(&a[static_cast<size_t>(i * depth)], &b[static_cast<size_t>(j * depth)],
                           depth, &dots[static_cast<size_t>(i * kTile + j)]);
          }
        }
      }
      for (int64_t i = 0; i < row_count; ++i) {
        for (int64_t j = 0; j < col_count; ++j) {
          out[i * out_stride + j] +=
              dots[static_cast<size_t>(i * kTile + j)] *
              scale(rows[static_cast<size_t>(i)], cols[static_cast<size_t>(j)], kb);
        }
      }
    }
  }

 private:
  double scale(int64_t row, int64_t col, int64_t kb) const {
    const double product = decode_a_scale_(inputs_.a_scales, row, kb) *
                           decode_b_scale_(inputs_.b_scales, col / inputs_.group_n, kb);
    const double size = options_.magnitudes ? std::fabs(product) : product;
    return options_.scale_product == ScaleProduct::kFloat32 ? round_to_fp32(size) : size;
  }

  const BlockScaledInputs& inputs_;
  const ReferenceOptions& options_;
  Decoder decode_a_;
  Decoder decode_b_;
  Decoder decode_a_scale_;
  Decoder decode_b_scale_;
};

// The checksum of one side: `outer` is summed over with the weights, `inner` keeps its index.
// group_outer and group_inner are the rows that share a scale.
Checksums checksums(const MatrixView& inner, const MatrixView& inner_scales, int64_t group_inner,
                    const MatrixView& outer, const MatrixView& outer_scales, int64_t group_outer,
                    std::span<const double> weights, int64_t group_k, int threads) {
  const int64_t k = inner.cols;
  const Decoder decode_inner(inner.dtype);
  const Decoder decode_outer(outer.dtype);
  const Decoder decode_inner_scale(inner_scales.dtype);
  const Decoder decode_outer_scale(outer_scales.dtype);

  std::vector<double> column(static_cast<size_t>(k), 0.0);
  std::vector<double> column_magnitude(static_cast<size_t>(k), 0.0);
  parallel_for(ceil_div(k, group_k), threads, [&](int64_t kb) {
    for (int64_t row = 0; row < outer.rows; ++row) {
      const double factor = weights[static_cast<size_t>(row)] *
                            decode_outer_scale(outer_scales, row / group_outer, kb);
      for (int64_t i = kb * group_k; i < std::min(k, (kb + 1) * group_k); ++i) {
        const double term = factor * decode_outer(outer, row, i);
        column[static_cast<size_t>(i)] += term;
        column_magnitude[static_cast<size_t>(i)] += std::fabs(term);
      }
    }
  });

  Checksums result;
  result.sums.resize(static_cast<size_t>(inner.rows));
  result.magnitudes.resize(static_cast<size_t>(inner.rows));
  constexpr int64_t kRowsPerTask = 64;
  parallel_for(ceil_div(inner.rows, kRowsPerTask), threads, [&](int64_t task) {
    const int64_t end = std::min(inner.rows, (task + 1) * kRowsPerTask);
    for (int64_t row = task * kRowsPerTask; row < end; ++row) {
      double total = 0.0;
      double total_magnitude = 0.0;
      for (int64_t kb = 0; kb * group_k < k; ++kb) {
        double sum = 0.0;
        double magnitude = 0.0;
        for (int64_t i = kb * group_k; i < std::min(k, (kb + 1) * group_k); ++i) {
          const double code = decode_inner(inner, row, i);
          sum += code * column[static_cast<size_t>(i)];
          magnitude += std::fabs(code) * column_magnitude[static_cast<size_t>(i)];
        }
        const double scale = decode_inner_scale(inner_scales, row / group_inner, kb);
        total += scale * sum;
        total_magnitude += std::fabs(scale) * magnitude;
      }
      result.sums[static_cast<size_t>(row)] = total;
      result.magnitudes[static_cast<size_t>(row)] = total_magnitude;
    }
  });
  return result;
}

}  // namespace

BlockScaledInputs make_inputs(const GemmProblem& problem, const void* a, const void* b,
                              const void* a_scales, const void* b_scales) {
  const auto scales = [&](const void* data, int64_t rows, ScaleMajor major, int64_t ld) {
    MatrixView view{data, problem.scale_dtype, rows, problem.k_blocks(), ld, 1};
    if (major == ScaleMajor::kColumn) std::swap(view.row_stride, view.col_stride);
    return view;
  };
  BlockScaledInputs inputs;
  inputs.a = {a, problem.a_dtype, problem.m, problem.k, problem.lda_or_dense(), 1};
  inputs.b = {b, problem.b_dtype, problem.n, problem.k, problem.ldb_or_dense(), 1};
  inputs.a_scales =
      scales(a_scales, problem.m, problem.a_scale_major, problem.a_scale_ld_or_dense());
  inputs.b_scales =
      scales(b_scales, problem.n_blocks(), problem.b_scale_major, problem.b_scale_ld_or_dense());
  inputs.group_n = problem.group_n;
  inputs.group_k = problem.group_k;
  return inputs;
}

Result<std::vector<double>> reference_block_scaled_mm(const BlockScaledInputs& inputs,
                                                      std::span<const int64_t> rows,
                                                      std::span<const int64_t> cols,
                                                      const ReferenceOptions& options) {
  JITGEMM_TRY(check_inputs(inputs));
  JITGEMM_TRY(check_indices("rows", rows, inputs.a.rows));
  JITGEMM_TRY(check_indices("cols", cols, inputs.b.rows));
  std::vector<double> out(rows.size() * cols.size(), 0.0);
  const auto row_count = static_cast<int64_t>(rows.size());
  const auto col_count = static_cast<int64_t>(cols.size());
  const int64_t tiles_across = ceil_div(col_count, kTile);
  const TileReference tile(inputs, options);
  parallel_for(ceil_div(row_count, kTile) * tiles_across, options.threads, [&](int64_t index) {
    const int64_t row = index / tiles_across * kTile;
    const int64_t col = index % tiles_across * kTile;
    const auto height = static_cast<size_t>(std::min(kTile, row_count - row));
    const auto width = static_cast<size_t>(std::min(kTile, col_count - col));
    tile.compute(rows.subspan(static_cast<size_t>(row), height),
                 cols.subspan(static_cast<size_t>(col), width),
                 &out[static_cast<size_t>(row * col_count + col)], col_count);
  });
  return out;
}

Result<std::vector<double>> reference_block_scaled_mm(const BlockScaledInputs& inputs,
                                                      const ReferenceOptions& options) {
  return reference_block_scaled_mm(inputs, all_indices(inputs.a.rows), all_indices(inputs.b.rows),
                                   options);
}

Result<Checksums> row_checksums(const BlockScaledInputs& inputs, std::span<const double> weights,
                                const ReferenceOptions& options) {
  JITGEMM_TRY(check_inputs(inputs));
  JITGEMM_TRY(check_weights(weights, inputs.b.rows));
  return checksums(inputs.a, inputs.a_scales, 1, inputs.b, inputs.b_scales, inputs.group_n, weights,
                   inputs.group_k, options.threads);
}

Result<Checksums> column_checksums(const BlockScaledInputs& inputs, std::span<const double> weights,
                                   const ReferenceOptions& options) {
  JITGEMM_TRY(check_inputs(inputs));
  JITGEMM_TRY(check_weights(weights, inputs.a.rows));
  return checksums(inputs.b, inputs.b_scales, inputs.group_n, inputs.a, inputs.a_scales, 1, weights,
                   inputs.group_k, options.threads);
}

std::vector<double> checksum_weights(int64_t count, uint64_t seed) {
  const RandomStream stream(seed, 0x57);
  std::vector<double> weights(static_cast<size_t>(count));
  for (size_t i = 0; i < weights.size(); ++i) {
    const uint32_t bits = stream.bits(i);
    const double size = 0.5 + (bits & 0xffU) * 0x1p-8;
    weights[i] = (bits & 0x100U) != 0 ? -size : size;
  }
  return weights;
}

}  // namespace jitgemm
