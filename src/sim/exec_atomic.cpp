// SPDX-License-Identifier: Apache-2.0
// atom and red (PTX ISA 9.7.13.5, 9.7.13.6). On global memory each is one host compare-and-swap
// loop, so that clusters on several host threads see each other's atomics; lanes of a warp go in
// ascending order.
#include "fmt/format.h"
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"
#include "sim/race_check.h"

#include <algorithm>
#include <atomic>
#include <mutex>

namespace jitgemm::sim {
namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operation;
using ptx::Type;

template <typename T>
struct IntegerUpdate {
  static uint64_t apply(Operation operation, uint64_t old, uint64_t b, uint64_t c) {
    using U = std::make_unsigned_t<T>;
    const T x = static_cast<T>(old), y = static_cast<T>(b);
    T r = x;
    switch (operation) {
      case Operation::kAnd: r = static_cast<T>(x & y); break;
      case Operation::kOr: r = static_cast<T>(x | y); break;
      case Operation::kXor: r = static_cast<T>(x ^ y); break;
      case Operation::kExch: r = y; break;
      case Operation::kCas: r = x == y ? static_cast<T>(c) : x; break;
      case Operation::kAdd: r = static_cast<T>(static_cast<U>(x) + static_cast<U>(y)); break;
      case Operation::kInc: r = x >= y ? T{0} : static_cast<T>(x + 1); break;
      case Operation::kDec: r = x == 0 || x > y ? y : static_cast<T>(x - 1); break;
      case Operation::kMin: r = std::min(x, y); break;
      case Operation::kMax: r = std::max(x, y); break;
      default: break;
    }
    return static_cast<uint64_t>(static_cast<U>(r));
  }
};

uint16_t half_update(Operation operation, uint16_t old, uint16_t b, bool bf16) {
  const float x = bf16 ? float_from_bf16(old) : float_from_f16(old),
              y = bf16 ? float_from_bf16(b) : float_from_f16(b);
  double r;
  if (operation == Operation::kAdd) {
    r = add_to_odd(x, y);
  } else {
    r = float_min_max(x, y, operation == Operation::kMin, false);
  }
  return static_cast<uint16_t>(
      encode(r, bf16 ? kFormatBf16 : kFormatF16, RoundTo::kNearest, false));
}

// The new value of a cell of `type`. `flush_f32`: f32 additions in global memory flush subnormals
// (9.7.13.5).
uint64_t update(Type type, Operation operation, uint64_t old, uint64_t b, uint64_t c,
                bool flush_f32) {
  switch (type) {
    case Type::kB16: return IntegerUpdate<uint16_t>::apply(operation, old, b, c);
    case Type::kB32:
    case Type::kU32: return IntegerUpdate<uint32_t>::apply(operation, old, b, c);
    case Type::kS32: return IntegerUpdate<int32_t>::apply(operation, old, b, c);
    case Type::kB64:
    case Type::kU64: return IntegerUpdate<uint64_t>::apply(operation, old, b, c);
    case Type::kS64: return IntegerUpdate<int64_t>::apply(operation, old, b, c);
    case Type::kF32: {
      const float x = flush(std::bit_cast<float>(static_cast<uint32_t>(old)), flush_f32);
      const float y = flush(std::bit_cast<float>(static_cast<uint32_t>(b)), flush_f32);
      return std::bit_cast<uint32_t>(canonical(flush(x + y, flush_f32)));
    }
    case Type::kF64:
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(b));
    case Type::kF16:
    case Type::kBf16:
      return half_update(operation, static_cast<uint16_t>(old), static_cast<uint16_t>(b),
                         type == Type::kBf16);
    case Type::kF16x2:
    case Type::kBf16x2: {
      const bool bf16 = type == Type::kBf16x2;
      const uint32_t lo =
          half_update(operation, static_cast<uint16_t>(old), static_cast<uint16_t>(b), bf16);
      const uint32_t hi = half_update(operation, static_cast<uint16_t>(old >> 16),
                                      static_cast<uint16_t>(b >> 16), bf16);
      return hi << 16 | lo;
    }
    default: return old;
  }
}

