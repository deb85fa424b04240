// SPDX-License-Identifier: Apache-2.0
// Blackwell: which tiles are legal, and which of them is best. The model counts cycles of one SM
// for one CTA's share of the work; docs/sm100-budget.md says where its rates come from and that
// none of them was measured here. It only ranks candidates: `jitgemm tune` may replace its choice.
#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

namespace jitgemm {
namespace {

constexpr int kLanes = 128;  // rows of tensor memory
constexpr int kTileK = 128;  // bytes of one swizzled row
constexpr int kStep = 32;    // along k, of one matrix instruction
constexpr int kTensorColumns = 512;
constexpr int kMaxStages = 10;
constexpr int kScaleStages = 8;
constexpr int kSlabBytes = 4096;  // device/sm100_store.cuh
constexpr int kSlabsPerWarp = 2;
constexpr int kWorkRingBytes = 4 * 32;  // WorkRing::kBytes of device/group_walk.cuh
constexpr int kControlWarps = 4;
constexpr int kFeedWarps = 4;

// Rates of one SM, per cycle; estimates.
constexpr double kMacs = 8192;  // dense FP8
constexpr double kSharedBytesPerCycle = 128;
constexpr double kL2BytesPerCycle = 64;
constexpr double kHbmBytesPerCycle = 29;  // 8 TB/s over 148 SMs at 1.85 GHz
constexpr double kTensorReadColumns = 1;  // of 128 lanes, fp32
constexpr double kPlainFeedBytes = 8;     // by four warps of byte-wise copies
constexpr double kCpAsyncFeedBytes = 32;
constexpr double kTileOverhead = 600;    // first loads and last store of a CTA's work
constexpr double kSplitOverhead = 1500;  // exchange of partial sums in a cluster

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// One candidate before it becomes a plan.
struct Choice {
  KernelFamily family = KernelFamily::kSm100;
  bool swap = false;
  int pair = 1;
  int split = 1;
  int share = 1;    // CTAs that fetch the column operand together
  int columns = 0;  // N of the matrix instruction
  int epilogue_warps = 4;
  int accumulators = 2;
  int stages = 0;
  bool tma_store = false;
  double cycles = 0;

  int cluster() const { return pair * split * share; }
  // Tiles of 128 lanes that a cluster has side by side.
  int lane_tiles() const { return pair * share; }
};

struct Inputs {
  const PlannerInput& input;
  Feed feed_a;
  Feed feed_b;

