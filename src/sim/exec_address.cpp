// SPDX-License-Identifier: Apache-2.0
// Instructions about addresses and caches that move no data (PTX ISA 9.7.9.15 - 9.7.9.24): windows
// of generic addresses, addresses of other CTAs, prefetches and cache policies.
#include "fmt/format.h"
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/lanes.h"

namespace jitgemm::sim {
namespace {

using ptx::Flag;
using ptx::Instruction;
using ptx::Opcode;

uint64_t window_of(Space space) {
  switch (space) {
    case Space::kSharedCta:
    case Space::kSharedCluster: return kSharedWindow;
    case Space::kLocal: return kLocalWindow;
    case Space::kParam: return kParamWindow;
    default: return 0;  // global and constant addresses are generic as they are
  }
}

// cvta: slots d, a. Payload: what is added, modulo 2^64.
Step cvta(Warp& w, const Op& op, LaneMask active) {
  uint64_t* d = w.lanes<uint64_t>(op.slot(0));
  const uint64_t* a = w.lanes<uint64_t>(op.slot(1));
  for_lanes(active, [&](uint32_t i) { d[i] = a[i] + op.payload; });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

// isspacep: slots p, a.
Step isspacep(Warp& w, const Op& op, LaneMask active) {
  const Space space = space_of(op.modifiers().space);
  const uint64_t window = window_of(space);
  LaneMask r = 0;
  for_lanes(active, [&](uint32_t i) {
    const uint64_t a = w.value(op.slot(1), i);
    bool yes = window == 0 ? a < kSharedWindow : a - window < kWindowBytes;
    if (space == Space::kSharedCta && op.modifiers().space != ptx::Space::kSharedCluster) {
      yes = yes && w.cta.cluster.cta_of(static_cast<uint32_t>(a - window)) == &w.cta;
    }
    if (space == Space::kConst) {
      const GlobalMemory::Range* hint = nullptr;
      const GlobalMemory::Range* range = w.cta.cluster.grid.memory.find(a, 1, hint);
      yes = range != nullptr && !range->writable && range->name.starts_with("variable ");
    }
    if (yes) r |= LaneMask{1} << i;
  });
  const LaneMask undefined = w.undefined(op.slot(1));
  w.set_predicate(op.slot(0), r, active);
  w.set_undefined(op.slot(0), undefined, active);
  return Step::kNext;
}

// mapa: slots d, a, b. The address of the same variable in the CTA of rank b.
Step mapa(Warp& w, const Op& op, LaneMask active) {
  for (uint32_t s = 1; s <= 2; ++s) {
    if (const Step step = w.require_defined(op, op.slot(s), active, "an operand of mapa");
        step != Step::kNext)
      return step;
  }
  const bool generic = op.modifiers().space == ptx::Space::kNone;
  const Step step = each_lane(active, [&](uint32_t lane) {
    const uint64_t rank = w.value(op.slot(2), lane);
    if (rank >= w.cta.cluster.ctas.size()) {
      return w.fault(
          op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
          fmt::format("rank {} in a cluster of {} CTAs", rank, w.cta.cluster.ctas.size()));
    }
    uint64_t a = w.value(op.slot(1), lane);
    if (generic && a - kSharedWindow >= kWindowBytes) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kWrongSpace,
                     fmt::format("address {:#x} is not in shared memory", a));
    }
    a = (a & ~uint64_t{0xff000000}) | rank << kSharedRankShift;
    w.set_value(op.slot(0), lane, a);
    return Step::kNext;
  });
  w.set_defined(op.slot(0), active);
  return step;
}

// getctarank: slots d, a.
Step getctarank(Warp& w, const Op& op, LaneMask active) {
  for_lanes(active, [&](uint32_t i) {
    w.set_value(op.slot(0), i, w.value(op.slot(1), i) >> kSharedRankShift & 0xff);
  });
  w.set_undefined(op.slot(0), w.undefined(op.slot(1)), active);
  return Step::kNext;
}

Step nothing(Warp&, const Op&, LaneMask) {
  return Step::kNext;
}

// A cache policy is opaque (9.7.9.18); no cache is simulated, so any value will do.
Step createpolicy(Warp& w, const Op& op, LaneMask active) {
  uint64_t* d = w.lanes<uint64_t>(op.slot(0));
  for_lanes(active, [&](uint32_t i) { d[i] = 0; });
  w.set_defined(op.slot(0), active);
  return Step::kNext;
}

Choice choose_cvta(const ptx::Function&, const Instruction& i) {
  if (i.modifiers.type() != ptx::Type::kU64) return Choice::refuse("32-bit generic addresses");
  const uint64_t window = window_of(space_of(i.modifiers.space));
  return {cvta, 0, i.modifiers.has(Flag::kTo) ? 0 - window : window};
}
template <ExecuteFn kFn>
Choice always(const ptx::Function&, const Instruction&) {
  return {kFn};
}

constexpr OpcodeRow kRows[] = {
    {Opcode::kCvta,          choose_cvta         },
    {Opcode::kIsspacep,      always<isspacep>    },
    {Opcode::kMapa,          always<mapa>        },
    {Opcode::kGetctarank,    always<getctarank>  },
    {Opcode::kPrefetch,      always<nothing>     },
    {Opcode::kPrefetchu,     always<nothing>     },
    {Opcode::kApplypriority, always<nothing>     },
    {Opcode::kDiscard,       always<nothing>     },
    {Opcode::kCreatepolicy,  always<createpolicy>},
};

}  // namespace

std::span<const OpcodeRow> address_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
