// SPDX-License-Identifier: Apache-2.0
// Where things lie in tensor memory, 128 lanes of 512 columns of 32 bits (PTX ISA 9.7.16.1): the
// images of tcgen05.ld and st (9.7.16.2.3), of tcgen05.cp (9.7.16.2.2), accumulators and A
// (9.7.16.10.5) and scale factors (9.7.16.10.7). Coordinates are relative to the address operand.
// Pure functions.
#pragma once

#include <cstdint>

namespace jitgemm::sim {

struct TmemCell {
  uint32_t lane = 0;
  uint32_t column = 0;
  friend bool operator==(const TmemCell&, const TmemCell&) = default;
};

// --- tcgen05.ld / st --------------------------------------------------------------------------
enum class TmemAccess : uint8_t { k16x64b, k16x128b, k16x256b, k32x32b, k16x32bx2 };

// Registers of .xN in each lane.
uint32_t access_registers(TmemAccess shape, uint32_t count);
// Lanes that a warp's access covers: 16 or 32.
uint32_t access_lanes(TmemAccess shape);
// The 32-bit cell of register r of a lane. half_offset: the column offset of the second half of
// 16x32bx2, 0 for the others. With pack::16b or unpack::16b the image has 16-bit halves of each
// cell's word in cells 2c and 2c + 1: see packed_cells.
TmemCell access_cell(TmemAccess shape, uint32_t lane, uint32_t r, uint32_t half_offset);

// --- tcgen05.cp -------------------------------------------------------------------------------
enum class TmemCopy : uint8_t {
  k128x256b,
  k4x256b,
  k128x128b,
  k64x128bPairs02,
  k64x128bPairs01,
  k32x128b
};

uint32_t copy_rows(TmemCopy shape);
uint32_t copy_row_bytes(TmemCopy shape);  // 16 or 32
uint32_t copy_replicas(TmemCopy shape);
// The lane of a source row in a replica; a row's words fill consecutive columns.
uint32_t copy_lane(TmemCopy shape, uint32_t row, uint32_t replica);

// --- tcgen05.mma ------------------------------------------------------------------------------
struct TmemPlace {
  uint32_t cta = 0;  // of the pair; 0 with cta_group::1
  TmemCell cell;
};

// D[row, column] of an M x N accumulator: layouts A, B, D and F.
TmemPlace accumulator_place(int m, int n, int cta_group, uint32_t row, uint32_t column);
// Columns that the accumulator occupies in each CTA.
uint32_t accumulator_columns(int m, int n, int cta_group);
// Row of A in tensor memory. Layout B reads it twice: lanes 64-127 repeat lanes 0-63 (`replica` 1).
TmemPlace a_place(int m, int cta_group, uint32_t row, uint32_t replica);
uint32_t a_replicas(int m, int cta_group);

// The same for .ws: layouts D, E and G spread the columns over 128 / M groups of M lanes, and every
// group has A.
TmemCell ws_accumulator_cell(int m, int n, uint32_t row, uint32_t column);
uint32_t ws_accumulator_columns(int m, int n);
TmemCell ws_a_cell(int m, uint32_t row, uint32_t replica);
uint32_t ws_a_replicas(int m);

// Sparsity metadata of A, of four bits a chunk (9.7.16.10.8.4): where those of chunk `chunk` of
// `chunks` of a row lie. `half_rows`: the rows are spread as in layouts C and F.
struct MetadataPlace {
  TmemCell cell;
  uint32_t shift = 0;
};
enum class MetadataLayout : uint8_t {
  kHalves,  // of 16- and 32-bit elements: 16 bits of two rows a word, halves of a row in two lanes
  kRows,    // of narrower ones: 64 bits of a row in two words
};
MetadataPlace metadata_place(MetadataLayout layout, bool half_rows, uint32_t row, uint32_t chunk,
                             uint32_t chunks);
uint32_t metadata_columns(MetadataLayout layout);

// The word that holds the scale factors of a row of A (column of B), in one of its replicas; the
// byte is chosen by the scale factor id. scale_places(...) replicas exist and must agree.
TmemPlace scale_a_place(int m, int cta_group, uint32_t row, uint32_t replica);
uint32_t scale_a_replicas();
TmemPlace scale_b_place(int m, int n, int cta_group, uint32_t column, uint32_t replica);
uint32_t scale_b_replicas(int m, int cta_group);
// Columns from a word to the one with the row's next four factors, which K = 96 may need.
uint32_t scale_a_group_columns();
uint32_t scale_b_group_columns(int m, int n, int cta_group);
uint32_t scale_a_columns(int m, int cta_group);
uint32_t scale_b_columns(int m, int n, int cta_group);

}  // namespace jitgemm::sim
