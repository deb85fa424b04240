// SPDX-License-Identifier: Apache-2.0
// Barriers of a CTA and of a cluster, fences, setmaxnreg, griddepcontrol (PTX ISA 9.7.13.1, .3, .4,
// .13 and 9.7.19.5). Arrival and completion of the barriers are in machine_state.cpp, because exits
// settle them too.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/host_fence.h"
#include "sim/lanes.h"
#include "sim/race_check.h"

#include <atomic>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operation;

constexpr uint64_t kNoCount = ~uint64_t{0};

// Exited lanes have nothing more to say.
LaneMask participants(const Warp& w, LaneMask active) {
  return (active & w.live) == w.live ? kAllLanes : active;
}

// A uniform operand: every active lane must have the same value.
Step uniform(Warp& w, const Op& op, const Operand& o, LaneMask active, const char* what,
             uint64_t& value) {
  if (const Step step = w.require_defined(op, o, active, what); step != Step::kNext) return step;
  value = w.value(o, static_cast<uint32_t>(std::countr_zero(active)));
  return each_lane(active, [&](uint32_t lane) {
    if (w.value(o, lane) == value) return Step::kNext;
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kBarrierMisuse,
                   fmt::format("{} differs among the lanes", what));
  });
}

// Reads barrier number and thread count and records the arrival of the active lanes.
Step arrive(Warp& w, const Op& op, LaneMask active, const Operand& number, const Operand* count,
            bool reduces, uint64_t& id) {
  if (const Step step = uniform(w, op, number, active, "the barrier number", id);
      step != Step::kNext)
    return step;
  uint64_t threads = kNoCount;
  if (count != nullptr) {
    if (const Step step = uniform(w, op, *count, active, "the thread count", threads);
        step != Step::kNext)
      return step;
  }
  const int32_t lane = std::countr_zero(active);
  if (id >= w.cta.barriers.size()) {
    return w.fault(op, lane, FaultKind::kBarrierMisuse, fmt::format("barrier {} of 16", id));
  }
  if (threads != kNoCount &&
      (threads == 0 || threads % kLanes != 0 || threads / kLanes > w.cta.warps.size())) {
    return w.fault(
        op, lane, FaultKind::kBarrierMisuse,
        fmt::format(
            "thread count {} is not a positive multiple of {} up to the {} warps of the CTA",
            threads, kLanes, w.cta.warps.size()));
  }
  NamedBarrier& b = w.cta.barriers[id];
  const uint32_t expected = threads == kNoCount ? 0 : static_cast<uint32_t>(threads / kLanes);
  if (b.arrived_warps != 0) {
    if (b.counts_all != (threads == kNoCount) || b.expected_warps != expected) {
      return w.fault(
          op, lane, FaultKind::kBarrierMisuse,
          fmt::format("barrier {} is in use with another thread count ({} warps, now {})", id,
                      b.counts_all ? std::string("all") : fmt::format("{}", b.expected_warps),
                      threads == kNoCount ? std::string("all") : fmt::format("{}", expected)));
    }
    if (b.reduces != reduces) {
      return w.fault(op, lane, FaultKind::kBarrierMisuse,
                     fmt::format("barrier {} mixes bar.red with other arrivals", id));
    }
  }
  LaneMask& arrived = b.arrived[w.index];
  if ((arrived & active) != 0) {
    return w.fault(
        op, std::countr_zero(arrived & active), FaultKind::kBarrierMisuse,
        fmt::format("warp {} arrives twice at barrier {} before it completes", w.index, id));
  }
  b.counts_all = threads == kNoCount;
  b.expected_warps = expected;
  b.reduces = reduces;
  const bool was_complete = arrived != 0 && (arrived & w.live) == w.live;
  arrived |= active;
  w.view.release(b.arriving, false, participants(w, active));
  if ((active & w.live) == w.live) w.view.lanes_synchronised();
  // A warp counts once all its live lanes have come; the first arrival already opens the
  // generation.
  if (!was_complete && (arrived & w.live) == w.live) ++b.arrived_warps;
  ++w.cta.cluster.effects;
  return Step::kNext;
}

Wait barrier_wait(uint64_t id, uint64_t generation) {
  Wait wait;
  wait.what = "named barrier";
  wait.ready = [](Warp& warp, const Split& s) {
    return warp.cta.barriers[s.wait.a].generation != s.wait.b;
  };
  wait.a = id;
  wait.b = generation;
  wait.resume = [](Warp& warp, Split& s, const Op&) {
    warp.view.acquire(warp.cta.barriers[s.wait.a].completed, false, participants(warp, s.mask));
    return Step::kNext;
  };
  wait.describe = [](const Warp& warp, const Split& s) {
    const NamedBarrier& b = warp.cta.barriers[s.wait.a];
    return fmt::format("{} ({} of {} warps have arrived)", s.wait.a, b.arrived_warps,
                       b.counts_all ? std::string("all") : fmt::format("{}", b.expected_warps));
  };
  return wait;
}

