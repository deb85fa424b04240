// SPDX-License-Identifier: Apache-2.0
#include "sim/models_tmem_layout.h"

namespace jitgemm::sim {
namespace {

// M = 128 over a pair of CTAs: each CTA holds 64 rows, its lanes split in two halves (layout B).
bool is_two_by_two(int m, int cta_group) {
  return cta_group == 2 && m == 128;
}

uint32_t rows_per_cta(int m, int cta_group) {
  return static_cast<uint32_t>(m / cta_group);
}

uint32_t ceil_div(uint32_t a, uint32_t b) {
  return (a + b - 1) / b;
}

}  // namespace

uint32_t access_registers(TmemAccess shape, uint32_t count) {
  switch (shape) {
    case TmemAccess::k16x64b:
    case TmemAccess::k32x32b:
    case TmemAccess::k16x32bx2: return count;
    case TmemAccess::k16x128b: return 2 * count;
    case TmemAccess::k16x256b: return 4 * count;
  }
  return 0;
}

uint32_t access_lanes(TmemAccess shape) {
  return shape == TmemAccess::k32x32b ? 32 : 16;
}

TmemCell access_cell(TmemAccess shape, uint32_t lane, uint32_t r, uint32_t half_offset) {
  switch (shape) {
    case TmemAccess::k32x32b: return {lane, r};
    case TmemAccess::k16x64b: return {lane / 4 + 8 * (lane % 2), (lane / 2) % 2 + 2 * r};
    case TmemAccess::k16x128b: return {lane / 4 + 8 * (r % 2), lane % 4 + 4 * (r / 2)};
    case TmemAccess::k16x256b:
      return {lane / 4 + 8 * ((r / 2) % 2), r % 2 + 2 * (lane % 4) + 8 * (r / 4)};
    case TmemAccess::k16x32bx2: return {lane % 16, r + (lane / 16) * half_offset};
  }
  return {};
}

uint32_t copy_rows(TmemCopy shape) {
  switch (shape) {
    case TmemCopy::k128x256b:
    case TmemCopy::k128x128b: return 128;
    case TmemCopy::k4x256b: return 4;
    case TmemCopy::k64x128bPairs02:
    case TmemCopy::k64x128bPairs01: return 64;
    case TmemCopy::k32x128b: return 32;
  }
  return 0;
}

uint32_t copy_row_bytes(TmemCopy shape) {
  return shape == TmemCopy::k128x256b || shape == TmemCopy::k4x256b ? 32 : 16;
}

uint32_t copy_replicas(TmemCopy shape) {
  switch (shape) {
    case TmemCopy::k64x128bPairs02:
    case TmemCopy::k64x128bPairs01: return 2;
    case TmemCopy::k32x128b: return 4;
    default: return 1;
  }
}

uint32_t copy_lane(TmemCopy shape, uint32_t row, uint32_t replica) {
  switch (shape) {
    case TmemCopy::k128x256b:
    case TmemCopy::k128x128b: return row;
    case TmemCopy::k4x256b: return 32 * row;
    case TmemCopy::k64x128bPairs02: return row + 64 * replica;
    case TmemCopy::k64x128bPairs01: return 64 * (row / 32) + row % 32 + 32 * replica;
    case TmemCopy::k32x128b: return row + 32 * replica;
  }
  return 0;
}

TmemPlace accumulator_place(int m, int n, int cta_group, uint32_t row, uint32_t column) {
  const uint32_t per_cta = rows_per_cta(m, cta_group);
  const uint32_t cta = row / per_cta;
  const uint32_t local = row % per_cta;
  if (is_two_by_two(m, cta_group)) {
    const uint32_t half = static_cast<uint32_t>(n) / 2;
    return {
        cta, {local + 64 * (column / half), column % half}
    };
  }
  if (m == 64)
    return {
        cta, {32 * (local / 16) + local % 16, column}
    };
  return {
      cta, {local, column}
  };
}

uint32_t accumulator_columns(int m, int n, int cta_group) {
  return static_cast<uint32_t>(is_two_by_two(m, cta_group) ? n / 2 : n);
}

TmemPlace a_place(int m, int cta_group, uint32_t row, uint32_t replica) {
  const uint32_t per_cta = rows_per_cta(m, cta_group);
  const uint32_t local = row % per_cta;
  const uint32_t lane = m == 64 ? 32 * (local / 16) + local % 16 : local + 64 * replica;
  return {
      row / per_cta, {lane, 0}
  };
}

uint32_t a_replicas(int m, int cta_group) {
  return is_two_by_two(m, cta_group) ? 2 : 1;
}

TmemCell ws_accumulator_cell(int m, int n, uint32_t row, uint32_t column) {
  const uint32_t columns = ws_accumulator_columns(m, n);
  return {row + static_cast<uint32_t>(m) * (column / columns), column % columns};
}

uint32_t ws_accumulator_columns(int m, int n) {
  return static_cast<uint32_t>(n * m / 128);
}

TmemCell ws_a_cell(int m, uint32_t row, uint32_t replica) {
  return {row + static_cast<uint32_t>(m) * replica, 0};
}

uint32_t ws_a_replicas(int m) {
  return static_cast<uint32_t>(128 / m);
}

// Figures 263, 265 and 267; for layouts of half of the lanes, Figures 262, 264 and 266, the same in
// each group of 16 rows.
MetadataPlace metadata_place(MetadataLayout layout, bool half_rows, uint32_t row, uint32_t chunk,
                             uint32_t chunks) {
  const uint32_t group = half_rows ? 32 * (row / 16) : row / 16 * 16;
  const uint32_t within = row % 16;
  if (layout == MetadataLayout::kRows)
    return {
        {group + within, chunk / 8},
        4 * (chunk % 8)
    };
  const uint32_t half = chunk / (chunks / 2);
  return {
      {group + within % 8 + 8 * half, 0},
      16 * (within / 8) + 4 * (chunk % (chunks / 2))
  };
}

uint32_t metadata_columns(MetadataLayout layout) {
  return layout == MetadataLayout::kRows ? 2 : 1;
}

TmemPlace scale_a_place(int m, int cta_group, uint32_t row, uint32_t replica) {
  const uint32_t per_cta = rows_per_cta(m, cta_group);
  const uint32_t local = row % per_cta;
  return {
      row / per_cta, {local % 32 + 32 * replica, local / 32}
  };
}

uint32_t scale_a_replicas() {
  return 4;
}

TmemPlace scale_b_place(int m, int n, int cta_group, uint32_t column, uint32_t replica) {
  if (is_two_by_two(m, cta_group)) {
    // Lanes 0-63 work on the first half of the columns, lanes 64-127 on the second.
    const uint32_t half = static_cast<uint32_t>(n) / 2;
    const uint32_t local = column % half;
    return {
        0, {64 * (column / half) + local % 32 + 32 * replica, local / 32}
    };
  }
  return {
      0, {column % 32 + 32 * replica, column / 32}
  };
}

uint32_t scale_b_replicas(int m, int cta_group) {
  return is_two_by_two(m, cta_group) ? 2 : 4;
}

uint32_t scale_a_group_columns() {
  return 4;
}

// A group holds the factors of 128 or 256 columns of B, half as many for either half of the lanes
// (9.7.16.10.7.3.4 and .5: one picture for N <= 128, one for N > 128).
uint32_t scale_b_group_columns(int m, int n, int cta_group) {
  const uint32_t group = n > 128 ? 8 : 4;
  return is_two_by_two(m, cta_group) ? group / 2 : group;
}

uint32_t scale_a_columns(int m, int cta_group) {
  return ceil_div(rows_per_cta(m, cta_group), 32);
}

uint32_t scale_b_columns(int m, int n, int cta_group) {
  return ceil_div(static_cast<uint32_t>(is_two_by_two(m, cta_group) ? n / 2 : n), 32);
}

}  // namespace jitgemm::sim
