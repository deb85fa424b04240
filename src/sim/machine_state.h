// SPDX-License-Identifier: Apache-2.0
// The state of the simulated machine: a grid of clusters of CTAs of warps of 32 lanes, with
// registers, divergence, barriers and waits. One host thread runs a cluster at a time, so nothing
// below GridState needs locks. It holds state and the small operations on it; instructions are in
// exec_*.cpp, the order of execution in scheduler.cpp.
#pragma once

#include "sim/async_engine.h"
#include "sim/causality.h"
#include "sim/faults.h"
#include "sim/global_races.h"
#include "sim/memory.h"
#include "sim/program.h"
#include "sim/simulator.h"
#include "sim/sync_locations.h"

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace jitgemm::sim {

class Cta;
class Cluster;
struct GridState;
struct AsyncCtaState;  // state of the asynchronous instructions of one CTA; async_state.h
struct AsyncWarpState;

// Which lanes of a register hold no value, and which are owned by an asynchronous operation.
struct RegisterState {
  LaneMask undefined = kAllLanes;
  LaneMask pending = 0;
  LaneMask unfenced = kAllLanes;  // accessed since the last wgmma.fence; reads: see kOpFragments
  uint32_t matrix_use = 0;        // by which kind of wgmma access since then (exec_wgmma.cpp)
  bool partly = false;            // packed, and not written since: Warp::partly_undefined has it
};

struct Split;

// Why a split waits, and what ends the wait. `ready` is polled by the scheduler. A parked op is
// executed again when it is ready (resume == nullptr), or `resume` is called once and the split
// goes on after it.
struct Wait {
  const char* what = "";  // "mbarrier phase", "named barrier", ...: for the deadlock report
  bool (*ready)(Warp&, const Split&) = nullptr;
  Step (*resume)(Warp&, Split&, const Op&) = nullptr;
  uint64_t a = 0, b = 0;  // the waiter's own: barrier address and phase, generation, mask
  std::string (*describe)(const Warp&, const Split&) = nullptr;  // optional, for the report
  // The op may go on unsuccessful (mbarrier.try_wait): Split::timed_out is set when nothing else
  // can run, and again only after something has happened.
  bool may_time_out = false;
};

// What a call keeps for its return, by lane; shared by the splits that come back one by one.
struct SavedFrame {
  std::array<uint32_t, kLanes> frame{}, stack_pointer{};
  std::vector<std::byte> file;  // the caller's registers, if the call may come back to it
  std::vector<LaneMask> undefined;
};

struct ReturnSite {
  uint32_t op = 0;                          // of the call
  uint32_t call_site = 0;                   // in DecodedKernel::call_sites
  std::shared_ptr<const SavedFrame> saved;  // null in kernels without a stack
  friend bool operator==(const ReturnSite&, const ReturnSite&) = default;
};

// Lanes of a warp that run together.
struct Split {
  uint32_t pc = 0;
  LaneMask mask = 0;
  int32_t frame = -1;  // innermost open reconvergence frame
  bool parked = false;
  bool waits_aligned = false;  // at an .aligned op, for the other live lanes
  bool timed_out = false;      // its wait was ended by the time limit
  LaneMask synced = 0;         // lanes for which the member-mask instruction at pc has been done
  uint64_t parked_at = kNotParked;  // Cluster::steps when it was parked; of observed runs only
  uint32_t parked_op = 0;
  static constexpr uint64_t kNotParked = ~uint64_t{0};
  Wait wait;
  std::vector<ReturnSite> return_stack;
};

// Lanes that diverged at a branch and are to meet at `reconverge`.
struct Frame {
  uint32_t reconverge = 0;
  LaneMask expected = 0;
  LaneMask arrived = 0;
  int32_t parent = -1;
  bool used = false;
  std::vector<ReturnSite> return_stack;
};

class Warp {
 public:
  Warp(Cta& owner, uint32_t index_in_cta);
  ~Warp();
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  Cta& cta;
  uint32_t index;             // in the CTA
  uint32_t cluster_warp = 0;  // in the cluster: its agent in causality.h
  LaneMask exists = 0;        // lanes that the launch created
  LaneMask live = 0;          // lanes that have not exited
  std::vector<Split> splits;
  uint32_t current = 0;  // the running split
  std::vector<Frame> frames;
  uint32_t registers_per_thread = 0;  // of setmaxnreg
  uint64_t executed = 0;              // warp instructions
  uint32_t instance = 0;              // tells executions of one op apart

  // --- Registers --------------------------------------------------------------------------------
  std::byte* banks[2] = {nullptr, nullptr};
  std::vector<std::byte> file;
  std::vector<RegisterState> states;
  uint32_t pending_registers = 0;  // > 0: some state has a pending lane
  LaneMask carry = 0;              // CC.CF

  // 32 values of type T (uint32_t, uint64_t, or a 16-byte type).
  template <typename T>
  T* lanes(const Operand& operand) const {
    return reinterpret_cast<T*>(banks[operand.bank] + operand.offset);
  }
  // The value of one lane, zero-extended from the operand's own width.
  uint64_t value(const Operand& operand, uint32_t lane) const {
    return operand.bytes == 4 ? lanes<uint32_t>(operand)[lane] : lanes<uint64_t>(operand)[lane];
  }
  void set_value(const Operand& operand, uint32_t lane, uint64_t v) {
    if (operand.bytes == 4) {
      lanes<uint32_t>(operand)[lane] = static_cast<uint32_t>(v);
    } else {
      lanes<uint64_t>(operand)[lane] = v;
    }
  }
  LaneMask predicate(const Operand& operand) const {
    const LaneMask m = *lanes<LaneMask>(operand);
    return operand.negated ? ~m : m;
  }
  void set_predicate(const Operand& operand, LaneMask values, LaneMask active) {
    if (operand.kind != OperandKind::kPredicate) return;  // a sink
    LaneMask& m = *lanes<LaneMask>(operand);
    m = (m & ~active) | (values & active);
    set_defined(operand, active);
  }
  // Base register plus displacement of an address operand.
  uint64_t address(const Operand& operand, uint32_t lane) const {
    return value(operand, lane) + static_cast<uint64_t>(operand.displacement);
  }

  // Of registers that were packed from parts of which some were never written: lanes by part. By
  // state, and good while that says `partly`.
  std::map<uint32_t, std::vector<LaneMask>> partly_undefined;

  RegisterState& state(const Operand& operand) { return states[operand.state]; }
  LaneMask undefined(const Operand& operand) const { return states[operand.state].undefined; }
  void set_defined(const Operand& operand, LaneMask active) {
    RegisterState& s = states[operand.state];
    s.undefined &= ~active;
    s.unfenced |= active;
    s.partly = false;
  }
  void set_undefined(const Operand& operand, LaneMask which, LaneMask active) {
    RegisterState& s = states[operand.state];
    s.undefined = (s.undefined & ~active) | (which & active);
    s.unfenced |= active;
    s.partly = false;
  }
  // Registers that an asynchronous operation owns until its wait. Sinks and constants are ignored.
  void mark_pending(const Operand& operand, LaneMask active);
  void clear_pending(const Operand& operand, LaneMask active);

  // --- Faults -----------------------------------------------------------------------------------
  // Records the fault of this op (the first of a run wins) and returns Step::kFault.
  Step fault(const Op& op, int32_t lane, FaultKind kind, std::string detail);
  // Faults if an active lane's value was never written; kNext if all were.
  Step require_defined(const Op& op, const Operand& operand, LaneMask active, const char* use);
  // May this read of memory never written pass, with a value that counts as never written? Not
  // under strict rules. The first one is remembered for the report of what is done with the value.
  bool lets_pass(const Op& op, const std::string& where);
  Origin origin(const Op& op, int32_t lane = -1) const;

  // --- Control ----------------------------------------------------------------------------------
  Split& split() { return splits[current]; }
  Step park(const Wait& wait);
  // The lanes of the running split leave for good.
  void exit_lanes(LaneMask lanes_to_exit);
  bool finished() const { return live == 0; }
  // The running split's lanes `taken` go to `target`, the others to the next op; they meet again at
  // `reconverge` (kNoIndex: nowhere). Both sides must be non-empty.
  void diverge(LaneMask taken, uint32_t target, uint32_t reconverge);
  // A new split of this warp, runnable.
  void add_split(uint32_t pc, LaneMask mask, int32_t frame, std::vector<ReturnSite> return_stack);
  int32_t open_frame(uint32_t reconverge, const Split& from);
  // The lanes that wait at reconvergence points no longer wait for the missing ones. True if any
  // did.
  bool release_frames();
  // barrier.cluster: lanes that arrived in the current phase, and in an earlier one without waiting
  // yet.
  LaneMask cluster_arrived = 0;
  LaneMask cluster_unwaited = 0;

  // --- Local memory -----------------------------------------------------------------------------
  std::vector<std::byte> local;  // thread after thread
  WrittenMap local_written;
  uint64_t local_bytes = 0;  // per thread
  // Of kernels with a stack, by lane, as offsets in the thread's local memory: the frame of the
  // function at hand, if it has one, and the first free byte.
  std::array<uint32_t, kLanes> stack_frame{}, stack_pointer{};

  const GlobalMemory::Range* range_hint = nullptr;

  // --- Asynchronous operations ------------------------------------------------------------------
  AsyncGroups cp_async_groups;
  AsyncGroups bulk_groups;       // completion of bulk copies
  AsyncGroups bulk_read_groups;  // the reads of their sources
  std::unique_ptr<AsyncWarpState> async_state;
  WarpView view;  // what synchronisation has told it

  // Of its latest accesses to global memory (race_check.cpp).
  struct RaceDeed {
    uint32_t op = 0;
    Epoch epoch = 0;
    uint32_t instance = 0;
    bool write = false;
    GlobalRaces::DeedId deed = 0;
  };
  std::array<RaceDeed, 16> race_deeds;
};

// One of the sixteen barriers of a CTA (PTX ISA 9.7.13.1).
struct NamedBarrier {
  uint32_t expected_warps = 0;  // of this generation; 0: nobody has arrived
  bool counts_all = false;      // expects every live warp of the CTA
  uint64_t generation = 0;
  std::vector<LaneMask> arrived;  // by warp
  uint32_t arrived_warps = 0;
  LaneMask predicate_and = kAllLanes, predicate_or = 0;  // bar.red, accumulated over lanes
  uint32_t predicate_count = 0;
  bool reduces = false;
  struct Result {
    bool all = false, any = false;
    uint32_t count = 0;
  } result;  // of the previous generation
  Handover arriving, completed;
};

class Cta {
 public:
  Cta(Cluster& owner, uint32_t rank_in_cluster, std::array<uint32_t, 3> id);
  ~Cta();

  Cluster& cluster;
  uint32_t rank;
  std::array<uint32_t, 3> ctaid;
  SharedMemory shared;
  std::unique_ptr<TensorMemory> tensor;  // made by the first allocation
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<NamedBarrier, 16> barriers;
  uint32_t live_warps = 0;
  uint32_t register_pool = 0;  // free registers of setmaxnreg, in units of one per thread of a warp
  bool register_count_known = false;  // the kernel has .maxnreg
  std::unique_ptr<AsyncCtaState> async_state;

  bool finished() const { return live_warps == 0; }
  uint32_t shared_base() const { return rank << kSharedRankShift; }
  // Ends the generation of barrier i if all that it expects have arrived; after arrivals and exits.
  void settle_barrier(uint32_t i);
};

class Cluster {
 public:
  Cluster(GridState& owner, std::array<uint32_t, 3> first_ctaid, uint64_t number);
  ~Cluster();

  GridState& grid;
  uint64_t number;       // in the grid, row-major
  std::string let_pass;  // the first read of memory never written that was (Warp::lets_pass)
  std::vector<std::unique_ptr<Cta>> ctas;
  AsyncEngine engine;
  uint64_t barrier_phase = 0;  // of barrier.cluster (9.7.13.3)
  std::optional<Fault> fault;  // the first one
  uint64_t random_state = 0;   // 0 when the seed is 0

  // Events in program order of this cluster; see SharedShadow.
  EventTime time = 0;
  std::vector<EventTime> proxy_fences;  // by Warp::cluster_warp: last fence.proxy.async
  Agents agents;
  Epoch async_writes = 0;                        // completed writes of the async proxy, its epochs
  Handover barrier_arriving, barrier_completed;  // barrier.cluster
  Handover memory;                               // of all locations by which warps may synchronise
  SyncLocations locations;                       // the same, location by location, for threads
  // Counts everything that another warp could notice. A round without any is a spin.
  uint64_t effects = 0;
  uint64_t effects_at_time_out = ~uint64_t{0};  // when waits last ended by their time limit

  // Of observed runs: warp instructions executed and asynchronous operations completed.
  uint64_t steps = 0;
  // Bytes that asynchronous copies have brought into shared memory and have taken from it.
  uint64_t copied_in = 0, copied_out = 0;
  uint64_t global_in = 0, global_out = 0;  // and what of it came from global memory and went there
  uint64_t bytes_in_flight = 0;  // taken from shared memory by bulk stores that are not complete

  bool finished() const;
  // Ends the phase of the cluster barrier if every live thread has arrived.
  void settle_barrier();
  // The CTA that a shared::cluster address belongs to, null if the rank does not exist.
  Cta* cta_of(uint32_t shared_address) const {
    const uint32_t rank = shared_address >> kSharedRankShift;
    return rank < ctas.size() ? ctas[rank].get() : nullptr;
  }
  // For operations that complete outside of an instruction.
  void raise(const Origin& origin, FaultKind kind, std::string detail);
  // 0 when the seed is 0, else the next number of this cluster's own sequence.
  uint64_t random();
};

// Storage of module variables, by symbol; null storage for symbols that are none.
struct ModuleVariables {
  std::vector<std::unique_ptr<std::byte[]>> storage;
  std::vector<uint64_t> addresses;
};

// What all clusters of a run share.
struct GridState {
  const DecodedProgram* program = nullptr;
  const DecodedKernel* kernel = nullptr;
  Launch launch;
  Options options;
  GlobalMemory memory;
  GlobalRaces races;
  SyncLocations locations;  // of global memory
  std::vector<std::byte> parameters;
  std::vector<std::byte> constants;  // the constant bank, addresses patched in
  std::shared_ptr<ModuleVariables> variables;
  uint32_t threads_per_cta = 0;
  uint32_t warps_per_cta = 0;
  uint32_t ctas_per_cluster = 1;
  uint32_t shared_bytes = 0;  // of a CTA, reserved kilobyte included
  std::mutex print_mutex;     // around Options::print
  std::atomic<bool> stop{false};
  std::chrono::steady_clock::time_point deadline;
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> state_bytes{0};
  std::mutex wide_atomics;  // 128-bit atomics on global memory
  // Takes the next cluster that has not started, which then never does: its first CTA's
  // coordinates. Nothing when all have started. The scheduler's, while the grid runs.
  std::function<std::optional<std::array<uint32_t, 3>>()> claim_cluster;
};

// The registers of a vector, or the one of a single operand.
inline std::span<const Operand> registers_of(const Warp& w, const Operand& o) {
  if (o.kind != OperandKind::kList) return {&o, 1};
  return {w.cta.cluster.grid.kernel->lists.data() + o.offset, o.count};
}

// Execution counts of one host thread, by op index.
struct OpCount {
  uint64_t issues = 0;
  uint64_t lanes = 0;
};

}  // namespace jitgemm::sim
