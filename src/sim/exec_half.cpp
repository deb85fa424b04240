// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16, bf16 and their packed pairs (PTX ISA 9.7.4). Sources are exact in double; the
// exact or round-to-odd result is rounded once to 16 bits.
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"
#include "sim/models_number_formats.h"

#include <cmath>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Type;

// kBf16 selects the format; .ftz exists for f16 only (ex2.ftz.bf16 has no subnormal results to
// speak of that encode() would not flush below).
template <bool kBf16>
struct Half {
  static constexpr SmallFormat kFormat = kBf16 ? kFormatBf16 : kFormatF16;
  static float widen(uint16_t v) { return kBf16 ? float_from_bf16(v) : float_from_f16(v); }
  static uint16_t narrow(double v) {
    return static_cast<uint16_t>(encode(v, kFormat, RoundTo::kNearest, false));
  }
  static uint16_t flushed(uint16_t v) {
    return (v & (kBf16 ? 0x7f80 : 0x7c00)) == 0 ? static_cast<uint16_t>(v & 0x8000) : v;
  }
  static bool is_nan(uint16_t v) { return (v & 0x7fff) > (kBf16 ? 0x7f80 : 0x7c00); }
};

uint16_t finish(uint16_t r, bool bf16, const ptx::Modifiers& m) {
  const bool nan = bf16 ? Half<true>::is_nan(r) : Half<false>::is_nan(r);
  if (m.has(Flag::kFtz)) r = bf16 ? Half<true>::flushed(r) : Half<false>::flushed(r);
  if (m.has(Flag::kSat)) {
    const uint16_t one = bf16 ? 0x3f80 : 0x3c00;
    if (nan || (r & 0x8000) != 0) return 0;
    return r > one ? one : r;
  }
  if (nan) return kNan16;
  if (m.has(Flag::kRelu) && (r & 0x8000) != 0) return 0;
  return r;
}

// F: uint16_t(modifiers, a, b, c) on one half, sources already flushed.
template <typename F, bool kBf16, int kSources, bool kPacked>
Step half_arithmetic(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const bool ftz = m.has(Flag::kFtz);
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  const uint32_t* a = w.lanes<uint32_t>(op.slot(1));
  const uint32_t* b = kSources > 1 ? w.lanes<uint32_t>(op.slot(2)) : a;
  const uint32_t* c = kSources > 2 ? w.lanes<uint32_t>(op.slot(3)) : a;
  const auto source = [&](uint32_t v) {
    const uint16_t h = static_cast<uint16_t>(v);
    return ftz ? Half<kBf16>::flushed(h) : h;
  };
  for_lanes(active, [&](uint32_t i) {
    const uint32_t lo = F::template apply<kBf16>(m, source(a[i]), source(b[i]), source(c[i]));
    uint32_t hi = 0;
    if constexpr (kPacked)
      hi = F::template apply<kBf16>(m, source(a[i] >> 16), source(b[i] >> 16), source(c[i] >> 16));
    d[i] = hi << 16 | lo;
  });
  LaneMask undefined = w.undefined(op.slot(1));
  if constexpr (kSources > 1) undefined |= w.undefined(op.slot(2));
  if constexpr (kSources > 2) undefined |= w.undefined(op.slot(3));
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

struct Add {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t b, uint16_t) {
    using H = Half<kBf16>;
    return finish(H::narrow(add_to_odd(H::widen(a), H::widen(b))), kBf16, m);
  }
};
struct Sub {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t b, uint16_t) {
    using H = Half<kBf16>;
    return finish(H::narrow(add_to_odd(H::widen(a), -static_cast<double>(H::widen(b)))), kBf16, m);
  }
};
struct Mul {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t b, uint16_t) {
    using H = Half<kBf16>;
    return finish(H::narrow(static_cast<double>(H::widen(a)) * static_cast<double>(H::widen(b))),
                  kBf16, m);
  }
};
struct Fma {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t b, uint16_t c) {
    using H = Half<kBf16>;
    // A factor out of bounds makes the result +0, whatever c is (9.7.4.4; c itself is not asked).
    if (m.has(Flag::kOob) && ((a & 0x7fff) == kOobNan16 || (b & 0x7fff) == kOobNan16)) return 0;
    return finish(H::narrow(product_sum_to_odd(H::widen(a), H::widen(b), H::widen(c))), kBf16, m);
  }
};
struct Abs {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers&, uint16_t a, uint16_t, uint16_t) {
    return a & 0x7fff;
  }
};
struct Neg {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers&, uint16_t a, uint16_t, uint16_t) {
    return a ^ 0x8000;
  }
};
template <bool kMin>
struct MinMax {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t b, uint16_t) {
    using H = Half<kBf16>;
    const bool negative = ((a ^ b) & 0x8000) != 0;
    if (m.has(Flag::kAbs)) {
      a &= 0x7fff;
      b &= 0x7fff;
    }
    uint16_t r;
    if (H::is_nan(a) || H::is_nan(b)) {
      if (m.has(Flag::kNanPropagating) || (H::is_nan(a) && H::is_nan(b))) return kNan16;
      r = H::is_nan(a) ? b : a;
    } else {
      const float x = H::widen(a), y = H::widen(b);
      r = x == y ? ((a & 0x8000) != 0) == kMin ? a : b : (x < y) == kMin ? a : b;
    }
    if (m.has(Flag::kXorsign)) r = static_cast<uint16_t>((r & 0x7fff) | (negative ? 0x8000 : 0));
    return r;
  }
};
struct Ex2 {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t, uint16_t) {
    using H = Half<kBf16>;
    return finish(H::narrow(std::exp2(static_cast<double>(H::widen(a)))), kBf16, m);
  }
};
struct Tanh {
  template <bool kBf16>
  static uint16_t apply(const ptx::Modifiers& m, uint16_t a, uint16_t, uint16_t) {
    using H = Half<kBf16>;
    return finish(H::narrow(std::tanh(static_cast<double>(H::widen(a)))), kBf16, m);
  }
};

template <typename F, int kSources>
Choice choose(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.types[0]) {
    case Type::kF16: return {half_arithmetic<F, false, kSources, false>};
    case Type::kF16x2: return {half_arithmetic<F, false, kSources, true>};
    case Type::kBf16: return {half_arithmetic<F, true, kSources, false>};
    case Type::kBf16x2: return {half_arithmetic<F, true, kSources, true>};
    default: return Choice::refuse("this type is not implemented for this instruction");
  }
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kAdd,  choose<Add,           2>},
    {Opcode::kSub,  choose<Sub,           2>},
    {Opcode::kMul,  choose<Mul,           2>},
    {Opcode::kFma,  choose<Fma,           3>},
    {Opcode::kAbs,  choose<Abs,           1>},
    {Opcode::kNeg,  choose<Neg,           1>},
    {Opcode::kMin,  choose<MinMax<true>,  2>},
    {Opcode::kMax,  choose<MinMax<false>, 2>},
    {Opcode::kEx2,  choose<Ex2,           1>},
    {Opcode::kTanh, choose<Tanh,          1>},
};

}  // namespace

std::span<const OpcodeRow> half_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
