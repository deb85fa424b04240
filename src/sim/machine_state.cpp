// SPDX-License-Identifier: Apache-2.0
#include "sim/machine_state.h"

#include "fmt/format.h"
#include "sim/async_state.h"
#include "sim/report.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kRegisterFile = 65536;  // registers of one multiprocessor

uint64_t splitmix(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The value of a special register that is constant for a thread (PTX ISA 10).
uint64_t special_value(const Warp& warp, uint32_t lane, ptx::SpecialRegister special,
                       uint32_t component) {
  const Cta& cta = warp.cta;
  const GridState& grid = cta.cluster.grid;
  const Launch& launch = grid.launch;
  const uint32_t thread = warp.index * kLanes + lane;
  const auto& block = launch.block;
  const uint32_t tid[3] = {thread % block[0], thread / block[0] % block[1],
                           thread / (block[0] * block[1])};
  const auto pick = [&](const auto& v) -> uint64_t { return component < 3 ? v[component] : 0; };
  std::array<uint32_t, 3> nclusterid, clusterid, cluster_ctaid;
  for (size_t d = 0; d < 3; ++d) {
    nclusterid[d] = launch.grid[d] / launch.cluster[d];
    clusterid[d] = cta.ctaid[d] / launch.cluster[d];
    cluster_ctaid[d] = cta.ctaid[d] % launch.cluster[d];
  }
  const LaneMask bit = LaneMask{1} << lane;
  using S = ptx::SpecialRegister;
  switch (special) {
    case S::kTid: return pick(tid);
    case S::kNtid: return pick(launch.block);
    case S::kCtaid: return pick(cta.ctaid);
    case S::kNctaid: return pick(launch.grid);
    case S::kClusterid: return pick(clusterid);
    case S::kNclusterid: return pick(nclusterid);
    case S::kClusterCtaid: return pick(cluster_ctaid);
    case S::kClusterNctaid: return pick(launch.cluster);
    case S::kClusterCtarank: return cta.rank;
    case S::kClusterNctarank: return grid.ctas_per_cluster;
    case S::kIsExplicitCluster: return grid.ctas_per_cluster > 1;
    case S::kLaneid: return lane;
    case S::kWarpid: return warp.index;
    case S::kNwarpid: return grid.warps_per_cta;
    case S::kSmid: return (cta.cluster.number * grid.ctas_per_cluster + cta.rank) % 132;
    case S::kNsmid: return 132;
    case S::kGridid: return 1;
    case S::kLanemaskEq: return bit;
    case S::kLanemaskLe: return bit | (bit - 1);
    case S::kLanemaskLt: return bit - 1;
    case S::kLanemaskGe: return ~(bit - 1);
    case S::kLanemaskGt: return ~(bit | (bit - 1));
    case S::kTotalSmemSize: return grid.shared_bytes - kSharedReserved;
    case S::kAggrSmemSize: return grid.shared_bytes;
    case S::kDynamicSmemSize: return launch.dynamic_shared_bytes;
    case S::kReservedSmemOffsetBegin: return 0;
    case S::kReservedSmemOffsetEnd: return kSharedReserved;
    case S::kReservedSmemOffsetCap: return kSharedReserved;
    default: return 0;  // the rest reads as zero, or is read when it is asked for (clocks)
  }
}

}  // namespace

// --- Warp
// -------------------------------------------------------------------------------------------

