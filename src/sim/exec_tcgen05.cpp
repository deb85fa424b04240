// SPDX-License-Identifier: Apache-2.0
// tcgen05 bookkeeping (PTX ISA 9.7.16): allocation of tensor memory, fences, commit, and the checks
// when a CTA ends. Loads and stores are in exec_tcgen05_access.cpp, copies and mma in
// exec_tcgen05_mma.cpp.
#include "sim/exec_tcgen05.h"

#include "sim/access.h"
#include "sim/exec_tma.h"
#include "sim/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace jitgemm::sim {
namespace {

constexpr const char* kCommitName = "tcgen05.commit";

Cta* peer_of(Cta& cta) {
  return cta.cluster.ctas[cta.rank ^ 1u].get();
}

TensorMemory& tensor_memory(Cta& cta) {
  if (!cta.tensor) {
    cta.tensor = std::make_unique<TensorMemory>();
    cta.async_state->tensor_parts.resize(size_t{kTensorLaneGroups} * TensorMemory::kColumns);
  }
  return *cta.tensor;
}

void record_allocation(Cta& cta, uint32_t column, uint32_t columns) {
  TensorMemory& memory = tensor_memory(cta);
  memory.allocations.push_back({column, columns});
  std::sort(memory.allocations.begin(), memory.allocations.end(),
            [](const auto& a, const auto& b) { return a.column < b.column; });
  memory.last_allocated_columns = columns;
  // What an earlier owner left is not data.
  for (uint32_t lane = 0; lane < TensorMemory::kLanes; ++lane) {
    for (uint32_t c = column; c < column + columns; ++c)
      memory.flags[TensorMemory::index(lane, c)] = 0;
  }
  for (uint32_t group = 0; group < kTensorLaneGroups; ++group) {
    for (uint32_t c = column; c < column + columns; ++c)
      cta.async_state->part(group, c) = TensorPart{};
  }
}

// Lowest column at which all CTAs of the group have room, kColumns if there is none.
uint32_t find_column(const std::vector<Cta*>& ctas, uint32_t columns) {
  for (uint32_t at = 0; at + columns <= TensorMemory::kColumns; at += columns) {
    const bool free = std::all_of(ctas.begin(), ctas.end(), [&](Cta* cta) {
      const auto& list = tensor_memory(*cta).allocations;
      return std::none_of(list.begin(), list.end(), [&](const TensorMemory::Allocation& a) {
        return a.column < at + columns && at < a.column + a.columns;
      });
    });
    if (free) return at;
  }
  return TensorMemory::kColumns;
}

Step allocation_fault(Warp& w, const Op& op, std::string text) {
  return w.fault(op, -1, FaultKind::kTensorMemoryAllocation, std::move(text));
}

// 32, 64, 128, 256 or 512.
bool legal_columns(uint64_t columns) {
  return columns >= 32 && columns <= TensorMemory::kColumns && std::has_single_bit(columns);
}

bool allocation_ready(Warp& w, const Split& s) {
  AsyncCtaState& state = *w.cta.async_state;
  const auto columns = static_cast<uint32_t>(s.wait.a);
  const auto group = static_cast<uint8_t>(s.wait.b);
  if (state.pair.granted) return true;
  if (group == 2 && peer_of(w.cta)->async_state->pair.columns == 0) return false;
  return find_column(group_ctas(w.cta, group), columns) != TensorMemory::kColumns;
}

std::string describe_allocation(const Warp&, const Split& s) {
  return fmt::format("{} free columns of tensor memory, cta_group::{}", s.wait.a, s.wait.b);
}

Step exec_alloc(Warp& w, const Op& op, LaneMask active) {
  const uint8_t group = op.modifiers().cta_group;
  if (use_cta_group(w, op, group) == Step::kFault) return Step::kFault;
  uint64_t columns = 0;
  uint64_t destination = 0;
  if (require_uniform(w, op, op.slot(1), active, "the number of columns", columns) ==
          Step::kFault ||
      require_uniform(w, op, op.slot(0), active, "the destination", destination) == Step::kFault) {
    return Step::kFault;
  }
  AsyncCtaState& state = *w.cta.async_state;
  TensorMemory& memory = tensor_memory(w.cta);
  columns &= 0xffffffff;
  if (!legal_columns(columns)) {
    return allocation_fault(
        w, op,
        fmt::format("tcgen05.alloc of {} columns: 32, 64, 128, 256 or 512 are legal", columns));
  }
  if (state.permit_relinquished)
    return allocation_fault(w, op, "tcgen05.alloc after relinquish_alloc_permit");
  if (memory.last_allocated_columns != 0 && columns > memory.last_allocated_columns) {
    return allocation_fault(
        w, op,
        fmt::format("tcgen05.alloc of {} columns after one of {}: sizes may not grow", columns,
                    memory.last_allocated_columns));
  }
  uint32_t column = 0;
  if (state.pair.granted) {
    // The peer's warp came second and allocated for both.
    column = state.pair.column;
    state.pair = {};
  } else {
    const std::vector<Cta*> ctas = group_ctas(w.cta, group);
    Wait wait;
    wait.what = "tensor memory";
    wait.ready = allocation_ready;
    wait.describe = describe_allocation;
    wait.a = columns;
    wait.b = group;
    AsyncCtaState* peer = group == 2 ? peer_of(w.cta)->async_state.get() : nullptr;
    if (peer != nullptr && peer->pair.columns == 0) {
      state.pair.columns = static_cast<uint32_t>(columns);
      ++w.cta.cluster.effects;
      return w.park(wait);
    }
    if (peer != nullptr && peer->pair.columns != columns) {
      return allocation_fault(w, op,
                              fmt::format("the CTAs of the pair ask for {} and {} columns", columns,
                                          peer->pair.columns));
    }
    column = find_column(ctas, static_cast<uint32_t>(columns));
    if (column == TensorMemory::kColumns) {
      if (peer != nullptr) state.pair.columns = static_cast<uint32_t>(columns);
      return w.park(wait);
    }
    for (Cta* cta : ctas) record_allocation(*cta, column, static_cast<uint32_t>(columns));
    if (peer != nullptr) {
      peer->pair.granted = true;
      peer->pair.column = column;
      state.pair = {};
    }
  }
  ++w.cta.cluster.effects;
  const auto lane = static_cast<uint32_t>(std::countr_zero(active));
  const Space space =
      op.modifiers().space == ptx::Space::kNone ? Space::kGeneric : Space::kSharedCta;
  return store_bytes(w, op, lane, space, destination, sizeof column, sizeof column, &column);
}

Step exec_dealloc(Warp& w, const Op& op, LaneMask active) {
  if (use_cta_group(w, op, op.modifiers().cta_group) == Step::kFault) return Step::kFault;
  uint64_t address = 0;
  uint64_t columns = 0;
  if (require_uniform(w, op, op.slot(0), active, "the tensor memory address", address) ==
          Step::kFault ||
      require_uniform(w, op, op.slot(1), active, "the number of columns", columns) ==
          Step::kFault) {
    return Step::kFault;
  }
  columns &= 0xffffffff;
  AsyncCtaState& state = *w.cta.async_state;
  if (state.release.granted) {  // the peer's warp came second and freed both
    state.release = {};
    return Step::kNext;
  }
  const TensorAddress at = tensor_address(address);
  TensorMemory& memory = tensor_memory(w.cta);
  const auto found =
      std::find_if(memory.allocations.begin(), memory.allocations.end(),
                   [&](const TensorMemory::Allocation& a) { return a.column == at.column; });
  if (at.lane != 0 || found == memory.allocations.end()) {
    return allocation_fault(
        w, op,
        fmt::format("tcgen05.dealloc of {:#x}, where no allocation begins (freed twice?)",
                    address));
  }
  if (found->columns != columns) {
    return allocation_fault(w, op,
                            fmt::format("tcgen05.dealloc of {} columns of an allocation of {}",
                                        columns, found->columns));
  }
  bool busy = false;
  for_each_part(w.cta, {kAllLaneGroups, found->column, found->columns}, [&](const TensorPart& p) {
    busy = busy || p.async_readers != 0 || p.async_writers != 0 || p.loads != 0 || p.stores != 0;
  });
  if (busy && w.cta.cluster.grid.options.sanitize) {
    return w.fault(op, -1, FaultKind::kTensorMemoryOrder,
                   "tcgen05.dealloc of columns that an operation still uses");
  }
  const TensorPart* other = nullptr;
  for_each_part(w.cta, {kAllLaneGroups, found->column, found->columns}, [&](const TensorPart& p) {
    // The order of execution is enough, as a relaxed arrival gives it.
    if (p.loaded != 0 && !w.view.knows(p.loader, p.loaded) &&
        !w.view.tensor_ordered(p.loader, p.loaded) &&
        !w.view.tensor_handed_over(p.loader, p.loaded)) {
      other = &p;
    }
  });
  const Cluster& cluster = w.cta.cluster;
  if (other != nullptr && cluster.grid.options.sanitize) {
    return w.fault(op, -1, FaultKind::kTensorMemoryOrder,
                   fmt::format("tcgen05.dealloc of columns that are loaded by {}; nothing orders "
                               "the two",
                               describe_thread(cluster.grid, cluster.number, other->loader, -1,
                                               other->loading_op)));
  }
  ++w.cta.cluster.effects;
  if (op.modifiers().cta_group == 2) {
    AsyncCtaState::PairRelease& peer = peer_of(w.cta)->async_state->release;
    if (!peer.waiting) {
      state.release = {true, false, at.column, static_cast<uint32_t>(columns)};
      Wait wait;
      wait.what = "tcgen05.dealloc of the peer CTA";
      wait.ready = [](Warp& warp, const Split&) { return warp.cta.async_state->release.granted; };
      return w.park(wait);
    }
    if (peer.column != at.column || peer.columns != columns) {
      return allocation_fault(w, op,
                              fmt::format("the CTAs of the pair free {} columns at {} and {} at {}",
                                          columns, at.column, peer.columns, peer.column));
    }
    auto& theirs = peer_of(w.cta)->tensor->allocations;
    std::erase_if(theirs, [&](const auto& a) { return a.column == at.column; });
    peer.granted = true;
    peer.waiting = false;
  }
  memory.allocations.erase(found);
  return Step::kNext;
}

Step exec_relinquish(Warp& w, const Op& op, LaneMask) {
  if (use_cta_group(w, op, op.modifiers().cta_group) == Step::kFault) return Step::kFault;
  w.cta.async_state->permit_relinquished = true;
  return Step::kNext;
}

Step exec_fence(Warp& w, const Op& op, LaneMask) {
  if (op.modifiers().operation == ptx::Operation::kAfterThreadSync) {
    w.view.after_thread_sync();
  } else {
    w.view.before_thread_sync();
  }
  return Step::kNext;
}

// Slots: mbarrier, optional multicast mask.
Step exec_commit(Warp& w, const Op& op, LaneMask active) {
  const uint8_t group = op.modifiers().cta_group;
  if (use_cta_group(w, op, group) == Step::kFault) return Step::kFault;
  if (w.require_defined(op, op.slot(0), active, "the mbarrier address") == Step::kFault)
    return Step::kFault;
  return for_each_lane(active, [&](uint32_t lane) {
    Cluster& cluster = w.cta.cluster;
    SharedPlace place;
    const Space space =
        op.modifiers().space == ptx::Space::kNone ? Space::kGeneric : Space::kSharedCluster;
    if (locate_shared(w, op, lane, space, w.address(op.slot(0), lane), 8, 8, place) == Step::kFault)
      return Step::kFault;
    std::vector<Cta*> targets = {place.cta};
    const Operand& mask = op.slot(1);
    if (mask.kind != OperandKind::kNone) {
      targets.clear();
      const uint64_t ranks = w.value(mask, lane) & 0xffff;
      for (uint32_t rank = 0; rank < 16; ++rank) {
        if ((ranks >> rank & 1) == 0) continue;
        if (rank >= cluster.ctas.size()) {
          return w.fault(
              op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
              fmt::format("the multicast mask {:#x} names CTA rank {} of a cluster of {}", ranks,
                          rank, cluster.ctas.size()));
        }
        targets.push_back(cluster.ctas[rank].get());
      }
    }
    // It accesses the mbarrier in the generic proxy: no fence is asked for (9.7.16.12.1).
    for (Cta* target : targets) {
      if (require_mbarrier(w, op, lane, *target, place.offset) == Step::kFault) return Step::kFault;
    }
    AsyncOperation commit;
    commit.name = kCommitName;
    commit.origin = w.origin(op, static_cast<int32_t>(lane));
    commit.cta_rank = w.cta.rank;
    // All the prior operations of the executing thread, those of earlier commits included (PTX ISA
    // 9.7.16.12.1): two commits in a row wait for the same work.
    auto& operations = w.async_state->tcgen05;
    const bool tracks = operations.empty() ||
                        std::any_of(operations.begin(), operations.end(),
                                    [&](const auto& earlier) { return earlier.lane == lane; });
    Handover handover = w.view.commit(LaneMask{1} << lane);
    if (!tracks) handover.tensor.clear();
    std::erase_if(operations,
                  [&](const auto& earlier) { return cluster.engine.is_complete(earlier.id); });
    for (const auto& earlier : operations) {
      if (earlier.lane == lane) commit.after.push_back(earlier.id);
    }
    commit.complete = [targets, offset = place.offset, origin = commit.origin,
                       handover = std::move(handover)](Cluster& c) {
      for (Cta* target : targets) mbarrier_arrive(c, *target, offset, 1, handover, origin);
    };
    const AsyncId id = cluster.engine.submit(std::move(commit));
    // Arrivals of a thread's commits come in order on today's parts, and pairs of CTAs end on it.
    if (!cluster.grid.options.strict) operations.push_back({id, lane});
    return Step::kNext;
  });
}

template <ExecuteFn kFn, uint32_t kFlags>
Choice always(const ptx::Function&, const ptx::Instruction&) {
  return {kFn, kFlags | kOpAsync, 0, ""};
}
Choice refuse_shift(const ptx::Function&, const ptx::Instruction&) {
  return Choice::refuse("which lanes tcgen05.shift moves is not documented");
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kTcgen05Alloc, always<exec_alloc,      kOpAligned>},
    {ptx::Opcode::kTcgen05Dealloc,                          always<exec_dealloc,                     kOpAligned>},
    {ptx::Opcode::kTcgen05RelinquishAllocPermit,               always<exec_relinquish,                 kOpAligned>},
    {ptx::Opcode::kTcgen05Fence,always<exec_fence,0>},
    {ptx::Opcode::kTcgen05Commit, always<exec_commit,                 0>},
    {ptx::Opcode::kTcgen05Shift,                          refuse_shift                     },
};

}  // namespace

