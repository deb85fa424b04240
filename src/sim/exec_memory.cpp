// SPDX-License-Identifier: Apache-2.0
// Loads and stores of all state spaces (PTX ISA 9.7.9.8 - 9.7.9.13). The checks are those of
// access.h, with short paths for the accesses that kernels make all the time.
#include "fmt/format.h"
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/host_fence.h"
#include "sim/lanes.h"
#include "sim/race_check.h"

#include <array>
#include <atomic>

namespace jitgemm::sim {
namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Semantics;

// Op::payload: space, element bytes, elements, sign extension, fence.
constexpr uint64_t kSigned = 1u << 16, kFence = 1u << 17;
uint64_t pack(Space space, uint64_t bytes, uint64_t elements) {
  return static_cast<uint64_t>(space) | bytes << 4 | elements << 10;
}
Space space_in(uint64_t p) {
  return static_cast<Space>(p & 15);
}
uint64_t bytes_in(uint64_t p) {
  return p >> 4 & 63;
}
uint64_t elements_in(uint64_t p) {
  return p >> 10 & 63;
}

// Resolves and checks a read; the common cases without a call.
inline Step place_read(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address,
                       uint64_t bytes, const std::byte*& data, bool& unwritten) {
  if (space == Space::kSharedCta && (address & (bytes - 1)) == 0) {
    const uint64_t offset = address - w.cta.shared_base();
    SharedMemory& shared = w.cta.shared;
    if (shared.contains(offset, bytes) && shared.written.all(offset, bytes) &&
        bytes <= SharedShadow::kGranule) {
      const SharedShadow::Granule& g = shared.shadow.at(offset);
      const uint32_t async_proxy = w.cta.cluster.agents.async_proxy();
      if (g.async_writers == 0 && (g.writer != async_proxy ||
                                   w.view.threads().knows(lane, async_proxy, kAllLanes, g.epoch))) {
        data = shared.bytes.data() + offset;
        return check_race(w, op, lane, w.cta, offset, bytes, false);
      }
    }
  } else if (space == Space::kGlobal && (address & (bytes - 1)) == 0) {
    const GlobalMemory::Range* r = w.range_hint;
    if (r != nullptr && address - r->base < r->bytes && bytes <= r->bytes - (address - r->base) &&
        r->readable && !r->written && !r->writable &&
        !w.cta.cluster.grid.memory.has_predecessor()) {
      data = reinterpret_cast<const std::byte*>(address);
      return Step::kNext;
    }
  }
  Location at;
  if (const Step s = locate(w, op, lane, space, address, bytes, bytes, at); s != Step::kNext)
    return s;
  if (const Step s = check_read(w, op, lane, at, bytes, &unwritten); s != Step::kNext) return s;
  data = at.data;
  return Step::kNext;
}

template <typename T>
T atomic_load(const std::byte* data) {
  return __atomic_load_n(reinterpret_cast<const T*>(data), __ATOMIC_RELAXED);
}
template <typename T>
void atomic_store(std::byte* data, T v) {
  __atomic_store_n(reinterpret_cast<T*>(data), v, __ATOMIC_RELAXED);
}

uint64_t load_element(const std::byte* data, uint64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1: {
      const uint8_t v = atomic_load<uint8_t>(data);
      return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(v))) : v;
    }
    case 2: {
      const uint16_t v = atomic_load<uint16_t>(data);
      return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(v))) : v;
    }
    case 4: {
      const uint32_t v = atomic_load<uint32_t>(data);
      return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(v))) : v;
    }
    default: return atomic_load<uint64_t>(data);
  }
}