Warp::Warp(Cta& owner, uint32_t index_in_cta) : cta(owner), index(index_in_cta) {
  const GridState& grid = cta.cluster.grid;
  const DecodedKernel& kernel = *grid.kernel;
  const uint32_t first = index * kLanes;
  const uint32_t count = std::min(kLanes, grid.threads_per_cta - first);
  exists = live = count == kLanes ? kAllLanes : (LaneMask{1} << count) - 1;
  file.resize(kernel.file_bytes);
  states.resize(kernel.state_count);
  states[0].undefined = 0;
  banks[0] = file.data();
  // Constants are never written: an operand with the role of a result is always in bank 0.
  banks[1] = const_cast<std::byte*>(grid.constants.data());
  local_bytes = kernel.local_bytes;
  if (local_bytes != 0) {
    local.resize(local_bytes * kLanes);
    local_written.resize(local_bytes * kLanes);
  }
  stack_pointer.fill(static_cast<uint32_t>(kernel.stack_base));
  for (const InitialValue& v : kernel.initial_values) {
    if (v.kind == InitialValue::Kind::kSpecial && v.bytes == 1) {
      const LaneMask all = special_value(*this, 0, v.special, v.component) != 0 ? kAllLanes : 0;
      std::memcpy(file.data() + v.offset, &all, sizeof all);
      continue;
    }
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      uint64_t value = 0;
      if (v.kind == InitialValue::Kind::kSpecial) {
        value = special_value(*this, lane, v.special, v.component);
      } else {
        value = cta.shared_base() + static_cast<uint64_t>(v.value);
        if (v.kind == InitialValue::Kind::kDynamicSharedAddress)
          value += kernel.shared_static_bytes;
        if (v.generic) value += kSharedWindow;
      }
      std::memcpy(file.data() + v.offset + lane * v.bytes, &value, v.bytes);
    }
  }
  Split all;
  all.mask = live;
  splits.push_back(std::move(all));
  async_state = std::make_unique<AsyncWarpState>();
}

Warp::~Warp() = default;

void Warp::mark_pending(const Operand& operand, LaneMask active) {
  if (operand.state == 0) return;
  RegisterState& s = states[operand.state];
  if (s.pending == 0 && active != 0) ++pending_registers;
  s.pending |= active;
}

void Warp::clear_pending(const Operand& operand, LaneMask active) {
  if (operand.state == 0) return;
  RegisterState& s = states[operand.state];
  const bool was = s.pending != 0;
  s.pending &= ~active;
  if (was && s.pending == 0) --pending_registers;
}

Origin Warp::origin(const Op& op, int32_t lane) const {
  Origin o;
  o.op = op.index;
  std::copy(cta.ctaid.begin(), cta.ctaid.end(), o.cta);
  o.warp = index;
  o.lane = lane;
  return o;
}

Step Warp::fault(const Op& op, int32_t lane, FaultKind kind, std::string detail) {
  if (!cta.cluster.fault) {
    Fault f;
    f.kind = kind;
    f.origin = origin(op, lane);
    f.detail = std::move(detail);
    if (kind == FaultKind::kUninitialisedRegister && !cta.cluster.let_pass.empty())
      f.detail += "; memory never written was read before: " + cta.cluster.let_pass;
    f.operands = describe_operands(*this, op, lane);
    cta.cluster.fault = std::move(f);
  }
  return Step::kFault;
}

Step Warp::require_defined(const Op& op, const Operand& operand, LaneMask active, const char* use) {
  const LaneMask bad = undefined(operand) & active;
  if (bad == 0) [[likely]]
    return Step::kNext;
  return fault(op, std::countr_zero(bad), FaultKind::kUninitialisedRegister,
               fmt::format("{} was never written in lanes {:#010x}", use, bad));
}

bool Warp::lets_pass(const Op& op, const std::string& where) {
  const GridState& grid = cta.cluster.grid;
  if (grid.options.strict) return false;
  if (cta.cluster.let_pass.empty()) {
    cta.cluster.let_pass = fmt::format("{} at line {}, by warp {} of CTA rank {}", where,
                                       op.instruction->position.line, index, cta.rank);
  }
  return true;
}

Step Warp::park(const Wait& wait) {
  Split& s = split();
  s.parked = true;
  s.wait = wait;
  return Step::kParked;
}

void Warp::add_split(uint32_t pc, LaneMask mask, int32_t frame,
                     std::vector<ReturnSite> return_stack) {
  Split s;
  s.pc = pc;
  s.mask = mask;
  s.frame = frame;
  s.return_stack = std::move(return_stack);
  splits.push_back(std::move(s));
}

