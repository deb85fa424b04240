// SPDX-License-Identifier: Apache-2.0
// tcgen05.ld, st and wait (PTX ISA 9.7.16.8): between registers and the 32 lanes of tensor memory
// that a warp can reach. Values move at issue; the registers of a load and the cells of a store
// stay pending until the wait (9.7.16.6). Shapes are in models_tmem_layout.
#include "sim/exec_tcgen05.h"
#include "sim/float_math.h"
#include "sim/models_tmem_layout.h"

#include <fmt/format.h>

#include <bit>

namespace jitgemm::sim {
namespace {

struct Access {
  TmemAccess shape = TmemAccess::k32x32b;
  bool packed = false;       // two 16-bit halves a register
  uint32_t half_offset = 0;  // of 16x32bx2, in columns of the image
  TensorAddress address;
  std::span<const Operand> registers;
  std::vector<TensorRegion> regions;
};

bool shape_of(ptx::TmemShape word, TmemAccess& shape) {
  switch (word) {
    case ptx::TmemShape::k16x64b: shape = TmemAccess::k16x64b; return true;
    case ptx::TmemShape::k16x128b: shape = TmemAccess::k16x128b; return true;
    case ptx::TmemShape::k16x256b: shape = TmemAccess::k16x256b; return true;
    case ptx::TmemShape::k32x32b: shape = TmemAccess::k32x32b; return true;
    case ptx::TmemShape::k16x32bx2: shape = TmemAccess::k16x32bx2; return true;
    default: return false;
  }
}

Step read_access(Warp& w, const Op& op, LaneMask active, const Operand& address,
                 const Operand& list, const Operand* offset, Access& a) {
  shape_of(op.modifiers().tmem_shape, a.shape);
  uint64_t value = 0;
  if (require_uniform(w, op, address, active, "the tensor memory address", value) == Step::kFault)
    return Step::kFault;
  a.address = tensor_address(value);
  a.packed = op.modifiers().has(ptx::Flag::kPack16b) || op.modifiers().has(ptx::Flag::kUnpack16b);
  if (offset != nullptr) a.half_offset = static_cast<uint32_t>(w.value(*offset, 0));
  a.registers = registers_of(w, list);
  // A warp reaches lanes 32 * (its number in the warpgroup) to +31 (9.7.16.2.3.1).
  const uint32_t first = 32 * (w.index % 4);
  const bool half = access_lanes(a.shape) == 16;
  if (!w.cta.cluster.grid.options.strict) a.address.lane = first + (a.address.lane & 16);
  if (a.address.lane != first && !(half && a.address.lane == first + 16)) {
    return w.fault(
        op, -1, FaultKind::kTensorMemory,
        fmt::format(
            "lane {} of tensor memory: this warp's accesses of this shape begin at lane {}{}",
            a.address.lane, first, half ? fmt::format(" or {}", first + 16) : ""));
  }
  const uint32_t group = a.address.lane / 16;
  const uint32_t groups = half ? 1u << group : 3u << group;
  const uint32_t cells = a.packed ? 2 : 1;
  const auto count = static_cast<uint32_t>(a.registers.size());
  const bool split = a.shape == TmemAccess::k16x32bx2;
  const uint32_t columns = (split ? count : count * 32 / access_lanes(a.shape)) * cells;
  a.regions.push_back({groups, a.address.column, columns});
  if (split) a.regions.push_back({groups, a.address.column + a.half_offset, columns});
  for (const TensorRegion& region : a.regions) {
    if (check_region(w, op, w.cta, region, "the access") == Step::kFault) return Step::kFault;
  }
  return Step::kNext;
}

// The physical cell of a register's word or half word.
uint32_t cell_index(const Access& a, uint32_t lane, uint32_t r, uint32_t part) {
  const TmemCell cell = access_cell(a.shape, lane, r, 0);
  const uint32_t width = a.packed ? 2 : 1;
  uint32_t column = a.address.column + cell.column * width + part;
  // The second half's offset counts columns of tensor memory.
  if (a.shape == TmemAccess::k16x32bx2) column += (lane / 16) * a.half_offset;
  return TensorMemory::index(a.address.lane + cell.lane, column);
}

Step order_fault(Warp& w, const Op& op, std::string text) {
  return w.fault(op, -1, FaultKind::kTensorMemoryOrder, std::move(text));
}

// No asynchronous operation is in flight on the regions, and what it wrote has been made visible.
Step check_order(Warp& w, const Op& op, const Access& a, bool writes) {
  if (!w.cta.cluster.grid.options.sanitize) return Step::kNext;
  bool writing = false;
  bool reading = false;
  bool storing = false;
  for (const TensorRegion& region : a.regions) {
    for_each_part(w.cta, region, [&](const TensorPart& p) {
      writing = writing || p.async_writers != 0;
      reading = reading || p.async_readers != 0;
      storing = storing || p.stores != 0;
    });
  }
  if (writing)
    return order_fault(w, op,
                       "a tcgen05.mma or tcgen05.cp that writes these cells has not completed");
  if (writes && reading)
    return order_fault(w, op, "a tcgen05.mma that reads these cells has not completed");
  if (!writes && storing)
    return order_fault(w, op, "a tcgen05.st to these cells has not been waited for");
  for (const TensorRegion& region : a.regions) {
    if (check_tensor_order(w, op, w.cta, region, writes, "the access") == Step::kFault)
      return Step::kFault;
  }
  return Step::kNext;
}

// Until tcgen05.wait::ld the registers are not the program's (9.7.16.8.3). Triton's back end moves
// arithmetic on them ahead of it, which passes without strict rules; that nobody writes the cells
// before the wait is asked for all the same.
void own_until_wait(Warp& w, const Operand& r, LaneMask active) {
  if (!w.cta.cluster.grid.options.strict) return;
  w.mark_pending(r, active);
  w.async_state->load_registers.emplace_back(r, active);
}

// .red: the least or the greatest of what a lane has loaded (9.7.16.8.3).
void reduce_lanes(Warp& w, const Op& op, const Access& a, const Operand& to, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const bool min = m.operation == ptx::Operation::kMin;
  const bool absolute = m.has(ptx::Flag::kAbs), nan = m.has(ptx::Flag::kNanPropagating);
  LaneMask undefined = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto word = [&](uint32_t r) {
      const uint32_t v = w.lanes<uint32_t>(a.registers[r])[lane];
      return absolute ? v & 0x7fffffff : v;
    };
    uint32_t best = word(0);
    for (uint32_t r = 1; r < a.registers.size(); ++r) {
      const uint32_t v = word(r);
      if (m.type() == ptx::Type::kF32) {
        best = std::bit_cast<uint32_t>(
            float_min_max(std::bit_cast<float>(best), std::bit_cast<float>(v), min, nan));
      } else if (m.type() == ptx::Type::kS32) {
        if ((static_cast<int32_t>(v) < static_cast<int32_t>(best)) == min && v != best) best = v;
      } else if ((v < best) == min && v != best) {
        best = v;
      }
    }
    w.lanes<uint32_t>(to)[lane] = best;
  }
  for (const Operand& r : a.registers) undefined |= w.undefined(r);
  w.set_undefined(to, undefined, active);
  own_until_wait(w, to, active);
}

// Slots: registers, (the reduction,) address, (offset of 16x32bx2).
Step exec_ld(Warp& w, const Op& op, LaneMask active) {
  Access a;
  const uint32_t at = op.modifiers().has(ptx::Flag::kRed) ? 2 : 1;
  const Operand* offset = op.slot_count > at + 1 ? &op.slot(at + 1) : nullptr;
  if (read_access(w, op, active, op.slot(at), op.slot(0), offset, a) == Step::kFault ||
      check_order(w, op, a, false) == Step::kFault) {
    return Step::kFault;
  }
  const TensorMemory& memory = *w.cta.tensor;
  const uint32_t parts = a.packed ? 2 : 1;
  bool any_written = false;
  for (uint32_t r = 0; r < a.registers.size(); ++r) {
    LaneMask undefined = 0;
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint32_t word = 0;
      bool written = true;
      for (uint32_t part = 0; part < parts; ++part) {
        const uint32_t cell = cell_index(a, lane, r, part);
        const uint32_t value = memory.cells[cell];
        word |= a.packed ? (value & 0xffff) << (16 * part) : value;
        written = written && (memory.flags[cell] & TensorMemory::kWritten) != 0;
      }
      w.lanes<uint32_t>(a.registers[r])[lane] = word;
      if (!written) undefined |= LaneMask{1} << lane;
      any_written = any_written || written;
    }
    w.set_undefined(a.registers[r], undefined, active);
    own_until_wait(w, a.registers[r], active);
  }
  if (!any_written && w.cta.cluster.grid.options.sanitize && !w.lets_pass(op, "tensor memory")) {
    return w.fault(op, -1, FaultKind::kUninitialisedMemory,
                   "none of the cells of tensor memory was ever written");
  }
  for (const TensorRegion& region : a.regions) {
    for_each_part(w.cta, region, [](TensorPart& p) { ++p.loads; });
    w.async_state->loads.push_back(region);
    w.async_state->loads.back().op = op.index;
  }
  if (at == 2) reduce_lanes(w, op, a, op.slot(1), active);
  return Step::kNext;
}

