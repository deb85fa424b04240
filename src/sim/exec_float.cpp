// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic in f32, f32x2 and f64 (PTX ISA 9.7.3, 9.7.5): exact IEEE results in the
// asked rounding mode. Approximate functions are computed in double and rounded once. The 16-bit
// formats are in exec_half.cpp.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <cfenv>
#include <cmath>
#include <limits>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operation;
using ptx::Rounding;
using ptx::Type;

// Op::payload of the instructions here.
constexpr uint64_t kFtz = 1, kSat = 2, kDirected = 4;  // kDirected: a host mode in bits 8 and up

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::kRz: return FE_TOWARDZERO;
    case Rounding::kRm: return FE_DOWNWARD;
    case Rounding::kRp: return FE_UPWARD;
    default: return FE_TONEAREST;
  }
}
uint64_t payload_of(const ptx::Modifiers& m) {
  uint64_t p = 0;
  if (m.has(Flag::kFtz)) p |= kFtz;
  if (m.has(Flag::kSat)) p |= kSat;
  if (const int mode = host_mode(m.rounding); mode != FE_TONEAREST)
    p |= kDirected | static_cast<uint64_t>(mode) << 8;
  return p;
}

// Host arithmetic in another rounding mode. Loads and stores of lanes cannot move across the calls,
// so neither can the arithmetic between them.
class RoundingScope {
 public:
  explicit RoundingScope(uint64_t payload) : directed_((payload & kDirected) != 0) {
    if (directed_) std::fesetround(static_cast<int>(payload >> 8));
  }
  ~RoundingScope() {
    if (directed_) std::fesetround(FE_TONEAREST);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  bool directed_;
};

float finish(float r, uint64_t payload) {
  r = flush(r, (payload & kFtz) != 0);
  return (payload & kSat) != 0 ? saturate_unit(r) : canonical(r);
}

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Sub {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Mul {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Div {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
struct Fma {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};
struct Rcp {
  template <typename T>
  T operator()(T a) const {
    return T{1} / a;
  }
};
struct Sqrt {
  template <typename T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};

template <typename F>
Step f32_unary(Warp& w, const Op& op, LaneMask active) {
  float* d = w.lanes<float>(op.slot(0));
  const float* a = w.lanes<float>(op.slot(1));
  const uint64_t payload = op.payload;
  const bool ftz = (payload & kFtz) != 0;
  {
    const RoundingScope scope(payload);
    for_lanes(active, [&](uint32_t i) { d[i] = finish(F{}(flush(a[i], ftz)), payload); });
  }
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}
template <typename F>
Step f32_binary(Warp& w, const Op& op, LaneMask active) {
  float* d = w.lanes<float>(op.slot(0));
  const float* a = w.lanes<float>(op.slot(1));
  const float* b = w.lanes<float>(op.slot(2));
  const uint64_t payload = op.payload;
  if (payload == 0) {
    for_lanes(active, [&](uint32_t i) { d[i] = canonical(F{}(a[i], b[i])); });
  } else {
    const bool ftz = (payload & kFtz) != 0;
    const RoundingScope scope(payload);
    for_lanes(active,
              [&](uint32_t i) { d[i] = finish(F{}(flush(a[i], ftz), flush(b[i], ftz)), payload); });
  }
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)) | w.undefined(op.slot(2)), active);
  return Step::kNext;
}
template <typename F>
Step f32_ternary(Warp& w, const Op& op, LaneMask active) {
  float* d = w.lanes<float>(op.slot(0));
  const float* a = w.lanes<float>(op.slot(1));
  const float* b = w.lanes<float>(op.slot(2));
  const float* c = w.lanes<float>(op.slot(3));
  const uint64_t payload = op.payload;
  if (payload == 0) {
    for_lanes(active, [&](uint32_t i) { d[i] = canonical(F{}(a[i], b[i], c[i])); });
  } else {
    const bool ftz = (payload & kFtz) != 0;
    const RoundingScope scope(payload);
    for_lanes(active, [&](uint32_t i) {
      d[i] = finish(F{}(flush(a[i], ftz), flush(b[i], ftz), flush(c[i], ftz)), payload);
    });
  }
  w.set_undefined(op.slot(0),
                  w.undefined(op.slot(1)) | w.undefined(op.slot(2)) | w.undefined(op.slot(3)),
                  active);
  return Step::kNext;
}

template <int kSources, typename F>
Step f64_arithmetic(Warp& w, const Op& op, LaneMask active) {
  double* d = w.lanes<double>(op.slot(0));
  const double* a = w.lanes<double>(op.slot(1));
  LaneMask undefined = w.undefined(op.slot(1));
  {
    const RoundingScope scope(op.payload);
    if constexpr (kSources == 1) {
      for_lanes(active, [&](uint32_t i) { d[i] = F{}(a[i]); });
    } else if constexpr (kSources == 2) {
      const double* b = w.lanes<double>(op.slot(2));
      for_lanes(active, [&](uint32_t i) { d[i] = F{}(a[i], b[i]); });
      undefined |= w.undefined(op.slot(2));
    } else {
      const double* b = w.lanes<double>(op.slot(2));
      const double* c = w.lanes<double>(op.slot(3));
      for_lanes(active, [&](uint32_t i) { d[i] = F{}(a[i], b[i], c[i]); });
      undefined |= w.undefined(op.slot(2)) | w.undefined(op.slot(3));
    }
  }
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

struct Pair {
  float lo, hi;
};
template <int kSources, typename F>
Step f32x2_arithmetic(Warp& w, const Op& op, LaneMask active) {
  Pair* d = w.lanes<Pair>(op.slot(0));
  const Pair* a = w.lanes<Pair>(op.slot(1));
  const Pair* b = w.lanes<Pair>(op.slot(2));
  const Pair* c = kSources == 3 ? w.lanes<Pair>(op.slot(3)) : nullptr;
  const uint64_t payload = op.payload;
  const bool ftz = (payload & kFtz) != 0;
  {
    const RoundingScope scope(payload);
    for_lanes(active, [&](uint32_t i) {
      if constexpr (kSources == 3) {
        d[i] = {
            finish(F{}(flush(a[i].lo, ftz), flush(b[i].lo, ftz), flush(c[i].lo, ftz)), payload),
            finish(F{}(flush(a[i].hi, ftz), flush(b[i].hi, ftz), flush(c[i].hi, ftz)), payload)};
      } else {
        d[i] = {finish(F{}(flush(a[i].lo, ftz), flush(b[i].lo, ftz)), payload),
                finish(F{}(flush(a[i].hi, ftz), flush(b[i].hi, ftz)), payload)};
      }
    });
  }
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  if constexpr (kSources == 3) undefined |= w.undefined(op.slot(3));
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

// Mixed precision (9.7.5): 16-bit sources widen exactly, the operation is that of f32.
template <int kSources, typename F, bool kBf16>
Step mixed_arithmetic(Warp& w, const Op& op, LaneMask active) {
  const auto widen = [](uint32_t v) {
    return kBf16 ? float_from_bf16(static_cast<uint16_t>(v))
                 : float_from_f16(static_cast<uint16_t>(v));
  };
  float* d = w.lanes<float>(op.slot(0));
  const uint32_t* a = w.lanes<uint32_t>(op.slot(1));
  const float* c = w.lanes<float>(op.slot(kSources));
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  {
    const RoundingScope scope(op.payload);
    if constexpr (kSources == 3) {
      const uint32_t* b = w.lanes<uint32_t>(op.slot(2));
      for_lanes(active, [&](uint32_t i) {
        d[i] = finish(F{}(widen(a[i]), widen(b[i]), c[i]), op.payload);
      });
      undefined |= w.undefined(op.slot(3));
    } else {
      for_lanes(active, [&](uint32_t i) { d[i] = finish(F{}(widen(a[i]), c[i]), op.payload); });
    }
  }
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

// --- Approximate functions
// --------------------------------------------------------------------------

struct RcpApprox {
  float operator()(float a) const { return static_cast<float>(1.0 / static_cast<double>(a)); }
};
struct SqrtApprox {
  float operator()(float a) const { return static_cast<float>(std::sqrt(static_cast<double>(a))); }
};
struct Rsqrt {
  float operator()(float a) const {
    return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};
struct Sin {
  float operator()(float a) const { return static_cast<float>(std::sin(static_cast<double>(a))); }
};
struct Cos {
  float operator()(float a) const { return static_cast<float>(std::cos(static_cast<double>(a))); }
};
struct Lg2 {
  float operator()(float a) const { return static_cast<float>(std::log2(static_cast<double>(a))); }
};
struct Ex2 {
  float operator()(float a) const { return static_cast<float>(std::exp2(static_cast<double>(a))); }
};
struct Tanh {
  float operator()(float a) const { return static_cast<float>(std::tanh(static_cast<double>(a))); }
};
// div.approx: for 2^126 < |b| < 2^128 the quotient is 0, or NaN of an infinite a (9.7.3.8).
template <bool kFullRange>
struct DivApprox {
  float operator()(float a, float b) const {
    if (!kFullRange && std::fabs(b) > 0x1p126f && !std::isinf(b)) {
      return std::isinf(a) ? std::numeric_limits<float>::quiet_NaN()
                           : std::copysign(0.0f, a) * std::copysign(1.0f, b);
    }
    return static_cast<float>(static_cast<double>(a) / static_cast<double>(b));
  }
};
// The f64 approximations give the upper 32 bits of the result; the lower ones are zero
// (9.7.3.14, 9.7.3.17).
double upper_half(double v) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(v) & 0xffffffff00000000u);
}
double flush64(double v) {
  return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0, v) : v;
}
struct RcpApprox64 {
  double operator()(double a) const { return flush64(upper_half(1.0 / flush64(a))); }
};
struct RsqrtApprox64 {
  double operator()(double a) const { return flush64(upper_half(1.0 / std::sqrt(flush64(a)))); }
};
struct Rsqrt64 {
  double operator()(double a) const { return 1.0 / std::sqrt(a); }
};

// --- Sign, comparison and classification
// ------------------------------------------------------------

template <bool kNegate>
Step f32_sign(Warp& w, const Op& op, LaneMask active) {
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  const uint32_t* a = w.lanes<uint32_t>(op.slot(1));
  const bool ftz = (op.payload & kFtz) != 0;
  for_lanes(active, [&](uint32_t i) {
    const uint32_t v = std::bit_cast<uint32_t>(flush(std::bit_cast<float>(a[i]), ftz));
    d[i] = kNegate ? v ^ 0x80000000 : v & 0x7fffffff;
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}
struct Abs64 {
  uint64_t operator()(uint64_t a) const { return a & ~(uint64_t{1} << 63); }
};
struct Neg64 {
  uint64_t operator()(uint64_t a) const { return a ^ (uint64_t{1} << 63); }
};

// min and max; three sources since PTX 8.6. Slots d, a, b, c.
template <bool kMin>
Step f32_min_max(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const bool ftz = m.has(Flag::kFtz), nan = m.has(Flag::kNanPropagating),
             magnitude = m.has(Flag::kAbs), xorsign = m.has(Flag::kXorsign);
  const bool three = op.slot_count > 3 && op.slot(3).kind != OperandKind::kNone;
  float* d = w.lanes<float>(op.slot(0));
  const float* a = w.lanes<float>(op.slot(1));
  const float* b = w.lanes<float>(op.slot(2));
  const float* c = three ? w.lanes<float>(op.slot(3)) : a;
  for_lanes(active, [&](uint32_t i) {
    const auto source = [&](float v) {
      return magnitude ? std::fabs(flush(v, ftz)) : flush(v, ftz);
    };
    const bool negative = std::signbit(a[i]) ^ std::signbit(b[i]) ^ (three && std::signbit(c[i]));
    float r = float_min_max(source(a[i]), source(b[i]), kMin, nan);
    if (three) r = float_min_max(r, source(c[i]), kMin, nan);
    if (xorsign && r == r) r = std::copysign(r, negative ? -1.0f : 1.0f);
    d[i] = r;
  });
  LaneMask undefined = w.undefined(op.slot(1)) | w.undefined(op.slot(2));
  if (three) undefined |= w.undefined(op.slot(3));
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}
template <bool kMin>
struct MinMax64 {
  double operator()(double a, double b) const { return double_min_max(a, b, kMin); }
};

// copysign: the sign of a, the magnitude of b.
template <typename U>
struct CopySign {
  U operator()(U a, U b) const {
    constexpr U kSign = U{1} << (8 * sizeof(U) - 1);
    return (a & kSign) | (b & ~kSign);
  }
};

template <typename T>
Step testp(Warp& w, const Op& op, LaneMask active) {
  const T* a = w.lanes<T>(op.slot(1));
  LaneMask r = 0;
  for_lanes(active, [&](uint32_t i) {
    const int c = std::fpclassify(a[i]);
    bool yes = false;
    switch (op.modifiers().operation) {
      case Operation::kFinite: yes = c != FP_INFINITE && c != FP_NAN; break;
      case Operation::kInfinite: yes = c == FP_INFINITE; break;
      case Operation::kNumber: yes = c != FP_NAN; break;
      case Operation::kNotanumber: yes = c == FP_NAN; break;
      case Operation::kNormal: yes = c == FP_NORMAL || c == FP_ZERO; break;
      default: yes = c == FP_SUBNORMAL; break;
    }
    if (yes) r |= LaneMask{1} << i;
  });
  const LaneMask undefined = w.undefined(op.slot(1));
  w.set_predicate(op.slot(0), r, active);
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

// --- Choosers
// ---------------------------------------------------------------------------------------

Choice with(ExecuteFn fn, const Instruction& i) {
  return {fn, 0, payload_of(i.modifiers)};
}
Choice not_here(const Instruction& i) {
  return Choice::refuse(fmt::format("type .{} is not implemented for this instruction",
                                    ptx::type_name(i.modifiers.type())));
}

template <typename F>
Choice choose2(const ptx::Function&, const Instruction& i) {
  const ptx::Modifiers& m = i.modifiers;
  switch (m.types[0]) {
    case Type::kF32:
      if (m.types[1] == Type::kF16) return with(mixed_arithmetic<2, F, false>, i);
      if (m.types[1] == Type::kBf16) return with(mixed_arithmetic<2, F, true>, i);
      return with(f32_binary<F>, i);
    case Type::kF32x2: return with(f32x2_arithmetic<2, F>, i);
    case Type::kF64: return with(f64_arithmetic<2, F>, i);
    default: return not_here(i);
  }
}
Choice choose_fma(const ptx::Function&, const Instruction& i) {
  const ptx::Modifiers& m = i.modifiers;
  switch (m.types[0]) {
    case Type::kF32:
      if (m.types[1] == Type::kF16) return with(mixed_arithmetic<3, Fma, false>, i);
      if (m.types[1] == Type::kBf16) return with(mixed_arithmetic<3, Fma, true>, i);
      return with(f32_ternary<Fma>, i);
    case Type::kF32x2: return with(f32x2_arithmetic<3, Fma>, i);
    case Type::kF64: return with(f64_arithmetic<3, Fma>, i);
    default: return not_here(i);
  }
}
Choice choose_div(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() == Type::kF64) return with(f64_arithmetic<2, Div>, i);
  if (i.modifiers.type() != Type::kF32) return not_here(i);
  if (i.modifiers.has(Flag::kApprox)) return with(f32_binary<DivApprox<false>>, i);
  if (i.modifiers.has(Flag::kFull)) return with(f32_binary<DivApprox<true>>, i);
  return with(f32_binary<Div>, i);
}
Choice choose_rcp(const ptx::Function&, const Instruction& i) {
  const bool approx = i.modifiers.has(Flag::kApprox);
  if (i.modifiers.type() == Type::kF64)
    return with(approx ? f64_arithmetic<1, RcpApprox64> : f64_arithmetic<1, Rcp>, i);
  return with(approx ? f32_unary<RcpApprox> : f32_unary<Rcp>, i);
}
Choice choose_sqrt(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() == Type::kF64) return with(f64_arithmetic<1, Sqrt>, i);
  return with(i.modifiers.has(Flag::kApprox) ? f32_unary<SqrtApprox> : f32_unary<Sqrt>, i);
}
Choice choose_rsqrt(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() == Type::kF64)
    return with(
        i.modifiers.has(Flag::kFtz) ? f64_arithmetic<1, RsqrtApprox64> : f64_arithmetic<1, Rsqrt64>,
        i);
  return with(f32_unary<Rsqrt>, i);
}
template <typename F>
Choice choose_f32(const ptx::Function&, const Instruction& i) {
  return i.modifiers.type() == Type::kF32 ? with(f32_unary<F>, i) : not_here(i);
}
template <bool kNegate>
Choice choose_sign(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() == Type::kF64)
    return {kNegate ? unary_same<uint64_t, Neg64> : unary_same<uint64_t, Abs64>};
  return i.modifiers.type() == Type::kF32 ? with(f32_sign<kNegate>, i) : not_here(i);
}
template <bool kMin>
Choice choose_min_max(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() == Type::kF64) return with(f64_arithmetic<2, MinMax64<kMin>>, i);
  return i.modifiers.type() == Type::kF32 ? with(f32_min_max<kMin>, i) : not_here(i);
}
Choice choose_copysign(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.type() == Type::kF64 ? binary_same<uint64_t, CopySign<uint64_t>>
                                           : binary_same<uint32_t, CopySign<uint32_t>>};
}
Choice choose_testp(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.type() == Type::kF64 ? testp<double> : testp<float>};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kAdd,      choose2<Add>         },
    {Opcode::kSub,      choose2<Sub>         },
    {Opcode::kMul,      choose2<Mul>         },
    {Opcode::kFma,      choose_fma           },
    {Opcode::kMad,      choose_fma           },
    {Opcode::kDiv,      choose_div           },
    {Opcode::kRcp,      choose_rcp           },
    {Opcode::kSqrt,     choose_sqrt          },
    {Opcode::kRsqrt,    choose_rsqrt         },
    {Opcode::kSin,      choose_f32<Sin>      },
    {Opcode::kCos,      choose_f32<Cos>      },
    {Opcode::kLg2,      choose_f32<Lg2>      },
    {Opcode::kEx2,      choose_f32<Ex2>      },
    {Opcode::kTanh,     choose_f32<Tanh>     },
    {Opcode::kAbs,      choose_sign<false>   },
    {Opcode::kNeg,      choose_sign<true>    },
    {Opcode::kMin,      choose_min_max<true> },
    {Opcode::kMax,      choose_min_max<false>},
    {Opcode::kCopysign, choose_copysign      },
    {Opcode::kTestp,    choose_testp         },
};

}  // namespace

std::span<const OpcodeRow> float_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
