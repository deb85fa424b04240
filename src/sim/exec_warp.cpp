// SPDX-License-Identifier: Apache-2.0
// Exchange among the lanes of a warp (PTX ISA 9.7.9.6, 9.7.13.2, 9.7.13.9 - 9.7.13.14). A
// member-mask instruction is done once all live members have come to it, even when they come as
// separate splits.
#include "fmt/format.h"
#include "sim/exec.h"
#include "sim/float_math.h"
#include "sim/lanes.h"

#include <algorithm>
#include <cmath>

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;
using ptx::Operation;
using ptx::Type;

constexpr const char* kMemberWait = "the other lanes of its member mask";

bool is_meeting(const Warp& w, const Split& s, const Op& op, uint32_t pc) {
  if (!s.parked || s.wait.what != kMemberWait) return false;
  // bar.warp.sync in two branches is one meeting; the others must be the same instruction.
  if (op.instruction->opcode != Opcode::kBarWarpSync) return s.pc == pc;
  return w.cta.cluster.grid.kernel->ops[s.pc].execute == op.execute;
}

// Lanes that have come to this op with the given member mask, other than those of the running
// split.
LaneMask waiting_with(Warp& w, const Op& op, uint32_t pc, uint32_t mask_slot, LaneMask members) {
  LaneMask lanes = 0;
  for (const Split& s : w.splits) {
    if (!is_meeting(w, s, op, pc)) continue;
    const Operand& mask = w.cta.cluster.grid.kernel->ops[s.pc].slot(mask_slot);
    for_lanes(static_cast<LaneMask>(s.wait.a) & ~s.synced, [&](uint32_t l) {
      if (static_cast<LaneMask>(w.value(mask, l)) == members) lanes |= LaneMask{1} << l;
    });
  }
  return lanes;
}

bool members_ready(Warp& w, const Split& split) {
  const Op& op = w.cta.cluster.grid.kernel->ops[split.pc];
  const uint32_t slot = static_cast<uint32_t>(split.wait.b);
  const LaneMask todo = static_cast<LaneMask>(split.wait.a) & ~split.synced;
  if (todo == 0) return true;
  for (LaneMask rest = todo; rest != 0; rest &= rest - 1) {
    const LaneMask members = static_cast<LaneMask>(
        w.value(op.slot(slot), static_cast<uint32_t>(std::countr_zero(rest))));
    if ((members & w.live & ~waiting_with(w, op, split.pc, slot, members)) == 0) return true;
  }
  return false;
}

// perform(w, op, members): called once for each complete group of live members.
template <typename F>
Step with_members(Warp& w, const Op& op, LaneMask active, uint32_t mask_slot, F perform) {
  const Operand& mask = op.slot(mask_slot);
  if (const Step step = w.require_defined(op, mask, active, "the member mask"); step != Step::kNext)
    return step;
  bool incomplete = false;
  for (LaneMask todo = active & ~w.split().synced; todo != 0;) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(todo));
    const LaneMask members = static_cast<LaneMask>(w.value(mask, lane));
    if ((members >> lane & 1) == 0) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kWarpSync,
                     fmt::format("member mask {:#010x} lacks the executing lane", members));
    }
    LaneMask own = 0;
    for_lanes(todo, [&](uint32_t l) {
      if (static_cast<LaneMask>(w.value(mask, l)) == members) own |= LaneMask{1} << l;
    });
    todo &= ~own;
    const LaneMask need = members & w.live;
    if ((need & ~own) != 0 &&
        (need & ~(own | waiting_with(w, op, w.split().pc, mask_slot, members))) != 0) {
      incomplete = true;
      continue;
    }
    if (const Step step = perform(w, op, need); step != Step::kNext) return step;
    // Exchanges order no memory (9.7.13.2 alone does); programs that rely on their meeting are let
    // pass without strict rules.
    if (!w.cta.cluster.grid.options.strict) {
      w.view.lanes_met((w.live & ~need) == 0 ? kAllLanes : need);
    }
    const uint32_t pc = w.split().pc;
    w.split().synced |= need & active;
    if ((need & ~own) != 0) {
      for (Split& s : w.splits) {
        if (is_meeting(w, s, op, pc)) s.synced |= need & static_cast<LaneMask>(s.wait.a);
      }
    }
  }
  if (incomplete) {
    Wait wait;
    wait.what = kMemberWait;
    wait.ready = members_ready;
    wait.a = active;
    wait.b = mask_slot;
    wait.describe = [](const Warp& warp, const Split& split) {
      const Op& at = warp.cta.cluster.grid.kernel->ops[split.pc];
      const uint32_t l = static_cast<uint32_t>(
          std::countr_zero(static_cast<LaneMask>(split.wait.a) & ~split.synced));
      return fmt::format("{:#010x}",
                         warp.value(at.slot(static_cast<uint32_t>(split.wait.b)), l & 31));
    };
    return w.park(wait);
  }
  w.split().synced = 0;
  return Step::kNext;
}