Step use_cta_group(Warp& w, const Op& op, uint8_t cta_group) {
  AsyncCtaState& state = *w.cta.async_state;
  if (state.cta_group == 0) state.cta_group = cta_group;
  if (state.cta_group != cta_group) {
    return w.fault(
        op, -1, FaultKind::kTensorMemory,
        fmt::format(
            "cta_group::{} after cta_group::{}: all tcgen05 instructions of a kernel use one",
            cta_group, state.cta_group));
  }
  if (cta_group == 2 && w.cta.cluster.ctas.size() % 2 != 0) {
    return w.fault(op, -1, FaultKind::kTensorMemory,
                   "cta_group::2 needs a cluster of an even number of CTAs");
  }
  return Step::kNext;
}

std::vector<Cta*> group_ctas(Cta& cta, uint8_t cta_group) {
  if (cta_group != 2) return {&cta};
  const uint32_t even = cta.rank & ~1u;
  return {cta.cluster.ctas[even].get(), cta.cluster.ctas[even + 1].get()};
}

Step check_region(Warp& w, const Op& op, Cta& cta, const TensorRegion& region, const char* what) {
  if (region.column + region.columns > TensorMemory::kColumns) {
    return w.fault(op, -1, FaultKind::kTensorMemory,
                   fmt::format("{}: columns {}..{} are outside of tensor memory", what,
                               region.column, region.column + region.columns - 1));
  }
  if (!cta.tensor || !cta.tensor->is_allocated(region.column, region.columns)) {
    return w.fault(op, -1, FaultKind::kTensorMemory,
                   fmt::format("{}: columns {}..{} are not allocated in CTA rank {}", what,
                               region.column, region.column + region.columns - 1, cta.rank));
  }
  return Step::kNext;
}

