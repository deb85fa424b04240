// SPDX-License-Identifier: Apache-2.0
// Bulk copies between global and shared memory and within a cluster (PTX ISA 9.7.9.25.4), with and
// without reduction, and their groups (9.7.9.25.6). Tensor copies are in exec_tma_tensor.cpp. A
// copy is checked when it is issued, and moves its bytes when it completes.
#include "sim/exec_tma.h"

#include "sim/access.h"
#include "sim/async_reduce.h"
#include "sim/async_state.h"
#include "sim/exec.h"
#include "sim/machine_state.h"
#include "sim/race_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace jitgemm::sim {
namespace {

constexpr uint64_t kBulkUnit = 16;              // size and alignment of bulk copies
constexpr size_t kMaxUnwaitedStores = 1 << 16;  // of a warp, whose order is told apart

struct BulkSize {
  uint64_t address = 0;
  uint32_t bytes = 0;
};

Step check_multiple(Warp& w, const Op& op, uint32_t lane, const char* what, uint64_t value,
                    uint64_t unit) {
  if (value % unit == 0) return Step::kNext;
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMisaligned,
                 fmt::format("{} {:#x} is no multiple of {}", what, value, unit));
}

Step require_slots(Warp& w, const Op& op, LaneMask active) {
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    const Operand& slot = op.slot(i);
    if (slot.kind == OperandKind::kNone || slot.kind == OperandKind::kList) continue;
    if (w.require_defined(op, slot, active, "an operand") == Step::kFault) return Step::kFault;
  }
  return Step::kNext;
}

// Global address of an operand: the low window is global memory already.
uint64_t global_address(Warp& w, const Operand& operand, uint32_t lane) {
  return w.address(operand, lane);
}

// global -> shared of this CTA or of CTAs of the cluster.
Step exec_load(Warp& w, const Op& op, LaneMask active) {
  if (require_slots(w, op, active) == Step::kFault) return Step::kFault;
  return for_each_lane(active, [&](uint32_t lane) {
    const auto bytes = static_cast<uint32_t>(w.value(op.slot(2), lane));
    const uint64_t source = global_address(w, op.slot(1), lane);
    if (check_multiple(w, op, lane, "the size", bytes, kBulkUnit) == Step::kFault)
      return Step::kFault;
    if (check_multiple(w, op, lane, "the global address", source, kBulkUnit) == Step::kFault)
      return Step::kFault;
    if (bytes == 0) return Step::kNext;
    const GlobalRaces::DeedId deed = begin_copy(w, op);
    if (check_global_read(w, op, lane, deed, source, bytes) == Step::kFault) return Step::kFault;
    LoadTargets targets;
    if (locate_targets(w, op, lane, op.slot(0), op.slot(3), op.slot(4), bytes, kBulkUnit,
                       targets) == Step::kFault) {
      return Step::kFault;
    }
    AsyncOperation copy;
    copy.name = "cp.async.bulk";
    copy.origin = w.origin(op, static_cast<int32_t>(lane));
    copy.cta_rank = w.cta.rank;
    copy.complete = [targets, source, bytes, deed, origin = copy.origin](Cluster& cluster) {
      copy_has_read(cluster, deed, cluster.async_writes + 1);
      cluster.global_in += bytes;
      for (const LoadTarget& target : targets.places) {
        std::memcpy(target.cta->shared.bytes.data() + target.offset,
                    reinterpret_cast<const void*>(source), bytes);
        finish_load(cluster, target, bytes, bytes, origin);
      }
    };
    w.cta.cluster.engine.submit(std::move(copy));
    return Step::kNext;
  });
}

