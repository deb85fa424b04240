// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 - 9.7.14.5.17): 8x8 matrices of 16-bit
// elements between shared memory rows and the fragment layout of the warp.
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/lanes.h"

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;

constexpr uint32_t kRows8 = 8, kRowBytes = 16;

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
  const Operand& list = op.slot(0);
  const auto& lists = w.cta.cluster.grid.kernel->lists;
  const bool trans = op.modifiers().has(Flag::kTrans);
  const LaneMask rows = list.count == 4 ? kAllLanes : (LaneMask{1} << (kRows8 * list.count)) - 1;
  if (const Step s = w.require_defined(op, op.slot(1), active & rows, "the row address");
      s != Step::kNext)
    return s;
  for (uint32_t j = 0; j < list.count; ++j) {
    uint32_t values[kLanes] = {};
    for (uint32_t row = 0; row < kRows8; ++row) {
      const uint32_t lane = j * kRows8 + row;
      uint16_t elements[8];
      if (const Step s = load_bytes(w, op, lane, space_of(op.modifiers().space),
                                    w.address(op.slot(1), lane), kRowBytes, kRowBytes, elements);
          s != Step::kNext)
        return s;
      for (uint32_t column = 0; column < 8; ++column) {
        const Place at = fragment_place(row, column, trans);
        values[at.lane] |= uint32_t{elements[column]} << (16 * at.half);
      }
    }
    const Operand& d = lists[list.offset + j];
    uint32_t* out = w.lanes<uint32_t>(d);
    for_lanes(active, [&](uint32_t i) { out[i] = values[i]; });
    w.set_defined(d, active);
  }
  return Step::kNext;
}

// stmatrix: slots p, {r}.
Step stmatrix(Warp& w, const Op& op, LaneMask active) {
  const Operand& list = op.slot(1);
  const auto& lists = w.cta.cluster.grid.kernel->lists;
  const bool trans = op.modifiers().has(Flag::kTrans);
  const LaneMask rows = list.count == 4 ? kAllLanes : (LaneMask{1} << (kRows8 * list.count)) - 1;
  if (const Step s = w.require_defined(op, op.slot(0), active & rows, "the row address");
      s != Step::kNext)
    return s;
  for (uint32_t j = 0; j < list.count; ++j) {
    const Operand& r = lists[list.offset + j];
    if (const Step s = w.require_defined(op, r, active, "the matrix fragment"); s != Step::kNext)
      return s;
    const uint32_t* in = w.lanes<uint32_t>(r);
    for (uint32_t row = 0; row < kRows8; ++row) {
      const uint32_t lane = j * kRows8 + row;
      uint16_t elements[8];
      for (uint32_t column = 0; column < 8; ++column) {
        const Place at = fragment_place(row, column, trans);
        elements[column] = static_cast<uint16_t>(in[at.lane] >> (16 * at.half));
      }
      if (const Step s = store_bytes(w, op, lane, space_of(op.modifiers().space),
                                     w.address(op.slot(0), lane), kRowBytes, kRowBytes, elements);
          s != Step::kNext)
        return s;
    }
  }
  return Step::kNext;
}

// movmatrix: slots d, a. Transposes one matrix across the warp.
Step movmatrix(Warp& w, const Op& op, LaneMask active) {
  if (const Step s = w.require_defined(op, op.slot(1), active, "the matrix fragment");
      s != Step::kNext)
    return s;
  const uint32_t* a = w.lanes<uint32_t>(op.slot(1));
  uint32_t values[kLanes] = {};
  for (uint32_t row = 0; row < kRows8; ++row) {
    for (uint32_t column = 0; column < 8; ++column) {
      const Place from = fragment_place(row, column, false), to = fragment_place(row, column, true);
      values[to.lane] |= (a[from.lane] >> (16 * from.half) & 0xffff) << (16 * to.half);
    }
  }
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  for_lanes(active, [&](uint32_t i) { d[i] = values[i]; });
  w.set_defined(op.slot(0), active);
  return Step::kNext;
}

template <ExecuteFn kFn>
Choice choose_b16(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() != ptx::Type::kB16)
    return Choice::refuse("matrices of 8-bit and smaller elements are not implemented");
  return {kFn, kOpAligned};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kLdmatrix,  choose_b16<ldmatrix> },
    {Opcode::kStmatrix,  choose_b16<stmatrix> },
    {Opcode::kMovmatrix, choose_b16<movmatrix>},
};

}  // namespace

std::span<const OpcodeRow> matrix_move_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
