// SPDX-License-Identifier: Apache-2.0
#include "sim/models_smem_descriptor.h"

#include <fmt/format.h>

namespace jitgemm::sim {
namespace {

uint32_t field(uint64_t bits, int low, int count) {
  return static_cast<uint32_t>((bits >> low) & ((1ull << count) - 1));
}

// The fields that both families have at the same place.
MatrixDescriptor shared_fields(uint64_t bits) {
  MatrixDescriptor d;
  d.start = field(bits, 0, 14) << 4;
  d.leading = field(bits, 16, 14) << 4;
  d.stride = field(bits, 32, 14) << 4;
  d.base_offset = field(bits, 49, 3);
  return d;
}

std::string reserved(uint64_t bits, int low, int count) {
  if (field(bits, low, count) == 0) return "";
  return fmt::format("bits {}-{} of the matrix descriptor are reserved and must be 0, found {:#x}",
                     low, low + count - 1, field(bits, low, count));
}

}  // namespace

DecodedDescriptor decode_wgmma_descriptor(uint64_t bits) {
  DecodedDescriptor out{shared_fields(bits), ""};
  constexpr SwizzleMode kModes[] = {SwizzleMode::kNone, SwizzleMode::k128B, SwizzleMode::k64B,
                                    SwizzleMode::k32B};
  out.descriptor.swizzle = kModes[field(bits, 62, 2)];
  for (const auto& [low, count] : {
           std::pair{14, 2 },
           {30, 2 },
           {46, 3 },
           {52, 10}
  }) {
    if (out.error.empty()) out.error = reserved(bits, low, count);
  }
  return out;
}

DecodedDescriptor decode_tcgen05_descriptor(uint64_t bits) {
  DecodedDescriptor out{shared_fields(bits), ""};
  for (const auto& [low, count] : {
           std::pair{14, 2},
           {30, 2},
           {53, 8}
  }) {
    if (out.error.empty()) out.error = reserved(bits, low, count);
  }
  if (field(bits, 46, 3) != 1 && out.error.empty()) {
    out.error = fmt::format("bits 46-48 of the matrix descriptor must be 0b001, found {}",
                            field(bits, 46, 3));
  }
  switch (field(bits, 61, 3)) {
    case 0: out.descriptor.swizzle = SwizzleMode::kNone; break;
    case 1: out.descriptor.swizzle = SwizzleMode::k128BAtom32B; break;
    case 2: out.descriptor.swizzle = SwizzleMode::k128B; break;
    case 4: out.descriptor.swizzle = SwizzleMode::k64B; break;
    case 6: out.descriptor.swizzle = SwizzleMode::k32B; break;
    default:
      if (out.error.empty()) {
        out.error = fmt::format(
            "bits 61-63 of the matrix descriptor (swizzle mode) must be 0, 1, 2, 4 or 6, found {}",
            field(bits, 61, 3));
      }
  }
  out.descriptor.leading_is_absolute = field(bits, 52, 1) != 0;
  if (out.descriptor.leading_is_absolute && out.error.empty() &&
      (out.descriptor.swizzle != SwizzleMode::k128B || out.descriptor.base_offset != 0)) {
    out.error =
        "bit 52 of the matrix descriptor (absolute leading-dimension address) needs the swizzle "
        "of 128 bytes and base offset 0";
  }
  return out;
}

uint32_t k_major_address(const MatrixDescriptor& d, uint32_t row, uint32_t chunk) {
  const uint32_t width = swizzle_width(d.swizzle);
  const uint32_t step = d.swizzle == SwizzleMode::kNone ? d.leading : 16;
  uint32_t first = d.start + chunk * step;
  if (d.leading_is_absolute && d.start % width + chunk * step >= width)
    first = d.leading + d.start % width + chunk * step - width;
  const uint32_t linear = first + (row % 8) * width + (row / 8) * d.stride;
  return static_cast<uint32_t>(swizzle_address(d.swizzle, linear, d.base_offset));
}

uint32_t mn_major_address(const MatrixDescriptor& d, uint32_t chunk, uint32_t k) {
  if (d.swizzle == SwizzleMode::kNone) {
    return d.start + chunk * d.stride + (k % 8) * 16 + (k / 8) * d.leading;
  }
  const uint32_t width = swizzle_width(d.swizzle);
  const uint32_t per_row = width / 16;
  const uint32_t group = d.swizzle == SwizzleMode::k128BAtom32B ? 4 : 8;
  const uint32_t linear = d.start + (chunk % per_row) * 16 + (chunk / per_row) * d.leading +
                          (k % group) * width + (k / group) * d.stride;
  return static_cast<uint32_t>(swizzle_address(d.swizzle, linear, d.base_offset));
}

}  // namespace jitgemm::sim