Step bar_warp_sync(Warp& w, const Op& op, LaneMask active) {
  return with_members(w, op, active, 0, [](Warp& warp, const Op&, LaneMask members) {
    if ((warp.live & ~members) == 0) {
      warp.view.lanes_synchronised();
    } else {
      warp.view.lanes_met(members);
    }
    return Step::kNext;
  });
}

// shfl.sync: slots d, p, a, b, c, mask.
template <Operation kMode>
Step shfl(Warp& w, const Op& op, LaneMask active) {
  return with_members(w, op, active, 5, [](Warp& warp, const Op& o, LaneMask members) {
    uint32_t* d = warp.lanes<uint32_t>(o.slot(0));
    const uint32_t* a = warp.lanes<uint32_t>(o.slot(2));
    const uint32_t* b = warp.lanes<uint32_t>(o.slot(3));
    const uint32_t* c = warp.lanes<uint32_t>(o.slot(4));
    uint32_t source[kLanes];
    std::copy_n(a, kLanes, source);  // d may be a
    const LaneMask source_undefined = warp.undefined(o.slot(2));
    LaneMask valid = 0, undefined = 0;
    const LaneMask control = (warp.undefined(o.slot(3)) | warp.undefined(o.slot(4))) & members;
    if (control != 0) {
      return warp.fault(o, std::countr_zero(control), FaultKind::kUninitialisedRegister,
                        "the lane index or clamp of shfl was never written");
    }
    for_lanes(members, [&](uint32_t i) {
      const int32_t lane = static_cast<int32_t>(i);
      const int32_t bval = static_cast<int32_t>(b[i] & 31), cval = static_cast<int32_t>(c[i] & 31);
      const int32_t segment = static_cast<int32_t>(c[i] >> 8 & 31);
      const int32_t max_lane = (lane & segment) | (cval & ~segment), min_lane = lane & segment;
      int32_t j = 0;
      bool p = false;
      switch (kMode) {
        case Operation::kUp:
          j = lane - bval;
          p = j >= max_lane;
          break;
        case Operation::kDown:
          j = lane + bval;
          p = j <= max_lane;
          break;
        case Operation::kBfly:
          j = lane ^ bval;
          p = j <= max_lane;
          break;
        default:
          j = min_lane | (bval & ~segment);
          p = j <= max_lane;
          break;
      }
      if (!p) j = lane;
      const LaneMask from = LaneMask{1} << (j & 31);
      d[i] = source[j & 31];
      if (p) valid |= LaneMask{1} << i;
      // Reading from a lane that does not take part gives an undefined value.
      if ((from & members) == 0 || (source_undefined & from) != 0) undefined |= LaneMask{1} << i;
    });
    warp.set_undefined(o.slot(0), undefined, members);
    warp.set_predicate(o.slot(1), valid, members);
    return Step::kNext;
  });
}