// ld: slots d, a.
Step load(Warp& w, const Op& op, LaneMask active) {
  const uint64_t p = op.payload;
  const uint64_t bytes = bytes_in(p), elements = elements_in(p);
  const Space space = space_in(p);
  const Operand& a = op.slot(1);
  if (const Step s = w.require_defined(op, a, active, "the address"); s != Step::kNext) return s;
  const auto d = registers_of(w, op.slot(0));
  const bool strong = is_strong(op);
  std::array<LaneMask, 32> missing{};  // by element: lanes that read what was never written
  const Step step = each_lane(active, [&](uint32_t lane) {
    const std::byte* data = nullptr;
    const uint64_t address = w.address(a, lane);
    bool unwritten = false;
    if (const Step s = place_read(w, op, lane, space, address, bytes * elements, data, unwritten);
        s != Step::kNext)
      return s;
    if (Location at; unwritten && locate(w, op, lane, space, address, bytes * elements, bytes,
                                         at) == Step::kNext) {
      for (uint64_t e = 0; e < elements; ++e) {
        if (!was_written(w, at, e * bytes, bytes)) missing[e] |= LaneMask{1} << lane;
      }
    }
    for (uint64_t e = 0; e < elements; ++e, data += bytes) {
      if (d[e].kind == OperandKind::kSink) continue;
      if (bytes == 16) {
        copy_in(w.banks[0] + d[e].offset + lane * 16, data, 16);
      } else {
        w.set_value(d[e], lane, load_element(data, bytes, (p & kSigned) != 0));
      }
    }
    if (Location at; strong && locate(w, op, lane, space, address, 1, 1, at) == Step::kNext)
      acquire_from(w, op, active, at);
    return Step::kNext;
  });
  if ((p & kFence) != 0) {
    host_fence(std::memory_order_acquire);
    w.view.acquire_memory(w.cta.cluster.memory);
  }
  for (size_t e = 0; e < d.size(); ++e) w.set_undefined(d[e], missing[e], active);
  return step;
}

// The load that fills most registers: one element of 4 or 8 bytes into a register of its own width.
template <typename T, Space kSpace>
Step load_plain(Warp& w, const Op& op, LaneMask active) {
  const Operand& a = op.slot(1);
  if (const Step s = w.require_defined(op, a, active, "the address"); s != Step::kNext) return s;
  T* d = w.lanes<T>(op.slot(0));
  LaneMask missing = 0;
  const Step step = each_lane(active, [&](uint32_t lane) {
    const std::byte* data = nullptr;
    bool unwritten = false;
    if (const Step s =
            place_read(w, op, lane, kSpace, w.address(a, lane), sizeof(T), data, unwritten);
        s != Step::kNext)
      return s;
    if (unwritten) missing |= LaneMask{1} << lane;
    d[lane] = atomic_load<T>(data);
    return Step::kNext;
  });
  w.set_undefined(op.slot(0), missing, active);
  return step;
}

// Are the values there already, in shared or global memory? Warps of production code write one and
// the same value to one place, which strict rules call a race.
bool holds(const Warp& w, std::span<const Operand> values, uint32_t lane, const Location& at,
           uint64_t bytes) {
  if (bytes > 8) return false;
  if (at.space == Space::kSharedCta) {
    if (!was_written(w, at, 0, bytes * values.size())) return false;
  } else if (at.space != Space::kGlobal || !at.range->readable) {
    return false;
  }
  const std::byte* data = at.data;
  for (const Operand& value : values) {
    const uint64_t v = w.value(value, lane);
    const uint64_t mask = bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
    if (load_element(data, bytes, false) != (v & mask)) return false;
    data += bytes;
  }
  return true;
}

// st: slots a, b.
Step store(Warp& w, const Op& op, LaneMask active) {
  const uint64_t p = op.payload;
  const uint64_t bytes = bytes_in(p), elements = elements_in(p);
  const Space space = space_in(p);
  const Operand& a = op.slot(0);
  if (const Step s = w.require_defined(op, a, active, "the address"); s != Step::kNext) return s;
  const auto b = registers_of(w, op.slot(1));
  LaneMask missing = 0;
  for (const Operand& o : b) missing |= w.undefined(o);
  const bool strict = w.cta.cluster.grid.options.strict;
  for (const Operand& o : b) {
    if ((missing & active) == 0 || !strict) break;
    if (const Step s = w.require_defined(op, o, active, "the value to store"); s != Step::kNext)
      return s;
  }
  if ((p & kFence) != 0) {
    host_fence(std::memory_order_release);
    w.view.release_memory(w.cta.cluster.memory);
  }
  return each_lane(active, [&](uint32_t lane) {
    const uint64_t address = w.address(a, lane), total = bytes * elements;
    Location at;
    if (const Step s = locate(w, op, lane, space, address, total, total, at); s != Step::kNext)
      return s;
    const bool unchanged = !strict && (missing >> lane & 1) == 0 && holds(w, b, lane, at, bytes);
    if (const Step s = check_write(w, op, lane, at, total, unchanged); s != Step::kNext) return s;
    release_to(w, op, active, at);
    std::byte* data = at.data;
    for (uint64_t e = 0; e < elements; ++e, data += bytes) {
      // Shared and local memory may hold what was never written; nobody outside may see it.
      if ((missing >> lane & 1) != 0 && (w.undefined(b[e]) >> lane & 1) != 0 &&
          !forget_written(w, at, e * bytes, bytes)) {
        return w.require_defined(op, b[e], LaneMask{1} << lane, "the value to store");
      }
      if (bytes == 16) {
        copy_out(data, w.banks[b[e].bank] + b[e].offset + lane * 16, 16);
        continue;
      }
      const uint64_t v = w.value(b[e], lane);
      switch (bytes) {
        case 1: atomic_store(data, static_cast<uint8_t>(v)); break;
        case 2: atomic_store(data, static_cast<uint16_t>(v)); break;
        case 4: atomic_store(data, static_cast<uint32_t>(v)); break;
        default: atomic_store(data, v); break;
      }
    }
    return Step::kNext;
  });
}

