// SPDX-License-Identifier: Apache-2.0
// mbarrier objects (PTX ISA 9.7.13.15): init, inval, arrive in all forms, transaction counts,
// waits. A phase completes when no arrival is pending and the transaction count is zero
// (9.7.13.15.5).
#include "sim/access.h"
#include "sim/async_state.h"
#include "sim/exec.h"
#include "sim/machine_state.h"
#include "sim/race_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kMaxCount = (1u << 20) - 1;  // of arrivals and of the transaction count
constexpr uint32_t kObjectBytes = 8;

// A phase token: parity-free phase number and the pending count before the arrival.
uint64_t make_token(const Mbarrier& b) {
  return (b.phase << 20 & ~uint64_t{0xfffff}) | b.pending;
}
uint32_t token_pending(uint64_t token) {
  return static_cast<uint32_t>(token & kMaxCount);
}
uint64_t token_phase(uint64_t token) {
  return token >> 20;
}

void store_image(Cta& cta, uint32_t offset, const Mbarrier& b) {
  cta.shared.store(offset, b.image());
  cta.shared.written.set(offset, kObjectBytes);
}

void settle(Cluster& cluster, Mbarrier& b) {
  if (b.pending == 0 && b.tx == 0) {
    ++b.phase;
    b.pending = b.expected;
    b.completed.join(b.arriving);
    b.arriving.clear();
    b.remote_completed.join(b.remote_arriving);
    b.remote_arriving.clear();
  }
  ++cluster.effects;
}

// Bytes completed beyond those announced after the last arrival: nobody can announce them any more.
std::string excess(const Mbarrier& b, uint32_t offset) {
  if (b.pending != 0 || b.tx >= 0) return "";
  return fmt::format(
      "mbarrier at offset {:#x}, phase {}: all arrivals are in, and {} bytes more were completed "
      "than expect_tx announced",
      offset, b.phase, -b.tx);
}

std::string out_of_range(const Mbarrier& b, uint32_t offset) {
  return fmt::format("mbarrier at offset {:#x}: transaction count {} is outside +-{}", offset, b.tx,
                     kMaxCount);
}

// Calls f(lane) for each active lane until a fault.
template <typename F>
Step for_lanes(LaneMask active, F f) {
  for (LaneMask m = active; m != 0; m &= m - 1) {
    if (f(static_cast<uint32_t>(std::countr_zero(m))) == Step::kFault) return Step::kFault;
  }
  return Step::kNext;
}

// The place and the object of an mbarrier operand.
struct Target {
  Cta* cta = nullptr;
  uint32_t offset = 0;
  Mbarrier* object = nullptr;
};

Step locate_target(Warp& w, const Op& op, uint32_t lane, const Operand& address, Target& target) {
  SharedPlace place;
  if (locate_shared(w, op, lane, space_of(op.modifiers().space), w.address(address, lane),
                    kObjectBytes, kObjectBytes, place) == Step::kFault) {
    return Step::kFault;
  }
  if (require_mbarrier(w, op, lane, *place.cta, place.offset) == Step::kFault) return Step::kFault;
  if (check_atomic_race(w, op, lane, *place.cta, place.offset, kObjectBytes) == Step::kFault)
    return Step::kFault;
  std::string why;
  target = {place.cta, place.offset, find_mbarrier(*place.cta, place.offset, why)};
  return Step::kNext;
}

Step exec_init(Warp& w, const Op& op, LaneMask active) {
  if (w.require_defined(op, op.slot(0), active, "the address") == Step::kFault) return Step::kFault;
  if (w.require_defined(op, op.slot(1), active, "the count") == Step::kFault) return Step::kFault;
  return for_lanes(active, [&](uint32_t lane) {
    SharedPlace place;
    const Space space = space_of(op.modifiers().space);
    if (locate_shared(w, op, lane, space, w.address(op.slot(0), lane), kObjectBytes, kObjectBytes,
                      place) == Step::kFault) {
      return Step::kFault;
    }
    const uint64_t count = w.value(op.slot(1), lane) & 0xffffffff;
    if (count < 1 || count > kMaxCount) {
      return w.fault(
          op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
          fmt::format("mbarrier.init with count {}: 1 to {} are legal", count, kMaxCount));
    }
    auto& objects = place.cta->async_state->mbarriers;
    if (objects.count(place.offset) != 0) {
      return w.fault(
          op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
          fmt::format(
              "mbarrier.init of the live object at offset {:#x}: mbarrier.inval must come first",
              place.offset));
    }
    const uint64_t zero = 0;
    if (store_bytes(w, op, lane, space, w.address(op.slot(0), lane), kObjectBytes, kObjectBytes,
                    &zero) == Step::kFault) {
      return Step::kFault;
    }
    Mbarrier b;
    b.expected = b.pending = static_cast<uint32_t>(count);
    b.initialised = ++w.cta.cluster.time;
    b.initialiser = w.cluster_warp;
    objects[place.offset] = b;
    store_image(*place.cta, place.offset, b);
    ++w.cta.cluster.effects;
    return Step::kNext;
  });
}

