// SPDX-License-Identifier: Apache-2.0
#include "sim/scheduler.h"

#include "fmt/format.h"
#include "sim/async_state.h"
#include "sim/interpreter.h"
#include "sim/observer.h"
#include "sim/report.h"
#include "sim/statistics_collector.h"
#include "sim/trace.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <thread>

namespace jitgemm::sim {
namespace {

// Ops a warp executes before the next warp's turn.
constexpr uint32_t kTurn = 256;
// Rounds in which warps ran but did nothing that another warp could notice: they poll, and what
// they poll for may be an asynchronous operation.
constexpr uint32_t kIdleRounds = 16;
// Ops without any effect after which a cluster lets another one run: it may be waiting for it.
constexpr uint64_t kSpinOps = 1 << 18;
// Ops after which a cluster lets others that already run have a turn.
constexpr uint64_t kSliceOps = 1 << 22;
constexpr size_t kMaxResidentCtas = 1024;
// Asynchronous operations that a cluster may have in flight, and bytes on their way; with more,
// some take effect early.
constexpr size_t kMaxInFlight = 1 << 13;
constexpr uint64_t kMaxBytesInFlight = uint64_t{64} << 20;
// Operations and groups that a warp may leave without a wait.
constexpr size_t kMaxUnwaited = 1 << 20;
constexpr uint64_t kOrderWindow = 1 << 16;  // clusters whose order a seed permutes together

enum class SliceEnd { kFinished, kFault, kSpinning, kSliceOver };

struct ResidentCluster {
  std::unique_ptr<Cluster> cluster;
  uint64_t state_bytes = 0;
  uint64_t slices = 0;
};

uint64_t state_bytes_of(const GridState& grid) {
  const DecodedKernel& kernel = *grid.kernel;
  const uint64_t warp = kernel.file_bytes + kernel.state_count * sizeof(RegisterState) +
                        kernel.local_bytes * kLanes * 9 / 8;
  const uint64_t cta =
      grid.shared_bytes * 9 / 8 +
      grid.shared_bytes / SharedShadow::kGranule * sizeof(SharedShadow::Granule) +
      (grid.options.sanitize && grid.options.races ? RaceShadow::state_bytes(grid.shared_bytes)
                                                   : 0);
  return grid.ctas_per_cluster * (cta + grid.warps_per_cta * warp);
}

// Everything waits and no asynchronous operation is left. Lanes that wait at a reconvergence point
// are let go first; then it is a fault: an .aligned instruction that cannot assemble, or a
// deadlock.
bool resolve_standstill(Cluster& cluster) {
  // Lanes at an .aligned instruction whose missing lanes wait for them behind it: they can't
  // assemble.
  for (const auto& cta : cluster.ctas) {
    for (const auto& warp : cta->warps) {
      if (warp->splits.empty() || !std::all_of(warp->splits.begin(), warp->splits.end(),
                                               [](const Split& s) { return s.waits_aligned; }))
        continue;
      const Split& s = warp->splits.front();
      warp->fault(
          cluster.grid.kernel->ops[s.pc], -1, FaultKind::kDivergedAligned,
          fmt::format("lanes {:#010x} of live lanes {:#010x} execute it", s.mask, warp->live));
      return false;
    }
  }
  bool released = false;
  // Waits with a time limit end first, once each time something has happened.
  if (cluster.effects != cluster.effects_at_time_out) {
    cluster.effects_at_time_out = cluster.effects;
    for (const auto& cta : cluster.ctas) {
      for (const auto& warp : cta->warps) {
        for (Split& s : warp->splits) {
          if (!s.parked || !s.wait.may_time_out) continue;
          s.parked = false;
          s.timed_out = true;
          released = true;
        }
      }
    }
    if (released) return true;
  }
  for (const auto& cta : cluster.ctas) {
    for (const auto& warp : cta->warps) released |= warp->release_frames();
  }
  if (released) return true;
  const Warp* any = nullptr;
  const Split* waiting = nullptr;
  for (const auto& cta : cluster.ctas) {
    for (const auto& warp : cta->warps) {
      for (const Split& s : warp->splits) {
        const Op& op = cluster.grid.kernel->ops[s.pc];
        if (s.waits_aligned) {
          warp->fault(
              op, -1, FaultKind::kDivergedAligned,
              fmt::format(
                  "lanes {:#010x} of live lanes {:#010x} execute it; the others wait elsewhere:{}",
                  s.mask, warp->live, describe_waits(cluster)));
          return false;
        }
        if (any == nullptr) {
          any = warp.get();
          waiting = &s;
        }
      }
    }
  }
  if (any != nullptr) {
    const Op& op = cluster.grid.kernel->ops[waiting->pc];
    cluster.raise(any->origin(op), FaultKind::kDeadlock,
                  "every thread of the cluster waits:" + describe_waits(cluster));
  }
  return false;
}

class Worker {
 public:
  explicit Worker(GridState& grid) : grid_(grid), counts_(grid.kernel->ops.size()) {
    if (grid.options.statistics) statistics_.emplace(grid);
    if (grid.options.trace) trace_.emplace(grid);
    if (statistics_) observers_.add(*statistics_);
    if (trace_) observers_.add(*trace_);
    if (statistics_ || trace_) observer_ = &observers_;
  }

