// SPDX-License-Identifier: Apache-2.0
// How many wavefronts an access to shared memory takes: 32 banks of 4 bytes, lanes served in groups
// of 128 bytes' width, words that several lanes ask for served once. A pure fact of the machine,
// not documented by the PTX ISA; CUDA C++ Programming Guide, shared memory of compute
// capability 5.x and later.
#pragma once

#include <cstdint>
#include <span>

namespace jitgemm::sim {

struct Wavefronts {
  uint32_t needed = 0;
  uint32_t ideal = 0;  // without any conflict
};

// `offsets` has the byte offset of each active lane, lowest lane first; each accesses `bytes` (1 to
// 32) from there.
Wavefronts count_wavefronts(std::span<const uint32_t> offsets, uint32_t bytes);

}  // namespace jitgemm::sim
