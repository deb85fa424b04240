// SPDX-License-Identifier: Apache-2.0
// Packed conversions (PTX ISA 9.7.9.21): two values of f16, bf16, fp8, fp6, fp4 or ue8m0 in one
// register, four with random bits, and cvt.pack (9.7.9.22). Of two sources the first goes to the
// upper half.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Rounding;
using ptx::Type;

RoundTo mode_of(Rounding r) {
  switch (r) {
    case Rounding::kRz: return RoundTo::kZero;
    case Rounding::kRp: return RoundTo::kUp;
    case Rounding::kRm: return RoundTo::kDown;
    case Rounding::kRna: return RoundTo::kNearestAway;
    default: return RoundTo::kNearest;
  }
}

// A packed format: how wide a half is and what is in it. 6-bit codes take a byte, 4-bit codes half
// a byte.
struct Packed {
  const SmallFormat* format = nullptr;
  uint32_t half_bits = 0;
  bool scale = false;  // ue8m0
};
Packed packed_of(Type t) {
  switch (t) {
    case Type::kF16x2: return {&kFormatF16, 16};
    case Type::kBf16x2: return {&kFormatBf16, 16};
    case Type::kE4m3x2: return {&kFormatE4m3, 8};
    case Type::kE5m2x2: return {&kFormatE5m2, 8};
    case Type::kE2m3x2: return {&kFormatE2m3, 8};
    case Type::kE3m2x2: return {&kFormatE3m2, 8};
    case Type::kE2m1x2: return {&kFormatE2m1, 4};
    case Type::kUe8m0x2: return {nullptr, 8, true};
    case Type::kE4m3x4: return {&kFormatE4m3, 8};
    case Type::kE5m2x4: return {&kFormatE5m2, 8};
    case Type::kE2m3x4: return {&kFormatE2m3, 8};
    case Type::kE3m2x4: return {&kFormatE3m2, 8};
    case Type::kE2m1x4: return {&kFormatE2m1, 4};
    default: return {};
  }
}

// 2^(code - 127), 255 is NaN. Only the magnitude counts; rounding is toward zero or up; results
// below 2^-127 become code 0. Without satfinite an overflow is NaN.
uint32_t encode_scale(double v, RoundTo mode, bool satfinite) {
  if (v != v) return 255;
  v = std::fabs(v);
  if (std::isinf(v)) return satfinite ? 254 : 255;
  if (v == 0) return 0;
  int exponent = std::ilogb(v);
  if (mode == RoundTo::kUp && v > std::ldexp(1.0, exponent)) ++exponent;
  if (exponent > 127) return satfinite ? 254 : 255;
  return static_cast<uint32_t>(std::max(exponent + 127, 0));
}

uint32_t encode_half(const Packed& to, double v, RoundTo mode, const ptx::Modifiers& m) {
  if (to.scale) return encode_scale(v, mode, m.has(Flag::kSatfinite));
  if (m.has(Flag::kRelu)) v = v > 0 || v != v ? v : 0.0;
  return encode(v, *to.format, mode, m.has(Flag::kSatfinite));
}
double decode_half(const Packed& from, uint32_t code) {
  if (from.scale)
    return code == 255 ? std::numeric_limits<double>::quiet_NaN()
                       : std::ldexp(1.0, static_cast<int>(code) - 127);
  return decode(code, *from.format);
}

// Slots d, a, b: two f32.
Step cvt_pair(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const Packed to = packed_of(m.types[0]);
  const RoundTo mode = mode_of(m.rounding);
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  const float* a = w.lanes<float>(op.slot(1));
  const float* b = w.lanes<float>(op.slot(2));
  for_lanes(active, [&](uint32_t i) {
    const uint32_t hi = encode_half(to, a[i], mode, m), lo = encode_half(to, b[i], mode, m);
    d[i] = hi << to.half_bits | lo;
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)) | w.undefined(op.slot(2)), active);
  return Step::kNext;
}

