// SPDX-License-Identifier: Apache-2.0
// The checks of shared memory that all asynchronous operations make when they are issued: what they
// will read is there and ordered before them, what they will write is in nobody's use. It knows
// nothing of what the operations do.
#include "sim/access.h"
#include "sim/async_state.h"
#include "sim/machine_state.h"
#include "sim/report.h"

#include <fmt/format.h>

#include <bit>
#include <string>

namespace jitgemm::sim {
namespace {

// What other threads wrote into the source of an asynchronous operation is ordered before the
// thread that issues it; a proxy fence alone orders nothing between threads. wgmma is issued by all
// lanes.
Step check_written_before(Warp& w, const Op& op, uint32_t lane, const Cta& cta, uint64_t offset,
                          uint64_t bytes, const char* what) {
  const Cluster& cluster = w.cta.cluster;
  const bool by_warp = op.instruction->opcode == ptx::Opcode::kWgmmaMmaAsync;
  for (uint64_t at = offset; at < offset + bytes; at += RaceShadow::kWord) {
    const RaceShadow::Access* write = cta.shared.races.last_write(at);
    if (write == nullptr || (by_warp && write->warp == w.cluster_warp) ||
        w.view.threads().knows(lane, write->warp, write->lanes, write->epoch)) {
      continue;
    }
    LaneMask other = write->lanes;
    if (write->warp == w.cluster_warp) other &= ~(LaneMask{1} << lane);
    return w.fault(
        op, static_cast<int32_t>(lane), FaultKind::kDataRace,
        fmt::format("{}: shared offset {:#x} of CTA rank {} is read; the other side is a "
                    "write by {}",
                    what, at, cta.rank,
                    describe_thread(cluster.grid, cluster.number, write->warp,
                                    other == 0 ? -1 : std::countr_zero(other), write->op)));
  }
  return Step::kNext;
}

}  // namespace

Step check_async_source(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint64_t offset,
                        uint64_t bytes, const char* what, bool* missing) {
  const auto l = static_cast<int32_t>(lane);
  if (!cta.shared.contains(offset, bytes)) {
    return w.fault(
        op, l, FaultKind::kOutOfBounds,
        fmt::format("{}: bytes {:#x}..{:#x} are outside of the CTA's shared memory of {:#x} bytes",
                    what, offset, offset + bytes - 1, cta.shared.size()));
  }
  const Cluster& cluster = w.cta.cluster;
  if (!cluster.grid.options.sanitize) return Step::kNext;
  if (missing != nullptr && !cluster.grid.options.strict) {
    *missing = cta.shared.shadow.find_async_write(offset, bytes) != SharedShadow::kNone ||
               !cta.shared.written.all(offset, bytes) ||
               find_unseen_async_write(w, lane, cta, offset, bytes) != SharedShadow::kNone;
    if (*missing) {
      w.lets_pass(op, fmt::format("{}: offset {:#x}", what, offset));
      return Step::kNext;
    }
  }
  if (const uint64_t at = cta.shared.shadow.find_async_write(offset, bytes);
      at != SharedShadow::kNone) {
    return w.fault(
        op, l, FaultKind::kAsyncReadBeforeCompletion,
        fmt::format("{}: offset {:#x} is still being written by an asynchronous operation", what,
                    at));
  }
  if (!cta.shared.written.all(offset, bytes)) {
    return w.fault(op, l, FaultKind::kUninitialisedMemory,
                   fmt::format("{}: offset {:#x} was never written", what,
                               cta.shared.written.first_missing(offset, bytes)));
  }
  const auto lacks = [&](auto refuses) {
    return cta.shared.shadow.find_write(offset, bytes, refuses);
  };
  if (const uint64_t at = find_unseen_async_write(w, lane, cta, offset, bytes);
      at != SharedShadow::kNone) {
    return w.fault(op, l, FaultKind::kAsyncReadBeforeCompletion,
                   fmt::format("{}: the asynchronous write of offset {:#x} is complete in this "
                               "run, but the thread has not waited for its mbarrier",
                               what, at));
  }
  const uint32_t async_proxy = cluster.agents.async_proxy();
  if (const uint64_t at = lacks([&](const SharedShadow::Granule& g) {
        return g.writer != async_proxy && !w.view.knows_fenced(g.writer, g.epoch, g.lanes);
      });
      at != SharedShadow::kNone) {
    const SharedShadow::Granule& g = cta.shared.shadow.at(at);
    const RaceShadow::Access* write = nullptr;
    for (uint64_t b = at; write == nullptr && b < at + SharedShadow::kGranule;
         b += RaceShadow::kWord)
      write = cta.shared.races.last_write(b);
    const std::string writer =
        write == nullptr || write->warp != g.writer
            ? fmt::format("warp {} of the cluster", g.writer)
            : describe_thread(cluster.grid, cluster.number, g.writer,
                              std::countr_zero(write->lanes | LaneMask{1} << 31), write->op);
    return w.fault(op, l, FaultKind::kMissingProxyFence,
                   fmt::format("{}: offset {:#x} was written through the generic proxy by {}; {}",
                               what, at, writer,
                               w.view.knows(g.writer, g.epoch)
                                   ? "no fence.proxy.async lies between"
                                   : "nothing orders this instruction after that write"));
  }
  if (check_written_before(w, op, lane, cta, offset, bytes, what) == Step::kFault)
    return Step::kFault;
  if (op.instruction->opcode != ptx::Opcode::kTcgen05Mma &&
      op.instruction->opcode != ptx::Opcode::kTcgen05MmaWs &&
      op.instruction->opcode != ptx::Opcode::kTcgen05Cp) {
    return Step::kNext;
  }
  if (const uint64_t at = lacks([&](const SharedShadow::Granule& g) {
        return !w.view.knew_before_issue(g.writer, g.epoch);
      });
      at != SharedShadow::kNone) {
    return w.fault(
        op, l, FaultKind::kTensorMemoryOrder,
        fmt::format("{}: no tcgen05.fence::after_thread_sync since the synchronisation that made "
                    "offset {:#x} ready",
                    what, at));
  }
  return Step::kNext;
}

Step check_async_destination(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint64_t offset,
                             uint64_t bytes, const char* what) {
  const auto l = static_cast<int32_t>(lane);
  if (cta.finished()) {
    return w.fault(op, l, FaultKind::kExitedCta,
                   fmt::format("{}: CTA rank {} has ended", what, cta.rank));
  }
  if (!cta.shared.contains(offset, bytes)) {
    return w.fault(
        op, l, FaultKind::kOutOfBounds,
        fmt::format("{}: bytes {:#x}..{:#x} are outside of the CTA's shared memory of {:#x} bytes",
                    what, offset, offset + bytes - 1, cta.shared.size()));
  }
  if (!w.cta.cluster.grid.options.sanitize) return Step::kNext;
  if (const uint64_t at = cta.shared.shadow.find_async_use(offset, bytes);
      at != SharedShadow::kNone) {
    return w.fault(
        op, l, FaultKind::kAsyncOverwrite,
        fmt::format("{}: offset {:#x} is still in use by an asynchronous operation", what, at));
  }
  return Step::kNext;
}

}  // namespace jitgemm::sim