// Applies the update at `data` and returns the old value.
template <typename T>
uint64_t exchange(std::byte* data, const ptx::Modifiers& m, uint64_t b, uint64_t c, bool global,
                  bool& changed) {
  T* cell = reinterpret_cast<T*>(data);
  T old = __atomic_load_n(cell, __ATOMIC_RELAXED);
  while (true) {
    const T fresh = static_cast<T>(update(m.type(), m.operation, old, b, c, global));
    changed = fresh != old;
    if (__atomic_compare_exchange_n(cell, &old, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return old;
  }
}

// atom: slots d, a, b, c. red: a, b. Payload: 1 for atom.
template <bool kReturns>
Step atomic(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  constexpr uint32_t kA = kReturns ? 1 : 0;
  const Operand& a = op.slot(kA);
  const bool has_c = m.operation == Operation::kCas;
  w.view.memory_fence(w.cta.cluster.memory);  // whoever polls this location learns of the past
  if (const Step s = w.require_defined(op, a, active, "the address"); s != Step::kNext) return s;
  const auto b = registers_of(w, op.slot(kA + 1));
  for (const Operand& o : b) {
    if (const Step s = w.require_defined(op, o, active, "the value"); s != Step::kNext) return s;
  }
  if (has_c) {
    if (const Step s = w.require_defined(op, op.slot(kA + 2), active, "the value");
        s != Step::kNext)
      return s;
  }
  const uint64_t bytes = static_cast<uint64_t>(ptx::type_bits(m.type())) / 8;
  const Space space = space_of(m.space);
  const Step step = each_lane(active, [&](uint32_t lane) {
    Location at;
    const uint64_t total = bytes * b.size();
    if (const Step s = locate(w, op, lane, space, w.address(a, lane), total, total, at);
        s != Step::kNext)
      return s;
    if (const Step s = check_read(w, op, lane, at, total); s != Step::kNext) return s;
    const uint64_t effects = w.cta.cluster.effects;
    if (const Step s = check_write(w, op, lane, at, total); s != Step::kNext) return s;
    release_to(w, op, active, at);
    bool any_change = false;
    for (size_t e = 0; e < b.size(); ++e) {
      const uint64_t value = w.value(b[e], lane), swap = has_c ? w.value(op.slot(kA + 2), lane) : 0;
      std::byte* data = at.data + e * bytes;
      const bool global = at.space == Space::kGlobal;
      bool changed = false;
      uint64_t old;
      switch (bytes) {
        case 2: old = exchange<uint16_t>(data, m, value, swap, global, changed); break;
        case 4: old = exchange<uint32_t>(data, m, value, swap, global, changed); break;
        default: old = exchange<uint64_t>(data, m, value, swap, global, changed); break;
      }
      any_change |= changed;
      if constexpr (kReturns) w.set_value(registers_of(w, op.slot(0))[e], lane, old);
    }
    acquire_from(w, op, active, at);
    // An atomic that changes nothing is a poll: others can't notice it.
    if (!any_change) w.cta.cluster.effects = effects;
    return Step::kNext;
  });
  if constexpr (kReturns) {
    for (const Operand& o : registers_of(w, op.slot(0))) w.set_defined(o, active);
  }
  return step;
}

struct Wide128 {
  uint64_t lo, hi;
};
// atom.exch and atom.cas of .b128. One lock a run makes them atomic among themselves; a 128-bit
// location is not also accessed with narrower atomics.
Step atomic_128(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const bool cas = m.operation == Operation::kCas;
  w.view.memory_fence(w.cta.cluster.memory);
  for (uint32_t s = 1; s <= (cas ? 3u : 2u); ++s) {
    if (const Step step = w.require_defined(op, op.slot(s), active, "an operand of atom");
        step != Step::kNext)
      return step;
  }
  Wide128* d = w.lanes<Wide128>(op.slot(0));
  const Wide128* b = w.lanes<Wide128>(op.slot(2));
  const Wide128* c = cas ? w.lanes<Wide128>(op.slot(3)) : b;
  const Step step = each_lane(active, [&](uint32_t lane) {
    Location at;
    if (const Step s =
            locate(w, op, lane, space_of(m.space), w.address(op.slot(1), lane), 16, 16, at);
        s != Step::kNext)
      return s;
    if (const Step s = check_read(w, op, lane, at, 16); s != Step::kNext) return s;
    if (const Step s = check_write(w, op, lane, at, 16); s != Step::kNext) return s;
    release_to(w, op, active, at);
    const std::lock_guard lock(w.cta.cluster.grid.wide_atomics);
    Wide128 old;
    copy_in(&old, at.data, 16);
    const bool swap = !cas || (old.lo == b[lane].lo && old.hi == b[lane].hi);
    const Wide128 fresh = cas ? c[lane] : b[lane];
    if (swap) copy_out(at.data, &fresh, 16);
    d[lane] = old;
    acquire_from(w, op, active, at);
    return Step::kNext;
  });
  w.set_defined(op.slot(0), active);
  return step;
}

Choice choose_atom(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() == Type::kB128) return {atomic_128, kOpMemory};
  return {atomic<true>, kOpMemory};
}
Choice choose_red(const ptx::Function&, const Instruction&) {
  return {atomic<false>, kOpMemory};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kAtom, choose_atom},
    {Opcode::kRed,  choose_red }
};

}  // namespace

std::span<const OpcodeRow> atomic_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
