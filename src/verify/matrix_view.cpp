// SPDX-License-Identifier: Apache-2.0
#include "verify/matrix_view.h"

#include "verify/fp8_reference.h"

#include <cstdlib>
#include <cstring>
#include <numeric>

namespace jitgemm {
namespace {

template <typename T>
T load(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

double decode_byte(DType dtype, uint8_t code) {
  switch (dtype) {
    case DType::kF8E4M3: return decode_e4m3(code);
    case DType::kF8E5M2: return decode_e5m2(code);
    case DType::kF8E8M0: return decode_ue8m0(code);
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kI32: break;
  }
  return 0.0;
}

}  // namespace

MatrixView row_major_view(const void* data, DType dtype, int64_t rows, int64_t cols) {
  return {data, dtype, rows, cols, cols, 1};
}

MatrixView column_major_view(const void* data, DType dtype, int64_t rows, int64_t cols) {
  return {data, dtype, rows, cols, 1, rows};
}

MatrixView view_of(const HostTensor& tensor) {
  if (tensor.shape.size() != 2) std::abort();
  return row_major_view(tensor.bytes.data(), tensor.dtype, tensor.shape[0], tensor.shape[1]);
}

Decoder::Decoder(DType dtype) : dtype_(dtype) {
  for (unsigned code = 0; code < 256; ++code) {
    codes_[code] = decode_byte(dtype, static_cast<uint8_t>(code));
  }
}

double Decoder::element(const void* data, int64_t index) const {
  switch (dtype_) {
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0: return codes_[load<uint8_t>(data, index)];
    case DType::kF16: return decode_fp16(load<uint16_t>(data, index));
    case DType::kBF16: return decode_bf16(load<uint16_t>(data, index));
    case DType::kF32: return load<float>(data, index);
    case DType::kI32: return load<int32_t>(data, index);
  }
  std::abort();
}

std::vector<double> read_matrix(const MatrixView& view, std::span<const int64_t> rows,
                                std::span<const int64_t> cols) {
  const Decoder decode(view.dtype);
  std::vector<double> values;
  values.reserve(rows.size() * cols.size());
  for (const int64_t row : rows) {
    for (const int64_t col : cols) values.push_back(decode(view, row, col));
  }
  return values;
}

std::vector<double> read_matrix(const MatrixView& view) {
  return read_matrix(view, all_indices(view.rows), all_indices(view.cols));
}

std::vector<int64_t> all_indices(int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return indices;
}

}  // namespace jitgemm