  bool feeds_tma() const { return feed_a == Feed::kTma && feed_b == Feed::kTma; }
  Feed lane_feed(const Choice& c) const { return c.swap ? feed_b : feed_a; }
  Feed column_feed(const Choice& c) const { return c.swap ? feed_a : feed_b; }
  // Tiles of one CTA or pair, over all groups.
  int64_t tiles(const Choice& c) const {
    const int lanes = kLanes * c.lane_tiles();
    return planned_windows(input, c.swap ? c.columns : lanes) *
           ceil_div(input.problem.n, c.swap ? lanes : c.columns);
  }
};

int accumulator_stride(const Choice& c) {
  return static_cast<int>(ceil_div(c.columns, 32)) * 32;
}

// Columns of tensor memory that the scales of one stage take.
int stage_scale_columns(const Choice& c) {
  return c.family == KernelFamily::kSm100Mx ? 4 * (1 + static_cast<int>(ceil_div(c.columns, 128)))
                                            : 0;
}

// Of the kernels that sum over all of K, which have two accumulators: whether both fit beside the
// scales of four stages. Where they do not, they overlap in what the epilogue reads first.
bool overlaps(const Choice& c) {
  return 2 * accumulator_stride(c) + 4 * stage_scale_columns(c) > kTensorColumns;
}
// How far apart they begin: as far as the scales of all stages leave room.
int whole_accumulator_stride(const Choice& c) {
  const int columns = accumulator_stride(c);
  if (!overlaps(c)) return columns;
  const int room = kTensorColumns - c.stages * stage_scale_columns(c) - columns;
  // What overlaps is whole chunks of an epilogue: of 64 columns at most.
  return c.columns % 64 == 0 ? room / 64 * 64 : room / 32 * 32;
}
int overlapping_columns(const Choice& c) {
  const bool exact = c.family == KernelFamily::kSm100;
  return exact ? 0 : std::max(0, c.columns - whole_accumulator_stride(c));
}

// Neighbouring columns that share a scale: Exact::kScaleRun.
int scale_run(const Choice& c, int group_n) {
  if (c.swap) return 1;
  if (group_n % c.columns == 0) return c.columns;
  if (c.columns % group_n == 0 && group_n % 16 == 0) return group_n;
  return 1;
}

int stage_bytes(const Choice& c) {
  int bytes = kLanes * kTileK + c.columns / c.pair * kTileK;
  if (c.family == KernelFamily::kSm100Mx) {
    bytes += 512 * (1 + static_cast<int>(ceil_div(c.columns, 128)));
  }
  return bytes + 16;  // its two barriers
}

// Shared memory beside the stages: the sums at Exact::kSharedBytes and Scaled::kSharedBytes.
int fixed_bytes(const Choice& c, const GemmProblem& p) {
  const int group_n = p.group_n;
  const int slabs = c.swap ? 0 : c.epilogue_warps * kSlabsPerWarp * kSlabBytes;
  const int exchange = c.split == 1 ? 0 : c.columns * kLanes * 4;
  int bytes = std::max(slabs, exchange) + 16 * c.accumulators + 32;
  if (c.family != KernelFamily::kSm100 && overlaps(c)) bytes += 16;  // one more barrier
  if (p.grouping.grouped()) bytes += kWorkRingBytes;
  if (c.family == KernelFamily::kSm100) {
    const int scales =
        kLanes + static_cast<int>(ceil_div(c.columns / scale_run(c, group_n), 4)) * 4;
    bytes += kScaleStages * (scales * 4 + 16);
  }
  return bytes;
}

// Stages that shared memory and, for the hardware-scaled kernel, tensor memory have room for.
int most_stages(const Choice& c, const PlannerInput& input) {
  const int room =
      arch_info(input.problem.arch).shared_bytes_per_cta - fixed_bytes(c, input.problem);
  int stages = std::min(kMaxStages, room / stage_bytes(c));
  if (c.family == KernelFamily::kSm100Mx) {
    // Half of an accumulator may overlap.
    const int columns = accumulator_stride(c);
    const int accumulators = overlaps(c) ? columns + columns / 2 : 2 * columns;
    stages = std::min(stages, (kTensorColumns - accumulators) / stage_scale_columns(c));
  }
  return stages;
}

// As the kernel splits K: whole stages and whole scale blocks, no CTA without work.
bool split_fits(const GemmProblem& p, int split) {
  const int64_t steps = ceil_div(p.k_bytes(), kStep);
  const int64_t unit = std::lcm<int64_t>(kTileK / kStep, p.group_k / kStep);
  return split <= ceil_div(steps, unit);
}

double feed_cycles(Feed feed, double bytes) {
  switch (feed) {
    case Feed::kTma: return bytes / kL2BytesPerCycle;
    case Feed::kCpAsync: return bytes / kCpAsyncFeedBytes;
    case Feed::kPlain: return bytes / kPlainFeedBytes;
  }
  return 0;
}

// A clock to turn cycles into time with, so that plans of all archs are told in one unit.
constexpr double kCyclesPerMicrosecond = 1900;

double estimate(const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const int64_t tiles = in.tiles(c);
  const int64_t slots = std::max<int64_t>(1, in.input.sm_count / c.cluster());
  const double waves = static_cast<double>(ceil_div(tiles, slots));
  const double columns = c.columns;
  const double own_columns = columns / c.pair;
  // One stage: 128 along k. Its operands pass through shared memory twice: in, and to the tensor
  // core.
  const double steps = 4;
  const double multiply =
      steps * std::max(kLanes * columns * kStep / kMacs,
                       2 * (kLanes + own_columns) * kStep / kSharedBytesPerCycle);
  const double lane_load = feed_cycles(in.lane_feed(c), kLanes * kTileK);
  const double column_load = feed_cycles(in.column_feed(c), own_columns * kTileK / c.share);
  const double load = in.feeds_tma() ? lane_load + column_load : std::max(lane_load, column_load);
  double stage = std::max(multiply, load);
  if (c.family == KernelFamily::kSm100) {
    const double blocks = std::max(1.0, static_cast<double>(kTileK) / p.group_k);
    // With per-column scales each pair of columns needs a product and a load of its own.
    const double per_column = scale_run(c, p.group_n) == 1 ? 1.5 : 1.0;
    stage = std::max(stage, std::min(blocks, 4.0) * columns * per_column / kTensorReadColumns);
  }
  const double stages = static_cast<double>(ceil_div(ceil_div(p.k_bytes(), kTileK), c.split));
  const double store = columns * (c.tma_store ? 2 : c.swap ? 3 : 6);
  // Who shares waits for the slowest: a preference for fewer CTAs a cluster, where nothing is
  // gained.
  if (c.share > 1) stage *= 1.01;
  double cycles = waves * stages * stage + (waves - 1) * 50 + kTileOverhead + store;
  // Products of the next tile wait for what its accumulator shares with this one's.
  cycles += (waves - 1) * overlapping_columns(c) * 2;
  if (c.split > 1) cycles += kSplitOverhead + columns * c.split * 2;
  // Weights and activations come from HBM once, whatever the tiles.
  const GroupLoad groups = group_load(in.input);
  const double bytes = static_cast<double>(groups.groups) * static_cast<double>(p.n) * p.k_bytes() +
                       static_cast<double>(groups.rows) * p.k_bytes();
  return std::max(cycles, bytes / (kHbmBytesPerCycle * in.input.sm_count) + kTileOverhead + store);
}

// What the CTAs of a cluster are to each other: a pair that shares its instructions, splits of k,
// or neighbours that share the column operand. Of equals the first is taken.
struct Cluster {
  int pair;
  int split;
  int share;
  constexpr int ctas() const { return pair * split * share; }
};
constexpr Cluster kClusters[] = {
    {1, 1, 1},
    {1, 2, 1},
    {1, 4, 1},
    {1, 8, 1},
    {2, 1, 1},
    {1, 1, 2},
    {1, 1, 4}
};

bool cluster_fits(const Cluster& cluster, bool swap, int columns, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const PlanOverrides& force = in.input.overrides;
  if (force.cluster && *force.cluster != cluster.ctas()) return false;
  if (force.split_k && *force.split_k != cluster.split) return false;
  if (cluster.ctas() == 1) return true;
  if (p.grouping.grouped()) return false;
  // A split CTA brings its own operands, however they are fed.
  if (cluster.split > 1) return swap && !p.batch_invariant && split_fits(p, cluster.split);
  return in.feeds_tma() && columns % (cluster.pair == 2 ? 32 : 8 * cluster.share) == 0;
}

// What follows from a choice of tile and cluster; nothing where no kernel has that.
std::optional<Choice> complete(Choice c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const PlanOverrides& force = in.input.overrides;
  const bool exact = c.family == KernelFamily::kSm100;
  // A second warp for each group of lanes where there are columns enough for two.
  c.epilogue_warps = exact && c.columns >= 64 && c.columns % 32 == 0 ? 8 : 4;
  const int warp_columns = c.columns / (c.epilogue_warps / 4);
  // Sums that an epilogue thread can hold beside what it needs for a partial sum: fewer where feed
  // warps take their share of registers, or where every column has a scale.
  const int most = !in.feeds_tma() ? 64 : scale_run(c, p.group_n) == 1 && !c.swap ? 96 : 128;
  if (exact && warp_columns > most) return std::nullopt;
  c.accumulators = exact ? std::min(8, kTensorColumns / accumulator_stride(c)) : 2;
  const int slab_columns = 128 / dtype_info(p.out_dtype).bytes;
  c.tma_store = !c.swap && store_for(p) == Store::kTma && warp_columns % slab_columns == 0;
  c.stages = most_stages(c, in.input);
  if (force.stages && *force.stages > c.stages) return std::nullopt;
  c.stages = force.stages.value_or(c.stages);
  if (c.stages < 2) return std::nullopt;
  c.cycles = estimate(c, in);
  return c;
}

// Every legal choice for one family.
std::vector<Choice> choices(KernelFamily family, const Inputs& in) {
  const PlanOverrides& force = in.input.overrides;
  std::vector<Choice> list;
  for (const bool swap : {false, true}) {
    if (swap && in.input.problem.batch_invariant) continue;
    if (force.tile_m && !swap && *force.tile_m != kLanes) continue;
    if (force.tile_n && swap && *force.tile_n != kLanes) continue;
    for (int columns = 16; columns <= (swap ? 128 : 256); columns += 16) {
      const auto forced = swap ? force.tile_m : force.tile_n;
      if (forced && *forced != columns) continue;
      for (const Cluster& cluster : kClusters) {
        if (!cluster_fits(cluster, swap, columns, in)) continue;
        Choice c;
        c.family = family;
        c.swap = swap;
        c.pair = cluster.pair;
        c.split = cluster.split;
        c.share = cluster.share;
        c.columns = columns;
        if (const std::optional<Choice> whole = complete(c, in)) list.push_back(*whole);
      }
    }
  }
  return list;
}

KernelFamily family_for(const PlannerInput& input) {
  if (input.overrides.family) return *input.overrides.family;
  const GemmProblem& p = input.problem;
  if (!p.scaled()) return KernelFamily::kSm100Plain;
  return p.scale_dtype == DType::kF8E8M0 || p.scale_values == ScaleValues::kPowerOfTwo
             ? KernelFamily::kSm100Mx
             : KernelFamily::kSm100;
}

std::string family_reason(const Choice& c, const PlannerInput& input) {
  if (c.family == KernelFamily::kSm100Plain) {
    return "operands of 16 bits have no scales: the tensor core sums over all of k";
  }
  if (c.family == KernelFamily::kSm100) {
    return "scales are arbitrary fp32: each scale block's sum leaves tensor memory and is promoted "
           "in fp32 registers, exactly as written";
  }
  if (input.problem.scale_dtype == DType::kF8E8M0) {
    return "scales are F8_E8M0: the tensor core applies them itself";
  }
  return "scales are declared powers of two: the tensor core applies them itself, as UE8M0";
}

void add_reasons(GemmPlan& plan, const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  std::vector<std::string>& reasons = plan.reasons;
  reasons.push_back(family_reason(c, in.input));
  const int64_t tiles = in.tiles(c);
  if (p.grouping.grouped()) reasons.push_back(group_reason(in.input, plan.tile_m));
  const int64_t slots = std::max<int64_t>(1, in.input.sm_count / c.cluster());
  reasons.push_back(fmt::format(
      "{} x {} tiles: {} of them in {} wave(s) on {} SMs; the model's estimate is "
      "{:.0f} cycles",
      plan.tile_m * (c.swap ? 1 : c.lane_tiles()), plan.tile_n * (c.swap ? c.lane_tiles() : 1),
      tiles, ceil_div(tiles, slots), in.input.sm_count, c.cycles));
  if (c.swap) {
    reasons.push_back(fmt::format(
        "operands swapped: weights take the 128 lanes, the {} tokens the side that is {} wide",
        in.input.planned_m, c.columns));
  }
  if (c.pair == 2) {
    reasons.push_back(
        "CTA pair: each CTA loads half of the column operand, so that shared memory and L2 carry "
        "less for every product");
  }
  if (c.share > 1) {
    reasons.push_back(fmt::format(
        "clusters of {} share their tiles of {} by multicast: less is read from L2, and a stage is "
        "free once all have multiplied it",
        c.share, c.swap ? "a" : "b"));
  }
  if (c.split > 1) {
    reasons.push_back(
        fmt::format("k split {} ways over the CTAs of a cluster: {} tiles fill {} SMs badly; "
                    "partial sums are added "
                    "in the order of rank",
                    c.split, tiles, in.input.sm_count));
  }
  if (p.batch_invariant) {
    reasons.push_back("batch invariant: operands keep their sides and k isn't split for any m");
  }
  if (c.family == KernelFamily::kSm100) {
    reasons.push_back(fmt::format(
        "{} accumulators in tensor memory: the tensor core runs that far ahead of promotion, over "
        "tile ends",
        c.accumulators));
  } else {
    reasons.push_back(
        "2 accumulators in tensor memory: a tile's epilogue overlaps the next tile's products" +
        (overlapping_columns(c) == 0
             ? std::string()
             : fmt::format(" once it has read the {} columns that both have",
                           overlapping_columns(c))));
  }
  reasons.push_back(fmt::format("{} stages of {} bytes: as many as fit, up to {}", c.stages,
                                stage_bytes(c), kMaxStages));
  const auto feed_reason = [&](std::string_view name, Feed feed, int64_t row_bytes) {
    if (feed == Feed::kTma) return;
    reasons.push_back(fmt::format(
        "{} is fed by {}: rows {} bytes apart with a base aligned to {} are illegal for TMA", name,
        feed_name(feed), row_bytes, p.alignment));
  };
  feed_reason("a", in.feed_a, p.lda_or_dense());
  feed_reason("b", in.feed_b, p.ldb_or_dense());
  if (!c.tma_store) {
    reasons.push_back(c.swap ? "direct store: with swapped operands a warp's results are contiguous"
                      : store_for(p) == Store::kTma
                          ? "direct store: a warp's columns are no multiple of a 128-byte slab"
                          : "direct store: output rows are not 16-byte aligned");
  }
}

GemmPlan to_plan(const Choice& c, const Inputs& in) {
  const PlannerInput& input = in.input;
  GemmPlan plan;
  plan.problem = input.problem;
  plan.family = c.family;
  plan.planned_m = input.planned_m;
  plan.estimate_us = c.cycles / kCyclesPerMicrosecond;
  plan.tile_m = c.swap ? c.columns : kLanes;
  plan.tile_n = c.swap ? kLanes : c.columns;
  plan.tile_k = kTileK;
  plan.stages = c.stages;
  int warps = kControlWarps + c.epilogue_warps + (in.feeds_tma() ? 0 : kFeedWarps);
  // Who finds the tiles of groups: the control warp that is idle or, where none is, one more.
  int schedule_warp = -1;
  if (input.problem.grouping.grouped()) {
    schedule_warp = c.family != KernelFamily::kSm100Mx ? kControlWarps - 1 : warps++;
  }
  plan.threads = 32 * warps;
  plan.cluster = c.cluster();
  plan.split_k = c.split;
  plan.grid = GridKind::kPersistent;
  plan.feed_a = in.feed_a;
  plan.feed_b = in.feed_b;
  plan.store = c.tma_store ? Store::kTma : Store::kDirect;
  const TensorMapPlan lane_map{in.lane_feed(c) == Feed::kTma, kLanes, kTileK, Swizzle::k128B};
  const TensorMapPlan column_map{in.column_feed(c) == Feed::kTma, c.columns / c.pair / c.share,
                                 kTileK, Swizzle::k128B};
  plan.a_map = c.swap ? column_map : lane_map;
  plan.b_map = c.swap ? lane_map : column_map;
  plan.out_map = {c.tma_store, 32, 128 / dtype_info(input.problem.out_dtype).bytes, Swizzle::k128B};
  plan.shared_bytes = fixed_bytes(c, input.problem) + c.stages * stage_bytes(c);
  plan.extra_fields = {
      {"kSwap",          c.swap ? 1 : 0  },
      {"kPair",          c.pair          },
      {"kShare",         c.share         },
      {"kEpilogueWarps", c.epilogue_warps},
      {"kAccumulators",  c.accumulators  },
      {"kScheduleWarp",  schedule_warp   },
  };
  if (c.family == KernelFamily::kSm100) {
    plan.extra_fields.emplace_back("kScaleStages", kScaleStages);
  } else {
    plan.extra_fields.emplace_back("kAccumulatorStride", whole_accumulator_stride(c));
  }
  add_reasons(plan, c, in);
  return plan;
}

Inputs inputs_for(const PlannerInput& input) {
  return {input, feed_a_for(input.problem), feed_b_for(input.problem)};
}

// The hardware's scales are one byte; arbitrary fp32 scales need the other kernel, and bytes this
// one.
Status check_family(KernelFamily family, const GemmProblem& p) {
  if (p.scaled() == (family == KernelFamily::kSm100Plain)) {
    return unsupported(fmt::format("kernel: '{}' is for operands {} scales",
                                   kernel_family_info(family).name,
                                   p.scaled() ? "without" : "with"));
  }
  if (family == KernelFamily::kSm100 && p.scale_dtype == DType::kF8E8M0) {
    return unsupported("kernel: 'sm100' takes F32 scales; F8_E8M0 is for 'sm100_mx'");
  }
  if (family == KernelFamily::kSm100Mx && p.scale_dtype == DType::kF32 &&
      p.scale_values != ScaleValues::kPowerOfTwo) {
    return unsupported(
        "kernel: 'sm100_mx' applies powers of two only, and a_scales and b_scales are not declared "
        "to be");
  }
  return ok_status();
}

}  // namespace

std::vector<GemmPlan> sm100_candidates(const PlannerInput& input) {
  const Inputs in = inputs_for(input);
  std::vector<GemmPlan> plans;
  const KernelFamily family = family_for(input);
  if (!check_family(family, input.problem).ok()) return plans;
  for (const Choice& c : choices(family, in)) plans.push_back(to_plan(c, in));
  return plans;
}

Result<GemmPlan> plan_sm100(const PlannerInput& input) {
  const KernelFamily family = family_for(input);
  JITGEMM_TRY(check_family(family, input.problem));
  const Inputs in = inputs_for(input);
  const std::vector<Choice> list = choices(family, in);
  if (list.empty()) {
    return unsupported(
        "overrides: no kernel has that combination; tiles are 128 x 16..256 or, with swapped "
        "operands, 16..128 x 128, in steps of 16 (narrower where each column has a scale of its "
        "own or rows are illegal for TMA); pairs and clusters that share an operand need TMA-legal "
        "rows; k is split 2, 4 or 8 ways for swapped operands");
  }
  // Among equals the first: fewer CTAs a cluster, narrower tiles.
  const Choice best =
      *std::min_element(list.begin(), list.end(),
                        [](const Choice& x, const Choice& y) { return x.cycles < y.cycles; });
  return to_plan(best, in);
}

}  // namespace jitgemm
