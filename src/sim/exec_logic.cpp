// SPDX-License-Identifier: Apache-2.0
// Comparison, selection, logic, shifts, byte permutation (PTX ISA 9.7.6 - 9.7.8, 9.7.9.7) and mov
// (9.7.9.3, 9.7.9.4). Comparisons of packed and 16-bit floats go through double, which holds them
// exactly.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <algorithm>
#include <cmath>

namespace jitgemm::sim {
namespace {

using ptx::Compare;
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

// --- Comparison
// -------------------------------------------------------------------------------------

template <Compare kCompare, typename T>
bool compare(T a, T b) {
  bool unordered = false;
  if constexpr (std::is_floating_point_v<T>) unordered = std::isnan(a) || std::isnan(b);
  switch (kCompare) {
    case Compare::kEq: return !unordered && a == b;
    case Compare::kNe: return !unordered && a != b;
    case Compare::kLt:
    case Compare::kLo: return !unordered && a < b;
    case Compare::kLe:
    case Compare::kLs: return !unordered && a <= b;
    case Compare::kGt:
    case Compare::kHi: return !unordered && a > b;
    case Compare::kGe:
    case Compare::kHs: return !unordered && a >= b;
    case Compare::kEqu: return unordered || a == b;
    case Compare::kNeu: return unordered || a != b;
    case Compare::kLtu: return unordered || a < b;
    case Compare::kLeu: return unordered || a <= b;
    case Compare::kGtu: return unordered || a > b;
    case Compare::kGeu: return unordered || a >= b;
    case Compare::kNum: return !unordered;
    case Compare::kNan: return unordered;
    case Compare::kNone: break;
  }
  return false;
}

// How the bits of a slot become a comparable value.
template <typename T>
struct AsValue {
  using Slot = SlotOf<T>;
  static T get(Slot s, bool) { return from_slot<T>(s); }
};
struct AsF32 {
  using Slot = uint32_t;
  static float get(Slot s, bool ftz) { return flush(std::bit_cast<float>(s), ftz); }
};
template <bool kBf16, int kShift>
struct AsHalf {
  using Slot = uint32_t;
  static float get(Slot s, bool ftz) {
    const uint16_t h = static_cast<uint16_t>(s >> kShift);
    return kBf16 ? float_from_bf16(h) : float_from_f16(ftz ? flush_f16(h) : h);
  }
};

template <typename V, Compare kCompare>
LaneMask compare_lanes(Warp& w, const Operand& oa, const Operand& ob, LaneMask active, bool ftz) {
  const typename V::Slot* a = w.lanes<typename V::Slot>(oa);
  const typename V::Slot* b = w.lanes<typename V::Slot>(ob);
  LaneMask result = 0;
  for_lanes(active, [&](uint32_t i) {
    result |= LaneMask{compare<kCompare>(V::get(a[i], ftz), V::get(b[i], ftz))} << i;
  });
  return result;
}

using CompareLanes = LaneMask (*)(Warp&, const Operand&, const Operand&, LaneMask, bool);

template <typename V>
CompareLanes comparer_of(Compare c) {
  switch (c) {
    case Compare::kEq: return compare_lanes<V, Compare::kEq>;
    case Compare::kNe: return compare_lanes<V, Compare::kNe>;
    case Compare::kLt:
    case Compare::kLo: return compare_lanes<V, Compare::kLt>;
    case Compare::kLe:
    case Compare::kLs: return compare_lanes<V, Compare::kLe>;
    case Compare::kGt:
    case Compare::kHi: return compare_lanes<V, Compare::kGt>;
    case Compare::kGe:
    case Compare::kHs: return compare_lanes<V, Compare::kGe>;
    case Compare::kEqu: return compare_lanes<V, Compare::kEqu>;
    case Compare::kNeu: return compare_lanes<V, Compare::kNeu>;
    case Compare::kLtu: return compare_lanes<V, Compare::kLtu>;
    case Compare::kLeu: return compare_lanes<V, Compare::kLeu>;
    case Compare::kGtu: return compare_lanes<V, Compare::kGtu>;
    case Compare::kGeu: return compare_lanes<V, Compare::kGeu>;
    case Compare::kNum: return compare_lanes<V, Compare::kNum>;
    case Compare::kNan: return compare_lanes<V, Compare::kNan>;
    case Compare::kNone: break;
  }
  return nullptr;
}

struct Comparers {
  CompareLanes low = nullptr, high = nullptr;  // high: of the upper half of a packed type
};

Comparers comparers(Type type, Compare c) {
  switch (type) {
    case Type::kB16:
    case Type::kU16: return {comparer_of<AsValue<uint16_t>>(c)};
    case Type::kS16: return {comparer_of<AsValue<int16_t>>(c)};
    case Type::kB32:
    case Type::kU32: return {comparer_of<AsValue<uint32_t>>(c)};
    case Type::kS32: return {comparer_of<AsValue<int32_t>>(c)};
    case Type::kB64:
    case Type::kU64: return {comparer_of<AsValue<uint64_t>>(c)};
    case Type::kS64: return {comparer_of<AsValue<int64_t>>(c)};
    case Type::kF32: return {comparer_of<AsF32>(c)};
    case Type::kF64: return {comparer_of<AsValue<double>>(c)};
    case Type::kF16: return {comparer_of<AsHalf<false, 0>>(c)};
    case Type::kBf16: return {comparer_of<AsHalf<true, 0>>(c)};
    case Type::kF16x2: return {comparer_of<AsHalf<false, 0>>(c), comparer_of<AsHalf<false, 16>>(c)};
    case Type::kBf16x2: return {comparer_of<AsHalf<true, 0>>(c), comparer_of<AsHalf<true, 16>>(c)};
    default: return {};
  }
}

LaneMask combine(Operation operation, LaneMask a, LaneMask c) {
  switch (operation) {
    case Operation::kAnd: return a & c;
    case Operation::kOr: return a | c;
    case Operation::kXor: return a ^ c;
    default: return a;
  }
}

// setp: slots p, q, a, b, c. Op::payload holds the comparer.
template <bool kPacked>
Step setp(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const bool ftz = m.has(Flag::kFtz), combines = op.slot_count > 4;
  const LaneMask r =
      reinterpret_cast<CompareLanes>(op.payload)(w, op.slot(2), op.slot(3), active, ftz);
  const LaneMask c = combines ? w.predicate(op.slot(4)) : 0;
  LaneMask undefined = w.undefined(op.slot(2)) | w.undefined(op.slot(3));
  if (combines) undefined |= w.undefined(op.slot(4));
  LaneMask q;
  if constexpr (kPacked) {
    q = combine(m.operation,
                comparers(m.type(), m.compare).high(w, op.slot(2), op.slot(3), active, ftz), c);
  } else {
    q = combine(m.operation, ~r, c);
  }
  w.set_predicate(op.slot(0), combine(m.operation, r, c), active);
  w.set_undefined(op.slot(0), undefined, active);
  if (op.slot(1).kind == OperandKind::kPredicate) {
    w.set_predicate(op.slot(1), q, active);
    w.set_undefined(op.slot(1), undefined, active);
  }
  return Step::kNext;
}
Choice choose_setp(const ptx::Function&, const Instruction& i) {
  const Comparers c = comparers(i.modifiers.type(), i.modifiers.compare);
  if (c.low == nullptr)
    return Choice::refuse(fmt::format("setp of type .{}", ptx::type_name(i.modifiers.type())));
  return {c.high != nullptr ? setp<true> : setp<false>, 0, reinterpret_cast<uint64_t>(c.low)};
}

// set: slots d, a, b, c. True is all ones, or 1.0 where the result is a float.
Step set(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const bool ftz = m.has(Flag::kFtz), combines = op.slot_count > 3;
  const Comparers compare_with = comparers(m.types[1], m.compare);
  const LaneMask c = combines ? w.predicate(op.slot(3)) : 0;
  const LaneMask low =
      combine(m.operation, compare_with.low(w, op.slot(1), op.slot(2), active, ftz), c);
  const LaneMask high =
      compare_with.high == nullptr
          ? 0
          : combine(m.operation, compare_with.high(w, op.slot(1), op.slot(2), active, ftz), c);
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  if (combines) undefined |= w.undefined(op.slot(3));
  uint32_t one = ~0u;
  switch (m.types[0]) {
    case Type::kF32: one = 0x3f800000; break;
    case Type::kF16:
    case Type::kF16x2: one = 0x3c00; break;
    case Type::kBf16:
    case Type::kBf16x2: one = 0x3f80; break;
    case Type::kU16:
    case Type::kS16: one = 0xffff; break;
    default: break;
  }
  const bool packed_floats = m.types[0] == Type::kF16x2 || m.types[0] == Type::kBf16x2;
  const bool packed_masks = compare_with.high != nullptr && !packed_floats;
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  for_lanes(active, [&](uint32_t i) {
    const bool lo = (low >> i & 1) != 0, hi = (high >> i & 1) != 0;
    if (packed_floats) {
      d[i] = (lo ? one : 0) | (hi ? one << 16 : 0);
    } else if (packed_masks) {
      d[i] = (lo ? 0xffffu : 0) | (hi ? 0xffff0000u : 0);
    } else {
      d[i] = lo ? one : 0;
    }
  });
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}
Choice choose_set(const ptx::Function&, const Instruction& i) {
  if (comparers(i.modifiers.types[1], i.modifiers.compare).low == nullptr) {
    return Choice::refuse(fmt::format("set of type .{}", ptx::type_name(i.modifiers.types[1])));
  }
  return {set};
}

// --- Selection
// --------------------------------------------------------------------------------------

// selp: slots d, a, b, c. Only the chosen source has to be defined.
template <typename S>
Step selp(Warp& w, const Op& op, LaneMask active) {
  S* d = w.lanes<S>(op.slot(0));
  const S* a = w.lanes<S>(op.slot(1));
  const S* b = w.lanes<S>(op.slot(2));
  const LaneMask c = w.predicate(op.slot(3));
  const LaneMask undefined =
      w.undefined(op.slot(3)) | (c & w.undefined(op.slot(1))) | (~c & w.undefined(op.slot(2)));
  for_lanes(active, [&](uint32_t i) { d[i] = (c >> i & 1) != 0 ? a[i] : b[i]; });
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}
Choice choose_selp(const ptx::Function&, const Instruction& i) {
  return {ptx::type_bits(i.modifiers.type()) <= 32 ? selp<uint32_t> : selp<uint64_t>};
}

// slct: d = c >= 0 ? a : b.
template <typename S, typename C>
struct Slct {
  S operator()(S a, S b, C c) const { return c >= 0 ? a : b; }
};
struct SlctFtz32 {
  uint32_t operator()(uint32_t a, uint32_t b, float c) const { return flush(c, true) >= 0 ? a : b; }
};
Choice choose_slct(const ptx::Function&, const Instruction& i) {
  const bool wide = ptx::type_bits(i.modifiers.type()) > 32;
  if (i.modifiers.types[1] == Type::kF32) {
    // A subnormal c compares like zero with .ftz: -0 and +0 are both >= 0.
    if (i.modifiers.has(Flag::kFtz) && !wide)
      return {ternary<uint32_t, uint32_t, uint32_t, float, SlctFtz32>};
    if (i.modifiers.has(Flag::kFtz)) return Choice::refuse("slct.ftz of a 64-bit type");
    return {wide ? ternary<uint64_t, uint64_t, uint64_t, float, Slct<uint64_t, float>>
                 : ternary<uint32_t, uint32_t, uint32_t, float, Slct<uint32_t, float>>};
  }
  return {wide ? ternary<uint64_t, uint64_t, uint64_t, int32_t, Slct<uint64_t, int32_t>>
               : ternary<uint32_t, uint32_t, uint32_t, int32_t, Slct<uint32_t, int32_t>>};
}

// --- mov
// --------------------------------------------------------------------------------------------

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
  const auto& lists = w.cta.cluster.grid.kernel->lists;
  const Operand& d = op.slot(0);
  const Operand& list = op.slot(1);
  const uint32_t element_bytes =
      static_cast<uint32_t>(ptx::type_bits(op.modifiers().type())) / 8 / list.count;
  const uint32_t stride = d.bytes;
  LaneMask undefined = 0;
  for (uint32_t e = 0; e < list.count; ++e) undefined |= w.undefined(lists[list.offset + e]);
  for_lanes(active, [&](uint32_t i) {
    std::byte value[16] = {};
    for (uint32_t e = 0; e < list.count; ++e) {
      const uint64_t v = w.value(lists[list.offset + e], i);
      std::memcpy(value + e * element_bytes, &v, element_bytes);
    }
    std::memcpy(w.banks[0] + d.offset + i * stride, value, stride);
  });
  std::vector<LaneMask> parts;
  for (uint32_t e = 0; undefined != 0 && e < list.count; ++e)
    parts.push_back(w.undefined(lists[list.offset + e]) & active);
  w.set_undefined(d, undefined, active);
  if (undefined != 0 && active == w.live) {
    w.partly_undefined[d.state] = std::move(parts);
    w.state(d).partly = true;
  }
  return Step::kNext;
}
Step mov_unpack(Warp& w, const Op& op, LaneMask active) {
  const auto& lists = w.cta.cluster.grid.kernel->lists;
  const Operand& list = op.slot(0);
  const Operand& a = op.slot(1);
  const uint32_t element_bytes =
      static_cast<uint32_t>(ptx::type_bits(op.modifiers().type())) / 8 / list.count;
  const LaneMask undefined = w.undefined(a);
  for_lanes(active, [&](uint32_t i) {
    std::byte value[16] = {};
    std::memcpy(value, w.banks[a.bank] + a.offset + i * a.bytes, a.bytes);
    for (uint32_t e = 0; e < list.count; ++e) {
      const Operand& o = lists[list.offset + e];
      if (o.kind == OperandKind::kSink) continue;
      uint64_t v = 0;
      std::memcpy(&v, value + e * element_bytes, element_bytes);
      w.set_value(o, i, v);
    }
  });
  // A copy: a part may be the register itself.
  std::vector<LaneMask> parts;
  if (undefined != 0 && w.state(a).partly) parts = w.partly_undefined.at(a.state);
  const bool by_part = parts.size() == list.count;
  for (uint32_t e = 0; e < list.count; ++e)
    w.set_undefined(lists[list.offset + e], by_part ? parts[e] : undefined, active);
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
    {Opcode::kSetp, choose_setp      },
    {Opcode::kSet,  choose_set       },
    {Opcode::kSelp, choose_selp      },
    {Opcode::kSlct, choose_slct      },
    {Opcode::kMov,  choose_mov       },
};

}  // namespace

std::span<const OpcodeRow> logic_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
