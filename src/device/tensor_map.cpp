// SPDX-License-Identifier: Apache-2.0
#include "device/tensor_map.h"

#include <fmt/format.h>

namespace jitgemm {

Status validate(const TensorMapSpec& spec) {
  if (spec.rank < 1 || spec.rank > 5) {
    return invalid_argument(fmt::format("tensor map: expected rank 1 to 5, found {}", spec.rank));
  }
  if (spec.address % 16 != 0) {
    return invalid_argument(fmt::format(
        "tensor map: expected a base address that is a multiple of 16, found {:#x}", spec.address));
  }
  const auto element_bytes = static_cast<uint64_t>(dtype_info(spec.dtype).bytes);
  for (uint32_t i = 0; i < spec.rank; ++i) {
    if (spec.extents[i] < 1 || spec.extents[i] > (uint64_t{1} << 32)) {
      return invalid_argument(
          fmt::format("tensor map: expected extent {} in 1 to 2^32, found {}", i, spec.extents[i]));
    }
    if (spec.box[i] < 1 || spec.box[i] > 256) {
      return invalid_argument(
          fmt::format("tensor map: expected box {} in 1 to 256, found {}", i, spec.box[i]));
    }
    if (i > 0 && (spec.strides[i - 1] % 16 != 0 || spec.strides[i - 1] >= (uint64_t{1} << 40))) {
      return invalid_argument(
          fmt::format("tensor map: expected stride {} to be a multiple of 16 below 2^40, found {}",
                      i, spec.strides[i - 1]));
    }
  }
  const uint64_t inner = spec.box[0] * element_bytes;
  if (inner % 16 != 0) {
    return invalid_argument(
        fmt::format("tensor map: expected box rows of a multiple of 16 bytes, found {}", inner));
  }
  const auto span = static_cast<uint64_t>(spec.swizzle);
  if (span != 0 && inner > span) {
    return invalid_argument(
        fmt::format("tensor map: box rows of {} bytes exceed the swizzle span {}", inner, span));
  }
  return ok_status();
}

TensorMapSpec matrix_tensor_map(DType dtype, uint64_t address, int64_t rows, int64_t columns,
                                int64_t row_stride, const TensorMapPlan& plan) {
  TensorMapSpec spec;
  spec.dtype = dtype;
  spec.rank = 2;
  spec.address = address;
  spec.extents = {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)};
  spec.strides = {static_cast<uint64_t>(row_stride) *
                  static_cast<uint64_t>(dtype_info(dtype).bytes)};
  spec.box = {static_cast<uint32_t>(plan.box_columns), static_cast<uint32_t>(plan.box_rows)};
  spec.swizzle = plan.swizzle;
  return spec;
}

}  // namespace jitgemm
