// SPDX-License-Identifier: Apache-2.0
// cp.async, the copies of 4, 8 and 16 bytes a thread (PTX ISA 9.7.9.25.3). One asynchronous
// operation a warp instruction: the source is read when it takes effect, as late as its group's
// wait allows. It works in the generic proxy (9.7.9.25.2), so its bytes count as a generic write
// when it completes.
#include "fmt/format.h"
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/lanes.h"
#include "sim/race_check.h"

#include <algorithm>
#include <array>

namespace jitgemm::sim {
namespace {

using ptx::Instruction;
using ptx::Opcode;

struct LaneCopy {
  Cta* cta;
  uint64_t offset;  // destination
  const std::byte* source;
  uint32_t bytes, copied;  // the rest is zero
  uint8_t lane = 0;
};

// Slots dst, src, size, srcsize or an ignore predicate.
Step cp_async(Warp& w, const Op& op, LaneMask active) {
  for (uint32_t s = 0; s < 4; ++s) {
    if (op.slot(s).kind == OperandKind::kNone) continue;
    if (const Step step = w.require_defined(op, op.slot(s), active, "an operand of cp.async");
        step != Step::kNext)
      return step;
  }
  const uint64_t size = w.value(op.slot(2), 0);
  const bool only16 = op.modifiers().cache_op == ptx::CacheOp::kCg;
  if ((size != 4 && size != 8 && size != 16) || (only16 && size != 16)) {
    return w.fault(op, std::countr_zero(active), FaultKind::kIllegalOperand,
                   fmt::format("copy size {}", size));
  }
  std::vector<LaneCopy> copies;
  copies.reserve(kLanes);
  const Step step = each_lane(active, [&](uint32_t lane) {
    uint64_t copied = size;
    const Operand& extra = op.slot(3);
    if (extra.kind == OperandKind::kPredicate) {
      if ((w.predicate(extra) >> lane & 1) != 0) copied = 0;
    } else if (extra.kind == OperandKind::kValue) {
      copied = w.value(extra, lane);
      if (copied > size)
        return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                       fmt::format("source size {} exceeds the copy size {}", copied, size));
    }
    SharedPlace to;
    if (const Step s = locate_shared(w, op, lane, Space::kSharedCta, w.address(op.slot(0), lane),
                                     size, size, to);
        s != Step::kNext)
      return s;
    Location from;
    const uint64_t source = w.address(op.slot(1), lane);
    if ((source & (size - 1)) != 0) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMisaligned,
                     fmt::format("source {:#x} is not a multiple of {}", source, size));
    }
    if (copied != 0) {
      if (const Step s = locate(w, op, lane, Space::kGlobal, source, copied, 0, from);
          s != Step::kNext)
        return s;
      if (const Step s = check_read(w, op, lane, from, copied); s != Step::kNext) return s;
    }
    SharedMemory& shared = to.cta->shared;
    if (w.cta.cluster.grid.options.sanitize &&
        (shared.shadow.find_async_use(to.offset, size) != SharedShadow::kNone ||
         shared.copying.any(to.offset, size))) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kAsyncOverwrite,
                     fmt::format("{} byte(s) at shared offset {:#x}", size, to.offset));
    }
    // The copy may replace what others still read.
    if (check_race(w, op, lane, *to.cta, to.offset, size, true) == Step::kFault)
      return Step::kFault;
    shared.copying.set(to.offset, size);
    shared.written.clear(to.offset, size);
    ++shared.copies_in_flight;
    copies.push_back({to.cta, to.offset, from.data, static_cast<uint32_t>(size),
                      static_cast<uint32_t>(copied), static_cast<uint8_t>(lane)});
    return Step::kNext;
  });
  if (step != Step::kNext) return step;
  Cluster& cluster = w.cta.cluster;
  AsyncOperation operation;
  operation.name = "cp.async";
  operation.origin = w.origin(op);
  operation.cta_rank = w.cta.rank;
  operation.complete = [copies = std::move(copies), writer = &w, active,
                        number = op.index](Cluster& c) {
    for (const LaneCopy& copy : copies) {
      SharedMemory& shared = copy.cta->shared;
      std::array<std::byte, 16> value{};
      c.copied_in += copy.bytes;
      c.global_in += copy.copied;
      if (copy.copied != 0) copy_in(value.data(), copy.source, copy.copied);
      std::memcpy(shared.bytes.data() + copy.offset, value.data(), copy.bytes);
      shared.written.set(copy.offset, copy.bytes);
      shared.copying.clear(copy.offset, copy.bytes);
      --shared.copies_in_flight;
      // Written now, as far as others are concerned; conflicts were looked for at issue.
      if (c.grid.options.sanitize && c.grid.options.races) {
        RaceShadow::Access access;
        access.epoch = writer->view.now();
        access.lanes = LaneMask{1} << copy.lane;
        access.op = number;
        access.warp = static_cast<uint16_t>(writer->cluster_warp);
        access.write = 1;
        static_cast<void>(shared.races.access(copy.offset, copy.bytes, access, copy.lane,
                                              writer->view.threads()));
      }
      shared.shadow.generic_write(copy.offset, copy.bytes, writer->cluster_warp, active,
                                  writer->view.now());
    }
  };
  w.cp_async_groups.add(cluster.engine.submit(std::move(operation)), active);
  ++cluster.effects;
  return Step::kNext;
}

Step commit_group(Warp& w, const Op&, LaneMask active) {
  w.cp_async_groups.commit(active);
  return Step::kNext;
}

void complete_all(Warp& w, const std::vector<AsyncId>& ids) {
  Cluster& cluster = w.cta.cluster;
  for (AsyncId id : ids) cluster.engine.complete(cluster, id);
  w.cp_async_groups.forget_complete(cluster.engine);
}

Step wait_group(Warp& w, const Op& op, LaneMask active) {
  complete_all(
      w, w.cp_async_groups.outstanding(active, static_cast<uint32_t>(w.value(op.slot(0), 0))));
  return w.cta.cluster.fault ? Step::kFault : Step::kNext;
}

Step wait_all(Warp& w, const Op&, LaneMask active) {
  complete_all(w, w.cp_async_groups.outstanding(active, 0, true));
  return w.cta.cluster.fault ? Step::kFault : Step::kNext;
}

template <ExecuteFn kFn, uint32_t kFlags>
Choice always(const ptx::Function&, const Instruction&) {
  return {kFn, kFlags};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kCpAsync,            always<cp_async,     kOpAsync>},
    {Opcode::kCpAsyncCommitGroup, always<commit_group, 0>       },
    {Opcode::kCpAsyncWaitGroup,   always<wait_group,   0>       },
    {Opcode::kCpAsyncWaitAll,     always<wait_all,     0>       },
};

}  // namespace

std::span<const OpcodeRow> async_copy_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
