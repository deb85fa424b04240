// SPDX-License-Identifier: Apache-2.0
// Which bytes a tensor copy touches (PTX ISA 5.5.2 to 5.5.7): a box at given coordinates, or a
// column of pixels, as rows along dimension 0, each with the part that lies inside the tensor. Pure
// functions of the map.
#pragma once

#include "sim/models_tensor_map.h"

#include <array>
#include <cstdint>
#include <vector>

namespace jitgemm::sim {

// One row of the box. Bytes of global memory: [address, address + bytes); of shared memory, before
// the swizzle: [shared_offset, shared_offset + unit.shared_bytes / unit.global_bytes * bytes) from
// the start of the box. Only [valid_begin, valid_end) of the global bytes lie inside the tensor.
struct BoxRow {
  uint64_t address = 0;
  uint32_t shared_offset = 0;
  uint32_t bytes = 0;
  uint32_t valid_begin = 0;
  uint32_t valid_end = 0;
};

using Coordinates = std::array<int32_t, 5>;

std::vector<BoxRow> box_rows(const TensorMap& map, const Coordinates& start);
// The same of an im2col map: pixels from the one at `start` on, which lies in the box, W first,
// then H, D and N; of each the element that is `offsets` away in W, H and D (5.5.4).
std::vector<BoxRow> im2col_rows(const TensorMap& map, const Coordinates& start,
                                const std::array<uint16_t, 3>& offsets);
// Bytes that a box occupies in shared memory, and bytes that the copy reports to an mbarrier (those
// of the packed form, out-of-bounds elements included).
uint32_t box_shared_bytes(const TensorMap& map);
uint32_t box_transaction_bytes(const TensorMap& map);

}  // namespace jitgemm::sim