// bar.sync: slots a, b.
Step bar_sync(Warp& w, const Op& op, LaneMask active) {
  uint64_t id = 0;
  const Operand* count = op.slot(1).kind == OperandKind::kNone ? nullptr : &op.slot(1);
  if (const Step step = arrive(w, op, active, op.slot(0), count, false, id); step != Step::kNext)
    return step;
  const uint64_t generation = w.cta.barriers[id].generation;
  w.cta.settle_barrier(static_cast<uint32_t>(id));
  if (w.cta.barriers[id].generation == generation) return w.park(barrier_wait(id, generation));
  w.view.acquire(w.cta.barriers[id].completed, false, participants(w, active));
  return Step::kNext;
}

Step bar_arrive(Warp& w, const Op& op, LaneMask active) {
  uint64_t id = 0;
  if (const Step step = arrive(w, op, active, op.slot(0), &op.slot(1), false, id);
      step != Step::kNext)
    return step;
  w.cta.settle_barrier(static_cast<uint32_t>(id));
  return Step::kNext;
}

void write_reduction(Warp& w, const Op& op, uint64_t id, LaneMask lanes) {
  const NamedBarrier::Result& r = w.cta.barriers[id].result;
  if (op.modifiers().operation == Operation::kPopc) {
    for_lanes(lanes, [&](uint32_t i) { w.set_value(op.slot(0), i, r.count); });
    w.set_defined(op.slot(0), lanes);
  } else {
    const bool value = op.modifiers().operation == Operation::kAnd ? r.all : r.any;
    w.set_predicate(op.slot(0), value ? kAllLanes : 0, lanes);
  }
}

// bar.red: slots d, a, b, c.
Step bar_red(Warp& w, const Op& op, LaneMask active) {
  if (const Step step = w.require_defined(op, op.slot(3), active, "the predicate of bar.red");
      step != Step::kNext)
    return step;
  uint64_t id = 0;
  const Operand* count = op.slot(2).kind == OperandKind::kNone ? nullptr : &op.slot(2);
  if (const Step step = arrive(w, op, active, op.slot(1), count, true, id); step != Step::kNext)
    return step;
  NamedBarrier& b = w.cta.barriers[id];
  const LaneMask p = w.predicate(op.slot(3)) & active;
  if (p != active) b.predicate_and = 0;
  b.predicate_or |= p;
  b.predicate_count += static_cast<uint32_t>(std::popcount(p));
  const uint64_t generation = b.generation;
  w.cta.settle_barrier(static_cast<uint32_t>(id));
  if (b.generation != generation) {
    w.view.acquire(b.completed, false, participants(w, active));
    write_reduction(w, op, id, active);
    return Step::kNext;
  }
  Wait wait = barrier_wait(id, generation);
  wait.resume = [](Warp& warp, Split& s, const Op& o) {
    warp.view.acquire(warp.cta.barriers[s.wait.a].completed, false, participants(warp, s.mask));
    write_reduction(warp, o, s.wait.a, s.mask);
    return Step::kNext;
  };
  return w.park(wait);
}

Step cluster_arrive(Warp& w, const Op& op, LaneMask active) {
  if (const LaneMask twice = (w.cluster_arrived | w.cluster_unwaited) & active; twice != 0) {
    return w.fault(op, std::countr_zero(twice), FaultKind::kBarrierMisuse,
                   "arrives again at barrier.cluster without barrier.cluster.wait");
  }
  w.cluster_arrived |= active;
  w.view.release(
      w.cta.cluster.barrier_arriving,
      op.modifiers().semantics == ptx::Semantics::kRelaxed && w.cta.cluster.grid.options.strict,
      participants(w, active));
  if ((active & w.live) == w.live) w.view.lanes_synchronised();
  w.cta.cluster.settle_barrier();
  ++w.cta.cluster.effects;
  return Step::kNext;
}

