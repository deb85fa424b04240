// SPDX-License-Identifier: Apache-2.0
// Control flow (PTX ISA 9.7.12) and the miscellaneous instructions (9.7.19). Divergence itself is
// in machine_state.cpp and interpreter.cpp; here branches say which lanes go where.
#include "sim/exec_control.h"

#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/lanes.h"

namespace jitgemm::sim {
namespace {

using ptx::Instruction;
using ptx::Opcode;

Step jump(Warp& w, uint32_t target) {
  w.split().pc = target;
  return Step::kJumped;
}

Step bra(Warp& w, const Op& op, LaneMask active) {
  Split& s = w.split();
  if (active == 0) return Step::kNext;
  if (active == s.mask) return jump(w, op.target);
  w.diverge(active, op.target, op.reconverge);
  return Step::kJumped;
}

Step brx_idx(Warp& w, const Op& op, LaneMask active) {
  const Operand& index = op.slot(0);
  if (const Step step = w.require_defined(op, index, active, "the index of brx.idx");
      step != Step::kNext)
    return step;
  const auto& targets = w.cta.cluster.grid.kernel->target_lists[op.payload];
  for (LaneMask rest = active; rest != 0;) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t value = w.value(index, lane);
    if (value >= targets.size()) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("index {} of a list of {} targets", value, targets.size()));
    }
    LaneMask same = 0;
    for_lanes(rest, [&](uint32_t l) {
      if (w.value(index, l) == value) same |= LaneMask{1} << l;
    });
    rest &= ~same;
    if (same == w.split().mask) return jump(w, targets[value]);
    // diverge() sends the others to the next op; here they come back to this one.
    const uint32_t here = w.split().pc;
    w.diverge(same, targets[value], op.reconverge);
    if (rest != 0) w.split().pc = here;
  }
  return Step::kJumped;
}

Step exit_lanes(Warp& w, const Op&, LaneMask active) {
  w.exit_lanes(active);
  return w.split().mask == 0 ? Step::kJumped : Step::kNext;
}

Step trap(Warp& w, const Op& op, LaneMask active) {
  return w.fault(op, std::countr_zero(active), FaultKind::kTrap,
                 fmt::format("in lanes {:#010x}", active));
}

Step nothing(Warp&, const Op&, LaneMask) {
  return Step::kNext;
}

bool always_ready(Warp&, const Split&) {
  return true;
}

// Gives the turn to somebody else: what a spinning thread sleeps for.
Step nanosleep(Warp& w, const Op&, LaneMask) {
  Wait wait;
  wait.what = "nanosleep";
  wait.ready = always_ready;
  wait.resume = [](Warp&, Split&, const Op&) { return Step::kNext; };
  return w.park(wait);
}

template <ExecuteFn kFn, uint32_t kFlags = 0>
Choice always(const ptx::Function&, const Instruction&) {
  return {kFn, kFlags};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kBra, always<bra, kOpOwnGuard>},
    {Opcode::kBrxIdx,            always<brx_idx>       },
    {Opcode::kExit,            always<exit_lanes>  },
    {Opcode::kTrap,            always<trap>       },
    {Opcode::kBrkpt,            always<trap> },
    {Opcode::kPmevent,            always<nothing>     },
    {Opcode::kNanosleep,            always<nanosleep>},
};

}  // namespace

Step execute_exit(Warp& warp, const Op& op, LaneMask active) {
  return exit_lanes(warp, op, active);
}

std::span<const OpcodeRow> control_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
