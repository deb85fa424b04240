// SPDX-License-Identifier: Apache-2.0
#include "sim/access.h"

#include "fmt/format.h"
#include "sim/decode.h"
#include "sim/race_check.h"

namespace jitgemm::sim {
namespace {

Step out_of_bounds(Warp& w, const Op& op, uint32_t lane, std::string detail) {
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kOutOfBounds, std::move(detail));
}

Step locate_local(Warp& w, const Op& op, uint32_t lane, uint64_t offset, uint64_t bytes,
                  Location& at) {
  if (offset > w.local_bytes || bytes > w.local_bytes - offset) {
    return out_of_bounds(w, op, lane,
                         fmt::format("{} byte(s) at local offset {:#x} of {} bytes a thread", bytes,
                                     offset, w.local_bytes));
  }
  const DecodedKernel& kernel = *w.cta.cluster.grid.kernel;
  if (kernel.uses_stack && offset + bytes > w.stack_pointer[lane]) {
    return out_of_bounds(w, op, lane,
                         fmt::format("{} byte(s) at local offset {:#x}, above the top of the "
                                     "thread's stack, {:#x}",
                                     bytes, offset, w.stack_pointer[lane]));
  }
  at.space = Space::kLocal;
  at.offset = lane * w.local_bytes + offset;
  at.data = w.local.data() + at.offset;
  return Step::kNext;
}

Step locate_in_shared(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address,
                      uint64_t bytes, Location& at) {
  Cta& own = w.cta;
  Cta* cta = address >> 32 == 0 ? own.cluster.cta_of(static_cast<uint32_t>(address)) : nullptr;
  if (cta == nullptr) {
    return out_of_bounds(
        w, op, lane, fmt::format("shared address {:#x} belongs to no CTA of the cluster", address));
  }
  if (space == Space::kSharedCta && cta != &own) {
    return w.fault(
        op, static_cast<int32_t>(lane), FaultKind::kWrongSpace,
        fmt::format("shared::cta address {:#x} belongs to the CTA of rank {}, this one has rank {}",
                    address, cta->rank, own.rank));
  }
  const uint64_t offset = address & kSharedOffsetMask;
  if (!cta->shared.contains(offset, bytes)) {
    return out_of_bounds(
        w, op, lane,
        fmt::format("{} byte(s) at shared offset {:#x}; the CTA has {:#x} to {:#x}", bytes, offset,
                    kSharedReserved, cta->shared.size()));
  }
  if (cta != &own && cta->finished()) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kExitedCta,
                   fmt::format("shared memory of the CTA of rank {}", cta->rank));
  }
  at.space = Space::kSharedCta;
  at.cta = cta;
  at.offset = offset;
  at.data = cta->shared.bytes.data() + offset;
  return Step::kNext;
}

Step locate_param(Warp& w, const Op& op, uint32_t lane, uint64_t address, uint64_t bytes,
                  Location& at) {
  if ((address & kParamFrameBit) != 0)
    return locate_local(w, op, lane, address & ~kParamFrameBit, bytes, at);
  std::vector<std::byte>& parameters = w.cta.cluster.grid.parameters;
  if (address > parameters.size() || bytes > parameters.size() - address) {
    return out_of_bounds(w, op, lane,
                         fmt::format("{} byte(s) at parameter offset {:#x} of {} bytes", bytes,
                                     address, parameters.size()));
  }
  at.space = Space::kParam;
  at.offset = address;
  at.data = parameters.data() + address;
  return Step::kNext;
}

Step locate_global(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address,
                   uint64_t bytes, Location& at) {
  if (address >= kSharedWindow) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kWrongSpace,
                   fmt::format("address {:#x} is in no window of .{}", address, space_name(space)));
  }
  const GlobalMemory& memory = w.cta.cluster.grid.memory;
  at.range = memory.find(address, bytes, w.range_hint);
  if (at.range == nullptr) return out_of_bounds(w, op, lane, memory.describe(address, bytes));
  at.space = Space::kGlobal;
  at.offset = address - at.range->base;
  at.data = reinterpret_cast<std::byte*>(address);
  return Step::kNext;
}

}  // namespace

Space space_of(ptx::Space space) {
  switch (space) {
    case ptx::Space::kNone: return Space::kGeneric;
    case ptx::Space::kGlobal: return Space::kGlobal;
    case ptx::Space::kShared:
    case ptx::Space::kSharedCta: return Space::kSharedCta;
    case ptx::Space::kSharedCluster: return Space::kSharedCluster;
    case ptx::Space::kLocal: return Space::kLocal;
    case ptx::Space::kParam:
    case ptx::Space::kParamEntry:
    case ptx::Space::kParamFunc: return Space::kParam;
    case ptx::Space::kConst: return Space::kConst;
  }
  return Space::kGeneric;
}