  // Runs a cluster until it ends, faults, spins or has had its slice.
  SliceEnd run(Cluster& cluster) {
    std::vector<Warp*> order;
    for (const auto& cta : cluster.ctas) {
      for (const auto& warp : cta->warps) {
        if (!warp->finished()) order.push_back(warp.get());
      }
    }
    uint64_t slice = 0, idle_ops = 0, seen_effects = cluster.effects;
    uint32_t idle_rounds = 0;
    while (true) {
      if (cluster.random_state != 0) shuffle(cluster, order);
      uint64_t ran = 0;
      for (Warp* warp : order) {
        if (runs_last(*warp)) continue;
        const uint32_t turn = cluster.random_state == 0
                                  ? kTurn
                                  : 1 + static_cast<uint32_t>(cluster.random() % (2 * kTurn));
        ran += run_warp(*warp, turn, counts_, observer_);
        if (cluster.fault || !bound_state(cluster, *warp)) return SliceEnd::kFault;
      }
      // Also of a cluster that has just ended: a grid of many small ones must reach its limits,
      // too.
      slice += ran;
      if (ran != 0 && reached_limit(cluster, order, ran)) return SliceEnd::kFault;
      std::erase_if(order, [](const Warp* w) { return w->finished(); });
      if (order.empty()) {
        drain_cluster(cluster);
        if (observer_ != nullptr) observer_->cluster_ended(cluster);
        return cluster.fault ? SliceEnd::kFault : SliceEnd::kFinished;
      }
      if (grid_.stop.load(std::memory_order_relaxed)) return SliceEnd::kFault;
      if (ran == 0) {
        if (cluster.engine.complete_one(cluster, cluster.random())) {
          ++cluster.steps;
        } else if ((ran = run_last_warps(order)) == 0 && !any_can_run(order) &&
                   !resolve_standstill(cluster)) {
          return SliceEnd::kFault;
        }
        if (cluster.fault) return SliceEnd::kFault;
        slice += ran;
        if (ran == 0 || order.empty()) continue;
        if (reached_limit(cluster, order, ran)) return SliceEnd::kFault;
      }
      // With a seed, effects also land early, whenever the coin says so.
      if (cluster.random_state != 0 && !cluster.engine.empty() && cluster.random() % 4 == 0) {
        cluster.engine.complete_one(cluster, cluster.random());
      }
      if (cluster.effects != seen_effects) {
        seen_effects = cluster.effects;
        idle_rounds = 0;
        idle_ops = 0;
      } else {
        idle_ops += ran;
        if (++idle_rounds >= kIdleRounds) {
          idle_rounds = 0;
          if (cluster.engine.complete_one(cluster, cluster.random()) || run_last_warps(order) != 0)
            idle_ops = 0;
          if (order.empty()) continue;
        }
      }
      if (cluster.fault) return SliceEnd::kFault;
      if (idle_ops >= kSpinOps) return SliceEnd::kSpinning;
      if (slice >= kSliceOps) return SliceEnd::kSliceOver;
    }
  }

  const std::vector<OpCount>& counts() const { return counts_; }
  void add_statistics(StatisticsCollector& total) const {
    if (statistics_) total.merge(*statistics_);
  }

