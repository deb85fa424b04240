// SPDX-License-Identifier: Apache-2.0
// Hopper: which tiles are legal, and which of them is best. The model counts cycles of the busiest
// SM; its constants were fitted to measurements on one H200 (docs/performance.md). It only ranks
// candidates: a tuning database may replace its choice.
#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace jitgemm {
namespace {

constexpr int kTileK = 128;  // bytes of one swizzled row
constexpr int kMaxStages = 12;
constexpr int kMaxSplit = 8;  // the largest cluster that every device can run
// Registers of a math thread for sums and the current k-block's products; the rest of its 232 (or
// 255 where one math warpgroup works alone) are for addresses and scales.
constexpr int kSumRegisters = 192;
constexpr int kSumRegistersParts = 160;  // where a stage holds several scale blocks
constexpr int64_t kMaxSwapM = 256;       // beyond, swapping only costs

// Cycles at the clock that the measurements ran at, about 1.7 GHz.
constexpr double kMacs = 4096;           // dense FP8, of one SM
constexpr double kTensorShare = 0.80;    // of that, with two warpgroups taking turns
constexpr double kBlockLatency = 150;    // of a k-block in one warpgroup: barriers, wgmma, its wait
constexpr double kPromoteColumn = 0.75;  // of one column of 64 rows
constexpr double kPromoteScaledColumn = 1.5;  // the same where each column has a scale of its own
constexpr double kHbmBytes = 19;              // of one SM's share of 4.3 TB/s
constexpr double kL2Bytes = 40;               // into one SM
constexpr double kCpAsyncBytes = 24;          // fed by three warps, 4 bytes a lane
constexpr double kPlainBytes = 6;             // fed by three warps, byte by byte
constexpr double kLaunch = 5000;              // launch, first loads, last stores
constexpr double kStoreColumn = 5;            // of one column of 64 rows
constexpr double kSplitOverhead = 900;        // two meetings of a cluster and the sums

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// One candidate before it becomes a plan. Rows are those of wgmma: of m, or, swapped, of n.
struct Choice {
  bool swap = false;
  int rows = 0;
  int columns = 0;
  int warpgroup_rows = 1;
  int warpgroup_columns = 1;
  int split = 1;
  int stages = 0;
  double cycles = 0;

  int warpgroups() const { return warpgroup_rows * warpgroup_columns; }
  int group_columns() const { return columns / warpgroup_columns; }
  int waves() const { return rows / warpgroup_rows / 64; }
};

struct Inputs {
  const PlannerInput& input;
  Feed feed_a;
  Feed feed_b;