// vote.sync: slots d, a, mask.
template <Operation kMode>
Step vote(Warp& w, const Op& op, LaneMask active) {
  return with_members(w, op, active, 2, [](Warp& warp, const Op& o, LaneMask members) {
    if (const Step step = warp.require_defined(o, o.slot(1), members, "the predicate of vote");
        step != Step::kNext)
      return step;
    const LaneMask votes = warp.predicate(o.slot(1)) & members;
    if constexpr (kMode == Operation::kBallot) {
      uint32_t* d = warp.lanes<uint32_t>(o.slot(0));
      for_lanes(members, [&](uint32_t i) { d[i] = votes; });
      warp.set_defined(o.slot(0), members);
    } else {
      const bool r = kMode == Operation::kAll   ? votes == members
                     : kMode == Operation::kAny ? votes != 0
                                                : votes == members || votes == 0;
      warp.set_predicate(o.slot(0), r ? kAllLanes : 0, members);
    }
    return Step::kNext;
  });
}

// match.any: slots d, a, mask. match.all: d, p, a, mask.
template <bool kAll>
Step match(Warp& w, const Op& op, LaneMask active) {
  return with_members(w, op, active, kAll ? 3 : 2, [](Warp& warp, const Op& o, LaneMask members) {
    const Operand& a = o.slot(kAll ? 2 : 1);
    if (const Step step = warp.require_defined(o, a, members, "the value of match");
        step != Step::kNext)
      return step;
    uint64_t values[kLanes];
    for_lanes(members, [&](uint32_t i) { values[i] = warp.value(a, i); });
    uint32_t* d = warp.lanes<uint32_t>(o.slot(0));
    LaneMask all_equal = kAllLanes;
    for_lanes(members, [&](uint32_t i) {
      LaneMask same = 0;
      for_lanes(members, [&](uint32_t j) {
        if (values[j] == values[i]) same |= LaneMask{1} << j;
      });
      if (same != members) all_equal = 0;
      d[i] = same;
    });
    if constexpr (kAll) {
      for_lanes(members, [&](uint32_t i) { d[i] = all_equal & members; });
      warp.set_predicate(o.slot(1), all_equal, members);
    }
    warp.set_defined(o.slot(0), members);
    return Step::kNext;
  });
}

Step activemask(Warp& w, const Op& op, LaneMask active) {
  uint32_t* d = w.lanes<uint32_t>(op.slot(0));
  const LaneMask mask = w.split().mask;
  for_lanes(active, [&](uint32_t i) { d[i] = mask; });
  w.set_defined(op.slot(0), active);
  return Step::kNext;
}

// redux.sync: slots d, a, mask.
template <typename F>
Step redux(Warp& w, const Op& op, LaneMask active) {
  return with_members(w, op, active, 2, [](Warp& warp, const Op& o, LaneMask members) {
    if (const Step step = warp.require_defined(o, o.slot(1), members, "the value of redux");
        step != Step::kNext)
      return step;
    const uint32_t* a = warp.lanes<uint32_t>(o.slot(1));
    bool first = true;
    uint32_t r = 0;
    for_lanes(members, [&](uint32_t i) {
      r = first ? F::prepare(o, a[i]) : F::combine(o, r, F::prepare(o, a[i]));
      first = false;
    });
    uint32_t* d = warp.lanes<uint32_t>(o.slot(0));
    for_lanes(members, [&](uint32_t i) { d[i] = r; });
    warp.set_defined(o.slot(0), members);
    return Step::kNext;
  });
}

