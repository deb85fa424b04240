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
using ptx::kNoIndex;
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

// Moves call parameters of the active lanes. Bytes that were never written stay so.
void copy_parameters(Warp& w, const std::vector<ParamCopy>& copies, LaneMask active) {
  for (const ParamCopy& c : copies) {
    for_lanes(active, [&](uint32_t lane) {
      const LaneMask bit = LaneMask{1} << lane;
      const uint64_t base = lane * w.local_bytes;
      std::byte value[16] = {};
      if (c.from_register && c.to_register) {
        w.set_value(c.to_operand, lane, w.value(c.from_operand, lane));
        w.set_undefined(c.to_operand, w.undefined(c.from_operand), bit);
      } else if (c.from_register) {
        const uint64_t v = w.value(c.from_operand, lane);
        std::memcpy(value, &v, 8);
        std::memcpy(w.local.data() + base + c.to, value, c.bytes);
        if ((w.undefined(c.from_operand) & bit) == 0) {
          w.local_written.set(base + c.to, c.bytes);
        } else {
          w.local_written.clear(base + c.to, c.bytes);
        }
      } else if (c.to_register) {
        uint64_t v = 0;
        std::memcpy(&v, w.local.data() + base + c.from, c.bytes);
        w.set_value(c.to_operand, lane, v);
        w.set_undefined(c.to_operand, w.local_written.all(base + c.from, c.bytes) ? 0 : bit, bit);
      } else {
        std::memmove(w.local.data() + base + c.to, w.local.data() + base + c.from, c.bytes);
        for (uint32_t b = 0; b < c.bytes; ++b) {
          if (w.local_written.all(base + c.from + b, 1)) {
            w.local_written.set(base + c.to + b, 1);
          } else {
            w.local_written.clear(base + c.to + b, 1);
          }
        }
      }
    });
  }
}

Step call(Warp& w, const Op& op, LaneMask active) {
  const CallSite& site = w.cta.cluster.grid.kernel->call_sites[op.payload];
  Split* s = &w.split();
  const uint32_t here = s->pc;
  if (active != s->mask) {
    // The lanes that do not call wait behind the call.
    const LaneMask rest = s->mask & ~active;
    s->frame = w.open_frame(here + 1, *s);
    s->mask = active;
    w.add_split(here + 1, rest, s->frame, s->return_stack);
    s = &w.split();
  }
  copy_parameters(w, site.arguments, active);
  s->return_stack.push_back(here);
  return jump(w, op.target);
}

Step ret_from_function(Warp& w, const Op& op, LaneMask active) {
  if (active == w.split().mask) return jump(w, op.target);
  w.diverge(active, op.target, op.target);
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

Choice choose_ret(const ptx::Function& f, const Instruction&) {
  if (f.is_entry) return {exit_lanes};
  return {ret_from_function};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kBra, always<bra, kOpOwnGuard>},
    {Opcode::kBrxIdx,            always<brx_idx>       },
    {Opcode::kCall,            always<call>  },
    {Opcode::kRet,            choose_ret        },
    {Opcode::kExit,            always<exit_lanes> },
    {Opcode::kTrap,            always<trap>        },
    {Opcode::kBrkpt,            always<trap>},
    {Opcode::kPmevent,            always<nothing>      },
    {Opcode::kNanosleep,            always<nanosleep>},
};

}  // namespace

Step execute_exit(Warp& warp, const Op& op, LaneMask active) {
  return exit_lanes(warp, op, active);
}

Step execute_function_end(Warp& warp, const Op& op, LaneMask active) {
  Split& s = warp.split();
  if (s.return_stack.empty()) {
    return warp.fault(op, -1, FaultKind::kIllegalOperand,
                      "return from a function that was not called");
  }
  const uint32_t site = s.return_stack.back();
  s.return_stack.pop_back();
  const DecodedKernel& kernel = *warp.cta.cluster.grid.kernel;
  copy_parameters(warp, kernel.call_sites[kernel.ops[site].payload].results, active);
  return jump(warp, site + 1);
}

namespace {

Step call_vprintf(Warp& w, const Op& op, LaneMask active) {
  copy_parameters(w, w.cta.cluster.grid.kernel->call_sites[op.payload].results, active);
  return Step::kNext;
}
Step call_assertfail(Warp& w, const Op& op, LaneMask active) {
  return w.fault(op, std::countr_zero(active), FaultKind::kTrap,
                 fmt::format("an assertion of the program failed in lanes {:#010x}", active));
}

}  // namespace

ExecuteFn external_function(std::string_view name) {
  if (name == "vprintf") return call_vprintf;
  if (name == "__assertfail") return call_assertfail;
  return nullptr;
}

std::span<const OpcodeRow> control_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