// shared::cta -> shared::cluster, completing on an mbarrier beside the destination; reducing forms
// too.
Step exec_to_cluster(Warp& w, const Op& op, LaneMask active) {
  if (require_slots(w, op, active) == Step::kFault) return Step::kFault;
  const bool reduces = op.payload != 0;
  const auto type = static_cast<ReduceType>(op.payload >> 8 & 0xff);
  const auto operation = static_cast<ptx::Operation>(op.payload >> 16);
  return for_each_lane(active, [&](uint32_t lane) {
    const auto bytes = static_cast<uint32_t>(w.value(op.slot(2), lane));
    if (check_multiple(w, op, lane, "the size", bytes, kBulkUnit) == Step::kFault)
      return Step::kFault;
    if (bytes == 0) return Step::kNext;
    SharedPlace source;
    if (locate_shared(w, op, lane, Space::kSharedCta, w.address(op.slot(1), lane), bytes, kBulkUnit,
                      source) == Step::kFault ||
        check_async_source(w, op, lane, *source.cta, source.offset, bytes,
                           "the source of the copy") == Step::kFault) {
      return Step::kFault;
    }
    LoadTargets targets;
    if (locate_targets(w, op, lane, op.slot(0), op.slot(3), Operand{}, bytes, kBulkUnit, targets) ==
        Step::kFault) {
      return Step::kFault;
    }
    source.cta->shared.shadow.begin_async_read(source.offset, bytes);
    AsyncOperation copy;
    copy.name = reduces ? "cp.reduce.async.bulk" : "cp.async.bulk";
    copy.origin = w.origin(op, static_cast<int32_t>(lane));
    copy.cta_rank = w.cta.rank;
    copy.complete = [=, origin = copy.origin](Cluster& cluster) {
      const std::byte* from = source.cta->shared.bytes.data() + source.offset;
      const LoadTarget& target = targets.places.front();
      std::byte* to = target.cta->shared.bytes.data() + target.offset;
      if (reduces) {
        const uint32_t step = reduce_bytes(type);
        for (uint32_t i = 0; i < bytes; i += step)
          reduce_element(operation, type, to + i, from + i);
      } else {
        std::memcpy(to, from, bytes);
      }
      source.cta->shared.shadow.end_async_read(source.offset, bytes);
      finish_load(cluster, target, bytes, bytes, origin);
    };
    w.cta.cluster.engine.submit(std::move(copy));
    return Step::kNext;
  });
}

// shared::cta -> global, in a bulk group.
Step exec_store(Warp& w, const Op& op, LaneMask active) {
  if (require_slots(w, op, active) == Step::kFault) return Step::kFault;
  const bool reduces = op.payload != 0;
  const auto type = static_cast<ReduceType>(op.payload >> 8 & 0xff);
  const auto operation = static_cast<ptx::Operation>(op.payload >> 16);
  return for_each_lane(active, [&](uint32_t lane) {
    const auto bytes = static_cast<uint32_t>(w.value(op.slot(2), lane));
    const uint64_t destination = global_address(w, op.slot(0), lane);
    if (check_multiple(w, op, lane, "the size", bytes, kBulkUnit) == Step::kFault)
      return Step::kFault;
    if (check_multiple(w, op, lane, "the global address", destination, kBulkUnit) == Step::kFault)
      return Step::kFault;
    if (bytes == 0) return Step::kNext;
    SharedPlace source;
    if (locate_shared(w, op, lane, Space::kSharedCta, w.address(op.slot(1), lane), bytes, kBulkUnit,
                      source) == Step::kFault ||
        check_async_source(w, op, lane, *source.cta, source.offset, bytes,
                           "the source of the copy") == Step::kFault) {
      return Step::kFault;
    }
    const GlobalRaces::DeedId deed = begin_copy(w, op);
    if (check_global_write(w, op, lane, deed, destination, bytes, reduces) == Step::kFault)
      return Step::kFault;
    const bool masked = op.modifiers().has(ptx::Flag::kCpMask);
    const uint64_t mask = masked ? w.value(op.slot(4), lane) : 0;
    w.cta.cluster.global_out +=
        masked ? bytes / kBulkUnit * static_cast<uint32_t>(std::popcount(mask & 0xffff)) : bytes;
    const auto write = [=](const std::vector<std::byte>& data) {
      auto* to = reinterpret_cast<std::byte*>(destination);
      if (masked) {  // bit i: byte i of every 16
        for (uint32_t i = 0; i < bytes; ++i) {
          if ((mask >> (i % kBulkUnit) & 1) != 0) to[i] = data[i];
        }
        return;
      }
      if (!reduces) {
        std::memcpy(to, data.data(), bytes);
        return;
      }
      const uint32_t step = reduce_bytes(type);
      for (uint32_t i = 0; i < bytes; i += step)
        reduce_element(operation, type, to + i, data.data() + i);
    };
    submit_store(w, op, lane, deed, *source.cta, source.offset, bytes, write);
    return Step::kNext;
  });
}

Step exec_prefetch(Warp&, const Op&, LaneMask) {
  return Step::kNext;
}

Step exec_commit(Warp& w, const Op&, LaneMask active) {
  w.bulk_groups.commit(active);
  w.bulk_read_groups.commit(active);
  return Step::kNext;
}