Step cluster_wait(Warp& w, const Op& op, LaneMask active) {
  if (const LaneMask missing = active & ~(w.cluster_arrived | w.cluster_unwaited); missing != 0) {
    return w.fault(op, std::countr_zero(missing), FaultKind::kBarrierMisuse,
                   "waits at barrier.cluster without having arrived");
  }
  if ((w.cluster_arrived & active) == 0) {
    w.cluster_unwaited &= ~active;
    w.view.acquire(w.cta.cluster.barrier_completed, false, participants(w, active));
    return Step::kNext;
  }
  Wait wait;
  wait.what = "barrier.cluster";
  wait.a = active;
  wait.ready = [](Warp& warp, const Split& s) {
    return (warp.cluster_arrived & static_cast<LaneMask>(s.wait.a)) == 0;
  };
  return w.park(wait);
}

Step fence(Warp& w, const Op& op, LaneMask active) {
  fence_threads(w, op, active);
  w.view.memory_fence(w.cta.cluster.memory);
  host_fence(std::memory_order_seq_cst);
  return Step::kNext;
}

Step fence_proxy_async(Warp& w, const Op&, LaneMask active) {
  Cluster& cluster = w.cta.cluster;
  w.view.proxy_fence(active, w.exists);
  cluster.proxy_fences[w.cluster_warp] = ++cluster.time;
  host_fence(std::memory_order_seq_cst);
  return Step::kNext;
}

// The pool counts registers a thread, warp by warp; a warp waits until what it asks for is free.
Step setmaxnreg(Warp& w, const Op& op, LaneMask) {
  const uint64_t count = w.value(op.slot(0), 0);
  Cta& cta = w.cta;
  if (count < 24 || count > 256 || count % 8 != 0) {
    return w.fault(op, -1, FaultKind::kRegisterCount, fmt::format("count {}", count));
  }
  const bool increase = op.modifiers().operation == Operation::kInc;
  if (increase && count < w.registers_per_thread && !cta.register_count_known) return Step::kNext;
  if (increase ? count < w.registers_per_thread
               : count > w.registers_per_thread && cta.register_count_known) {
    return w.fault(
        op, -1, FaultKind::kRegisterCount,
        fmt::format("{} to {} from {}", increase ? "inc" : "dec", count, w.registers_per_thread));
  }
  if (!increase) {
    if (count >= w.registers_per_thread) return Step::kNext;
    cta.register_pool += w.registers_per_thread - static_cast<uint32_t>(count);
    w.registers_per_thread = static_cast<uint32_t>(count);
    ++cta.cluster.effects;
    return Step::kNext;
  }
  const uint32_t more = static_cast<uint32_t>(count) - w.registers_per_thread;
  if (more <= cta.register_pool) {
    cta.register_pool -= more;
    w.registers_per_thread = static_cast<uint32_t>(count);
    return Step::kNext;
  }
  Wait wait;
  wait.what = "registers of the CTA's pool";
  wait.a = more;
  wait.ready = [](Warp& warp, const Split& s) { return s.wait.a <= warp.cta.register_pool; };
  wait.describe = [](const Warp& warp, const Split& s) {
    return fmt::format("({} a thread wanted, {} free)", s.wait.a, warp.cta.register_pool);
  };
  return w.park(wait);
}

// Grids run one after another, so nothing is waited for; but what the grid before has written may
// be touched only by those who know of the wait (access.cpp).
Step griddepcontrol(Warp& w, const Op& op, LaneMask) {
  if (op.modifiers().operation != ptx::Operation::kLaunchDependents) w.view.predecessor_completed();
  return Step::kNext;
}

uint32_t aligned_flag(const Instruction& i) {
  return i.modifiers.has(Flag::kAligned) ? kOpAligned : 0u;
}

template <ExecuteFn kFn>
Choice with_alignment(const ptx::Function&, const Instruction& i) {
  return {kFn, aligned_flag(i)};
}
template <ExecuteFn kFn>
Choice always(const ptx::Function&, const Instruction&) {
  return {kFn};
}

Choice choose_fence_proxy(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.proxy == ptx::Proxy::kAsync && i.modifiers.space != ptx::Space::kGlobal)
    return {fence_proxy_async};
  return {fence};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kBarSync,              with_alignment<bar_sync>      },
    {Opcode::kBarArrive,            with_alignment<bar_arrive>    },
    {Opcode::kBarRed,               with_alignment<bar_red>       },
    {Opcode::kBarrierClusterArrive, with_alignment<cluster_arrive>},
    {Opcode::kBarrierClusterWait,   with_alignment<cluster_wait>  },
    {Opcode::kMembar,               always<fence>                 },
    {Opcode::kFence,                always<fence>                 },
    {Opcode::kFenceProxy,           choose_fence_proxy            },
    {Opcode::kSetmaxnreg,           with_alignment<setmaxnreg>    },
    {Opcode::kGriddepcontrol,       always<griddepcontrol>        },
};

}  // namespace

std::span<const OpcodeRow> barrier_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