// Slots d, a: one packed pair to another.
Step cvt_packed(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const Packed to = packed_of(m.types[0]), from = packed_of(m.types[1]);
  const RoundTo mode = mode_of(m.rounding);
  const uint32_t mask = (1u << from.half_bits) - 1;
  for_lanes(active, [&](uint32_t i) {
    const uint32_t a = static_cast<uint32_t>(w.value(op.slot(1), i));
    const uint32_t hi = encode_half(to, decode_half(from, a >> from.half_bits & mask), mode, m);
    const uint32_t lo = encode_half(to, decode_half(from, a & mask), mode, m);
    w.set_value(op.slot(0), i, hi << to.half_bits | lo);
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// .rs: random bits are added to the uppermost of the bits that the result drops; a carry rounds
// away from zero (9.7.9.21, "Floating-point rounding modifiers").
uint32_t encode_stochastic(const Packed& to, float v, uint32_t random, int random_bits,
                           const ptx::Modifiers& m) {
  const SmallFormat& f = *to.format;
  if (m.has(Flag::kRelu)) v = v > 0 || v != v ? v : 0.0F;
  const bool satfinite = m.has(Flag::kSatfinite);
  if (v == 0 || !std::isfinite(v)) return encode(v, f, RoundTo::kNearest, satfinite);
  const auto bits = std::bit_cast<uint32_t>(v);
  const int field = static_cast<int>(bits >> 23 & 0xff);
  const uint64_t significand = (bits & 0x7fffff) | (field == 0 ? 0u : 1u << 23);
  const int exponent = std::max(field, 1) - 127;
  const int min_exponent = 2 - (1 << (f.exponent_bits - 1));
  const int unit = std::max(exponent, min_exponent);
  const int drop = 23 - f.mantissa_bits + (unit - exponent);
  const uint64_t kept = drop > 31 ? 0 : significand >> drop;
  const uint64_t rest = significand - (drop > 31 ? 0 : kept << drop);
  const int above = drop - random_bits;
  const uint64_t top = above > 31 ? 0 : above >= 0 ? rest >> above : rest << -above;
  const uint64_t carry = (top + random) >> random_bits;
  const uint64_t code =
      kept + carry + (static_cast<uint64_t>(unit - min_exponent) << f.mantissa_bits);
  const uint32_t sign = (bits >> 31) << (f.exponent_bits + f.mantissa_bits);
  if (code <= f.max_code) return sign | static_cast<uint32_t>(code);
  // Beyond the largest: as rounding away does it.
  const double limit = std::ldexp(v, 1);
  return encode(satfinite ? limit : std::copysign(std::numeric_limits<double>::infinity(), limit),
                f, RoundTo::kNearest, satfinite);
}

// Slots d, a, b, rbits: the upper half of rbits for a, the lower for b; of f16 13 bits each.
Step cvt_pair_stochastic(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const Packed to = packed_of(m.types[0]);
  const int random_bits = m.types[0] == Type::kF16x2 ? 13 : 16;
  const uint32_t mask = (1u << random_bits) - 1;
  for_lanes(active, [&](uint32_t i) {
    const auto random = static_cast<uint32_t>(w.value(op.slot(3), i));
    const uint32_t hi =
        encode_stochastic(to, w.lanes<float>(op.slot(1))[i], random >> 16 & mask, random_bits, m);
    const uint32_t lo =
        encode_stochastic(to, w.lanes<float>(op.slot(2))[i], random & mask, random_bits, m);
    w.set_value(op.slot(0), i, hi << 16 | lo);
  });
  w.set_undefined(op.slot(0),
                  w.undefined(op.slot(1)) | w.undefined(op.slot(2)) | w.undefined(op.slot(3)),
                  active);
  return Step::kNext;
}

// Slots d, {a, b, e, f}, rbits: a and b share its upper half, e and f its lower one. Of e2m1 each
// has eight bits of its own: the upper bytes of the two halves are those of a and b, the lower
// those of e and f.
Step cvt_four_stochastic(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const Packed to = packed_of(m.types[0]);
  const std::span<const Operand> list = registers_of(w, op.slot(1));
  const bool own_bits = m.types[0] == Type::kE2m1x4;
  constexpr uint32_t kOwnShift[] = {24, 8, 16, 0}, kSharedShift[] = {16, 16, 0, 0};
  const int random_bits = own_bits ? 8 : 16;
  const uint32_t mask = (1u << random_bits) - 1;
  LaneMask undefined = w.undefined(op.slot(2));
  for (uint32_t e = 0; e < 4; ++e) undefined |= w.undefined(list[e]);
  for_lanes(active, [&](uint32_t i) {
    const auto random = static_cast<uint32_t>(w.value(op.slot(2), i));
    uint32_t d = 0;
    for (uint32_t e = 0; e < 4; ++e) {
      const float v = w.lanes<float>(list[e])[i];
      const uint32_t bits = random >> (own_bits ? kOwnShift[e] : kSharedShift[e]) & mask;
      d = d << to.half_bits | encode_stochastic(to, v, bits, random_bits, m);
    }
    w.set_value(op.slot(0), i, d);
  });
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

// cvt.pack.sat: a to the upper place, b below it; with c, both go below c's bits shifted up.
Step cvt_pack(Warp& w, const Op& op, LaneMask active) {
  const Type type = op.modifiers().types[0];
  const int bits = ptx::type_bits(type);
  const bool is_signed = ptx::type_kind(type) == ptx::TypeKind::kSigned;
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1;
  const uint32_t mask = (1u << bits) - 1;
  const bool has_c = op.slot_count > 3;
  for_lanes(active, [&](uint32_t i) {
    const auto clamped = [&](const Operand& o) {
      return static_cast<uint32_t>(
                 std::clamp<int64_t>(static_cast<int32_t>(w.value(o, i)), low, high)) &
             mask;
    };
    uint32_t r = clamped(op.slot(1)) << bits | clamped(op.slot(2));
    if (has_c) r |= static_cast<uint32_t>(w.value(op.slot(3), i)) << (2 * bits);
    w.set_value(op.slot(0), i, r);
  });
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  if (has_c) undefined |= w.undefined(op.slot(3));
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

Choice choose_cvt(const ptx::Function& f, const Instruction& i) {
  const ptx::Modifiers& m = i.modifiers;
  const Packed to = packed_of(m.types[0]), from = packed_of(m.types[1]);
  const size_t slots = f.operands_of(i).size();
  if (m.rounding == Rounding::kRs && to.half_bits != 0 && !to.scale)
    return {slots == 4 ? cvt_pair_stochastic : cvt_four_stochastic};
  if (to.half_bits != 0 && m.types[1] == Type::kF32 && slots == 3) return {cvt_pair};
  if (to.half_bits != 0 && from.half_bits != 0 && slots == 2) return {cvt_packed};
  return Choice::refuse(
      fmt::format("cvt from .{} to .{}", ptx::type_name(m.types[1]), ptx::type_name(m.types[0])));
}
Choice choose_pack(const ptx::Function&, const Instruction&) {
  return {cvt_pack};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kCvt,     choose_cvt },
    {Opcode::kCvtPack, choose_pack}
};

}  // namespace

std::span<const OpcodeRow> packed_convert_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