// The lanes have waited for the reads of all their groups but the newest `keep`. From here on the
// reads are theirs: who writes the source has to have met them.
Step sources_were_read(Warp& w, LaneMask lanes, uint32_t keep) {
  std::vector<AsyncWarpState::BulkSource> read;
  std::erase_if(w.async_state->bulk_sources, [&](const AsyncWarpState::BulkSource& source) {
    if ((lanes >> source.lane & 1) == 0 ||
        !w.bulk_groups.waits_for(source.lane, source.group, keep)) {
      return false;
    }
    read.push_back(source);
    return true;
  });
  for (const AsyncWarpState::BulkSource& source : read) {
    const Op& store = w.cta.cluster.grid.kernel->ops[source.op];
    if (check_race(w, store, source.lane, *w.cta.cluster.ctas[source.cta_rank], source.offset,
                   source.bytes, false) == Step::kFault)
      return Step::kFault;
  }
  return Step::kNext;
}

Step exec_wait_group(Warp& w, const Op& op, LaneMask active) {
  AsyncGroups& groups = op.modifiers().has(ptx::Flag::kRead) ? w.bulk_read_groups : w.bulk_groups;
  const auto keep =
      static_cast<uint32_t>(w.value(op.slot(0), static_cast<uint32_t>(std::countr_zero(active))));
  Cluster& cluster = w.cta.cluster;
  if (&groups == &w.bulk_groups) {
    std::erase_if(w.async_state->bulk_stores, [&](const AsyncWarpState::BulkStore& store) {
      if ((active >> store.lane & 1) == 0 || !groups.waits_for(store.lane, store.group, keep))
        return false;
      copy_was_awaited(w, store.copy);
      return true;
    });
  }
  for (const AsyncId id : groups.outstanding(active, keep)) cluster.engine.complete(cluster, id);
  if (sources_were_read(w, active, keep) == Step::kFault) return Step::kFault;
  w.bulk_groups.forget_complete(cluster.engine);
  w.bulk_read_groups.forget_complete(cluster.engine);
  return Step::kNext;
}

bool reduce_type(ptx::Type type, ReduceType& out) {
  switch (type) {
    case ptx::Type::kB32:
    case ptx::Type::kU32: out = ReduceType::kU32; return true;
    case ptx::Type::kS32: out = ReduceType::kS32; return true;
    case ptx::Type::kB64:
    case ptx::Type::kU64: out = ReduceType::kU64; return true;
    case ptx::Type::kS64: out = ReduceType::kS64; return true;
    case ptx::Type::kF16: out = ReduceType::kF16; return true;
    case ptx::Type::kBf16: out = ReduceType::kBf16; return true;
    case ptx::Type::kF32: out = ReduceType::kF32; return true;
    case ptx::Type::kF64: out = ReduceType::kF64; return true;
    default: return false;
  }
}

Choice choose_bulk(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  if (m.space == ptx::Space::kGlobal) return {exec_store, kOpAsync | kOpMemory, 0, ""};
  if (m.space2 == ptx::Space::kGlobal) return {exec_load, kOpAsync | kOpMemory, 0, ""};
  return {exec_to_cluster, kOpAsync | kOpMemory, 0, ""};
}

Choice choose_reduce(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  ReduceType type = ReduceType::kU32;
  if (!reduce_type(m.type(), type) || !reduce_is_legal(m.operation, type)) {
    return Choice::refuse("this operation is not defined for this type");
  }
  const uint64_t payload =
      1 | static_cast<uint64_t>(type) << 8 | static_cast<uint64_t>(m.operation) << 16;
  return {m.space == ptx::Space::kGlobal ? exec_store : exec_to_cluster, kOpAsync | kOpMemory,
          payload, ""};
}