  Feed row_feed(const Choice& c) const { return c.swap ? feed_b : feed_a; }
  Feed column_feed(const Choice& c) const { return c.swap ? feed_a : feed_b; }
  int64_t rows(const Choice& c) const { return c.swap ? input.problem.n : input.planned_m; }
  int64_t columns(const Choice& c) const { return c.swap ? input.planned_m : input.problem.n; }
};

// Config::kSharedBytes of gemm_sm90.cu.
int64_t shared_bytes(const Choice& c, const GemmProblem& p) {
  const int row_group = c.swap ? p.group_n : 1;
  const int column_group = c.swap ? 1 : p.group_n;
  const int row_scales = row_group % c.rows == 0 ? 1 : c.rows;
  const int common = std::gcd(c.group_columns(), column_group);
  const int column_scales = c.columns / (common % 8 == 0 ? common : 1);
  const int64_t slots = 1 + ceil_div(int64_t{c.stages} * kTileK, 4 * int64_t{p.group_k});
  return c.stages * (int64_t{c.rows + c.columns} * kTileK + 16) +
         slots * (16 * (row_scales + column_scales) + 16);
}

// Partial sums lie over the stages: Config::kPartialBytes.
bool partials_fit(const Choice& c) {
  const int tile_m = c.swap ? c.columns : c.rows;
  const int tile_n = c.swap ? c.rows : c.columns;
  return c.split == 1 || 4 * tile_m * (tile_n + 4) <= c.stages * (c.rows + c.columns) * kTileK;
}

double feed_cycles(Feed feed, double bytes) {
  switch (feed) {
    case Feed::kTma: return bytes / kL2Bytes;
    case Feed::kCpAsync: return bytes / kCpAsyncBytes;
    case Feed::kPlain: return bytes / kPlainBytes;
  }
  return 0;
}

double estimate(const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const int64_t tiles = ceil_div(in.rows(c), c.rows) * ceil_div(in.columns(c), c.columns);
  const int64_t slots = std::max<int64_t>(1, in.input.sm_count / c.split);
  const double turns = static_cast<double>(ceil_div(tiles, slots));
  const double blocks = static_cast<double>(ceil_div(ceil_div(p.k, kTileK), c.split));
  const double parts = std::max(1.0, static_cast<double>(kTileK) / p.group_k);
  // A warpgroup multiplies, waits and promotes in turn; two of them fill the tensor cores.
  const double multiply = double{1} * c.rows * c.columns * kTileK / kMacs;
  const bool scale_a_column = (c.swap ? 1 : p.group_n) % 8 != 0;
  const double promote = scale_a_column ? kPromoteScaledColumn : kPromoteColumn;
  const double chain = c.waves() * (64.0 * c.group_columns() * kTileK / kMacs +
                                    parts * (kBlockLatency + promote * c.group_columns()));
  const double load = feed_cycles(in.row_feed(c), double{1} * c.rows * kTileK) +
                      feed_cycles(in.column_feed(c), double{1} * c.columns * kTileK);
  const double block = std::max({multiply / kTensorShare, chain, load});
  const double store = c.waves() * kStoreColumn * c.group_columns();
  double cycles = turns * (blocks * block + store);
  // Each operand comes from memory once at least.
  const double bytes =
      static_cast<double>(p.n) * p.k + static_cast<double>(in.input.planned_m) * p.k +
      static_cast<double>(in.input.planned_m) * p.n * dtype_info(p.out_dtype).bytes;
  cycles = std::max(cycles, bytes / (kHbmBytes * in.input.sm_count));
  if (c.split > 1) cycles += kSplitOverhead;
  return cycles + kLaunch;
}

bool finish(Choice& c, const Inputs& in) {
  const PlannerInput& input = in.input;
  const GemmProblem& p = input.problem;
  const int limit = arch_info(p.arch).shared_bytes_per_cta;
  const int registers = p.group_k % kTileK == 0 ? kSumRegisters : kSumRegistersParts;
  if ((c.waves() + 1) * c.group_columns() / 2 > registers) return false;
  if (c.group_columns() % (c.swap ? 8 : 16) != 0) return false;
  if (c.group_columns() > 64 && c.group_columns() % 16 != 0) return false;
  c.stages = kMaxStages;
  while (c.stages > 1 && shared_bytes(c, p) > limit) --c.stages;
  if (input.overrides.stages) {
    if (*input.overrides.stages > c.stages) return false;
    c.stages = *input.overrides.stages;
  }
  if (c.stages < 2 || shared_bytes(c, p) > limit || !partials_fit(c)) return false;
  c.cycles = estimate(c, in);
  return true;
}

struct Shape {
  int rows;
  int warpgroup_rows;
  int warpgroup_columns;
};

// Every legal choice.
std::vector<Choice> choices(const Inputs& in) {
  const PlannerInput& input = in.input;
  const GemmProblem& p = input.problem;
  const PlanOverrides& force = input.overrides;
  constexpr std::array<Shape, 5> kShapes = {
      {{64, 1, 1}, {64, 1, 2}, {128, 2, 1}, {128, 1, 2}, {256, 2, 1}}
  };
  const int64_t k_blocks = ceil_div(p.k, kTileK);
  std::vector<Choice> list;
  for (const bool swap : {false, true}) {
    if (swap && (p.batch_invariant || input.planned_m > kMaxSwapM)) continue;
    if (force.family && (*force.family == KernelFamily::kSm90Swap) != swap) continue;
    for (const Shape& shape : kShapes) {
      const auto forced_rows = swap ? force.tile_n : force.tile_m;
      const auto forced_columns = swap ? force.tile_m : force.tile_n;
      if (forced_rows && *forced_rows != shape.rows) continue;
      if (swap && shape.rows > 128) continue;
      for (int columns = 8; columns <= 256; columns += 8) {
        if (forced_columns && *forced_columns != columns) continue;
        if (columns % shape.warpgroup_columns != 0) continue;
        for (int split = 1; split <= kMaxSplit; ++split) {
          if (force.split_k && *force.split_k != split) continue;
          if (force.cluster && *force.cluster != split) continue;
          if (split > 1 && (p.batch_invariant || k_blocks < 2 * split)) continue;
          Choice c;
          c.swap = swap;
          c.rows = shape.rows;
          c.columns = columns;
          c.warpgroup_rows = shape.warpgroup_rows;
          c.warpgroup_columns = shape.warpgroup_columns;
          c.split = split;
          // k is split to occupy idle SMs only.
          const int64_t tiles = ceil_div(in.rows(c), c.rows) * ceil_div(in.columns(c), c.columns);
          if (split > 1 && !force.split_k && tiles * split > input.sm_count) continue;
          if (finish(c, in)) list.push_back(c);
        }
      }
    }
  }
  return list;
}

void add_reasons(GemmPlan& plan, const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  std::vector<std::string>& reasons = plan.reasons;
  const int64_t tiles = ceil_div(in.rows(c), c.rows) * ceil_div(in.columns(c), c.columns);
  const int64_t slots = std::max<int64_t>(1, in.input.sm_count / c.split);
  reasons.push_back(fmt::format(
      "{} x {} tiles: {} of them in {} wave(s) on {} SMs; the model's estimate is {:.0f} cycles, "
      "the "
      "least of all legal tiles",
      plan.tile_m, plan.tile_n, tiles, ceil_div(tiles, slots), in.input.sm_count, c.cycles));
  if (c.swap) {
    reasons.push_back(fmt::format(
        "operands swapped: weights take the side of wgmma that is a multiple of 64, the "
        "{} rows of a the side that is {} wide",
        in.input.planned_m, c.columns));
  }
  reasons.push_back(
      c.warpgroups() == 1
          ? std::string("one math warpgroup: the tile is too small for two")
          : fmt::format("two math warpgroups, beside each other along {}: one promotes while the "
                        "other multiplies",
                        (c.warpgroup_rows == 2) != c.swap ? "m" : "n"));
  if (c.split > 1) {
    reasons.push_back(fmt::format(
        "k split over {} CTAs of a cluster: {} tiles alone would leave SMs idle; partial sums are "
        "added in the order of the splits, so a row's bits depend on this number and not on timing",
        c.split, tiles));
  }
  if (p.batch_invariant) {
    reasons.push_back("batch invariant: operands keep their sides and k isn't split for any m");
  }
  reasons.push_back(
      fmt::format("{} stages: as many as fit beside the scales, up to {}", c.stages, kMaxStages));
  const auto feed_reason = [&](std::string_view name, Feed feed, int64_t row_bytes) {
    if (feed == Feed::kTma) return;
    reasons.push_back(fmt::format(
        "{} is fed by {}: rows {} bytes apart with a base aligned to {} are illegal for TMA", name,
        feed_name(feed), row_bytes, p.alignment));
  };
  feed_reason("a", in.feed_a, p.lda_or_dense());
  feed_reason("b", in.feed_b, p.ldb_or_dense());
  if (store_for(p) != Store::kTma) {
    reasons.push_back("single-element stores: output rows are not 16-byte aligned");
  }
}

GemmPlan to_plan(const Choice& c, const Inputs& in) {
  const PlannerInput& input = in.input;
  GemmPlan plan;
  plan.problem = input.problem;
  plan.family = c.swap ? KernelFamily::kSm90Swap : KernelFamily::kSm90;
  plan.planned_m = input.planned_m;
  plan.tile_m = c.swap ? c.columns : c.rows;
  plan.tile_n = c.swap ? c.rows : c.columns;
  plan.tile_k = kTileK;
  plan.stages = c.stages;
  plan.threads = 128 * (1 + c.warpgroups());
  plan.cluster = c.split;
  plan.split_k = c.split;
  plan.grid = GridKind::kPersistent;
  plan.feed_a = in.feed_a;
  plan.feed_b = in.feed_b;
  plan.store = Store::kDirect;
  plan.a_map = {in.feed_a == Feed::kTma, plan.tile_m, kTileK, Swizzle::k128B};
  plan.b_map = {in.feed_b == Feed::kTma, plan.tile_n, kTileK, Swizzle::k128B};
  plan.shared_bytes = static_cast<int32_t>(shared_bytes(c, input.problem));
  // Weights that stay in L2 are walked whole for each band of rows, so that a is read once;
  // larger ones in bands.
  constexpr int64_t kResidentBytes = int64_t{24} << 20;
  const bool resident = input.problem.n * input.problem.k <= kResidentBytes;
  const int64_t column_tiles = ceil_div(in.columns(c), c.columns);
  plan.extra_fields = {
      {"kSwap",             c.swap ? 1 : 0                },
      {"kWarpgroupRows",    c.warpgroup_rows              },
      {"kWarpgroupColumns", c.warpgroup_columns           },
      {"kShare",            0                             },
      {"kWalkColumns",      resident ? std::max<int64_t>(1, column_tiles) : 16},
      {"kStoreVector",                   store_for(input.problem) == Store::kTma ? 1 : 0                                   },
  };
  add_reasons(plan, c, in);
  return plan;
}

Inputs inputs_for(const PlannerInput& input) {
  const GemmProblem& p = input.problem;
  return {input, feed_for(p.lda_or_dense(), p.alignment), feed_for(p.ldb_or_dense(), p.alignment)};
}

}  // namespace

std::vector<GemmPlan> sm90_candidates(const PlannerInput& input) {
  std::vector<GemmPlan> plans;
  if (input.problem.scale_dtype != DType::kF32) return plans;
  const Inputs in = inputs_for(input);
  for (const Choice& c : choices(in)) plans.push_back(to_plan(c, in));
  return plans;
}

Result<GemmPlan> plan_sm90(const PlannerInput& input) {
  if (input.problem.scale_dtype != DType::kF32) {
    return unsupported("scale_dtype: the sm_90a kernels take F32 scales only");
  }
  const Inputs in = inputs_for(input);
  const std::vector<Choice> list = choices(in);
  if (list.empty()) {
    return unsupported(
        "overrides: no kernel has that combination; tiles are 64, 128 or 256 x 16..256 in steps of "
        "16 or, with swapped operands, 8..256 x 64 or 128; k is split up to 8 ways, clusters are "
        "the "
        "splits of a tile");
  }
  // Among equals the first: operands on their own sides, smaller tiles, fewer splits.
  const Choice best =
      *std::min_element(list.begin(), list.end(),
                        [](const Choice& x, const Choice& y) { return x.cycles < y.cycles; });
  return to_plan(best, in);
}

}  // namespace jitgemm
