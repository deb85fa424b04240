// SPDX-License-Identifier: Apache-2.0
// Logic, shifts and byte permutation (PTX ISA 9.7.8, 9.7.9.7).
#include "sim/exec.h"
#include "sim/lanes.h"

#include <algorithm>
#include <type_traits>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operation;
using ptx::Part;
using ptx::Type;

// --- Logic
// ------------------------------------------------------------------------------------------

struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};
struct Not {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <typename T>
  T operator()(T a) const {
    return a == 0 ? T{1} : T{0};
  }
};

template <typename F>
Step predicate_logic(Warp& w, const Op& op, LaneMask active) {
  const LaneMask a = w.predicate(op.slot(1)), b = w.predicate(op.slot(2));
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  // A defined false decides an "and", a defined true an "or".
  if constexpr (std::is_same_v<F, And>) {
    undefined &= ~((~a & ~w.undefined(op.slot(1))) | (~b & ~w.undefined(op.slot(2))));
  } else if constexpr (std::is_same_v<F, Or>) {
    undefined &= ~((a & ~w.undefined(op.slot(1))) | (b & ~w.undefined(op.slot(2))));
  }
  w.set_predicate(op.slot(0), F{}(a, b), active);
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}
Step predicate_not(Warp& w, const Op& op, LaneMask active) {
  const LaneMask undefined = w.undefined(op.slot(1));
  w.set_predicate(op.slot(0), ~w.predicate(op.slot(1)), active);
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

template <typename F>
Choice choose_logic(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kPred: return {predicate_logic<F>};
    case Type::kB16: return {binary_same<uint16_t, F>};
    case Type::kB32: return {binary_same<uint32_t, F>};
    default: return {binary_same<uint64_t, F>};
  }
}
Choice choose_not(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kPred: return {predicate_not};
    case Type::kB16: return {unary_same<uint16_t, Not>};
    case Type::kB32: return {unary_same<uint32_t, Not>};
    default: return {unary_same<uint64_t, Not>};
  }
}
Choice choose_cnot(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kB16: return {unary_same<uint16_t, Cnot>};
    case Type::kB32: return {unary_same<uint32_t, Cnot>};
    default: return {unary_same<uint64_t, Cnot>};
  }
}

uint32_t lop3_value(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  if ((table & 0x01) != 0) r |= ~a & ~b & ~c;
  if ((table & 0x02) != 0) r |= ~a & ~b & c;
  if ((table & 0x04) != 0) r |= ~a & b & ~c;
  if ((table & 0x08) != 0) r |= ~a & b & c;
  if ((table & 0x10) != 0) r |= a & ~b & ~c;
  if ((table & 0x20) != 0) r |= a & ~b & c;
  if ((table & 0x40) != 0) r |= a & b & ~c;
  if ((table & 0x80) != 0) r |= a & b & c;
  return r;
}
// Slots d, a, b, c, lut; with a predicate d, p, a, b, c, lut, q.
template <bool kPredicate>
Step lop3(Warp& w, const Op& op, LaneMask active) {
  constexpr uint32_t kA = kPredicate ? 2 : 1;
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  const uint32_t* a = w.lanes<uint32_t>(op.slot(kA));
  const uint32_t* b = w.lanes<uint32_t>(op.slot(kA + 1));
  const uint32_t* c = w.lanes<uint32_t>(op.slot(kA + 2));
  const uint32_t table = static_cast<uint32_t>(w.value(op.slot(kA + 3), 0));
  // A source that the table ignores may be undefined.
  LaneMask undefined = 0;
  if ((table >> 4 & 15) != (table & 15)) undefined |= w.undefined(op.slot(kA));
  if ((table >> 2 & 0x33) != (table & 0x33)) undefined |= w.undefined(op.slot(kA + 1));
  if ((table >> 1 & 0x55) != (table & 0x55)) undefined |= w.undefined(op.slot(kA + 2));
  LaneMask nonzero = 0;
  for_lanes(active, [&](uint32_t i) {
    const uint32_t r = lop3_value(a[i], b[i], c[i], table);
    d[i] = r;
    if (r != 0) nonzero |= LaneMask{1} << i;
  });
  w.set_undefined(op.slot(0), undefined, active);
  if constexpr (kPredicate) {
    const LaneMask q = w.predicate(op.slot(6));
    undefined |= w.undefined(op.slot(6));
    w.set_predicate(op.slot(1),
                    op.modifiers().operation == Operation::kAnd ? nonzero & q : nonzero | q,
                    active);
    w.set_undefined(op.slot(1), undefined, active);
  }
  return Step::kNext;
}
Choice choose_lop3(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.operation == Operation::kNone ? lop3<false> : lop3<true>};
}

