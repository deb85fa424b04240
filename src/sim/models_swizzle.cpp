// SPDX-License-Identifier: Apache-2.0
#include "sim/models_swizzle.h"

namespace jitgemm::sim {

std::string_view swizzle_name(SwizzleMode mode) {
  switch (mode) {
    case SwizzleMode::kNone: return "none";
    case SwizzleMode::k32B: return "32B";
    case SwizzleMode::k64B: return "64B";
    case SwizzleMode::k128B: return "128B";
    case SwizzleMode::k128BAtom32B: return "128B with 32B atoms";
    case SwizzleMode::k128BAtom32BFlip8B: return "128B with 32B atoms and 8B flip";
    case SwizzleMode::k128BAtom64B: return "128B with 64B atoms";
  }
  return "";
}

uint32_t swizzle_width(SwizzleMode mode) {
  switch (mode) {
    case SwizzleMode::kNone: return 16;
    case SwizzleMode::k32B: return 32;
    case SwizzleMode::k64B: return 64;
    default: return 128;
  }
}

uint32_t swizzle_period(SwizzleMode mode) {
  switch (mode) {
    case SwizzleMode::kNone: return 16;
    case SwizzleMode::k32B: return 256;
    case SwizzleMode::k64B: return 512;
    case SwizzleMode::k128B: return 1024;
    case SwizzleMode::k128BAtom32B:
    case SwizzleMode::k128BAtom32BFlip8B: return 512;
    case SwizzleMode::k128BAtom64B: return 256;
  }
  return 16;
}

}  // namespace jitgemm::sim
