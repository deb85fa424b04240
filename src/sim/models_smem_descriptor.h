// SPDX-License-Identifier: Apache-2.0
// The 64-bit shared-memory matrix descriptors of wgmma (PTX ISA 9.7.15.5.1.2) and tcgen05
// (9.7.16.4.1): decoding, legality, and the address of every 16 bytes of a matrix in the canonical
// layouts. An address here is an offset in the shared memory of the CTA that the descriptor is used
// in.
//
// Canonical layouts, in bytes, before the swizzle of the address:
//   K-major, W = width of the swizzle:
//     none      (row % 8) * 16 + (row / 8) * stride + (byte / 16) * leading + byte % 16
//     W         (row % 8) * W  + (row / 8) * stride + byte
//   MN-major, chunk = 16 bytes along m or n, at one k:
//     none      chunk * stride + (k % 8) * 16 + (k / 8) * leading
//     W         (chunk % (W/16)) * 16 + (chunk / (W/16)) * leading + (k % 8) * W + (k / 8) * stride
//     32B atoms as W = 128, with groups of 4 k instead of 8
#pragma once

#include "sim/models_swizzle.h"

#include <cstdint>
#include <string>

namespace jitgemm::sim {

struct MatrixDescriptor {
  uint32_t start = 0;    // bytes
  uint32_t leading = 0;  // bytes
  uint32_t stride = 0;   // bytes
  uint32_t base_offset = 0;
  // `leading` is no stride but the address of the 128-byte rows in which rows go on that reach the
  // end of theirs (tcgen05 on sm_103a, 9.7.16.3.1.2).
  bool leading_is_absolute = false;
  SwizzleMode swizzle = SwizzleMode::kNone;
};

// The descriptor, or the field that is illegal and why (`error` not empty).
struct DecodedDescriptor {
  MatrixDescriptor descriptor;
  std::string error;
};
DecodedDescriptor decode_wgmma_descriptor(uint64_t bits);
DecodedDescriptor decode_tcgen05_descriptor(uint64_t bits);

// Offset of the 16 bytes `chunk` of `row` of a K-major matrix.
uint32_t k_major_address(const MatrixDescriptor& descriptor, uint32_t row, uint32_t chunk);
// Offset of the 16 bytes `chunk` along m or n, at k, of an MN-major matrix.
uint32_t mn_major_address(const MatrixDescriptor& descriptor, uint32_t chunk, uint32_t k);

}  // namespace jitgemm::sim
