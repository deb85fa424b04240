// SPDX-License-Identifier: Apache-2.0
// How much memory a matrix spans: what a launch may touch.
#pragma once

#include <cstdint>

namespace jitgemm {

// From the first byte of the first row to the last byte of the last; the stride counts elements.
inline uint64_t matrix_bytes(int64_t rows, int64_t columns, int64_t row_stride,
                             int64_t element_bytes) {
  return rows == 0 ? 0 : static_cast<uint64_t>(((rows - 1) * row_stride + columns) * element_bytes);
}

}  // namespace jitgemm