Step locate(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address, uint64_t bytes,
            uint64_t align, Location& at) {
  if (align > 1 && (address & (align - 1)) != 0) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMisaligned,
                   fmt::format("address {:#x} is not a multiple of {}", address, align));
  }
  switch (space) {
    case Space::kGeneric:
      switch (address >> 56) {
        case kSharedWindow >> 56:
          return locate_in_shared(w, op, lane, Space::kSharedCluster, address - kSharedWindow,
                                  bytes, at);
        case kLocalWindow >> 56:
          return locate_local(w, op, lane, address - kLocalWindow, bytes, at);
        case kParamWindow >> 56:
          return locate_param(w, op, lane, address - kParamWindow, bytes, at);
        default: return locate_global(w, op, lane, space, address, bytes, at);
      }
    case Space::kGlobal:
    case Space::kConst: return locate_global(w, op, lane, space, address, bytes, at);
    case Space::kSharedCta:
    case Space::kSharedCluster: return locate_in_shared(w, op, lane, space, address, bytes, at);
    case Space::kLocal: return locate_local(w, op, lane, address, bytes, at);
    case Space::kParam: return locate_param(w, op, lane, address, bytes, at);
  }
  return Step::kFault;
}

Step check_read(Warp& w, const Op& op, uint32_t lane, const Location& at, uint64_t bytes,
                bool* unwritten) {
  const bool sanitize = w.cta.cluster.grid.options.sanitize;
  const int32_t l = static_cast<int32_t>(lane);
  switch (at.space) {
    case Space::kSharedCta: {
      if (!sanitize) break;
      SharedMemory& shared = at.cta->shared;
      if (const uint64_t o = shared.shadow.find_async_write(at.offset, bytes);
          o != SharedShadow::kNone) {
        return w.fault(op, l, FaultKind::kAsyncReadBeforeCompletion,
                       fmt::format("{} byte(s) at shared offset {:#x}", bytes, at.offset));
      }
      if (const uint64_t o = find_unseen_async_write(w, lane, *at.cta, at.offset, bytes);
          o != SharedShadow::kNone) {
        return w.fault(op, l, FaultKind::kAsyncReadBeforeCompletion,
                       fmt::format("{} byte(s) at shared offset {:#x}: complete in this run, but "
                                   "the thread has not waited for the mbarrier",
                                   bytes, at.offset));
      }
      if (!shared.written.all(at.offset, bytes)) {
        if (shared.copies_in_flight != 0 && shared.copying.any(at.offset, bytes)) {
          return w.fault(
              op, l, FaultKind::kAsyncReadBeforeCompletion,
              fmt::format("{} byte(s) at shared offset {:#x}, the destination of cp.async", bytes,
                          at.offset));
        }
        const std::string where =
            fmt::format("shared offset {:#x}", shared.written.first_missing(at.offset, bytes));
        if (unwritten == nullptr || !w.lets_pass(op, where))
          return w.fault(op, l, FaultKind::kUninitialisedMemory, where);
        *unwritten = true;
      }
      return check_race(w, op, lane, *at.cta, at.offset, bytes, false);
    }
    case Space::kLocal:
      if (sanitize && !w.local_written.all(at.offset, bytes)) {
        const std::string where =
            fmt::format("local offset {:#x}", at.offset - lane * w.local_bytes);
        if (unwritten == nullptr || !w.lets_pass(op, where))
          return w.fault(op, l, FaultKind::kUninitialisedMemory, where);
        *unwritten = true;
      }
      break;
    case Space::kGlobal:
      if (!at.range->readable)
        return w.fault(op, l, FaultKind::kWriteOnly,
                       w.cta.cluster.grid.memory.describe(at.range->base + at.offset, bytes));
      if (!w.cta.cluster.grid.memory.is_written(*at.range, at.range->base + at.offset, bytes)) {
        return w.fault(op, l, FaultKind::kUninitialisedMemory,
                       w.cta.cluster.grid.memory.describe(at.range->base + at.offset, bytes));
      }
      if (check_predecessor(w, op, lane, at.range->base + at.offset, bytes) == Step::kFault)
        return Step::kFault;
      return check_global_race(w, op, lane, *at.range, at.range->base + at.offset, bytes, false);
    default: break;
  }
  return Step::kNext;
}

bool was_written(const Warp& w, const Location& at, uint64_t offset, uint64_t bytes) {
  const WrittenMap& written = at.space == Space::kLocal ? w.local_written : at.cta->shared.written;
  return written.all(at.offset + offset, bytes);
}