Step exec_inval(Warp& w, const Op& op, LaneMask active) {
  return for_lanes(active, [&](uint32_t lane) {
    Target t;
    if (locate_target(w, op, lane, op.slot(0), t) == Step::kFault) return Step::kFault;
    if (t.object->tx != 0) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTransactionCount,
                     fmt::format("mbarrier.inval at offset {:#x} with transaction count {}",
                                 t.offset, t.object->tx));
    }
    if (check_race(w, op, lane, *t.cta, t.offset, kObjectBytes, true) == Step::kFault)
      return Step::kFault;
    t.cta->async_state->mbarriers.erase(t.offset);
    // The bytes are free for other use, and hold nothing.
    t.cta->shared.written.clear(t.offset, kObjectBytes);
    ++w.cta.cluster.effects;
    return Step::kNext;
  });
}

Step add_tx(Warp& w, const Op& op, uint32_t lane, Target& t, int64_t bytes) {
  t.object->tx += bytes;
  if (t.object->tx > kMaxCount || t.object->tx < -int64_t{kMaxCount}) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTransactionCount,
                   out_of_range(*t.object, t.offset));
  }
  return Step::kNext;
}

Step finish(Warp& w, const Op& op, uint32_t lane, Target& t) {
  if (std::string text = excess(*t.object, t.offset); !text.empty()) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTransactionCount, std::move(text));
  }
  settle(w.cta.cluster, *t.object);
  store_image(*t.cta, t.offset, *t.object);
  return Step::kNext;
}

// expect_tx and complete_tx without arrival.
template <int kSign>
Step exec_tx(Warp& w, const Op& op, LaneMask active) {
  if (w.require_defined(op, op.slot(1), active, "the transaction count") == Step::kFault)
    return Step::kFault;
  return for_lanes(active, [&](uint32_t lane) {
    Target t;
    if (locate_target(w, op, lane, op.slot(0), t) == Step::kFault) return Step::kFault;
    const int64_t bytes = static_cast<int64_t>(w.value(op.slot(1), lane) & 0xffffffff);
    if (add_tx(w, op, lane, t, kSign * bytes) == Step::kFault) return Step::kFault;
    return finish(w, op, lane, t);
  });
}

// Arrivals and waits are of CTA scope unless they say otherwise (9.7.13.15.13, .16): they order
// nothing between threads of two CTAs. Programs that are not held to strict rules are let pass.
bool reaches_cluster(const Warp& w, const Op& op) {
  return op.modifiers().scope == ptx::Scope::kCluster || !w.cta.cluster.grid.options.strict;
}

// Slots: state, address, optional count (or the transaction count of .expect_tx).
template <bool kDrop>
Step exec_arrive(Warp& w, const Op& op, LaneMask active) {
  const ptx::Modifiers& m = op.modifiers();
  const Operand& count_slot = op.slot(2);
  const bool has_count = count_slot.kind != OperandKind::kNone;
  if (has_count && w.require_defined(op, count_slot, active, "the count") == Step::kFault)
    return Step::kFault;
  const Mbarrier* released = nullptr;
  uint64_t released_phase = 0;
  return for_lanes(active, [&](uint32_t lane) {
    Target t;
    if (locate_target(w, op, lane, op.slot(1), t) == Step::kFault) return Step::kFault;
    const uint64_t operand = has_count ? w.value(count_slot, lane) & 0xffffffff : 1;
    const bool expects = m.has(ptx::Flag::kExpectTx);
    const uint64_t arrivals = expects ? 1 : operand;
    Mbarrier& b = *t.object;
    if (arrivals < 1 || arrivals > b.pending) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
                     fmt::format("phase overrun: {} arrivals at the mbarrier at offset {:#x}, "
                                 "whose phase {} awaits {} of {}",
                                 arrivals, t.offset, b.phase, b.pending, b.expected));
    }
    const uint64_t token = make_token(b);
    if (expects && add_tx(w, op, lane, t, static_cast<int64_t>(operand)) == Step::kFault)
      return Step::kFault;
    if (m.has(ptx::Flag::kNoComplete) && arrivals == b.pending) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
                     "an arrival with .noComplete may not complete the phase");
    }
    // Lanes that arrive together at one object release together.
    if (released != &b || released_phase != b.phase) {
      const LaneMask rest = active & ~((LaneMask{1} << lane) - 1);
      Handover handover;
      w.view.release(handover, m.semantics == ptx::Semantics::kRelaxed,
                     (rest & w.live) == w.live ? kAllLanes : rest);
      if (t.cta != &w.cta) {
        if (reaches_cluster(w, op)) b.remote_arriving.join(handover.threads);
        handover.threads.clear();
      }
      b.arriving.join(handover);
      released = &b;
      released_phase = b.phase;
    }
    b.pending -= static_cast<uint32_t>(arrivals);
    if (kDrop) b.expected -= static_cast<uint32_t>(arrivals);
    if (op.slot(0).kind == OperandKind::kValue) {
      w.set_value(op.slot(0), lane, token);
      w.set_defined(op.slot(0), LaneMask{1} << lane);
    }
    return finish(w, op, lane, t);
  });
}