template <Operation kOperation, typename T>
struct IntegerReduction {
  static uint32_t prepare(const Op&, uint32_t v) { return v; }
  static uint32_t combine(const Op&, uint32_t a, uint32_t b) {
    switch (kOperation) {
      case Operation::kAdd: return a + b;
      case Operation::kMin:
        return static_cast<uint32_t>(std::min(static_cast<T>(a), static_cast<T>(b)));
      case Operation::kMax:
        return static_cast<uint32_t>(std::max(static_cast<T>(a), static_cast<T>(b)));
      case Operation::kAnd: return a & b;
      case Operation::kOr: return a | b;
      default: return a ^ b;
    }
  }
};
template <bool kMin>
struct FloatReduction {
  static uint32_t prepare(const Op& o, uint32_t v) {
    return o.modifiers().has(Flag::kAbs) ? v & 0x7fffffff : v;
  }
  static uint32_t combine(const Op& o, uint32_t a, uint32_t b) {
    return std::bit_cast<uint32_t>(float_min_max(std::bit_cast<float>(a), std::bit_cast<float>(b),
                                                 kMin, o.modifiers().has(Flag::kNanPropagating)));
  }
};

// elect.sync: slots d, p, mask. The lowest live member leads.
Step elect(Warp& w, const Op& op, LaneMask active) {
  return with_members(w, op, active, 2, [](Warp& warp, const Op& o, LaneMask members) {
    const uint32_t leader = static_cast<uint32_t>(std::countr_zero(members));
    uint32_t* d = warp.lanes<uint32_t>(o.slot(0));
    for_lanes(members, [&](uint32_t i) { d[i] = leader; });
    warp.set_defined(o.slot(0), members);
    warp.set_predicate(o.slot(1), LaneMask{1} << leader, members);
    return Step::kNext;
  });
}

Choice choose_shfl(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.operation) {
    case Operation::kUp: return {shfl<Operation::kUp>};
    case Operation::kDown: return {shfl<Operation::kDown>};
    case Operation::kBfly: return {shfl<Operation::kBfly>};
    default: return {shfl<Operation::kIdx>};
  }
}
Choice choose_vote(const ptx::Function&, const Instruction& i) {
  switch (i.modifiers.operation) {
    case Operation::kAll: return {vote<Operation::kAll>};
    case Operation::kAny: return {vote<Operation::kAny>};
    case Operation::kUni: return {vote<Operation::kUni>};
    default: return {vote<Operation::kBallot>};
  }
}
Choice choose_match(const ptx::Function&, const Instruction& i) {
  return {i.modifiers.operation == Operation::kAll ? match<true> : match<false>};
}
Choice choose_redux(const ptx::Function&, const Instruction& i) {
  const bool min = i.modifiers.operation == Operation::kMin;
  if (i.modifiers.type() == Type::kF32)
    return {min ? redux<FloatReduction<true>> : redux<FloatReduction<false>>};
  const bool is_signed = i.modifiers.type() == Type::kS32;
  switch (i.modifiers.operation) {
    case Operation::kAdd: return {redux<IntegerReduction<Operation::kAdd, uint32_t>>};
    case Operation::kMin:
      return {is_signed ? redux<IntegerReduction<Operation::kMin, int32_t>>
                        : redux<IntegerReduction<Operation::kMin, uint32_t>>};
    case Operation::kMax:
      return {is_signed ? redux<IntegerReduction<Operation::kMax, int32_t>>
                        : redux<IntegerReduction<Operation::kMax, uint32_t>>};
    case Operation::kAnd: return {redux<IntegerReduction<Operation::kAnd, uint32_t>>};
    case Operation::kOr: return {redux<IntegerReduction<Operation::kOr, uint32_t>>};
    default: return {redux<IntegerReduction<Operation::kXor, uint32_t>>};
  }
}
template <ExecuteFn kFn>
Choice always(const ptx::Function&, const Instruction&) {
  return {kFn};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kBarWarpSync, always<bar_warp_sync>},
    {Opcode::kShfl,        choose_shfl          },
    {Opcode::kVote,        choose_vote          },
    {Opcode::kMatch,       choose_match         },
    {Opcode::kActivemask,  always<activemask>   },
    {Opcode::kRedux,       choose_redux         },
    {Opcode::kElect,       always<elect>        },
};

}  // namespace

std::span<const OpcodeRow> warp_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
