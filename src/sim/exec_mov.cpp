// SPDX-License-Identifier: Apache-2.0
// mov (PTX ISA 9.7.9.3, 9.7.9.4): copies, packing and unpacking of vectors, clocks.
#include "sim/exec.h"
#include "sim/lanes.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace jitgemm::sim {
namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Type;

struct Copy {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};

Step mov_predicate(Warp& w, const Op& op, LaneMask active) {
  const LaneMask undefined = w.undefined(op.slot(1));
  w.set_predicate(op.slot(0), w.predicate(op.slot(1)), active);
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}
struct Wide128 {
  uint64_t lo, hi;
};
Step mov_128(Warp& w, const Op& op, LaneMask active) {
  Wide128* d = w.lanes<Wide128>(op.slot(0));
  const Wide128* a = w.lanes<Wide128>(op.slot(1));
  for_lanes(active, [&](uint32_t i) { d[i] = a[i]; });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}
// Packs a vector into one register: d, {a...}. LLVM packs registers of which a part is undefined,
// and takes the other part out again; for everybody else any part counts.
Step mov_pack(Warp& w, const Op& op, LaneMask active) {
  const Operand& d = op.slot(0);
  const auto list = registers_of(w, op.slot(1));
  const uint32_t element_bytes = static_cast<uint32_t>(
      static_cast<size_t>(ptx::type_bits(op.modifiers().type())) / 8 / list.size());
  const uint32_t stride = d.bytes;
  LaneMask undefined = 0;
  for (uint32_t e = 0; e < list.size(); ++e) undefined |= w.undefined(list[e]);
  for_lanes(active, [&](uint32_t i) {
    std::byte value[16] = {};
    for (uint32_t e = 0; e < list.size(); ++e) {
      const uint64_t v = w.value(list[e], i);
      std::memcpy(value + e * element_bytes, &v, element_bytes);
    }
    std::memcpy(w.banks[0] + d.offset + i * stride, value, stride);
  });
  std::vector<LaneMask> parts;
  for (uint32_t e = 0; undefined != 0 && e < list.size(); ++e)
    parts.push_back(w.undefined(list[e]) & active);
  w.set_undefined(d, undefined, active);
  if (undefined != 0 && active == w.live) {
    w.partly_undefined[d.state] = std::move(parts);
    w.state(d).partly = true;
  }
  return Step::kNext;
}
Step mov_unpack(Warp& w, const Op& op, LaneMask active) {
  const auto list = registers_of(w, op.slot(0));
  const Operand& a = op.slot(1);
  const uint32_t element_bytes = static_cast<uint32_t>(
      static_cast<size_t>(ptx::type_bits(op.modifiers().type())) / 8 / list.size());
  const LaneMask undefined = w.undefined(a);
  for_lanes(active, [&](uint32_t i) {
    std::byte value[16] = {};
    std::memcpy(value, w.banks[a.bank] + a.offset + i * a.bytes, a.bytes);
    for (uint32_t e = 0; e < list.size(); ++e) {
      const Operand& o = list[e];
      if (o.kind == OperandKind::kSink) continue;
      uint64_t v = 0;
      std::memcpy(&v, value + e * element_bytes, element_bytes);
      w.set_value(o, i, v);
    }
  });
  // A copy: a part may be the register itself.
  std::vector<LaneMask> parts;
  if (undefined != 0 && w.state(a).partly) parts = w.partly_undefined.at(a.state);
  const bool by_part = parts.size() == list.size();
  for (uint32_t e = 0; e < list.size(); ++e)
    w.set_undefined(list[e], by_part ? parts[e] : undefined, active);
  return Step::kNext;
}
// %clock and its like count the warp's executed instructions; see README.md.
Step mov_clock(Warp& w, const Op& op, LaneMask active) {
  const auto which = static_cast<ptx::SpecialRegister>(op.payload);
  uint64_t now = w.cta.cluster.grid.steps.load(std::memory_order_relaxed) + w.executed;
  if (which == ptx::SpecialRegister::kClockHi || which == ptx::SpecialRegister::kGlobaltimerHi)
    now >>= 32;
  for_lanes(active, [&](uint32_t i) { w.set_value(op.slot(0), i, now); });
  w.set_defined(op.slot(0), active);
  return Step::kNext;
}
Choice choose_mov(const ptx::Function& f, const Instruction& i) {
  const auto operands = f.operands_of(i);
  if (operands[0].kind == ptx::OperandKind::kVector) return {mov_unpack};
  if (operands[1].kind == ptx::OperandKind::kVector) return {mov_pack};
  if (operands[1].kind == ptx::OperandKind::kSpecialRegister) {
    switch (static_cast<ptx::SpecialRegister>(operands[1].index)) {
      case ptx::SpecialRegister::kClock:
      case ptx::SpecialRegister::kClockHi:
      case ptx::SpecialRegister::kClock64:
      case ptx::SpecialRegister::kGlobaltimer:
      case ptx::SpecialRegister::kGlobaltimerLo:
      case ptx::SpecialRegister::kGlobaltimerHi: return {mov_clock, 0, operands[1].index};
      default: break;
    }
  }
  if (i.modifiers.type() == Type::kPred) return {mov_predicate};
  const int bits = ptx::type_bits(i.modifiers.type());
  if (bits == 128) return {mov_128};
  return {bits == 64 ? unary_same<uint64_t, Copy> : unary_same<uint32_t, Copy>};
}
constexpr OpcodeRow kRows[] = {
    {Opcode::kMov, choose_mov},
};

}  // namespace

std::span<const OpcodeRow> mov_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
