// SPDX-License-Identifier: Apache-2.0
// The simulator's own tensor map: a neutral description of a tiled tensor and its encoding into the
// 128 opaque bytes that a kernel passes around (PTX ISA 5.5.8; kernels never look inside). A magic
// number and a checksum make a garbage map a fault. Rules: CUDA driver API, cuTensorMapEncodeTiled.
#pragma once

#include "sim/models_swizzle.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace jitgemm::sim {

enum class TensorElement : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz,
  kU4x16Align8,   // 16 4-bit elements: 8 bytes in global and in shared memory
  kU4x16Align16,  // 8 bytes in global memory, 8 and 8 of padding in shared memory
  kU6x16Align16,  // 12 bytes in global memory, 12 and 4 of padding in shared memory
};

// Elements are moved in units: one element, or 16 of the packed types.
struct TensorUnit {
  uint32_t elements = 1;
  uint32_t global_bytes = 1;
  uint32_t shared_bytes = 1;
};
TensorUnit unit_of(TensorElement element);
bool is_float(TensorElement element);
// Loads as TF32 round: the driver API names the types and not what they do, so this is what an H200
// does (tests/ptx/cases/copy.case). Stores leave every value alone. Of the types that flush
// subnormals, only reductions do (async_reduce.h).
bool rounds_when_loaded(TensorElement element);
uint32_t rounded_to_tf32(uint32_t bits);

// Dimension 0 is the contiguous one.
struct TensorMap {
  TensorElement element = TensorElement::kU8;
  uint32_t rank = 1;
  uint64_t address = 0;
  std::array<uint64_t, 5> dims = {1, 1, 1, 1, 1};  // elements
  std::array<uint64_t, 4> strides = {0, 0, 0, 0};  // bytes, of dimensions 1 and up
  std::array<uint32_t, 5> box = {1, 1, 1, 1, 1};   // elements
  std::array<uint32_t, 5> element_strides = {1, 1, 1, 1, 1};
  SwizzleMode swizzle = SwizzleMode::kNone;
  // Im2col mode (5.5.4): a copy takes pixels from a box in W, H and D, one after another. box[0] is
  // then the channels of a pixel and box[1] the number of pixels; the corners are those of W, H and
  // D, counted from the first and from the last pixel of the tensor.
  bool im2col = false;
  std::array<int16_t, 3> lower_corner = {0, 0, 0};
  std::array<int16_t, 3> upper_corner = {0, 0, 0};
  bool nan_fill = false;  // out-of-bounds elements of float types read as NaN instead of zero

  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

using EncodedMap = std::array<std::byte, 128>;

// The largest offset of an im2col copy; corners have the same number of bits, with sign (5.5.4.1).
uint32_t im2col_offset_limit(uint32_t rank);

// Empty if legal, else the field and the rule.
std::string tensor_map_error(const TensorMap& map);
EncodedMap encode_tensor_map(const TensorMap& map);
// False if the bytes are no encoded map.
bool decode_tensor_map(std::span<const std::byte, 128> bytes, TensorMap& map);

}  // namespace jitgemm::sim