// --- waits
// ------------------------------------------------------------------------------------------

// Whether the phase that a lane asks for has completed. Only the current and the preceding phase
// may be asked for (9.7.13.15.16).
Step phase_done(Warp& w, const Op& op, uint32_t lane, const Target& t, bool& done) {
  const uint64_t operand = w.value(op.slot(2), lane);
  if (op.modifiers().has(ptx::Flag::kParity)) {
    // Triton hands on a predicate that was sign-extended, so that 1 is all ones.
    const bool strict = w.cta.cluster.grid.options.strict;
    const uint64_t parity = operand & (strict ? 0xffffffff : 1);
    if (parity > 1) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("phase parity {}: 0 or 1 are legal", parity));
    }
    done = (t.object->phase & 1) != parity;
    return Step::kNext;
  }
  const uint64_t phase = token_phase(operand);
  const uint64_t now = t.object->phase & (~uint64_t{0} >> 20);
  if (phase != now && phase + 1 != now) {
    return w.fault(
        op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
        fmt::format("the token is of phase {}, the mbarrier at offset {:#x} is in phase {}", phase,
                    t.offset, now));
  }
  done = phase != now;
  return Step::kNext;
}

// Wait::a: shared::cluster address of the object; Wait::b: the phase that is awaited.
bool phase_has_passed(Warp& w, const Split& s) {
  if (s.timed_out) return true;
  Cta* cta = w.cta.cluster.cta_of(static_cast<uint32_t>(s.wait.a));
  const auto& objects = cta->async_state->mbarriers;
  const auto found = objects.find(static_cast<uint32_t>(s.wait.a) & kSharedOffsetMask);
  // An object that has gone wakes the waiter, which faults when it looks again.
  return found == objects.end() || found->second.phase > s.wait.b;
}

std::string describe_wait(const Warp& w, const Split& s) {
  Cta* cta = w.cta.cluster.cta_of(static_cast<uint32_t>(s.wait.a));
  const uint32_t offset = static_cast<uint32_t>(s.wait.a) & kSharedOffsetMask;
  const auto found = cta->async_state->mbarriers.find(offset);
  if (found == cta->async_state->mbarriers.end())
    return fmt::format("mbarrier at offset {:#x}, invalidated", offset);
  const Mbarrier& b = found->second;
  return fmt::format(
      "mbarrier at offset {:#x} of CTA rank {}, phase {}: {} of {} arrivals missing, transaction "
      "count {}",
      offset, cta->rank, b.phase, b.pending, b.expected, b.tx);
}

// Slots: predicate, address, state or parity, optional time hint.
template <bool kMayBlock>
Step exec_wait(Warp& w, const Op& op, LaneMask active) {
  if (w.require_defined(op, op.slot(2), active, "the phase") == Step::kFault) return Step::kFault;
  LaneMask done_lanes = 0;
  Target first;
  const Mbarrier* acquired = nullptr;
  const Step step = for_lanes(active, [&](uint32_t lane) {
    Target t;
    if (locate_target(w, op, lane, op.slot(1), t) == Step::kFault) return Step::kFault;
    if (t.cta != &w.cta) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
                     "a wait needs an mbarrier in the CTA's own shared memory");
    }
    bool done = false;
    if (phase_done(w, op, lane, t, done) == Step::kFault) return Step::kFault;
    if (done) {
      done_lanes |= LaneMask{1} << lane;
      if (acquired != t.object) {
        w.view.acquire(t.object->completed, op.modifiers().semantics == ptx::Semantics::kRelaxed,
                       (active & w.live) == w.live ? kAllLanes : active);
        if (reaches_cluster(w, op)) {
          Handover remote;
          remote.threads = t.object->remote_completed;
          w.view.acquire(remote, op.modifiers().semantics == ptx::Semantics::kRelaxed,
                         (active & w.live) == w.live ? kAllLanes : active);
        }
      }
      acquired = t.object;
    }
    if (first.object == nullptr && !done) first = t;
    return Step::kNext;
  });
  if (step == Step::kFault) return step;
  Split& s = w.split();
  if (kMayBlock && done_lanes == 0 && !s.timed_out) {
    Wait wait;
    wait.what = "mbarrier phase";
    wait.ready = phase_has_passed;
    wait.a = first.cta->shared_base() | first.offset;
    wait.b = first.object->phase;
    wait.describe = describe_wait;
    wait.may_time_out = true;
    return w.park(wait);
  }
  s.timed_out = false;
  w.set_predicate(op.slot(0), done_lanes, active);
  return Step::kNext;
}

