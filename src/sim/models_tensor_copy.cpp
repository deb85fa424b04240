// SPDX-License-Identifier: Apache-2.0
#include "sim/models_tensor_copy.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

// Elements of the box along a dimension that are copied: every element_stride-th one. The stride of
// dimension 0 is ignored without interleaving (cuTensorMapEncodeTiled).
uint32_t copied(const TensorMap& map, uint32_t dimension) {
  if (dimension == 0) return map.box[0];
  return (map.box[dimension] + map.element_strides[dimension] - 1) / map.element_strides[dimension];
}

uint64_t row_count(const TensorMap& map) {
  if (map.im2col) return map.box[1];
  uint64_t rows = 1;
  for (uint32_t i = 1; i < map.rank; ++i) rows *= copied(map, i);
  return rows;
}

}  // namespace

uint32_t box_shared_bytes(const TensorMap& map) {
  const TensorUnit unit = unit_of(map.element);
  return static_cast<uint32_t>(row_count(map) * (map.box[0] / unit.elements) * unit.shared_bytes);
}

uint32_t box_transaction_bytes(const TensorMap& map) {
  const TensorUnit unit = unit_of(map.element);
  return static_cast<uint32_t>(row_count(map) * (map.box[0] / unit.elements) * unit.global_bytes);
}

std::vector<BoxRow> im2col_rows(const TensorMap& map, const Coordinates& start,
                                const std::array<uint16_t, 3>& offsets) {
  const TensorUnit unit = unit_of(map.element);
  const auto bytes_of = [&](int64_t elements) {
    return elements * unit.global_bytes / unit.elements;
  };
  const int64_t inner = map.box[0];
  const int64_t first = std::clamp<int64_t>(-int64_t{start[0]}, 0, inner);
  const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(map.dims[0]) - start[0], 0, inner);
  const uint32_t spatial = map.rank - 2;
  std::array<int64_t, 4> at{};  // W, H, D and N of the filter's base
  for (uint32_t i = 0; i + 1 < map.rank; ++i) at[i] = start[i + 1];
  std::vector<BoxRow> out;
  for (uint32_t pixel = 0; pixel < map.box[1]; ++pixel) {
    BoxRow r;
    r.bytes = static_cast<uint32_t>(bytes_of(inner));
    r.shared_offset = pixel * (map.box[0] / unit.elements) * unit.shared_bytes;
    r.address = map.address + static_cast<uint64_t>(bytes_of(start[0]));
    bool inside = first < last;
    for (uint32_t i = 0; i <= spatial; ++i) {
      const int64_t place = at[i] + (i < spatial ? offsets[i] : 0);
      inside = inside && place >= 0 && place < static_cast<int64_t>(map.dims[i + 1]);
      r.address += static_cast<uint64_t>(place) * map.strides[i];
    }
    if (inside) {
      r.valid_begin = static_cast<uint32_t>(bytes_of(first));
      r.valid_end = static_cast<uint32_t>(bytes_of(last));
    }
    out.push_back(r);
    uint32_t i = 0;
    for (; i < spatial; ++i) {
      at[i] += map.element_strides[i + 1];
      if (at[i] < static_cast<int64_t>(map.dims[i + 1]) + map.upper_corner[i]) break;
      at[i] = map.lower_corner[i];
    }
    if (i == spatial) ++at[spatial];
  }
  return out;
}

std::vector<BoxRow> box_rows(const TensorMap& map, const Coordinates& start) {
  const TensorUnit unit = unit_of(map.element);
  const auto bytes_of = [&](int64_t elements) {
    return elements * unit.global_bytes / unit.elements;
  };
  const int64_t inner = map.box[0];
  // The part of [start, start + inner) that lies in [0, dim), in elements of the box.
  const int64_t first = std::clamp<int64_t>(-int64_t{start[0]}, 0, inner);
  const int64_t last = std::clamp<int64_t>(static_cast<int64_t>(map.dims[0]) - start[0], 0, inner);
  const uint64_t rows = row_count(map);
  std::vector<BoxRow> out;
  out.reserve(rows);
  std::array<uint32_t, 5> index{};
  for (uint64_t row = 0; row < rows; ++row) {
    BoxRow r;
    r.bytes = static_cast<uint32_t>(bytes_of(inner));
    r.shared_offset = static_cast<uint32_t>(row * (map.box[0] / unit.elements) * unit.shared_bytes);
    r.address = map.address + static_cast<uint64_t>(bytes_of(start[0]));
    bool inside = first < last;
    for (uint32_t i = 1; i < map.rank; ++i) {
      const int64_t at = int64_t{start[i]} + int64_t{index[i]} * map.element_strides[i];
      inside = inside && at >= 0 && at < static_cast<int64_t>(map.dims[i]);
      r.address += static_cast<uint64_t>(at) * map.strides[i - 1];
    }
    if (inside) {
      r.valid_begin = static_cast<uint32_t>(bytes_of(first));
      r.valid_end = static_cast<uint32_t>(bytes_of(last));
    }
    out.push_back(r);
    for (uint32_t i = 1; i < map.rank; ++i) {
      if (++index[i] < copied(map, i)) break;
      index[i] = 0;
    }
  }
  return out;
}

}  // namespace jitgemm::sim