 private:
  // Counts what ran against the limits of the grid. True after a fault, which names a warp that
  // could have gone on, if there is one.
  bool reached_limit(Cluster& cluster, const std::vector<Warp*>& order, uint64_t ran) {
    const uint64_t limit = grid_.options.step_limit;
    const bool far = grid_.steps.fetch_add(ran, std::memory_order_relaxed) + ran > limit;
    if (!far && !late()) return false;
    Origin origin;
    for (const Warp* warp : order) {
      if (warp->finished()) continue;
      origin = warp->origin(grid_.kernel->ops[warp->splits.front().pc]);
      break;
    }
    if (far) {
      cluster.raise(origin, FaultKind::kStepLimit,
                    fmt::format("{} warp instructions; a thread may spin for ever", limit));
    } else {
      cluster.raise(origin, FaultKind::kTimeLimit,
                    fmt::format("{} ms", grid_.options.time_limit_ms));
    }
    return true;
  }
  // The clock is looked at now and then.
  bool late() {
    if (grid_.options.time_limit_ms == 0 || ++rounds_ % 64 != 0) return false;
    return std::chrono::steady_clock::now() > grid_.deadline;
  }
  // A program that never waits must not use up the host's memory. False after a fault.
  static bool bound_state(Cluster& cluster, Warp& warp) {
    while ((cluster.engine.size() > kMaxInFlight || cluster.bytes_in_flight > kMaxBytesInFlight) &&
           cluster.engine.complete_oldest(cluster)) {
      if (cluster.fault) return false;
    }
    if (unwaited(warp) > 4 * kMaxInFlight) {
      for (AsyncGroups* groups : {&warp.cp_async_groups, &warp.bulk_groups, &warp.bulk_read_groups})
        groups->forget_complete(cluster.engine);
    }
    if (unwaited(warp) <= kMaxUnwaited && cluster.engine.size() <= kMaxUnwaited) return true;
    const Split* split = warp.splits.empty() ? nullptr : &warp.splits.front();
    cluster.raise(warp.origin(cluster.grid.kernel->ops[split == nullptr ? 0 : split->pc]),
                  FaultKind::kMemoryLimit,
                  fmt::format("more than {} asynchronous operations or groups that the warp does "
                              "not wait for",
                              kMaxUnwaited));
    return false;
  }
  static size_t unwaited(const Warp& warp) {
    const AsyncWarpState& s = *warp.async_state;
    return warp.cp_async_groups.size() + warp.bulk_groups.size() + warp.bulk_read_groups.size() +
           s.tcgen05.size() + s.loads.size() + s.stores.size() + s.load_registers.size() +
           s.wgmma.size();
  }
  bool runs_last(const Warp& warp) const {
    return warp.index < 64 && (grid_.options.last_warps >> warp.index & 1) != 0;
  }
  // One instruction of each warp that runs last, of those that can; how many that were.
  uint64_t run_last_warps(std::vector<Warp*>& order) {
    if (grid_.options.last_warps == 0) return 0;
    uint64_t ran = 0;
    for (Warp* warp : order) {
      if (runs_last(*warp)) ran += run_warp(*warp, 1, counts_, observer_);
      if (warp->cta.cluster.fault) break;
    }
    std::erase_if(order, [](const Warp* w) { return w->finished(); });
    return ran;
  }
  static void shuffle(Cluster& cluster, std::vector<Warp*>& order) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[cluster.random() % i]);
  }
  static bool any_can_run(const std::vector<Warp*>& order) {
    return std::any_of(order.begin(), order.end(), [](Warp* w) { return can_run(*w); });
  }

  GridState& grid_;
  std::vector<OpCount> counts_;
  uint64_t rounds_ = 0;
  std::optional<StatisticsCollector> statistics_;
  std::optional<TraceWriter> trace_;
  Observers observers_;
  Observer* observer_ = nullptr;  // null: nobody looks, and nothing is spent on it
};

// What the host threads share.
struct Queue {
  uint64_t clusters = 0;
  // Empty: clusters start in their own order. Else the order within each window of so many numbers
  // (what is left at the end keeps its own), so that a vast grid costs no memory.
  std::vector<uint32_t> order;
  std::atomic<size_t> next{0};
  std::mutex mutex;  // guards result and statistics
  GridResult result;
  StatisticsCollector statistics;

  uint64_t cluster_number(uint64_t i) const {
    const uint64_t window = order.size();
    if (window == 0 || i / window == clusters / window) return i;
    return i / window * window + order[i % window];
  }
};

std::array<uint32_t, 3> first_cta(const GridState& grid, uint64_t number) {
  const Launch& l = grid.launch;
  const uint64_t nx = l.grid[0] / l.cluster[0], ny = l.grid[1] / l.cluster[1];
  return {static_cast<uint32_t>(number % nx) * l.cluster[0],
          static_cast<uint32_t>(number / nx % ny) * l.cluster[1],
          static_cast<uint32_t>(number / (nx * ny)) * l.cluster[2]};
}

void report_fault(GridState& grid, Queue& queue, const Fault& fault) {
  const std::lock_guard lock(queue.mutex);
  if (queue.result.fault.empty()) queue.result.fault = describe_fault(grid, fault);
  grid.stop.store(true);
}

