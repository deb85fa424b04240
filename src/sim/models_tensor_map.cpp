// SPDX-License-Identifier: Apache-2.0
#include "sim/models_tensor_map.h"

#include <fmt/format.h>

#include <cstring>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kMaxBox = 256;                      // elements of a box along a dimension
constexpr uint32_t kMaxPixels = 1024;                  // of a column in im2col mode
constexpr uint64_t kMagic = 0x3130'5041'4d54'474aull;  // "JGTMAP01"

// The 128 bytes. Sizes fit: dimensions are at most 2^32 (stored less one), boxes at most 1024. Bit
// 21 of the second word is always 0: host code in production (CUTLASS) clears it in maps of small
// tensors after cuTensorMapEncodeTiled has made them, and may do so here.
struct Wire {
  uint64_t magic;
  uint8_t element;
  uint8_t rank;
  uint8_t swizzle;
  uint8_t nan_fill;
  uint32_t dims[5];
  uint16_t box[5];
  uint8_t element_strides[5];
  uint8_t im2col;
  uint64_t address;
  uint64_t strides[4];
  int16_t lower_corner[3];
  int16_t upper_corner[3];
  uint8_t reserved[20];
  uint64_t checksum;
};
static_assert(sizeof(Wire) == 128);

uint64_t checksum(const Wire& wire) {
  unsigned char bytes[sizeof(Wire) - sizeof(uint64_t)];
  std::memcpy(bytes, &wire, sizeof bytes);
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

// The rules of cuTensorMapEncodeIm2col and the limits of 5.5.4.1.
std::string im2col_error(const TensorMap& map) {
  if (map.rank < 3) return fmt::format("rank {} of an im2col map is not in 3..5", map.rank);
  const int limit = static_cast<int>(im2col_offset_limit(map.rank) / 2 + 1);
  for (uint32_t i = 0; i + 2 < map.rank; ++i) {
    for (const int corner : {map.lower_corner[i], map.upper_corner[i]}) {
      if (corner < -limit || corner >= limit) {
        return fmt::format("the corner {} of dimension {} is not in {}..{}", corner, i + 1, -limit,
                           limit - 1);
      }
    }
    if (map.lower_corner[i] >= static_cast<int64_t>(map.dims[i + 1]) + map.upper_corner[i]) {
      return fmt::format("the corners {} and {} leave no pixel of dimension {}",
                         map.lower_corner[i], map.upper_corner[i], i + 1);
    }
  }
  return "";
}

std::string packed_error(const TensorMap& map) {
  if (map.element == TensorElement::kU4x16Align8) {
    return map.dims[0] % 2 == 0 ? "" : "the first dimension of packed 4-bit elements must be even";
  }
  if (map.address % 32 != 0)
    return "the address of padded sub-byte elements must be a multiple of 32";
  if (map.dims[0] % 128 != 0)
    return "the first dimension of padded sub-byte elements must be a multiple of 128";
  if (map.box[0] != 128) return "the first box dimension of padded sub-byte elements must be 128";
  for (uint32_t i = 0; i + 1 < map.rank; ++i) {
    if (map.strides[i] % 32 != 0)
      return "strides of padded sub-byte elements must be multiples of 32";
  }
  if (map.swizzle != SwizzleMode::kNone && swizzle_width(map.swizzle) != 128) {
    return "padded sub-byte elements need no swizzle or one of the 128B modes";
  }
  return "";
}

}  // namespace

TensorUnit unit_of(TensorElement element) {
  switch (element) {
    case TensorElement::kU8: return {1, 1, 1};
    case TensorElement::kU16:
    case TensorElement::kF16:
    case TensorElement::kBf16: return {1, 2, 2};
    case TensorElement::kU32:
    case TensorElement::kS32:
    case TensorElement::kF32:
    case TensorElement::kF32Ftz:
    case TensorElement::kTf32:
    case TensorElement::kTf32Ftz: return {1, 4, 4};
    case TensorElement::kU64:
    case TensorElement::kS64:
    case TensorElement::kF64: return {1, 8, 8};
    case TensorElement::kU4x16Align8: return {16, 8, 8};
    case TensorElement::kU4x16Align16: return {16, 8, 16};
    case TensorElement::kU6x16Align16: return {16, 12, 16};
  }
  return {};
}

bool is_float(TensorElement element) {
  switch (element) {
    case TensorElement::kF16:
    case TensorElement::kF32:
    case TensorElement::kF64:
    case TensorElement::kBf16:
    case TensorElement::kF32Ftz:
    case TensorElement::kTf32:
    case TensorElement::kTf32Ftz: return true;
    default: return false;
  }
}

uint32_t im2col_offset_limit(uint32_t rank) {
  const uint32_t bits = rank == 3 ? 16 : rank == 4 ? 8 : 5;
  return (1u << bits) - 1;
}

bool rounds_when_loaded(TensorElement element) {
  return element == TensorElement::kTf32 || element == TensorElement::kTf32Ftz;
}