// st.bulk: slots a, size, initval (only 0 is legal).
Step store_bulk(Warp& w, const Op& op, LaneMask active) {
  for (uint32_t s = 0; s < 2; ++s) {
    if (const Step step = w.require_defined(op, op.slot(s), active, "an operand of st.bulk");
        step != Step::kNext)
      return step;
  }
  return each_lane(active, [&](uint32_t lane) {
    const uint64_t size = w.value(op.slot(1), lane);
    if (size % 8 != 0)
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("size {} is not a multiple of 8", size));
    Location at;
    if (const Step s = locate(w, op, lane, space_of(op.modifiers().space),
                              w.address(op.slot(0), lane), size, 8, at);
        s != Step::kNext)
      return s;
    if (const Step s = check_write(w, op, lane, at, size); s != Step::kNext) return s;
    std::memset(at.data, 0, size);
    return Step::kNext;
  });
}

uint64_t access_payload(const Instruction& i) {
  const ptx::Modifiers& m = i.modifiers;
  uint64_t p = pack(space_of(m.space), static_cast<uint64_t>(ptx::type_bits(m.type())) / 8,
                    m.vector == 0 ? 1 : m.vector);
  if (ptx::type_kind(m.type()) == ptx::TypeKind::kSigned) p |= kSigned;
  // Volatile accesses are treated as synchronising, which they are when they poll (8.2).
  if (m.semantics == Semantics::kAcquire || m.semantics == Semantics::kRelease ||
      m.semantics == Semantics::kVolatile) {
    p |= kFence;
  }
  return p;
}

Choice choose_load(const ptx::Function& f, const Instruction& i) {
  const uint64_t p = access_payload(i);
  const ptx::Operand& d = f.operands_of(i)[0];
  if (d.is_register() && elements_in(p) == 1 &&
      (i.modifiers.semantics == Semantics::kNone || i.modifiers.semantics == Semantics::kWeak)) {
    const int width = ptx::type_bits(d.type);
    const Space space = space_in(p);
    if (bytes_in(p) == 4 && width == 32) {
      if (space == Space::kGlobal) return {load_plain<uint32_t, Space::kGlobal>, kOpMemory, p};
      if (space == Space::kSharedCta)
        return {load_plain<uint32_t, Space::kSharedCta>, kOpMemory, p};
    }
    if (bytes_in(p) == 8 && width == 64) {
      if (space == Space::kGlobal) return {load_plain<uint64_t, Space::kGlobal>, kOpMemory, p};
      if (space == Space::kSharedCta)
        return {load_plain<uint64_t, Space::kSharedCta>, kOpMemory, p};
    }
  }
  return {load, kOpMemory, p};
}
Choice choose_store(const ptx::Function&, const Instruction& i) {
  return {store, kOpMemory, access_payload(i)};
}
Choice choose_store_bulk(const ptx::Function&, const Instruction&) {
  return {store_bulk, kOpMemory};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kLd,     choose_load      },
    {Opcode::kLdu,    choose_load      },
    {Opcode::kSt,     choose_store     },
    {Opcode::kStBulk, choose_store_bulk},
};

}  // namespace

std::span<const OpcodeRow> memory_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