void run_worker(GridState& grid, Queue& queue) {
  Worker worker(grid);
  std::deque<ResidentCluster> resident;
  const uint64_t bytes = state_bytes_of(grid);
  const size_t max_resident = std::max<size_t>(1, kMaxResidentCtas / grid.ctas_per_cluster);
  uint64_t async_operations = 0, peak = 0;
  bool launch_next = true;
  while (!grid.stop.load(std::memory_order_relaxed)) {
    if ((launch_next || resident.empty()) && resident.size() < max_resident) {
      // With work at hand, more clusters start only while there is room for their state.
      const uint64_t total = grid.state_bytes.load() + bytes;
      if (total <= grid.options.memory_limit) {
        const size_t i = queue.next.fetch_add(1);
        if (i < queue.clusters) {
          peak = std::max(peak, grid.state_bytes.fetch_add(bytes) + bytes);
          const uint64_t number = queue.cluster_number(i);
          resident.push_front(
              {std::make_unique<Cluster>(grid, first_cta(grid, number), number), bytes, 0});
        }
      } else if (resident.empty() && grid.state_bytes.load() == 0) {
        Fault fault;
        fault.kind = FaultKind::kMemoryLimit;
        fault.detail = fmt::format("one cluster needs {} bytes of state, the limit is {}", bytes,
                                   grid.options.memory_limit);
        report_fault(grid, queue, fault);
        break;
      } else if (resident.empty()) {
        std::this_thread::yield();  // another host thread will free memory
        continue;
      }
    }
    if (resident.empty()) break;
    ResidentCluster current = std::move(resident.front());
    resident.pop_front();
    const SliceEnd end = worker.run(*current.cluster);
    launch_next = false;
    switch (end) {
      case SliceEnd::kFinished:
        async_operations += current.cluster->engine.issued();
        current.cluster.reset();
        grid.state_bytes.fetch_sub(bytes);
        launch_next = true;
        break;
      case SliceEnd::kFault:
        if (current.cluster->fault) report_fault(grid, queue, *current.cluster->fault);
        grid.state_bytes.fetch_sub(bytes);
        break;
      case SliceEnd::kSpinning:
        launch_next = true;
        resident.push_back(std::move(current));
        break;
      case SliceEnd::kSliceOver:
        // A loop that polls and writes looks busy; after a while others start beside it all the
        // same.
        launch_next = ++current.slices % 16 == 0;
        resident.push_back(std::move(current));
        break;
    }
  }
  const std::lock_guard lock(queue.mutex);
  GridResult& result = queue.result;
  for (size_t i = 0; i < result.counts.size(); ++i) {
    result.counts[i].issues += worker.counts()[i].issues;
    result.counts[i].lanes += worker.counts()[i].lanes;
  }
  worker.add_statistics(queue.statistics);
  result.async_operations += async_operations;
  result.peak_state_bytes = std::max(result.peak_state_bytes, peak);
}

}  // namespace

GridResult run_grid(GridState& grid) {
  const Launch& l = grid.launch;
  grid.deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(grid.options.time_limit_ms);
  Queue queue{.clusters = 0,
              .order = {},
              .next = 0,
              .mutex = {},
              .result = {},
              .statistics = StatisticsCollector(grid)};
  queue.result.counts.resize(grid.kernel->ops.size());
  const uint64_t clusters = uint64_t{l.grid[0]} * l.grid[1] * l.grid[2] / grid.ctas_per_cluster;
  queue.clusters = clusters;
  if (grid.options.seed != 0) {
    queue.order.resize(std::min(clusters, kOrderWindow));
    std::iota(queue.order.begin(), queue.order.end(), 0U);
    uint64_t state = grid.options.seed;
    for (size_t i = queue.order.size(); i > 1; --i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      std::swap(queue.order[i - 1], queue.order[(state >> 33) % i]);
    }
  }
  grid.claim_cluster = [&]() -> std::optional<std::array<uint32_t, 3>> {
    const size_t i = queue.next.fetch_add(1);
    if (i >= queue.clusters) return std::nullopt;
    return first_cta(grid, queue.cluster_number(i));
  };
  const uint64_t wanted = grid.options.trace ? 1 : grid.options.threads;
  const uint64_t threads = std::clamp<uint64_t>(wanted, 1, clusters);
  std::vector<std::thread> helpers;
  for (uint64_t t = 1; t < threads; ++t) helpers.emplace_back([&] { run_worker(grid, queue); });
  run_worker(grid, queue);
  for (std::thread& t : helpers) t.join();
  if (grid.options.statistics) queue.result.statistics = queue.statistics.finish();
  return std::move(queue.result);
}

}  // namespace jitgemm::sim