template <ExecuteFn kFn>
Choice always(const ptx::Function&, const ptx::Instruction&) {
  return {kFn, kOpAsync, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kCpAsyncBulk,                     choose_bulk                 },
    {ptx::Opcode::kCpReduceAsyncBulk,               choose_reduce               },
    {ptx::Opcode::kCpAsyncBulkPrefetch,             always<exec_prefetch>       },
    {ptx::Opcode::kCpAsyncBulkTensor,               choose_tensor_copy          },
    {ptx::Opcode::kCpReduceAsyncBulkTensor,         choose_tensor_reduce        },
    {ptx::Opcode::kCpAsyncBulkPrefetchTensor,       always<exec_tensor_prefetch>},
    {ptx::Opcode::kTensormapReplace,                choose_map_edit             },
    {ptx::Opcode::kTensormapCpFenceproxy,           choose_map_edit             },
    {ptx::Opcode::kStAsync,                         choose_async_store          },
    {ptx::Opcode::kRedAsync,                        choose_async_reduce         },
    {ptx::Opcode::kClusterlaunchcontrolTryCancel,   choose_cluster_cancel       },
    {ptx::Opcode::kClusterlaunchcontrolQueryCancel, choose_cluster_query        },
    {ptx::Opcode::kCpAsyncBulkCommitGroup,          always<exec_commit>         },
    {ptx::Opcode::kCpAsyncBulkWaitGroup,            always<exec_wait_group>     },
};

Step fault_access(Warp& w, const Op& op, uint32_t lane, AccessResult result, uint64_t address,
                  uint64_t bytes) {
  FaultKind kind = FaultKind::kOutOfBounds;
  switch (result) {
    case AccessResult::kOk: return Step::kNext;
    case AccessResult::kOutOfBounds: break;
    case AccessResult::kNotReadable: kind = FaultKind::kWriteOnly; break;
    case AccessResult::kNotWritable: kind = FaultKind::kReadOnly; break;
    case AccessResult::kNotWritten: kind = FaultKind::kUninitialisedMemory; break;
  }
  return w.fault(
      op, static_cast<int32_t>(lane), kind,
      fmt::format("the copy touches {}", w.cta.cluster.grid.memory.describe(address, bytes)));
}

}  // namespace

Step check_global_read(Warp& w, const Op& op, uint32_t lane, GlobalRaces::DeedId copy,
                       uint64_t address, uint64_t bytes) {
  const AccessResult result = w.cta.cluster.grid.memory.check_read(address, bytes, w.range_hint);
  if (result == AccessResult::kNotWritten && !w.cta.cluster.grid.options.sanitize)
    return Step::kNext;
  if (result != AccessResult::kOk) return fault_access(w, op, lane, result, address, bytes);
  if (check_predecessor(w, op, lane, address, bytes) == Step::kFault) return Step::kFault;
  return copy == 0 ? Step::kNext : check_copy(w, op, lane, copy, address, bytes, false, false);
}

Step check_global_write(Warp& w, const Op& op, uint32_t lane, GlobalRaces::DeedId copy,
                        uint64_t address, uint64_t bytes, bool reduces) {
  if (reduces && check_global_read(w, op, lane, 0, address, bytes) == Step::kFault)
    return Step::kFault;
  if (const Step s = check_predecessor(w, op, lane, address, bytes); s != Step::kNext) return s;
  if (fault_access(w, op, lane, w.cta.cluster.grid.memory.check_write(address, bytes, w.range_hint),
                   address, bytes) == Step::kFault)
    return Step::kFault;
  return check_copy(w, op, lane, copy, address, bytes, true, reduces);
}

Step locate_targets(Warp& w, const Op& op, uint32_t lane, const Operand& destination,
                    const Operand& barrier, const Operand& mask, uint32_t bytes, uint32_t align,
                    LoadTargets& out) {
  const auto l = static_cast<int32_t>(lane);
  SharedPlace place;
  SharedPlace object;
  if (locate_shared(w, op, lane, Space::kSharedCluster, w.address(destination, lane), bytes, align,
                    place) == Step::kFault ||
      locate_shared(w, op, lane, Space::kSharedCluster, w.address(barrier, lane), 8, 8, object) ==
          Step::kFault) {
    return Step::kFault;
  }
  const ptx::Modifiers& m = op.modifiers();
  const bool pair = m.cta_group == 2;
  std::vector<std::pair<Cta*, Cta*>> pairs;  // destination, CTA of the mbarrier
  Cluster& cluster = w.cta.cluster;
  if (mask.kind != OperandKind::kNone) {
    const auto ctas = static_cast<uint32_t>(w.value(mask, lane) & 0xffff);
    for (uint32_t rank = 0; rank < 16; ++rank) {
      if ((ctas >> rank & 1) == 0) continue;
      if (rank >= cluster.ctas.size()) {
        return w.fault(op, l, FaultKind::kIllegalOperand,
                       fmt::format("the multicast mask {:#x} names CTA rank {} of a cluster of {}",
                                   ctas, rank, cluster.ctas.size()));
      }
      // With .cta_group::2 the signal goes to the CTA of each pair whose parity the mbarrier has.
      const uint32_t signalled = pair ? (rank & ~1u) | (object.cta->rank & 1u) : rank;
      pairs.emplace_back(cluster.ctas[rank].get(), cluster.ctas[signalled].get());
    }
  } else {
    const bool same_pair = (place.cta->rank | 1u) == (object.cta->rank | 1u);
    if (place.cta != object.cta && !(pair && same_pair)) {
      return w.fault(op, l, FaultKind::kMbarrierMisuse,
                     fmt::format("the destination is in CTA rank {}, the mbarrier in CTA rank {}: "
                                 "both must be in the same "
                                 "CTA{}",
                                 place.cta->rank, object.cta->rank, pair ? " or pair" : ""));
    }
    pairs.emplace_back(place.cta, object.cta);
  }
  for (const auto& [to, signalled] : pairs) {
    // The copy may replace what others still read through the generic proxy.
    if (check_async_destination(w, op, lane, *to, place.offset, bytes,
                                "the destination of the copy") == Step::kFault ||
        check_race(w, op, lane, *to, place.offset, bytes, true) == Step::kFault ||
        require_published_mbarrier(w, op, lane, *signalled, object.offset) == Step::kFault) {
      return Step::kFault;
    }
    to->shared.shadow.begin_async_write(place.offset, bytes);
    out.places.push_back({to, place.offset, signalled, object.offset});
  }
  return Step::kNext;
}

