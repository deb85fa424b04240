// SPDX-License-Identifier: Apache-2.0
// Instructions on the bits and bytes of integers (PTX ISA 9.7.1.14 - 9.7.1.24): counting, finding,
// reversing, fields, masks, dot products of bytes. Arithmetic is in exec_integer.cpp.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/lanes.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Part;
using ptx::Type;

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

struct Popc {
  template <typename T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::popcount(a));
  }
};
struct Clz {
  template <typename T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(std::countl_zero(a));
  }
};
template <bool kShiftAmount>
struct Bfind {
  template <typename T>
  uint32_t operator()(T a) const {
    Unsigned<T> v = static_cast<Unsigned<T>>(a);
    if constexpr (std::is_signed_v<T>) {
      if (a < 0) v = static_cast<Unsigned<T>>(~v);
    }
    if (v == 0) return ~0u;
    const uint32_t top =
        static_cast<uint32_t>(8 * sizeof(T) - 1) - static_cast<uint32_t>(std::countl_zero(v));
    return kShiftAmount ? static_cast<uint32_t>(8 * sizeof(T) - 1) - top : top;
  }
};
struct Brev {
  template <typename T>
  T operator()(T a) const {
    T r = 0;
    for (size_t i = 0; i < 8 * sizeof(T); ++i) r = static_cast<T>(r << 1 | (a >> i & 1));
    return r;
  }
};
// Find the n-th set bit (9.7.1.17).
struct Fns {
  uint32_t operator()(uint32_t mask, uint32_t base, int32_t offset) const {
    if (base > 31) return ~0u;
    if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0u;
    const int step = offset > 0 ? 1 : -1;
    int left = offset > 0 ? offset : -offset;
    for (int pos = static_cast<int>(base); pos >= 0 && pos < 32; pos += step) {
      if ((mask >> pos & 1) != 0 && --left == 0) return static_cast<uint32_t>(pos);
    }
    return ~0u;
  }
};
struct Bfe {
  template <typename T>
  T operator()(T a, uint32_t b, uint32_t c) const {
    constexpr uint32_t kBits = 8 * sizeof(T);
    const uint32_t pos = b & 0xff, len = c & 0xff;
    const uint64_t v = static_cast<Unsigned<T>>(a);
    bool sign = false;
    if constexpr (std::is_signed_v<T>) {
      if (len != 0) sign = (v >> std::min(pos + len - 1, kBits - 1) & 1) != 0;
    }
    uint64_t r = 0;
    for (uint32_t i = 0; i < kBits; ++i) {
      const bool bit = i < len && pos + i < kBits ? (v >> (pos + i) & 1) != 0 : sign;
      r |= uint64_t{bit} << i;
    }
    return static_cast<T>(r);
  }
};
// Slots: f, a, b, c, d: a is inserted into b (9.7.1.20).
template <typename T>
Step bfi(Warp& w, const Op& op, LaneMask active) {
  SlotOf<T>* f = w.lanes<SlotOf<T>>(op.slot(0));
  const SlotOf<T>* a = w.lanes<SlotOf<T>>(op.slot(1));
  const SlotOf<T>* b = w.lanes<SlotOf<T>>(op.slot(2));
  const uint32_t* c = w.lanes<uint32_t>(op.slot(3));
  const uint32_t* d = w.lanes<uint32_t>(op.slot(4));
  for_lanes(active, [&](uint32_t i) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    const uint32_t pos = c[i] & 0xff, len = std::min(d[i] & 0xff, kBits);
    if (pos >= kBits || len == 0) {
      f[i] = b[i];
      return;
    }
    const T ones = len == kBits ? ~T{0} : static_cast<T>((T{1} << len) - 1);
    const T mask = static_cast<T>(ones << pos);
    f[i] = static_cast<T>((b[i] & ~mask) | (static_cast<T>(a[i] << pos) & mask));
  });
  w.set_undefined(op.slot(0),
                  w.undefined(op.slot(1)) | w.undefined(op.slot(2)) | w.undefined(op.slot(3)) |
                      w.undefined(op.slot(4)),
                  active);
  return Step::kNext;
}
template <typename T, bool kClamp>
struct Szext {
  T operator()(T a, uint32_t b) const {
    const uint32_t n = kClamp ? std::min(b, 32u) : b & 31;
    if (n == 32) return a;
    if (n == 0) return 0;
    const uint32_t v = static_cast<uint32_t>(a) << (32 - n);
    return static_cast<T>(std::is_signed_v<T>
                              ? static_cast<uint32_t>(static_cast<int32_t>(v) >> (32 - n))
                              : v >> (32 - n));
  }
};
template <bool kClamp>
struct Bmsk {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const uint32_t start = kClamp ? std::min(a, 32u) : a & 31,
                   width = kClamp ? std::min(b, 32u) : b & 31;
    const uint64_t ones = (uint64_t{1} << width) - 1;
    return static_cast<uint32_t>(ones << start);
  }
};
template <bool kSigned>
int32_t byte_of(uint32_t v, int i) {
  return kSigned ? static_cast<int8_t>(v >> (8 * i)) : static_cast<uint8_t>(v >> (8 * i));
}
template <bool kSignedA, bool kSignedB>
struct Dp4a {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int i = 0; i < 4; ++i)
      c += static_cast<uint32_t>(byte_of<kSignedA>(a, i) * byte_of<kSignedB>(b, i));
    return c;
  }
};
template <bool kSignedA, bool kSignedB, bool kHigh>
struct Dp2a {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    for (int i = 0; i < 2; ++i) {
      const int32_t half =
          kSignedA ? static_cast<int16_t>(a >> (16 * i)) : static_cast<uint16_t>(a >> (16 * i));
      c += static_cast<uint32_t>(half * byte_of<kSignedB>(b, i + (kHigh ? 2 : 0)));
    }
    return c;
  }
};

