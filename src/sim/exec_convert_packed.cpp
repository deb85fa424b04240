// SPDX-License-Identifier: Apache-2.0
// Packed conversions (PTX ISA 9.7.9.21): two values of f16, bf16, fp8, fp6, fp4 or ue8m0 in one
// register, and cvt.pack (9.7.9.22). Of two sources the first goes to the upper half.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <algorithm>
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
  if (m.rounding == Rounding::kRs) return Choice::refuse("stochastic rounding is not implemented");
  const Packed to = packed_of(m.types[0]), from = packed_of(m.types[1]);
  const size_t slots = f.operands_of(i).size();
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