int32_t Warp::open_frame(uint32_t reconverge, const Split& from) {
  if (from.frame >= 0) {
    const Frame& inner = frames[static_cast<size_t>(from.frame)];
    // Leaving a loop lane by lane meets at one place: one frame is enough.
    if (inner.reconverge == reconverge && inner.return_stack == from.return_stack)
      return from.frame;
  }
  auto free = std::find_if(frames.begin(), frames.end(), [](const Frame& f) { return !f.used; });
  if (free == frames.end()) free = frames.insert(frames.end(), Frame{});
  *free = Frame{reconverge, from.mask, 0, from.frame, true, from.return_stack};
  return static_cast<int32_t>(free - frames.begin());
}

void Warp::diverge(LaneMask taken, uint32_t target, uint32_t reconverge) {
  Split& s = split();
  const LaneMask rest = s.mask & ~taken;
  if (reconverge != ptx::kNoIndex) s.frame = open_frame(reconverge, s);
  const uint32_t next = s.pc + 1;
  s.mask = rest;
  s.pc = next;
  add_split(target, taken, s.frame, s.return_stack);
}

void Warp::exit_lanes(LaneMask lanes_to_exit) {
  Split& s = split();
  s.mask &= ~lanes_to_exit;
  live &= ~lanes_to_exit;
  cluster_arrived &= ~lanes_to_exit;
  cluster_unwaited &= ~lanes_to_exit;
  ++cta.cluster.effects;
  // Nobody waits any longer for lanes that are gone.
  struct Released {
    uint32_t pc;
    LaneMask mask;
    int32_t frame;
    std::vector<ReturnSite> return_stack;
  };
  std::vector<Released> released;
  for (Frame& f : frames) {
    if (!f.used) continue;
    f.expected &= ~lanes_to_exit;
    if (f.expected == 0) {
      f.used = false;
    } else if (f.arrived == f.expected) {
      released.push_back({f.reconverge, f.arrived, f.parent, f.return_stack});
      f.used = false;
    }
  }
  for (Released& r : released) {
    // A frame that ended with its lanes' parent gone would be a broken chain; parents outlive
    // children because a parent expects all lanes of its children.
    add_split(r.pc, r.mask, r.frame, std::move(r.return_stack));
  }
  if (live == 0) {
    --cta.live_warps;
    if (cta.live_warps == 0) check_cta_exit(*this, cta.cluster.grid.kernel->ops[s.pc]);
    cta.register_pool += registers_per_thread;
  }
  for (uint32_t i = 0; i < cta.barriers.size(); ++i) cta.settle_barrier(i);
  cta.cluster.settle_barrier();
}

bool Warp::release_frames() {
  bool any = false;
  for (size_t i = 0; i < frames.size(); ++i) {
    Frame& f = frames[i];
    if (!f.used || f.arrived == 0) continue;
    any = true;
    const LaneMask mask = f.arrived;
    f.arrived = 0;
    f.expected &= ~mask;
    add_split(f.reconverge, mask, f.parent, f.return_stack);
  }
  return any;
}

// --- Cta
// --------------------------------------------------------------------------------------------

Cta::Cta(Cluster& owner, uint32_t rank_in_cluster, std::array<uint32_t, 3> id)
    : cluster(owner), rank(rank_in_cluster), ctaid(id) {
  const GridState& grid = cluster.grid;
  shared.resize(grid.shared_bytes);
  if (grid.options.sanitize && grid.options.races) shared.races.resize(grid.shared_bytes);
  async_state = std::make_unique<AsyncCtaState>();
  for (uint32_t w = 0; w < grid.warps_per_cta; ++w) {
    warps.push_back(std::make_unique<Warp>(*this, w));
    warps.back()->cluster_warp = rank * grid.warps_per_cta + w;
  }
  live_warps = grid.warps_per_cta;
  for (NamedBarrier& b : barriers) b.arrived.assign(grid.warps_per_cta, 0);
  // Without .maxnreg the compiler's choice is not in the PTX: assume that it uses the whole
  // register file.
  const uint32_t maxnreg = grid.kernel->function->maxnreg;
  register_count_known = maxnreg != 0;
  const uint32_t share = std::min(256u, kRegisterFile / (grid.warps_per_cta * kLanes) / 8 * 8);
  for (auto& w : warps) w->registers_per_thread = maxnreg != 0 ? maxnreg : share;
}

