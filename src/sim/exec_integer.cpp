// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic (PTX ISA 9.7.1) and extended precision (9.7.2). Semantics of one value are
// functors; the lane loop is in lanes.h.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/lanes.h"

#include <algorithm>
#include <limits>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Part;
using ptx::Type;

template <typename T>
using Unsigned = std::make_unsigned_t<T>;
// Twice as wide, for products.
template <typename T>
struct WideOf;
template <>
struct WideOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct WideOf<int16_t> {
  using type = int32_t;
};
template <>
struct WideOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct WideOf<int32_t> {
  using type = int64_t;
};
__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;
template <>
struct WideOf<uint64_t> {
  using type = Uint128;
};
template <>
struct WideOf<int64_t> {
  using type = Int128;
};
template <typename T>
using Wide = typename WideOf<T>::type;

template <typename T>
T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <typename T>
T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <typename T>
T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(static_cast<Unsigned<T>>(a)) *
                        static_cast<uint64_t>(static_cast<Unsigned<T>>(b)));
}
template <typename T>
T high_mul(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
}
int32_t saturate(int64_t v) {
  return static_cast<int32_t>(std::clamp<int64_t>(v, std::numeric_limits<int32_t>::min(),
                                                  std::numeric_limits<int32_t>::max()));
}

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return wrap_add(a, b);
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return wrap_sub(a, b);
  }
};
struct AddSat {
  int32_t operator()(int32_t a, int32_t b) const { return saturate(int64_t{a} + b); }
};
struct SubSat {
  int32_t operator()(int32_t a, int32_t b) const { return saturate(int64_t{a} - b); }
};
struct MulLo {
  template <typename T>
  T operator()(T a, T b) const {
    return wrap_mul(a, b);
  }
};
struct MulHi {
  template <typename T>
  T operator()(T a, T b) const {
    return high_mul(a, b);
  }
};
struct MulWide {
  template <typename T>
  Wide<T> operator()(T a, T b) const {
    return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b);
  }
};
struct MadLo {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return wrap_add(wrap_mul(a, b), c);
  }
};
struct MadHi {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return wrap_add(high_mul(a, b), c);
  }
};
struct MadHiSat {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    return saturate(int64_t{high_mul(a, b)} + c);
  }
};
struct MadWide {
  template <typename T>
  Wide<T> operator()(T a, T b, Wide<T> c) const {
    return wrap_add(static_cast<Wide<T>>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)), c);
  }
};
// 24-bit operands (9.7.1.5): sign- or zero-extended from bit 23.
template <typename T>
int64_t low24(T v) {
  if constexpr (std::is_signed_v<T>)
    return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8;
  return static_cast<uint32_t>(v) & 0xffffff;
}
struct Mul24Lo {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(low24(a) * low24(b));
  }
};
struct Mul24Hi {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>((low24(a) * low24(b)) >> 16);
  }
};
struct Mad24Lo {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return wrap_add(Mul24Lo{}(a, b), c);
  }
};
struct Mad24Hi {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return wrap_add(Mul24Hi{}(a, b), c);
  }
};
struct Mad24HiSat {
  int32_t operator()(int32_t a, int32_t b, int32_t c) const {
    return saturate(int64_t{Mul24Hi{}(a, b)} + c);
  }
};
struct Sad {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return wrap_add(c, a < b ? wrap_sub(b, a) : wrap_sub(a, b));
  }
};
// Division by zero gives all ones, its remainder the dividend: the ISA leaves them unspecified,
// this is what the compiled sequences give.
struct Div {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(~T{0});
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrap_sub(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct Abs {
  template <typename T>
  T operator()(T a) const {
    return a < 0 ? wrap_sub(T{0}, a) : a;
  }
};
struct Neg {
  template <typename T>
  T operator()(T a) const {
    return wrap_sub(T{0}, a);
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};
struct MinRelu {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(T{0}, std::min(a, b));
  }
};
struct MaxRelu {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(T{0}, std::max(a, b));
  }
};

template <typename T, typename F>
struct Packed16 {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const T lo = F{}(static_cast<T>(a), static_cast<T>(b));
    const T hi = F{}(static_cast<T>(a >> 16), static_cast<T>(b >> 16));
    return uint32_t{static_cast<uint16_t>(hi)} << 16 | static_cast<uint16_t>(lo);
  }
};