Step check_region_settled(Warp& w, const Op& op, Cta& cta, const TensorRegion& region,
                          const char* what) {
  if (!cta.cluster.grid.options.sanitize) return Step::kNext;
  bool loads = false;
  bool stores = false;
  for_each_part(cta, region, [&](const TensorPart& p) {
    loads = loads || p.loads != 0;
    stores = stores || p.stores != 0;
  });
  if (!loads && !stores) return Step::kNext;
  return w.fault(op, -1, FaultKind::kTensorMemoryOrder,
                 fmt::format("{}: a {} on these columns has not been waited for", what,
                             stores ? "tcgen05.st" : "tcgen05.ld"));
}

Step check_tensor_order(Warp& w, const Op& op, Cta& cta, const TensorRegion& region, bool writes,
                        const char* what) {
  Cluster& cluster = w.cta.cluster;
  if (!cluster.grid.options.sanitize) return Step::kNext;
  const bool is_pipe = op.instruction->opcode == ptx::Opcode::kTcgen05Mma ||
                       op.instruction->opcode == ptx::Opcode::kTcgen05Cp;
  const uint32_t own_pipe = cluster.agents.tensor_pipe(w.cluster_warp);
  uint32_t agent = 0;
  Epoch epoch = 0;
  uint32_t other_op = 0;
  int32_t other_lane = -1;
  const char* deed = nullptr;
  const auto look = [&](uint32_t who, Epoch when, const char* did, uint32_t by_op, uint8_t lane) {
    // Operations of one pipe take effect in the order of issue (9.7.16.6.2).
    if (deed != nullptr || when == 0 || (is_pipe && who == own_pipe)) return;
    if (w.view.tensor_ordered(who, when)) return;
    agent = who;
    epoch = when;
    deed = did;
    other_op = by_op;
    other_lane = lane == TensorPart::kWholeWarp ? -1 : lane;
  };
  for_each_part(cta, region, [&](const TensorPart& p) {
    look(p.writer, p.written, "written", p.writing_op, p.writing_lane);
    if (!writes) return;
    look(p.loader, p.loaded, "loaded", p.loading_op, TensorPart::kWholeWarp);
    look(p.pipe, p.used, "read", p.using_op, p.using_lane);
  });
  if (deed == nullptr) return Step::kNext;
  const bool pipe = agent > cluster.agents.async_proxy();
  const uint32_t warp = pipe ? agent - cluster.agents.tensor_pipe(0) : agent;
  return w.fault(
      op, -1, FaultKind::kTensorMemoryOrder,
      fmt::format("{}: cells that are {} by {}; {}", what, deed,
                  describe_thread(cluster.grid, cluster.number, warp, other_lane, other_op),
                  w.view.tensor_handed_over(agent, epoch)
                      ? "no tcgen05.fence::after_thread_sync since the synchronisation with it"
                      : "no tcgen05.commit or fence::before_thread_sync followed by a "
                        "synchronisation of the two threads"));
}

