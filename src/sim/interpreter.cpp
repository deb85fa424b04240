// SPDX-License-Identifier: Apache-2.0
#include "sim/interpreter.h"

#include "fmt/format.h"
#include "sim/observer.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

// The lanes of all splits that wait at the same .aligned op as `at`.
LaneMask aligned_lanes(const Warp& warp, uint32_t pc) {
  LaneMask lanes = 0;
  for (const Split& s : warp.splits) {
    if (s.waits_aligned && s.pc == pc) lanes |= s.mask;
  }
  return lanes;
}

bool aligned_ready(Warp& warp, const Split& split) {
  return aligned_lanes(warp, split.pc) == warp.live;
}

// The running split has reached the place where its frame meets. True if the split is gone (it
// waits for the others); false if it goes on, perhaps with more lanes.
bool arrive_at_frame(Warp& warp) {
  Split& s = warp.split();
  Frame& f = warp.frames[static_cast<size_t>(s.frame)];
  f.arrived |= s.mask;
  if (f.arrived == f.expected) {
    s.mask = f.arrived;
    s.frame = f.parent;
    f.used = false;
    return false;
  }
  warp.splits.erase(warp.splits.begin() + warp.current);
  return true;
}

bool at_frame(const Warp& warp, const Split& s) {
  if (s.frame < 0) return false;
  const Frame& f = warp.frames[static_cast<size_t>(s.frame)];
  return f.reconverge == s.pc && f.return_stack.size() == s.return_stack.size();
}

// An .aligned op that the running split reaches without all live lanes: wait for the others, or
// join them if they are all there, or fault if they cannot come. kNext: all lanes are assembled.
Step assemble(Warp& warp, const Op& op) {
  Split& s = warp.split();
  s.waits_aligned = true;
  if (aligned_lanes(warp, s.pc) == warp.live) {
    Split all = s;
    all.mask = warp.live;
    all.waits_aligned = false;
    all.frame = -1;  // the whole warp is together: whatever was to meet has met
    all.parked = false;
    warp.frames.clear();
    warp.splits.assign(1, all);
    warp.current = 0;
    return Step::kNext;
  }
  const bool hopeless = std::all_of(warp.splits.begin(), warp.splits.end(),
                                    [](const Split& o) { return o.waits_aligned; });
  if (hopeless) {
    return warp.fault(
        op, -1, FaultKind::kDivergedAligned,
        fmt::format("lanes {:#010x} of live lanes {:#010x} execute it", s.mask, warp.live));
  }
  Wait wait;
  wait.what = "the other lanes of the warp, at an .aligned instruction";
  wait.ready = aligned_ready;
  return warp.park(wait);
}

LaneMask pending_lanes(const Warp& warp, const Op& op) {
  LaneMask pending = op.guard_state != 0 ? warp.states[op.guard_state].pending : 0;
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    for (const Operand& o : registers_of(warp, op.slot(i))) pending |= warp.states[o.state].pending;
  }
  return pending;
}

// wgmma.fence orders reads of a matrix instruction's registers, too (9.7.15.7.1). Writes are noted
// where registers are written.
void note_fragment_access(Warp& warp, const Op& op, LaneMask active) {
  for (uint32_t i = 0; i < op.slot_count; ++i) {
    for (const Operand& o : registers_of(warp, op.slot(i))) warp.states[o.state].unfenced |= active;
  }
}

