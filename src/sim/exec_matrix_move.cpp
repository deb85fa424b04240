// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 - 9.7.14.5.17): 8x8 matrices of 16-bit
// elements, and 16x16, 8x16 and 16x8 ones of bytes, between shared memory rows and the fragment
// layout of the warp.
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/exec_matrix.h"
#include "sim/lanes.h"

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;

constexpr uint32_t kRows8 = 8, kRowBytes = 16;
constexpr const char* kFragment = "the matrix fragment";

// Element (row, column) of an 8x8 matrix lies in lane row * 4 + column / 2, half column % 2.
struct Place {
  uint32_t lane, half;
};
Place fragment_place(uint32_t row, uint32_t column, bool transposed) {
  if (transposed) std::swap(row, column);
  return {row * 4 + column / 2, column % 2};
}

// ldmatrix: slots {d}, p. Lane 8 * j + i holds the address of row i of matrix j.
Step ldmatrix(Warp& w, const Op& op, LaneMask active) {
  const std::span<const Operand> list = registers_of(w, op.slot(0));
  const bool trans = op.modifiers().has(Flag::kTrans);
  const LaneMask rows = list.size() == 4 ? kAllLanes : (LaneMask{1} << (kRows8 * list.size())) - 1;
  if (const Step s = w.require_defined(op, op.slot(1), active & rows, "the row address");
      s != Step::kNext)
    return s;
  for (uint32_t j = 0; j < list.size(); ++j) {
    uint32_t values[kLanes] = {};
    LaneMask missing = 0;  // of a row never written, as much as of its elements
    for (uint32_t row = 0; row < kRows8; ++row) {
      const uint32_t lane = j * kRows8 + row;
      uint16_t elements[8];
      bool unwritten = false;
      if (const Step s =
              load_bytes(w, op, lane, space_of(op.modifiers().space), w.address(op.slot(1), lane),
                         kRowBytes, kRowBytes, elements, &unwritten);
          s != Step::kNext)
        return s;
      for (uint32_t column = 0; column < 8; ++column) {
        const Place at = fragment_place(row, column, trans);
        values[at.lane] |= uint32_t{elements[column]} << (16 * at.half);
        if (unwritten) missing |= LaneMask{1} << at.lane;
      }
    }
    const Operand& d = list[j];
    uint32_t* out = w.lanes<uint32_t>(d);
    for_lanes(active, [&](uint32_t i) { out[i] = values[i]; });
    w.set_undefined(d, missing, active);
  }
  return Step::kNext;
}

// A row of 16 bytes, or of 16 elements of 4 or 6 bits with padding behind, which become bytes with
// the element in their low bits.
Step load_byte_row(Warp& w, const Op& op, uint32_t lane, uint8_t* row, bool& unwritten) {
  const ptx::Modifiers& m = op.modifiers();
  const uint32_t bits = m.types[1] == ptx::Type::kB4x16P64   ? 4
                        : m.types[1] == ptx::Type::kB6x16P32 ? 6
                                                             : 8;
  uint8_t packed[kRowBytes + 1] = {};
  if (const Step s = load_bytes(w, op, lane, space_of(m.space), w.address(op.slot(1), lane),
                                2 * bits, kRowBytes, packed, &unwritten);
      s != Step::kNext)
    return s;
  for (uint32_t i = 0; i < kRowBytes; ++i) {
    const uint32_t at = i * bits;
    const uint32_t pair = packed[at / 8] | uint32_t{packed[at / 8 + 1]} << 8;
    row[i] = static_cast<uint8_t>(pair >> (at % 8) & ((1u << bits) - 1));
  }
  return Step::kNext;
}

// Bytes: slots {d}, p. m16n16 is always transposed: of matrix j, whose row i lane 16 * j + i names,
// a lane gets columns lane / 4 and lane / 4 + 8 of rows 4 * (lane % 4) and on, in a register each.
// m8n16: lane 8 * j + i names row i, and a lane gets four columns of row lane / 4.
Step ldmatrix_bytes(Warp& w, const Op& op, LaneMask active) {
  const std::span<const Operand> list = registers_of(w, op.slot(0));
  const bool square = op.modifiers().m == 16;
  const uint32_t rows = square ? 16 : kRows8;
  const uint32_t per_matrix = square ? 2 : 1;
  const uint32_t matrices = static_cast<uint32_t>(list.size()) / per_matrix;
  const LaneMask named =
      rows * matrices == kLanes ? kAllLanes : (LaneMask{1} << (rows * matrices)) - 1;
  if (const Step s = w.require_defined(op, op.slot(1), active & named, "the row address");
      s != Step::kNext)
    return s;
  for (uint32_t j = 0; j < matrices; ++j) {
    uint8_t bytes[16][kRowBytes];
    uint32_t unwritten = 0;  // rows
    for (uint32_t row = 0; row < rows; ++row) {
      bool missing = false;
      if (const Step s = load_byte_row(w, op, j * rows + row, bytes[row], missing);
          s != Step::kNext)
        return s;
      if (missing) unwritten |= 1u << row;
    }
    for (uint32_t r = 0; r < per_matrix; ++r) {
      const Operand& d = list[j * per_matrix + r];
      uint32_t* out = w.lanes<uint32_t>(d);
      LaneMask missing = 0;
      for_lanes(active, [&](uint32_t lane) {
        out[lane] = 0;
        for (uint32_t i = 0; i < 4; ++i) {
          const uint32_t element = square ? bytes[4 * (lane % 4) + i][lane / 4 + 8 * r]
                                          : bytes[lane / 4][4 * (lane % 4) + i];
          out[lane] |= element << (8 * i);
        }
        const uint32_t rows_of_lane = square ? 15u << (4 * (lane % 4)) : 1u << (lane / 4);
        if ((unwritten & rows_of_lane) != 0) missing |= LaneMask{1} << lane;
      });
      w.set_undefined(d, missing, active);
    }
  }
  return Step::kNext;
}

