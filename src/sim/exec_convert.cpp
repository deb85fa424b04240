// SPDX-License-Identifier: Apache-2.0
// cvt between integers and floats, one value at a time (PTX ISA 9.7.9.21). Packed and narrow
// formats are in exec_convert_packed.cpp.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Rounding;
using ptx::Type;
using ptx::TypeKind;

// --- Integer to integer
// -----------------------------------------------------------------------------

template <typename S, typename D>
D clamp_to(S v) {
  if (std::cmp_less(v, std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  if (std::cmp_greater(v, std::numeric_limits<D>::max())) return std::numeric_limits<D>::max();
  return static_cast<D>(v);
}

// The destination register may be wider than the type; the result is extended to it.
template <typename S, typename D, bool kSat>
Step cvt_integer(Warp& w, const Op& op, LaneMask active) {
  const Operand& a = op.slot(1);
  const Operand& d = op.slot(0);
  for_lanes(active, [&](uint32_t i) {
    const S v = static_cast<S>(w.value(a, i));
    const D r = kSat ? clamp_to<S, D>(v) : static_cast<D>(v);
    w.set_value(d, i,
                static_cast<uint64_t>(
                    static_cast<std::conditional_t<std::is_signed_v<D>, int64_t, uint64_t>>(r)));
  });
  w.set_undefined(d, w.undefined(a), active);
  return Step::kNext;
}
// The two that address arithmetic is full of.
struct Narrow {
  uint32_t operator()(uint64_t a) const { return static_cast<uint32_t>(a); }
};
struct WidenU {
  uint64_t operator()(uint32_t a) const { return a; }
};
struct WidenS {
  int64_t operator()(int32_t a) const { return a; }
};

template <typename S>
ExecuteFn integer_to(Type d, bool sat) {
  switch (d) {
    case Type::kU8: return sat ? cvt_integer<S, uint8_t, true> : cvt_integer<S, uint8_t, false>;
    case Type::kS8: return sat ? cvt_integer<S, int8_t, true> : cvt_integer<S, int8_t, false>;
    case Type::kU16: return sat ? cvt_integer<S, uint16_t, true> : cvt_integer<S, uint16_t, false>;
    case Type::kS16: return sat ? cvt_integer<S, int16_t, true> : cvt_integer<S, int16_t, false>;
    case Type::kU32: return sat ? cvt_integer<S, uint32_t, true> : cvt_integer<S, uint32_t, false>;
    case Type::kS32: return sat ? cvt_integer<S, int32_t, true> : cvt_integer<S, int32_t, false>;
    case Type::kU64: return sat ? cvt_integer<S, uint64_t, true> : cvt_integer<S, uint64_t, false>;
    default: return sat ? cvt_integer<S, int64_t, true> : cvt_integer<S, int64_t, false>;
  }
}
ExecuteFn integer_to_integer(Type s, Type d, bool sat) {
  switch (s) {
    case Type::kU8: return integer_to<uint8_t>(d, sat);
    case Type::kS8: return integer_to<int8_t>(d, sat);
    case Type::kU16: return integer_to<uint16_t>(d, sat);
    case Type::kS16: return integer_to<int16_t>(d, sat);
    case Type::kU32: return integer_to<uint32_t>(d, sat);
    case Type::kS32: return integer_to<int32_t>(d, sat);
    case Type::kU64: return integer_to<uint64_t>(d, sat);
    default: return integer_to<int64_t>(d, sat);
  }
}

// --- Floats
// -----------------------------------------------------------------------------------------

RoundTo mode_of(Rounding r) {
  switch (r) {
    case Rounding::kRz:
    case Rounding::kRzi: return RoundTo::kZero;
    case Rounding::kRm:
    case Rounding::kRmi: return RoundTo::kDown;
    case Rounding::kRp:
    case Rounding::kRpi: return RoundTo::kUp;
    case Rounding::kRna: return RoundTo::kNearestAway;
    default: return RoundTo::kNearest;
  }
}
int host_mode(RoundTo mode) {
  switch (mode) {
    case RoundTo::kZero: return FE_TOWARDZERO;
    case RoundTo::kDown: return FE_DOWNWARD;
    case RoundTo::kUp: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}
bool to_integral(Rounding r) {
  return r == Rounding::kRni || r == Rounding::kRzi || r == Rounding::kRmi || r == Rounding::kRpi;
}

double round_to_integral(double v, RoundTo mode) {
  switch (mode) {
    case RoundTo::kZero: return std::trunc(v);
    case RoundTo::kDown: return std::floor(v);
    case RoundTo::kUp: return std::ceil(v);
    default: return std::nearbyint(v);  // the host is in round-to-nearest-even
  }
}

// The exact value of a float source.
double widen(Type type, uint64_t bits, bool ftz) {
  switch (type) {
    case Type::kF16: return float_from_f16(static_cast<uint16_t>(bits));
    case Type::kBf16: return float_from_bf16(static_cast<uint16_t>(bits));
    case Type::kF32: return flush(std::bit_cast<float>(static_cast<uint32_t>(bits)), ftz);
    default: return std::bit_cast<double>(bits);
  }
}

// v rounded to `type`; exact or round-to-odd on entry.
uint64_t narrow(Type type, double v, RoundTo mode, const ptx::Modifiers& m) {
  const bool satfinite = m.has(Flag::kSatfinite);
  if (m.has(Flag::kSat)) v = v > 0 ? std::min(v, 1.0) : 0.0;
  if (m.has(Flag::kRelu) && v < 0) v = 0;
  if (m.has(Flag::kRelu) && v == 0) v = 0.0;
  uint64_t bits;
  switch (type) {
    case Type::kF16: bits = encode(v, kFormatF16, mode, satfinite); break;
    case Type::kBf16: bits = encode(v, kFormatBf16, mode, satfinite); break;
    case Type::kF32:
      bits = encode(v, kFormatF32, mode, satfinite);
      if (m.has(Flag::kFtz))
        bits =
            std::bit_cast<uint32_t>(flush(std::bit_cast<float>(static_cast<uint32_t>(bits)), true));
      break;
    default: bits = std::bit_cast<uint64_t>(v); break;
  }
  return bits;
}

Step cvt_float_float(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const RoundTo mode = mode_of(m.rounding);
  const bool integral = to_integral(m.rounding), ftz = m.has(Flag::kFtz);
  for_lanes(active, [&](uint32_t i) {
    double v = widen(m.types[1], w.value(op.slot(1), i), ftz);
    if (integral) v = round_to_integral(v, mode);
    w.set_value(op.slot(0), i, narrow(m.types[0], v, mode, m));
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// Out-of-range values clamp. NaN is 0; of f64 sources and 64-bit results it is the most negative
// pattern.
uint64_t float_to_integer(double v, Type source, Type type, RoundTo mode) {
  const int bits = ptx::type_bits(type);
  const bool is_signed = ptx::type_kind(type) == TypeKind::kSigned;
  if (v != v) {
    if (bits == 64) return uint64_t{1} << 63;
    return source == Type::kF64 && bits == 32 ? 0x80000000u : 0;
  }
  v = round_to_integral(v, mode);
  if (is_signed) {
    const double limit = std::ldexp(1.0, bits - 1);
    if (v >= limit) return (uint64_t{1} << (bits - 1)) - 1;
    if (v < -limit) return 0 - (uint64_t{1} << (bits - 1));
    return static_cast<uint64_t>(static_cast<int64_t>(v));
  }
  if (v <= 0) return 0;
  if (v >= std::ldexp(1.0, bits)) return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return static_cast<uint64_t>(v);
}

Step cvt_float_integer(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const RoundTo mode = m.rounding == Rounding::kNone ? RoundTo::kZero : mode_of(m.rounding);
  const bool ftz = m.has(Flag::kFtz);
  for_lanes(active, [&](uint32_t i) {
    const double v = widen(m.types[1], w.value(op.slot(1), i), ftz);
    w.set_value(op.slot(0), i, float_to_integer(v, m.types[1], m.types[0], mode));
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// A 64-bit magnitude as a double rounded to odd.
double magnitude_to_odd(uint64_t magnitude) {
  const int drop = 11 - std::countl_zero(magnitude | 1);
  if (drop <= 0) return static_cast<double>(magnitude);
  const uint64_t kept = magnitude >> drop;
  const bool sticky = (magnitude & ((uint64_t{1} << drop) - 1)) != 0;
  return std::ldexp(static_cast<double>(kept | (sticky ? 1 : 0)), drop);
}

Step cvt_integer_float(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const RoundTo mode = mode_of(m.rounding);
  const int bits = ptx::type_bits(m.types[1]);
  const bool is_signed = ptx::type_kind(m.types[1]) == TypeKind::kSigned;
  for_lanes(active, [&](uint32_t i) {
    uint64_t v = w.value(op.slot(1), i) << (64 - bits);
    v = is_signed ? static_cast<uint64_t>(static_cast<int64_t>(v) >> (64 - bits))
                  : v >> (64 - bits);
    const bool negative = is_signed && (v >> 63) != 0;
    if (m.types[0] == Type::kF64) {
      std::fesetround(host_mode(mode));
      const volatile uint64_t source = v;
      const volatile double r = negative ? static_cast<double>(static_cast<int64_t>(source))
                                         : static_cast<double>(static_cast<uint64_t>(source));
      std::fesetround(FE_TONEAREST);
      w.set_value(op.slot(0), i, std::bit_cast<uint64_t>(static_cast<double>(r)));
      return;
    }
    const double magnitude = magnitude_to_odd(negative ? 0 - v : v);
    w.set_value(op.slot(0), i, narrow(m.types[0], negative ? -magnitude : magnitude, mode, m));
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// f64 results of f64 sources with a rounding to integral, and exact widenings, go through
// cvt_float_float; a double needs no encode().

Step cvt_tf32(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const RoundTo mode = mode_of(m.rounding);
  for_lanes(active, [&](uint32_t i) {
    double v = std::bit_cast<float>(static_cast<uint32_t>(w.value(op.slot(1), i)));
    if (m.has(Flag::kRelu)) v = v > 0 || v != v ? v : 0.0;
    // 1 + 8 + 10 bits at the top of the 32-bit container.
    w.set_value(op.slot(0), i, encode(v, kFormatTf32, mode, m.has(Flag::kSatfinite)) << 13);
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

bool is_float(Type t) {
  return t == Type::kF16 || t == Type::kBf16 || t == Type::kF32 || t == Type::kF64;
}
bool is_integer(Type t) {
  const TypeKind k = ptx::type_kind(t);
  return (k == TypeKind::kSigned || k == TypeKind::kUnsigned) && ptx::type_bits(t) >= 8;
}

Choice choose_cvt(const ptx::Function& f, const Instruction& i) {
  const ptx::Modifiers& m = i.modifiers;
  const Type d = m.types[0], s = m.types[1];
  const auto operands = f.operands_of(i);
  if (operands.size() != 2) return Choice::refuse("not a conversion of one value");
  if (d == Type::kTf32) return {cvt_tf32};
  if (is_integer(d) && is_integer(s)) {
    const bool plain = !m.has(Flag::kSat) && operands[0].is_register() && operands[1].is_register();
    const auto width = [&](size_t o, int bits) {
      return plain && ptx::type_bits(operands[o].type) == bits;
    };
    if (width(0, 32) && width(1, 64) && ptx::type_bits(d) == 32 && ptx::type_bits(s) == 64)
      return {unary<uint32_t, uint64_t, Narrow>};
    if (width(0, 64) && width(1, 32) && ptx::type_bits(d) == 64 && s == Type::kU32)
      return {unary<uint64_t, uint32_t, WidenU>};
    if (width(0, 64) && width(1, 32) && ptx::type_bits(d) == 64 && s == Type::kS32)
      return {unary<int64_t, int32_t, WidenS>};
    return {integer_to_integer(s, d, m.has(Flag::kSat))};
  }
  if (is_float(d) && is_float(s)) return {cvt_float_float};
  if (is_integer(d) && is_float(s)) return {cvt_float_integer};
  if (is_float(d) && is_integer(s)) return {cvt_integer_float};
  return Choice::refuse("not a conversion between scalar types");
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kCvt, choose_cvt}
};

}  // namespace

std::span<const OpcodeRow> convert_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