// add.cc, addc, sub.cc, subc, mad.cc, madc (9.7.2): CC.CF is one bit a lane. For subtraction it is
// a borrow.
enum class CarryKind : uint8_t { kAdd, kSub, kMadLo, kMadHi };
template <typename T, CarryKind kKind, bool kIn, bool kOut>
Step carry_chain(Warp& w, const Op& op, LaneMask active) {
  constexpr bool kMad = kKind == CarryKind::kMadLo || kKind == CarryKind::kMadHi;
  using S = SlotOf<T>;
  S* d = w.lanes<S>(op.slot(0));
  const S* a = w.lanes<S>(op.slot(1));
  const S* b = w.lanes<S>(op.slot(2));
  const S* c = kMad ? w.lanes<S>(op.slot(3)) : nullptr;
  LaneMask out = w.carry;
  for_lanes(active, [&](uint32_t i) {
    const LaneMask bit = LaneMask{1} << i;
    const uint32_t in = kIn && (w.carry & bit) != 0 ? 1 : 0;
    Unsigned<T> x = static_cast<Unsigned<T>>(a[i]), y = static_cast<Unsigned<T>>(b[i]);
    if constexpr (kMad) {
      x = static_cast<Unsigned<T>>(kKind == CarryKind::kMadLo
                                       ? wrap_mul(static_cast<T>(x), static_cast<T>(y))
                                       : high_mul(static_cast<T>(x), static_cast<T>(y)));
      y = static_cast<Unsigned<T>>(c[i]);
    }
    bool carry;
    Unsigned<T> r;
    if constexpr (kKind == CarryKind::kSub) {
      r = x - y - in;
      carry = x < y || (x == y && in != 0);
    } else {
      r = x + y + in;
      carry = r < x || (r == x && in != 0);
    }
    d[i] = r;
    out = carry ? out | bit : out & ~bit;
  });
  if constexpr (kOut) w.carry = out;
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  if constexpr (kMad) undefined |= w.undefined(op.slot(3));
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

// --- Choosers
// ---------------------------------------------------------------------------------------

Choice unsupported_type(const Instruction& i) {
  return Choice::refuse(fmt::format("type .{} is not implemented for this integer instruction",
                                    ptx::type_name(i.modifiers.type())));
}

#define JITGEMM_INTEGER_TYPES(SHAPE, F)         \
  case Type::kU16: return {SHAPE<uint16_t, F>}; \
  case Type::kS16: return {SHAPE<int16_t, F>};  \
  case Type::kU32: return {SHAPE<uint32_t, F>}; \
  case Type::kS32: return {SHAPE<int32_t, F>};  \
  case Type::kU64: return {SHAPE<uint64_t, F>}; \
  case Type::kS64: return {SHAPE<int64_t, F>};

template <typename F>
Choice same2(const Instruction& i) {
  switch (i.modifiers.type()) {
    JITGEMM_INTEGER_TYPES(binary_same, F)
    case Type::kU16x2: return {binary_same<uint32_t, Packed16<uint16_t, F>>};
    case Type::kS16x2: return {binary_same<uint32_t, Packed16<int16_t, F>>};
    default: return unsupported_type(i);
  }
}
template <typename F>
Choice plain2(const Instruction& i) {
  switch (i.modifiers.type()) {
    JITGEMM_INTEGER_TYPES(binary_same, F)
    default: return unsupported_type(i);
  }
}
template <typename F>
Choice same3(const Instruction& i) {
  switch (i.modifiers.type()) {
    JITGEMM_INTEGER_TYPES(ternary_same, F)
    default: return unsupported_type(i);
  }
}
template <CarryKind kKind, bool kIn>
Choice carry(const Instruction& i) {
  const bool out = i.modifiers.has(Flag::kCarry);
  switch (i.modifiers.type()) {
    case Type::kU32:
      return {out ? carry_chain<uint32_t, kKind, kIn, true>
                  : carry_chain<uint32_t, kKind, kIn, false>};
    case Type::kS32:
      return {out ? carry_chain<int32_t, kKind, kIn, true>
                  : carry_chain<int32_t, kKind, kIn, false>};
    case Type::kU64:
      return {out ? carry_chain<uint64_t, kKind, kIn, true>
                  : carry_chain<uint64_t, kKind, kIn, false>};
    case Type::kS64:
      return {out ? carry_chain<int64_t, kKind, kIn, true>
                  : carry_chain<int64_t, kKind, kIn, false>};
    default: return unsupported_type(i);
  }
}

Choice choose_add(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.has(Flag::kCarry)) return carry<CarryKind::kAdd, false>(i);
  if (i.modifiers.has(Flag::kSat)) {
    if (i.modifiers.type() == Type::kS32) return {binary_same<int32_t, AddSat>};
    return unsupported_type(i);
  }
  return same2<Add>(i);
}
Choice choose_sub(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.has(Flag::kCarry)) return carry<CarryKind::kSub, false>(i);
  if (i.modifiers.has(Flag::kSat)) {
    if (i.modifiers.type() == Type::kS32) return {binary_same<int32_t, SubSat>};
    return unsupported_type(i);
  }
  return same2<Sub>(i);
}
Choice choose_addc(const ptx::Function&, const Instruction& i) {
  return carry<CarryKind::kAdd, true>(i);
}
Choice choose_subc(const ptx::Function&, const Instruction& i) {
  return carry<CarryKind::kSub, true>(i);
}
Choice choose_mul(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.part) {
    case Part::kHi: return plain2<MulHi>(i);
    case Part::kWide:
      switch (i.modifiers.type()) {
        case Type::kU16: return {binary<uint32_t, uint16_t, uint16_t, MulWide>};
        case Type::kS16: return {binary<int32_t, int16_t, int16_t, MulWide>};
        case Type::kU32: return {binary<uint64_t, uint32_t, uint32_t, MulWide>};
        case Type::kS32: return {binary<int64_t, int32_t, int32_t, MulWide>};
        default: return unsupported_type(i);
      }
    default: return plain2<MulLo>(i);
  }
}
Choice choose_mad(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.has(Flag::kCarry)) {
    return i.modifiers.part == Part::kHi ? carry<CarryKind::kMadHi, false>(i)
                                         : carry<CarryKind::kMadLo, false>(i);
  }
  switch (i.modifiers.part) {
    case Part::kHi:
      if (i.modifiers.has(Flag::kSat)) {
        if (i.modifiers.type() == Type::kS32) return {ternary_same<int32_t, MadHiSat>};
        return unsupported_type(i);
      }
      return same3<MadHi>(i);
    case Part::kWide:
      switch (i.modifiers.type()) {
        case Type::kU16: return {ternary<uint32_t, uint16_t, uint16_t, uint32_t, MadWide>};
        case Type::kS16: return {ternary<int32_t, int16_t, int16_t, int32_t, MadWide>};
        case Type::kU32: return {ternary<uint64_t, uint32_t, uint32_t, uint64_t, MadWide>};
        case Type::kS32: return {ternary<int64_t, int32_t, int32_t, int64_t, MadWide>};
        default: return unsupported_type(i);
      }
    default: return same3<MadLo>(i);
  }
}
Choice choose_madc(const ptx::Function&, const Instruction& i) {
  return i.modifiers.part == Part::kHi ? carry<CarryKind::kMadHi, true>(i)
                                       : carry<CarryKind::kMadLo, true>(i);
}
Choice choose_mul24(const ptx::Function&, const Instruction& i) {
  const bool hi = i.modifiers.part == Part::kHi;
  switch (i.modifiers.type()) {
    case Type::kU32: return {hi ? binary_same<uint32_t, Mul24Hi> : binary_same<uint32_t, Mul24Lo>};
    case Type::kS32: return {hi ? binary_same<int32_t, Mul24Hi> : binary_same<int32_t, Mul24Lo>};
    default: return unsupported_type(i);
  }
}
Choice choose_mad24(const ptx::Function&, const Instruction& i) {
  const bool hi = i.modifiers.part == Part::kHi;
  switch (i.modifiers.type()) {
    case Type::kU32:
      return {hi ? ternary_same<uint32_t, Mad24Hi> : ternary_same<uint32_t, Mad24Lo>};
    case Type::kS32:
      if (i.modifiers.has(Flag::kSat)) return {ternary_same<int32_t, Mad24HiSat>};
      return {hi ? ternary_same<int32_t, Mad24Hi> : ternary_same<int32_t, Mad24Lo>};
    default: return unsupported_type(i);
  }
}
Choice choose_sad(const ptx::Function&, const Instruction& i) {
  return same3<Sad>(i);
}
Choice choose_div(const ptx::Function&, const Instruction& i) {
  return plain2<Div>(i);
}
Choice choose_rem(const ptx::Function&, const Instruction& i) {
  return plain2<Rem>(i);
}
template <typename F>
Choice choose_signed1(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kS16: return {unary_same<int16_t, F>};
    case Type::kS32: return {unary_same<int32_t, F>};
    case Type::kS64: return {unary_same<int64_t, F>};
    default: return unsupported_type(i);
  }
}
Choice choose_min(const ptx::Function&, const Instruction& i) {
  if (!i.modifiers.has(Flag::kRelu)) return same2<Min>(i);
  if (i.modifiers.type() == Type::kS32) return {binary_same<int32_t, MinRelu>};
  if (i.modifiers.type() == Type::kS16x2)
    return {binary_same<uint32_t, Packed16<int16_t, MinRelu>>};
  return unsupported_type(i);
}
Choice choose_max(const ptx::Function&, const Instruction& i) {
  if (!i.modifiers.has(Flag::kRelu)) return same2<Max>(i);
  if (i.modifiers.type() == Type::kS32) return {binary_same<int32_t, MaxRelu>};
  if (i.modifiers.type() == Type::kS16x2)
    return {binary_same<uint32_t, Packed16<int16_t, MaxRelu>>};
  return unsupported_type(i);
}
constexpr OpcodeRow kRows[] = {
    {Opcode::kAdd,   choose_add         },
    {Opcode::kSub,   choose_sub         },
    {Opcode::kAddc,  choose_addc        },
    {Opcode::kSubc,  choose_subc        },
    {Opcode::kMul,   choose_mul         },
    {Opcode::kMad,   choose_mad         },
    {Opcode::kMadc,  choose_madc        },
    {Opcode::kMul24, choose_mul24       },
    {Opcode::kMad24, choose_mad24       },
    {Opcode::kSad,   choose_sad         },
    {Opcode::kDiv,   choose_div         },
    {Opcode::kRem,   choose_rem         },
    {Opcode::kAbs,   choose_signed1<Abs>},
    {Opcode::kNeg,   choose_signed1<Neg>},
    {Opcode::kMin,   choose_min         },
    {Opcode::kMax,   choose_max         },
};

}  // namespace

std::span<const OpcodeRow> integer_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