Step exec_pending_count(Warp& w, const Op& op, LaneMask active) {
  for (LaneMask m = active; m != 0; m &= m - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(m));
    w.set_value(op.slot(0), lane, token_pending(w.value(op.slot(1), lane)));
  }
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// cp.async.mbarrier.arrive (9.7.13.15.15): an arrival once the lane's earlier cp.async are
// complete. Without .noinc the pending count is raised by one first, so that the arrival is
// neutral.
Step exec_cp_async_arrive(Warp& w, const Op& op, LaneMask active) {
  return for_lanes(active, [&](uint32_t lane) {
    Target t;
    if (locate_target(w, op, lane, op.slot(0), t) == Step::kFault) return Step::kFault;
    if (!op.modifiers().has(ptx::Flag::kNoinc)) {
      if (t.object->pending >= kMaxCount) {
        return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse,
                       "the pending count overflows");
      }
      ++t.object->pending;
      store_image(*t.cta, t.offset, *t.object);
    }
    AsyncOperation arrival;
    arrival.name = "cp.async.mbarrier.arrive";
    arrival.origin = w.origin(op, static_cast<int32_t>(lane));
    arrival.after = w.cp_async_groups.outstanding(LaneMask{1} << lane, 0, true);
    arrival.cta_rank = w.cta.rank;
    Handover issued;
    w.view.release(issued, false, LaneMask{1} << lane);
    arrival.complete = [cta = t.cta, offset = t.offset, origin = arrival.origin, issued,
                        warp = &w](Cluster& cluster) {
      Handover done = issued;
      warp->view.release_writes(done);
      mbarrier_arrive(cluster, *cta, offset, 1, done, origin);
    };
    w.cta.cluster.engine.submit(std::move(arrival));
    return Step::kNext;
  });
}

// fence.mbarrier_init (9.7.13.4): earlier initialisations become visible to the cluster and to
// asynchronous operations.
Step exec_init_fence(Warp& w, const Op&, LaneMask) {
  w.async_state->mbarrier_init_fence = ++w.cta.cluster.time;
  return Step::kNext;
}

template <ExecuteFn kFn>
Choice always(const ptx::Function&, const ptx::Instruction&) {
  return {kFn, kOpAsync, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kFenceMbarrierInit,     always<exec_init_fence>     },
    {ptx::Opcode::kMbarrierInit,          always<exec_init>           },
    {ptx::Opcode::kMbarrierInval,         always<exec_inval>          },
    {ptx::Opcode::kMbarrierExpectTx,      always<exec_tx<1>>          },
    {ptx::Opcode::kMbarrierCompleteTx,    always<exec_tx<-1>>         },
    {ptx::Opcode::kMbarrierArrive,        always<exec_arrive<false>>  },
    {ptx::Opcode::kMbarrierArriveDrop,    always<exec_arrive<true>>   },
    {ptx::Opcode::kMbarrierTestWait,      always<exec_wait<false>>    },
    {ptx::Opcode::kMbarrierTryWait,       always<exec_wait<true>>     },
    {ptx::Opcode::kMbarrierPendingCount,  always<exec_pending_count>  },
    {ptx::Opcode::kCpAsyncMbarrierArrive, always<exec_cp_async_arrive>},
};

}  // namespace

uint64_t Mbarrier::image() const {
  return uint64_t{0xb5} << 56 | (phase & 1) << 55 | uint64_t{pending & kMaxCount} << 34 |
         uint64_t{expected & kMaxCount} << 14 | (static_cast<uint64_t>(tx) & 0x3fff);
}