bool forget_written(Warp& w, const Location& at, uint64_t offset, uint64_t bytes) {
  if (w.cta.cluster.grid.options.strict) return false;
  if (at.space == Space::kLocal) {
    w.local_written.clear(at.offset + offset, bytes);
  } else if (at.space == Space::kSharedCta) {
    at.cta->shared.written.clear(at.offset + offset, bytes);
  } else {
    return false;
  }
  return true;
}

Step check_predecessor(Warp& w, const Op& op, uint32_t lane, uint64_t address, uint64_t bytes) {
  const GridState& grid = w.cta.cluster.grid;
  if (!grid.memory.has_predecessor() || !grid.options.sanitize ||
      w.view.predecessor_has_completed() || !grid.memory.predecessor_wrote(address, bytes)) {
    return Step::kNext;
  }
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kPredecessor,
                 grid.memory.describe(address, bytes));
}

Step check_write(Warp& w, const Op& op, uint32_t lane, const Location& at, uint64_t bytes,
                 bool unchanged) {
  const int32_t l = static_cast<int32_t>(lane);
  switch (at.space) {
    case Space::kSharedCta: {
      SharedMemory& shared = at.cta->shared;
      if (w.cta.cluster.grid.options.sanitize) {
        if (shared.shadow.find_async_use(at.offset, bytes) != SharedShadow::kNone ||
            (shared.copies_in_flight != 0 && shared.copying.any(at.offset, bytes))) {
          return w.fault(op, l, FaultKind::kAsyncOverwrite,
                         fmt::format("{} byte(s) at shared offset {:#x}", bytes, at.offset));
        }
        if (!unchanged && check_race(w, op, lane, *at.cta, at.offset, bytes, true) == Step::kFault)
          return Step::kFault;
        shared.written.set(at.offset, bytes);
        shared.shadow.generic_write(at.offset, bytes, w.cluster_warp, LaneMask{1} << lane,
                                    w.view.now());
      }
      break;
    }
    case Space::kLocal: w.local_written.set(at.offset, bytes); return Step::kNext;
    case Space::kGlobal:
      if (!at.range->writable)
        return w.fault(op, l, FaultKind::kReadOnly,
                       w.cta.cluster.grid.memory.describe(at.range->base + at.offset, bytes));
      if (const Step s = check_predecessor(w, op, lane, at.range->base + at.offset, bytes);
          s != Step::kNext)
        return s;
      if (!unchanged && check_global_race(w, op, lane, *at.range, at.range->base + at.offset, bytes,
                                          true) == Step::kFault)
        return Step::kFault;
      w.cta.cluster.grid.memory.mark_written(*at.range, at.range->base + at.offset, bytes);
      break;
    default:
      return w.fault(op, l, FaultKind::kReadOnly,
                     fmt::format("a kernel parameter at offset {:#x}", at.offset));
  }
  ++w.cta.cluster.effects;
  return Step::kNext;
}

uint64_t find_unseen_async_write(const Warp& w, uint32_t lane, const Cta& cta, uint64_t offset,
                                 uint64_t bytes) {
  const uint32_t async_proxy = cta.cluster.agents.async_proxy();
  return cta.shared.shadow.find_write(offset, bytes, [&](const SharedShadow::Granule& g) {
    return g.writer == async_proxy &&
           !w.view.threads().knows(lane, async_proxy, kAllLanes, g.epoch);
  });
}

Step load_bytes(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address, uint64_t bytes,
                uint64_t align, void* destination, bool* unwritten) {
  Location at;
  if (const Step s = locate(w, op, lane, space, address, bytes, align, at); s != Step::kNext)
    return s;
  if (const Step s = check_read(w, op, lane, at, bytes, unwritten); s != Step::kNext) return s;
  copy_in(destination, at.data, bytes);
  return Step::kNext;
}

Step store_bytes(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address,
                 uint64_t bytes, uint64_t align, const void* source, bool undefined) {
  Location at;
  if (const Step s = locate(w, op, lane, space, address, bytes, align, at); s != Step::kNext)
    return s;
  if (const Step s = check_write(w, op, lane, at, bytes); s != Step::kNext) return s;
  copy_out(at.data, source, bytes);
  if (undefined && !forget_written(w, at, 0, bytes)) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kUninitialisedRegister,
                   "the value to store was never written");
  }
  return Step::kNext;
}

Step locate_shared(Warp& w, const Op& op, uint32_t lane, Space space, uint64_t address,
                   uint64_t bytes, uint64_t align, SharedPlace& place) {
  Location at;
  if (const Step s = locate(w, op, lane, space, address, bytes, align, at); s != Step::kNext)
    return s;
  if (at.space != Space::kSharedCta) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kWrongSpace,
                   fmt::format("address {:#x} is not in shared memory", address));
  }
  place.cta = at.cta;
  place.offset = static_cast<uint32_t>(at.offset);
  return Step::kNext;
}

}  // namespace jitgemm::sim
