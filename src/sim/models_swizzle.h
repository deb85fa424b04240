// SPDX-License-Identifier: Apache-2.0
// The swizzle modes of shared memory: one function from the linear address of a byte to where it
// lies. Used by tensor copies and by matrix descriptors, which is what makes the two agree. Pure
// arithmetic. PTX ISA 5.5.7 (tensor copies), 9.7.15.5.1.2 (wgmma), 9.7.16.10.6 (tcgen05).
#pragma once

#include <cstdint>
#include <string_view>

namespace jitgemm::sim {

enum class SwizzleMode : uint8_t {
  kNone,
  k32B,
  k64B,
  k128B,               // 16-byte chunks within 128 bytes
  k128BAtom32B,        // 32-byte chunks within 128 bytes
  k128BAtom32BFlip8B,  // as before, and the 8-byte halves of a chunk's 16 bytes change places in
                       // odd rows
  k128BAtom64B,        // 64-byte chunks within 128 bytes
};

std::string_view swizzle_name(SwizzleMode mode);
// Bytes of a row of the pattern: 16 (none), 32, 64 or 128.
uint32_t swizzle_width(SwizzleMode mode);
// The pattern repeats after so many bytes; a pattern starts at a multiple of it.
uint32_t swizzle_period(SwizzleMode mode);

// `row_phase` is subtracted from the number of the 128-byte line before it is used: the base offset
// of a matrix descriptor whose pattern does not start at a multiple of the period.
inline uint64_t swizzle_address(SwizzleMode mode, uint64_t address, uint32_t row_phase = 0) {
  const uint64_t line = (address >> 7) - row_phase;
  switch (mode) {
    case SwizzleMode::kNone: return address;
    case SwizzleMode::k32B: return address ^ ((line & 1) << 4);
    case SwizzleMode::k64B: return address ^ ((line & 3) << 4);
    case SwizzleMode::k128B: return address ^ ((line & 7) << 4);
    case SwizzleMode::k128BAtom32B: return address ^ ((line & 3) << 5);
    case SwizzleMode::k128BAtom32BFlip8B: return address ^ ((line & 3) << 5) ^ ((line & 1) << 3);
    case SwizzleMode::k128BAtom64B: return address ^ ((line & 1) << 6);
  }
  return address;
}

}  // namespace jitgemm::sim
