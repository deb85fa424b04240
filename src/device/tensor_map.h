// SPDX-License-Identifier: Apache-2.0
// A neutral description of a TMA tensor map (PTX ISA, "Tensor-map"; CUDA Driver API,
// cuTensorMapEncodeTiled). Each device encodes it into its own 128 bytes.
#pragma once

#include "plan/gemm_plan.h"
#include "problem/dtype.h"
#include "support/status.h"

#include <array>
#include <cstdint>

namespace jitgemm {

// Dimension 0 is the contiguous one. Out-of-range elements read as zero and are not written.
struct TensorMapSpec {
  DType dtype = DType::kF8E4M3;
  uint32_t rank = 2;
  uint64_t address = 0;                  // a multiple of 16
  std::array<uint64_t, 5> extents = {};  // elements
  std::array<uint64_t, 4> strides = {};  // bytes, of dimensions 1 and up; multiples of 16
  std::array<uint32_t, 5> box = {};      // elements, each at most 256
  Swizzle swizzle = Swizzle::kNone;
};

// INVALID_ARGUMENT for what no device can encode.
Status validate(const TensorMapSpec& spec);

// The map of a row-major matrix of `rows` x `columns` elements.
TensorMapSpec matrix_tensor_map(DType dtype, uint64_t address, int64_t rows, int64_t columns,
                                int64_t row_stride, const TensorMapPlan& plan);

}  // namespace jitgemm