// --- Shifts
// -----------------------------------------------------------------------------------------

struct Shl {
  template <typename T>
  T operator()(T a, uint32_t b) const {
    return b >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << b);
  }
};
struct Shr {
  template <typename T>
  T operator()(T a, uint32_t b) const {
    constexpr uint32_t kBits = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>) return static_cast<T>(a >> std::min(b, kBits - 1));
    return b >= kBits ? T{0} : static_cast<T>(a >> b);
  }
};
template <bool kLeft, bool kClamp>
struct Shf {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint32_t n = kClamp ? std::min(c, 32u) : c & 31;
    const uint64_t v = uint64_t{b} << 32 | a;
    return static_cast<uint32_t>(kLeft ? (v << n) >> 32 : v >> n);
  }
};
Choice choose_shl(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kB16: return {binary<uint16_t, uint16_t, uint32_t, Shl>};
    case Type::kB32: return {binary<uint32_t, uint32_t, uint32_t, Shl>};
    default: return {binary<uint64_t, uint64_t, uint32_t, Shl>};
  }
}
Choice choose_shr(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kB16:
    case Type::kU16: return {binary<uint16_t, uint16_t, uint32_t, Shr>};
    case Type::kS16: return {binary<int16_t, int16_t, uint32_t, Shr>};
    case Type::kB32:
    case Type::kU32: return {binary<uint32_t, uint32_t, uint32_t, Shr>};
    case Type::kS32: return {binary<int32_t, int32_t, uint32_t, Shr>};
    case Type::kS64: return {binary<int64_t, int64_t, uint32_t, Shr>};
    default: return {binary<uint64_t, uint64_t, uint32_t, Shr>};
  }
}
Choice choose_shf(const ptx::Function&, const Instruction& i) {
  const bool left = i.modifiers.part == Part::kLeft;
  if (i.modifiers.has(Flag::kClamp))
    return {left ? ternary_same<uint32_t, Shf<true, true>>
                 : ternary_same<uint32_t, Shf<false, true>>};
  return {left ? ternary_same<uint32_t, Shf<true, false>>
               : ternary_same<uint32_t, Shf<false, false>>};
}

// --- prmt
// -------------------------------------------------------------------------------------------

template <Operation kMode>
struct Prmt {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    const uint64_t v = uint64_t{b} << 32 | a;
    uint32_t r = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      uint32_t select = 0;
      const uint32_t s = c & 3;
      switch (kMode) {
        case Operation::kF4e: select = s + i; break;
        case Operation::kB4e: select = (s + 8 - i) & 7; break;
        case Operation::kRc8: select = s; break;
        case Operation::kEcl: select = std::max(s, i); break;
        case Operation::kEcr: select = std::min(s, i); break;
        case Operation::kRc16: select = (s & 1) * 2 + (i & 1); break;
        default: select = c >> (4 * i) & 15; break;
      }
      uint32_t byte = static_cast<uint32_t>(v >> (8 * (select & 7))) & 0xff;
      if ((select & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
      r |= byte << (8 * i);
    }
    return r;
  }
};
Choice choose_prmt(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.operation) {
    case Operation::kF4e: return {ternary_same<uint32_t, Prmt<Operation::kF4e>>};
    case Operation::kB4e: return {ternary_same<uint32_t, Prmt<Operation::kB4e>>};
    case Operation::kRc8: return {ternary_same<uint32_t, Prmt<Operation::kRc8>>};
    case Operation::kEcl: return {ternary_same<uint32_t, Prmt<Operation::kEcl>>};
    case Operation::kEcr: return {ternary_same<uint32_t, Prmt<Operation::kEcr>>};
    case Operation::kRc16: return {ternary_same<uint32_t, Prmt<Operation::kRc16>>};
    default: return {ternary_same<uint32_t, Prmt<Operation::kNone>>};
  }
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kAnd,  choose_logic<And>},
    {Opcode::kOr,   choose_logic<Or> },
    {Opcode::kXor,  choose_logic<Xor>},
    {Opcode::kNot,  choose_not       },
    {Opcode::kCnot, choose_cnot      },
    {Opcode::kLop3, choose_lop3      },
    {Opcode::kShl,  choose_shl       },
    {Opcode::kShr,  choose_shr       },
    {Opcode::kShf,  choose_shf       },
    {Opcode::kPrmt, choose_prmt      },
};

}  // namespace

std::span<const OpcodeRow> logic_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
