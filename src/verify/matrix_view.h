// SPDX-License-Identifier: Apache-2.0
// A matrix somewhere in host memory, of any element type and with any strides, and its elements as
// float64. Decoding is that of fp8_reference.h and of nothing else.
#pragma once

#include "problem/dtype.h"
#include "verify/host_tensor.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace jitgemm {

// Strides are in elements and may be anything, 0 and negative included.
struct MatrixView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
};

MatrixView row_major_view(const void* data, DType dtype, int64_t rows, int64_t cols);
MatrixView column_major_view(const void* data, DType dtype, int64_t rows, int64_t cols);
// A rank-2 tensor; aborts on another rank, which is a bug of the caller.
MatrixView view_of(const HostTensor& tensor);

// Elements of one dtype as float64; the 256 codes of an 8-bit type are decoded once.
class Decoder {
 public:
  explicit Decoder(DType dtype);
  double operator()(const MatrixView& view, int64_t row, int64_t col) const {
    return element(view.data, row * view.row_stride + col * view.col_stride);
  }
  double element(const void* data, int64_t index) const;

 private:
  DType dtype_;
  std::array<double, 256> codes_{};
};

// The chosen elements, row by row.
std::vector<double> read_matrix(const MatrixView& view, std::span<const int64_t> rows,
                                std::span<const int64_t> cols);
std::vector<double> read_matrix(const MatrixView& view);

// 0, 1, ... count - 1.
std::vector<int64_t> all_indices(int64_t count);

}  // namespace jitgemm
