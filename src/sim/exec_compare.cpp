// SPDX-License-Identifier: Apache-2.0
// Comparison and selection (PTX ISA 9.7.6 and 9.7.7). Comparisons of packed and 16-bit floats go
// through double, which holds them exactly.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <bit>
#include <cmath>
#include <type_traits>

namespace jitgemm::sim {
namespace {

using ptx::Compare;
using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operation;
using ptx::Type;

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

constexpr OpcodeRow kRows[] = {
    {Opcode::kSetp, choose_setp},
    {Opcode::kSet,  choose_set },
    {Opcode::kSelp, choose_selp},
    {Opcode::kSlct, choose_slct},
};

}  // namespace

std::span<const OpcodeRow> compare_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