Choice unsupported_type(const Instruction& i) {
  return Choice::refuse(fmt::format("type .{} is not implemented for this integer instruction",
                                    ptx::type_name(i.modifiers.type())));
}

template <typename F>
Choice choose_count(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kB32: return {unary<uint32_t, uint32_t, F>};
    case Type::kB64: return {unary<uint32_t, uint64_t, F>};
    default: return unsupported_type(i);
  }
}
template <bool kShift>
Choice bfind_of(const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kU32: return {unary<uint32_t, uint32_t, Bfind<kShift>>};
    case Type::kS32: return {unary<uint32_t, int32_t, Bfind<kShift>>};
    case Type::kU64: return {unary<uint32_t, uint64_t, Bfind<kShift>>};
    case Type::kS64: return {unary<uint32_t, int64_t, Bfind<kShift>>};
    default: return unsupported_type(i);
  }
}
Choice choose_bfind(const ptx::Function&, const Instruction& i) {
  return i.modifiers.has(Flag::kShiftamt) ? bfind_of<true>(i) : bfind_of<false>(i);
}
Choice choose_fns(const ptx::Function&, const Instruction&) {
  return {ternary<uint32_t, uint32_t, uint32_t, int32_t, Fns>};
}
Choice choose_brev(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.type() == Type::kB64 ? unary_same<uint64_t, Brev>
                                           : unary_same<uint32_t, Brev>};
}
Choice choose_bfe(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.type()) {
    case Type::kU32: return {ternary<uint32_t, uint32_t, uint32_t, uint32_t, Bfe>};
    case Type::kS32: return {ternary<int32_t, int32_t, uint32_t, uint32_t, Bfe>};
    case Type::kU64: return {ternary<uint64_t, uint64_t, uint32_t, uint32_t, Bfe>};
    case Type::kS64: return {ternary<int64_t, int64_t, uint32_t, uint32_t, Bfe>};
    default: return unsupported_type(i);
  }
}
Choice choose_bfi(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.type() == Type::kB64 ? bfi<uint64_t> : bfi<uint32_t>};
}
Choice choose_szext(const ptx::Function&, const Instruction& i) {
  const bool clamp = i.modifiers.has(Flag::kClamp);
  if (i.modifiers.type() == Type::kS32) {
    return {clamp ? binary<int32_t, int32_t, uint32_t, Szext<int32_t, true>>
                  : binary<int32_t, int32_t, uint32_t, Szext<int32_t, false>>};
  }
  return {clamp ? binary<uint32_t, uint32_t, uint32_t, Szext<uint32_t, true>>
                : binary<uint32_t, uint32_t, uint32_t, Szext<uint32_t, false>>};
}
Choice choose_bmsk(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.has(Flag::kClamp) ? binary_same<uint32_t, Bmsk<true>>
                                        : binary_same<uint32_t, Bmsk<false>>};
}
Choice choose_dp4a(const ptx::Function&, const Instruction& i) {
  const bool a = i.modifiers.types[0] == Type::kS32, b = i.modifiers.types[1] == Type::kS32;
  if (a)
    return {b ? ternary_same<uint32_t, Dp4a<true, true>>
              : ternary_same<uint32_t, Dp4a<true, false>>};
  return {b ? ternary_same<uint32_t, Dp4a<false, true>>
            : ternary_same<uint32_t, Dp4a<false, false>>};
}
Choice choose_dp2a(const ptx::Function&, const Instruction& i) {
  const bool a = i.modifiers.types[0] == Type::kS32, b = i.modifiers.types[1] == Type::kS32;
  if (i.modifiers.part == Part::kHi) {
    if (a)
      return {b ? ternary_same<uint32_t, Dp2a<true, true, true>>
                : ternary_same<uint32_t, Dp2a<true, false, true>>};
    return {b ? ternary_same<uint32_t, Dp2a<false, true, true>>
              : ternary_same<uint32_t, Dp2a<false, false, true>>};
  }
  if (a)
    return {b ? ternary_same<uint32_t, Dp2a<true, true, false>>
              : ternary_same<uint32_t, Dp2a<true, false, false>>};
  return {b ? ternary_same<uint32_t, Dp2a<false, true, false>>
            : ternary_same<uint32_t, Dp2a<false, false, false>>};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kPopc,  choose_count<Popc>},
    {Opcode::kClz,   choose_count<Clz> },
    {Opcode::kBfind, choose_bfind      },
    {Opcode::kFns,   choose_fns        },
    {Opcode::kBrev,  choose_brev       },
    {Opcode::kBfe,   choose_bfe        },
    {Opcode::kBfi,   choose_bfi        },
    {Opcode::kSzext, choose_szext      },
    {Opcode::kBmsk,  choose_bmsk       },
    {Opcode::kDp4a,  choose_dp4a       },
    {Opcode::kDp2a,  choose_dp2a       },
};

}  // namespace

std::span<const OpcodeRow> integer_bit_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