Cta::~Cta() = default;

void Cta::settle_barrier(uint32_t i) {
  NamedBarrier& b = barriers[i];
  if (b.arrived_warps == 0) return;
  if (b.counts_all) {
    // Warps that have ended do not take part any more.
    for (const auto& warp : warps) {
      if (!warp->finished() && (b.arrived[warp->index] & warp->live) != warp->live) return;
    }
  } else if (b.arrived_warps < b.expected_warps) {
    return;
  }
  b.completed.join(b.arriving);
  b.arriving.clear();
  b.result = {b.predicate_and != 0, b.predicate_or != 0, b.predicate_count};
  b.predicate_and = kAllLanes;
  b.predicate_or = 0;
  b.predicate_count = 0;
  b.expected_warps = b.arrived_warps = 0;
  b.counts_all = b.reduces = false;
  std::fill(b.arrived.begin(), b.arrived.end(), 0);
  ++b.generation;
  ++cluster.effects;
}

// --- Cluster
// ----------------------------------------------------------------------------------------

Cluster::Cluster(GridState& owner, std::array<uint32_t, 3> first_ctaid, uint64_t number_in_grid)
    : grid(owner), number(number_in_grid) {
  const Launch& launch = grid.launch;
  for (uint32_t r = 0; r < grid.ctas_per_cluster; ++r) {
    const std::array<uint32_t, 3> id = {
        first_ctaid[0] + r % launch.cluster[0],
        first_ctaid[1] + r / launch.cluster[0] % launch.cluster[1],
        first_ctaid[2] + r / (launch.cluster[0] * launch.cluster[1])};
    ctas.push_back(std::make_unique<Cta>(*this, r, id));
  }
  proxy_fences.assign(grid.ctas_per_cluster * grid.warps_per_cta, 0);
  agents.warps = grid.ctas_per_cluster * grid.warps_per_cta;
  for (const auto& cta : ctas) {
    for (const auto& warp : cta->warps)
      warp->view.begin(agents, warp->cluster_warp, grid.options.strict, number);
  }
  if (grid.options.seed != 0)
    random_state = grid.options.seed * 0x2545f4914f6cdd1du + number * 0x9e3779b97f4a7c15u + 1;
}

Cluster::~Cluster() = default;

bool Cluster::finished() const {
  return std::all_of(ctas.begin(), ctas.end(), [](const auto& cta) { return cta->finished(); });
}

void Cluster::settle_barrier() {
  bool any = false;
  for (const auto& cta : ctas) {
    for (const auto& warp : cta->warps) {
      if (warp->live == 0) continue;
      if ((warp->cluster_arrived & warp->live) != warp->live) return;
      any = true;
    }
  }
  if (!any) return;
  barrier_completed.join(barrier_arriving);
  barrier_arriving.clear();
  for (const auto& cta : ctas) {
    for (const auto& warp : cta->warps) {
      warp->cluster_unwaited |= warp->cluster_arrived;
      warp->cluster_arrived = 0;
    }
  }
  ++barrier_phase;
  ++effects;
}

void Cluster::raise(const Origin& origin, FaultKind kind, std::string detail) {
  if (fault) return;
  Fault f;
  f.kind = kind;
  f.origin = origin;
  f.detail = std::move(detail);
  fault = std::move(f);
}

uint64_t Cluster::random() {
  return random_state == 0 ? 0 : splitmix(random_state);
}

}  // namespace jitgemm::sim