uint32_t rounded_to_tf32(uint32_t bits) {
  constexpr uint32_t kMagnitude = 0x7fffffff, kInfinity = 0x7f800000, kDropped = 0x1fff;
  constexpr uint32_t kNan = 0x7fffe000;
  if ((bits & kMagnitude) > kInfinity) return kNan;
  // To 10 fraction bits, to nearest, ties to even; a carry into the exponent is right.
  return (bits + (kDropped >> 1) + (bits >> 13 & 1)) & ~kDropped;
}

std::string tensor_map_error(const TensorMap& map) {
  if (map.rank < 1 || map.rank > 5) return fmt::format("rank {} is not in 1..5", map.rank);
  if (map.address == 0 || map.address % 16 != 0) {
    return fmt::format("the address {:#x} must be a multiple of 16, not null", map.address);
  }
  const TensorUnit unit = unit_of(map.element);
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.dims[i] < 1 || map.dims[i] > (uint64_t{1} << 32)) {
      return fmt::format("dimension {} of {} elements is not in 1..2^32", i, map.dims[i]);
    }
    const bool pixels = map.im2col && i == 1;
    const uint32_t limit = pixels ? kMaxPixels : kMaxBox;
    if (map.box[i] < 1 || map.box[i] > limit) {
      return pixels ? fmt::format("a column of {} pixels is not in 1..{}", map.box[i], limit)
                    : fmt::format("box dimension {} of {} elements is not in 1..{}", i, map.box[i],
                                  limit);
    }
    if (map.element_strides[i] < 1 || map.element_strides[i] > 8) {
      return fmt::format("element stride {} of dimension {} is not in 1..8", map.element_strides[i],
                         i);
    }
    if (i == 0) continue;
    if (map.strides[i - 1] % 16 != 0 || map.strides[i - 1] >= (uint64_t{1} << 40)) {
      return fmt::format("the stride {} of dimension {} must be a multiple of 16 below 2^40",
                         map.strides[i - 1], i);
    }
  }
  if (map.im2col) {
    if (std::string error = im2col_error(map); !error.empty()) return error;
  }
  const uint64_t inner = uint64_t{map.box[0]} * unit.global_bytes / unit.elements;
  if (inner % 16 != 0 || map.box[0] % unit.elements != 0) {
    return fmt::format("the inner box of {} elements is {} bytes, no multiple of 16", map.box[0],
                       inner);
  }
  const uint64_t shared = uint64_t{map.box[0]} / unit.elements * unit.shared_bytes;
  if (map.swizzle != SwizzleMode::kNone && shared > swizzle_width(map.swizzle)) {
    return fmt::format("the inner box of {} bytes exceeds the {} bytes of swizzle {}", shared,
                       swizzle_width(map.swizzle), swizzle_name(map.swizzle));
  }
  if (map.nan_fill && !is_float(map.element)) return "NaN fill needs a floating-point element type";
  return unit.elements == 16 ? packed_error(map) : "";
}

EncodedMap encode_tensor_map(const TensorMap& map) {
  Wire wire{};
  wire.magic = kMagic;
  wire.address = map.address;
  wire.element = static_cast<uint8_t>(map.element);
  wire.rank = static_cast<uint8_t>(map.rank);
  wire.swizzle = static_cast<uint8_t>(map.swizzle);
  wire.nan_fill = map.nan_fill ? 1 : 0;
  for (size_t i = 0; i < 5; ++i) {
    wire.dims[i] = static_cast<uint32_t>(map.dims[i] - 1);
    wire.box[i] = static_cast<uint16_t>(map.box[i]);
    wire.element_strides[i] = static_cast<uint8_t>(map.element_strides[i]);
    if (i < 4) wire.strides[i] = map.strides[i];
  }
  wire.im2col = map.im2col ? 1 : 0;
  for (size_t i = 0; i < 3; ++i) {
    wire.lower_corner[i] = map.lower_corner[i];
    wire.upper_corner[i] = map.upper_corner[i];
  }
  wire.checksum = checksum(wire);
  EncodedMap bytes;
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

bool decode_tensor_map(std::span<const std::byte, 128> bytes, TensorMap& map) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kMagic || wire.checksum != checksum(wire)) return false;
  map.element = static_cast<TensorElement>(wire.element);
  map.rank = wire.rank;
  map.address = wire.address;
  for (size_t i = 0; i < 5; ++i) {
    map.dims[i] = uint64_t{wire.dims[i]} + 1;
    map.box[i] = wire.box[i];
    map.element_strides[i] = wire.element_strides[i];
    if (i < 4) map.strides[i] = wire.strides[i];
  }
  map.swizzle = static_cast<SwizzleMode>(wire.swizzle);
  map.nan_fill = wire.nan_fill != 0;
  map.im2col = wire.im2col != 0;
  for (size_t i = 0; i < 3; ++i) {
    map.lower_corner[i] = wire.lower_corner[i];
    map.upper_corner[i] = wire.upper_corner[i];
  }
  return true;
}

}  // namespace jitgemm::sim