// stmatrix.m16n8.trans.b8: slots p, {r}. Rows of memory are the eight columns of the matrix, which
// a lane holds as an accumulator: rows lane / 4 and lane / 4 + 8 of columns 2 * (lane % 4) and on.
Step stmatrix_bytes(Warp& w, const Op& op, LaneMask active) {
  const std::span<const Operand> list = registers_of(w, op.slot(1));
  const LaneMask named = list.size() == 4 ? kAllLanes : (LaneMask{1} << (kRows8 * list.size())) - 1;
  if (const Step s = w.require_defined(op, op.slot(0), active & named, "the row address");
      s != Step::kNext)
    return s;
  for (uint32_t j = 0; j < list.size(); ++j) {
    const Operand& r = list[j];
    if (const Step s = require_fragment(w, op, r, active, kFragment); s != Step::kNext) return s;
    const uint32_t* in = w.lanes<uint32_t>(r);
    for (uint32_t column = 0; column < kRows8; ++column) {
      uint8_t bytes[kRowBytes];
      bool missing = false;
      for (uint32_t row = 0; row < kRowBytes; ++row) {
        const uint32_t from = row % 8 * 4 + column / 2;
        const uint32_t shift = 8 * (column % 2 + 2 * (row / 8));
        bytes[row] = static_cast<uint8_t>(in[from] >> shift);
        missing = missing || (w.undefined(r) >> from & 1) != 0;
      }
      const uint32_t lane = j * kRows8 + column;
      if (const Step s =
              store_bytes(w, op, lane, space_of(op.modifiers().space), w.address(op.slot(0), lane),
                          kRowBytes, kRowBytes, bytes, missing);
          s != Step::kNext)
        return s;
    }
  }
  return Step::kNext;
}

// stmatrix: slots p, {r}.
Step stmatrix(Warp& w, const Op& op, LaneMask active) {
  const std::span<const Operand> list = registers_of(w, op.slot(1));
  const bool trans = op.modifiers().has(Flag::kTrans);
  const LaneMask rows = list.size() == 4 ? kAllLanes : (LaneMask{1} << (kRows8 * list.size())) - 1;
  if (const Step s = w.require_defined(op, op.slot(0), active & rows, "the row address");
      s != Step::kNext)
    return s;
  for (uint32_t j = 0; j < list.size(); ++j) {
    const Operand& r = list[j];
    if (const Step s = require_fragment(w, op, r, active, kFragment); s != Step::kNext) return s;
    const uint32_t* in = w.lanes<uint32_t>(r);
    for (uint32_t row = 0; row < kRows8; ++row) {
      const uint32_t lane = j * kRows8 + row;
      uint16_t elements[8];
      bool missing = false;
      for (uint32_t column = 0; column < 8; ++column) {
        const Place at = fragment_place(row, column, trans);
        elements[column] = static_cast<uint16_t>(in[at.lane] >> (16 * at.half));
        missing = missing || (w.undefined(r) >> at.lane & 1) != 0;
      }
      if (const Step s =
              store_bytes(w, op, lane, space_of(op.modifiers().space), w.address(op.slot(0), lane),
                          kRowBytes, kRowBytes, elements, missing);
          s != Step::kNext)
        return s;
    }
  }
  return Step::kNext;
}

// movmatrix: slots d, a. Transposes one matrix across the warp.
Step movmatrix(Warp& w, const Op& op, LaneMask active) {
  if (const Step s = require_fragment(w, op, op.slot(1), active, kFragment); s != Step::kNext)
    return s;
  const uint32_t* a = w.lanes<uint32_t>(op.slot(1));
  uint32_t values[kLanes] = {};
  LaneMask missing = 0;
  for (uint32_t row = 0; row < kRows8; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      const Place from = fragment_place(row, column, false), to = fragment_place(row, column, true);
      values[to.lane] |= (a[from.lane] >> (16 * from.half) & 0xffff) << (16 * to.half);
      missing |= (w.undefined(op.slot(1)) >> from.lane & 1) << to.lane;
    }
  }
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  for_lanes(active, [&](uint32_t i) { d[i] = values[i]; });
  w.set_undefined(op.slot(0), missing, active);
  return Step::kNext;
}

template <ExecuteFn kWords, ExecuteFn kBytes>
Choice choose(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.type() == ptx::Type::kB16 ? kWords : kBytes, kOpAligned};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kLdmatrix,  choose<ldmatrix,  ldmatrix_bytes>},
    {Opcode::kStmatrix,  choose<stmatrix,  stmatrix_bytes>},
    {Opcode::kMovmatrix, choose<movmatrix, movmatrix>     },
};

}  // namespace

std::span<const OpcodeRow> matrix_move_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