void finish_load(Cluster& cluster, const LoadTarget& target, uint32_t bytes,
                 uint32_t transaction_bytes, const Origin& origin) {
  target.cta->shared.written.set(target.offset, bytes);
  cluster.copied_in += bytes;
  target.cta->shared.races.clear(target.offset, bytes);
  target.cta->shared.shadow.end_async_write(target.offset, bytes, cluster.agents.async_proxy(),
                                            ++cluster.async_writes);
  mbarrier_complete_tx(cluster, *target.barrier_cta, target.barrier, transaction_bytes, origin);
}

void submit_store(Warp& w, const Op& op, uint32_t lane, GlobalRaces::DeedId copy_id, Cta& cta,
                  uint32_t offset, uint32_t bytes,
                  std::function<void(const std::vector<std::byte>&)> write) {
  Cluster& cluster = w.cta.cluster;
  cta.shared.shadow.begin_async_read(offset, bytes);
  cluster.copied_out += bytes;
  const auto data = std::make_shared<std::vector<std::byte>>();
  AsyncOperation read;
  read.name = kBulkReadName;
  read.origin = w.origin(op, static_cast<int32_t>(lane));
  read.cta_rank = cta.rank;
  read.complete = [data, from = &cta, offset, bytes](Cluster& c) {
    c.bytes_in_flight += bytes;
    const auto begin = from->shared.bytes.begin() + offset;
    data->assign(begin, begin + bytes);
    from->shared.shadow.end_async_read(offset, bytes);
  };
  AsyncOperation store;
  store.name = kBulkStoreName;
  store.origin = read.origin;
  store.cta_rank = kNoCtaRank;
  const AsyncId read_id = cluster.engine.submit(std::move(read));
  store.after = {read_id};
  store.complete = [data, write = std::move(write)](Cluster& c) {
    c.bytes_in_flight -= data->size();
    write(*data);
  };
  const AsyncId store_id = cluster.engine.submit(std::move(store));
  w.bulk_read_groups.add(read_id, LaneMask{1} << lane);
  w.bulk_groups.add(store_id, LaneMask{1} << lane);
  auto& sources = w.async_state->bulk_sources;
  if (sources.size() == kMaxUnwaitedStores)
    sources.erase(sources.begin(), sources.begin() + kMaxUnwaitedStores / 2);
  const uint64_t group = w.bulk_groups.open_group(lane);
  sources.push_back({group, cta.rank, offset, bytes, lane, op.index});
  if (copy_id == 0) return;
  auto& unwaited = w.async_state->bulk_stores;
  if (unwaited.size() == kMaxUnwaitedStores) {
    // Of a program that never waits, the oldest count as waited for.
    const auto half = unwaited.begin() + kMaxUnwaitedStores / 2;
    for (auto old = unwaited.begin(); old != half; ++old) copy_was_awaited(w, old->copy);
    unwaited.erase(unwaited.begin(), half);
  }
  unwaited.push_back({group, copy_id, lane});
}

std::span<const OpcodeRow> tma_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