void submit_tensor_operation(Warp& w, const Op& op, uint32_t lane, const char* name,
                             std::function<void(Cluster&)> complete) {
  Cluster& cluster = w.cta.cluster;
  AsyncCtaState& pipe = *group_ctas(w.cta, op.modifiers().cta_group).front()->async_state;
  AsyncOperation operation;
  operation.name = name;
  operation.origin = w.origin(op, static_cast<int32_t>(lane));
  operation.cta_rank = w.cta.rank;
  if (pipe.last_tcgen05 != 0) operation.after = {pipe.last_tcgen05};
  operation.complete = std::move(complete);
  pipe.last_tcgen05 = cluster.engine.submit(std::move(operation));
  w.async_state->tcgen05.push_back({pipe.last_tcgen05, lane});
}

void check_cta_exit(Warp& w, const Op& op) {
  Cta& cta = w.cta;
  Cluster& cluster = cta.cluster;
  // Arrivals whose work is done need nothing of the CTA but a barrier that nobody looks at any
  // more.
  std::vector<AsyncId> idle;
  for (const auto& [id, operation] : cluster.engine.pending()) {
    if (operation.cta_rank != cta.rank) continue;
    const bool done =
        std::all_of(operation.after.begin(), operation.after.end(),
                    [&](AsyncId earlier) { return cluster.engine.is_complete(earlier); });
    if (done && std::strcmp(operation.name, kCommitName) == 0 && !cluster.grid.options.strict) {
      idle.push_back(id);
      continue;
    }
    if (std::strcmp(operation.name, kBulkReadName) == 0 && !cluster.grid.options.strict) {
      idle.push_back(id);
      continue;
    }
    if (cluster.grid.options.sanitize) {
      return cluster.raise(
          operation.origin, FaultKind::kAsyncAtExit,
          fmt::format("{} is still pending when CTA rank {} ends", operation.name, cta.rank));
    }
  }
  cta.async_state->exiting = true;
  for (const AsyncId id : idle) cluster.engine.complete(cluster, id);
  cta.async_state->exiting = false;
  if (cta.tensor && !cta.tensor->allocations.empty() && cluster.grid.options.sanitize) {
    const TensorMemory::Allocation& a = cta.tensor->allocations.front();
    cluster.raise(w.origin(op), FaultKind::kTensorMemoryLeak,
                  fmt::format("columns {}..{} of CTA rank {} were not freed", a.column,
                              a.column + a.columns - 1, cta.rank));
  }
}

void drain_cluster(Cluster& cluster) {
  while (!cluster.fault && cluster.engine.complete_one(cluster, 0)) {
  }
}

std::span<const OpcodeRow> tcgen05_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