Mbarrier* find_mbarrier(Cta& cta, uint32_t offset, std::string& why) {
  auto& objects = cta.async_state->mbarriers;
  const auto found = objects.find(offset);
  if (found == objects.end()) {
    why = fmt::format("there is no initialised mbarrier at offset {:#x} of CTA rank {}", offset,
                      cta.rank);
    return nullptr;
  }
  if (cta.shared.load<uint64_t>(offset) != found->second.image()) {
    why = fmt::format(
        "the mbarrier at offset {:#x} of CTA rank {} was overwritten by other instructions", offset,
        cta.rank);
    return nullptr;
  }
  return &found->second;
}

Step require_mbarrier(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint32_t offset) {
  if (cta.finished()) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kExitedCta,
                   fmt::format("the mbarrier at offset {:#x} is in CTA rank {}, which has ended",
                               offset, cta.rank));
  }
  std::string why;
  if (find_mbarrier(cta, offset, why) != nullptr) return Step::kNext;
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kMbarrierMisuse, std::move(why));
}

Step require_published_mbarrier(Warp& w, const Op& op, uint32_t lane, Cta& cta, uint32_t offset) {
  if (require_mbarrier(w, op, lane, cta, offset) == Step::kFault) return Step::kFault;
  Cluster& cluster = w.cta.cluster;
  if (!cluster.grid.options.sanitize) return Step::kNext;
  const Mbarrier& b = cta.async_state->mbarriers.at(offset);
  const uint32_t per_cta = cluster.grid.warps_per_cta;
  const Warp& initialiser = *cluster.ctas[b.initialiser / per_cta]->warps[b.initialiser % per_cta];
  const EventTime published =
      std::max({initialiser.async_state->mbarrier_init_fence, cluster.proxy_fences[b.initialiser],
                cluster.proxy_fences[w.cluster_warp]});
  if (published > b.initialised) return Step::kNext;
  // Triton has a CTA barrier alone between the two.
  if (!cluster.grid.options.strict && &initialiser.cta == &w.cta && &cta == &w.cta)
    return Step::kNext;
  return w.fault(
      op, static_cast<int32_t>(lane), FaultKind::kMissingProxyFence,
      fmt::format(
          "no fence.mbarrier_init or fence.proxy.async since the mbarrier at offset {:#x} was "
          "initialised",
          offset));
}

void mbarrier_arrive(Cluster& cluster, Cta& cta, uint32_t offset, uint32_t count,
                     const Handover& handover, const Origin& origin) {
  std::string why;
  Mbarrier* b = find_mbarrier(cta, offset, why);
  if (cta.finished() && !cta.async_state->exiting) {
    return cluster.raise(
        origin, FaultKind::kExitedCta,
        fmt::format("the operation arrives at an mbarrier of CTA rank {}, which has ended",
                    cta.rank));
  }
  if (b == nullptr) return cluster.raise(origin, FaultKind::kMbarrierMisuse, std::move(why));
  if (count > b->pending) {
    return cluster.raise(origin, FaultKind::kMbarrierMisuse,
                         fmt::format("phase overrun: {} arrivals at the mbarrier at offset {:#x}, "
                                     "whose phase {} awaits {} of {}",
                                     count, offset, b->phase, b->pending, b->expected));
  }
  b->pending -= count;
  b->arriving.join(handover);
  if (std::string text = excess(*b, offset); !text.empty()) {
    return cluster.raise(origin, FaultKind::kTransactionCount, std::move(text));
  }
  settle(cluster, *b);
  store_image(cta, offset, *b);
}

void mbarrier_complete_tx(Cluster& cluster, Cta& cta, uint32_t offset, uint32_t bytes,
                          const Origin& origin) {
  std::string why;
  Mbarrier* b = find_mbarrier(cta, offset, why);
  if (cta.finished() && !cta.async_state->exiting) {
    return cluster.raise(
        origin, FaultKind::kExitedCta,
        fmt::format("the operation completes on an mbarrier of CTA rank {}, which has ended",
                    cta.rank));
  }
  if (b == nullptr) return cluster.raise(origin, FaultKind::kMbarrierMisuse, std::move(why));
  b->tx -= bytes;
  b->arriving.seen.set(cluster.agents.async_proxy(), cluster.async_writes);
  b->arriving.threads.add(cluster.agents.async_proxy(), kAllLanes, cluster.async_writes);
  if (b->tx < -int64_t{kMaxCount})
    return cluster.raise(origin, FaultKind::kTransactionCount, out_of_range(*b, offset));
  if (std::string text = excess(*b, offset); !text.empty()) {
    return cluster.raise(origin, FaultKind::kTransactionCount, std::move(text));
  }
  settle(cluster, *b);
  store_image(cta, offset, *b);
}

std::span<const OpcodeRow> mbarrier_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