// Slots: address, registers; of 16x32bx2: address, offset, registers.
Step exec_st(Warp& w, const Op& op, LaneMask active) {
  Access a;
  const bool split = op.slot_count > 2;
  if (read_access(w, op, active, op.slot(0), op.slot(split ? 2 : 1), split ? &op.slot(1) : nullptr,
                  a) == Step::kFault ||
      check_order(w, op, a, true) == Step::kFault) {
    return Step::kFault;
  }
  TensorMemory& memory = *w.cta.tensor;
  const uint32_t parts = a.packed ? 2 : 1;
  for (uint32_t r = 0; r < a.registers.size(); ++r) {
    const LaneMask undefined = w.undefined(a.registers[r]);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t word = w.lanes<uint32_t>(a.registers[r])[lane];
      const bool defined = (undefined >> lane & 1) == 0;
      for (uint32_t part = 0; part < parts; ++part) {
        const uint32_t cell = cell_index(a, lane, r, part);
        memory.cells[cell] = a.packed ? word >> (16 * part) & 0xffff : word;
        memory.flags[cell] = defined ? TensorMemory::kWritten : uint8_t{0};
      }
    }
  }
  for (const TensorRegion& region : a.regions) {
    for_each_part(w.cta, region, [](TensorPart& p) { ++p.stores; });
    w.async_state->stores.push_back(region);
    w.async_state->stores.back().op = op.index;
  }
  ++w.cta.cluster.effects;
  return Step::kNext;
}