// Runs the current split until it waits, ends or the budget is used up.
template <bool kObserved>
void run_split(Warp& warp, uint32_t& budget, std::span<OpCount> counts,
               [[maybe_unused]] Observer* observer) {
  const std::vector<Op>& ops = warp.cta.cluster.grid.kernel->ops;
  while (budget > 0) {
    Split& s = warp.splits[warp.current];
    const Op& op = ops[s.pc];
    if ((op.flags & kOpReconvergence) != 0 && at_frame(warp, s)) {
      if (arrive_at_frame(warp)) return;
      continue;
    }
    --budget;
    LaneMask active = s.mask;
    if (op.guard_state != 0) {
      if (const LaneMask bad = warp.states[op.guard_state].undefined & active; bad != 0)
          [[unlikely]] {
        warp.fault(op, std::countr_zero(bad), FaultKind::kUninitialisedRegister,
                   fmt::format("the guard predicate was never written in lanes {:#010x}", bad));
        return;
      }
      const LaneMask guard = *reinterpret_cast<const LaneMask*>(warp.banks[0] + op.guard_offset);
      active &= op.guard_negated ? ~guard : guard;
      if (active == 0 && (op.flags & kOpOwnGuard) == 0) {
        ++s.pc;
        continue;
      }
    }
    if ((op.flags & kOpAligned) != 0 && active != warp.live) [[unlikely]] {
      if (s.mask == warp.live) {
        warp.fault(op, -1, FaultKind::kDivergedAligned,
                   fmt::format("the guard lets lanes {:#010x} of live lanes {:#010x} execute it",
                               active, warp.live));
        return;
      }
      if (assemble(warp, op) != Step::kNext) return;
      ++budget;
      continue;  // again, with all lanes and the guard evaluated for them
    }
    if (warp.pending_registers != 0 && (op.flags & kOpOwnPendingCheck) == 0) [[unlikely]] {
      if (const LaneMask bad = pending_lanes(warp, op) & active; bad != 0) {
        warp.fault(op, std::countr_zero(bad), FaultKind::kPendingRegister,
                   fmt::format("a register of this instruction belongs to an asynchronous "
                               "operation in lanes {:#010x}",
                               bad));
        return;
      }
    }
    if ((op.flags & kOpFragments) != 0 && warp.cta.cluster.grid.options.strict)
      note_fragment_access(warp, op, active);
    ++warp.instance;
    OpCount& count = counts[op.index];
    ++count.issues;
    count.lanes += static_cast<uint64_t>(std::popcount(active));
    if constexpr (kObserved) {
      ++warp.cta.cluster.steps;
      observer->before(warp, op, active);
    }
    // The lanes have met here. That orders no memory by the text of the ISA; production code relies
    // on it, between reads by all lanes and the arrival of one at an mbarrier for example.
    if ((op.flags & kOpAligned) != 0 && !warp.cta.cluster.grid.options.strict)
      warp.view.lanes_met(kAllLanes);
    const Step step = op.execute(warp, op, active);
    if constexpr (kObserved) {
      if (step == Step::kNext || step == Step::kJumped) observer->after(warp, op, active);
    }
    switch (step) {
      case Step::kNext: ++warp.splits[warp.current].pc; break;
      case Step::kJumped:
        if (warp.split().mask != 0) break;
        warp.splits.erase(warp.splits.begin() + warp.current);
        return;
      case Step::kParked:
        // It is executed again when the wait is over, and counts then.
        if (warp.split().wait.resume == nullptr) {
          --count.issues;
          count.lanes -= static_cast<uint64_t>(std::popcount(active));
        }
        return;
      case Step::kFault: return;
    }
  }
}

// Tells of splits that have begun to wait in this turn.
void note_parked(Warp& warp, Observer& observer) {
  for (Split& s : warp.splits) {
    if (!s.parked || s.parked_at != Split::kNotParked) continue;
    s.parked_at = warp.cta.cluster.steps;
    s.parked_op = s.pc;
    observer.parked(warp, s);
  }
}

// Tells that a split which had been parked runs again.
void note_resumed(Warp& warp, Split& s, Observer& observer) {
  if (s.parked_at == Split::kNotParked) return;
  observer.resumed(warp, s, warp.cta.cluster.steps - s.parked_at);
  s.parked_at = Split::kNotParked;
}

// Ends the wait of a parked split if it can. False: it goes on waiting.
bool wake(Warp& warp, uint32_t index) {
  Split& s = warp.splits[index];
  if (!s.wait.ready(warp, s)) return false;
  s.parked = false;
  s.waits_aligned = false;
  if (s.wait.resume != nullptr) {
    const Op& op = warp.cta.cluster.grid.kernel->ops[s.pc];
    const Wait wait = s.wait;
    warp.current = index;
    if (wait.resume(warp, s, op) == Step::kNext) ++warp.splits[index].pc;
  }
  return true;
}

}  // namespace

uint32_t run_warp(Warp& warp, uint32_t budget, std::span<OpCount> counts, Observer* observer) {
  const uint32_t given = budget;
  // Every split gets a turn, so that lanes spinning on one side never starve the other.
  uint32_t turns = static_cast<uint32_t>(warp.splits.size());
  uint32_t next = warp.current + 1;
  while (budget > 0 && turns-- > 0 && !warp.splits.empty() && !warp.cta.cluster.fault) {
    const uint32_t index = next % static_cast<uint32_t>(warp.splits.size());
    next = index + 1;
    const size_t before = warp.splits.size();
    if (warp.splits[index].parked && !wake(warp, index)) continue;
    if (warp.cta.cluster.fault) break;
    if (observer != nullptr) note_resumed(warp, warp.splits[index], *observer);
    warp.current = index;
    uint32_t share =
        warp.splits.size() == 1 ? budget : std::max(1u, given / static_cast<uint32_t>(before));
    share = std::min(share, budget);
    uint32_t left = share;
    if (observer == nullptr) {
      run_split<false>(warp, left, counts, nullptr);
    } else {
      run_split<true>(warp, left, counts, observer);
      note_parked(warp, *observer);
    }
    budget -= share - left;
    if (share == left) --budget;  // a wake or an arrival at a frame is progress too
    if (warp.splits.size() < before) next = index;
  }
  warp.executed += given - budget;
  return given - budget;
}

bool can_run(Warp& warp) {
  return std::any_of(warp.splits.begin(), warp.splits.end(),
                     [&](const Split& s) { return !s.parked || s.wait.ready(warp, s); });
}

}  // namespace jitgemm::sim