Step exec_wait(Warp& w, const Op& op, LaneMask) {
  AsyncWarpState& state = *w.async_state;
  if (op.modifiers().operation == ptx::Operation::kWaitLd) {
    for (const auto& [r, lanes] : state.load_registers) w.clear_pending(r, lanes);
    for (const TensorRegion& region : state.loads) {
      for_each_part(w.cta, region, [&](TensorPart& p) {
        --p.loads;
        p.loaded = w.view.now();
        p.loader = static_cast<uint16_t>(w.cluster_warp);
        p.loading_op = region.op;
      });
    }
    state.load_registers.clear();
    state.loads.clear();
    return Step::kNext;
  }
  for (const TensorRegion& region : state.stores) {
    for_each_part(w.cta, region, [&](TensorPart& p) {
      --p.stores;
      p.written = w.view.now();
      p.writer = static_cast<uint16_t>(w.cluster_warp);
      p.writing_op = region.op;
      p.writing_lane = TensorPart::kWholeWarp;
    });
  }
  state.stores.clear();
  return Step::kNext;
}

Choice choose_ld(const ptx::Function&, const ptx::Instruction& instruction) {
  if (instruction.modifiers.has(ptx::Flag::kRed) && instruction.modifiers.count < 2)
    return Choice::refuse("tcgen05.ld.red needs .x2 or more");
  TmemAccess shape = TmemAccess::k32x32b;
  if (!shape_of(instruction.modifiers.tmem_shape, shape)) return Choice::refuse("unknown shape");
  return {exec_ld, kOpAligned | kOpAsync, 0, ""};
}

Choice choose_st(const ptx::Function&, const ptx::Instruction& instruction) {
  TmemAccess shape = TmemAccess::k32x32b;
  if (!shape_of(instruction.modifiers.tmem_shape, shape)) return Choice::refuse("unknown shape");
  return {exec_st, kOpAligned | kOpAsync, 0, ""};
}

Choice choose_wait(const ptx::Function&, const ptx::Instruction&) {
  return {exec_wait, kOpAligned | kOpAsync, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kTcgen05Ld,   choose_ld  },
    {ptx::Opcode::kTcgen05St,   choose_st  },
    {ptx::Opcode::kTcgen05Wait, choose_wait},
};

}  // namespace

std::span<const OpcodeRow> tcgen05_access_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
