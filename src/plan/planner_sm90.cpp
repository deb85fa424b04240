// SPDX-License-Identifier: Apache-2.0
// Hopper: which tiles are legal, and which of them is best. The model reckons the time of the
// busiest SM; its constants were fitted to measurements on one H200. It only ranks candidates: a
// tuning database may replace its choice.
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
constexpr int kShareCluster = 2;
constexpr int kMostNames = 256;  // GroupWalk::kPage
// Registers of a math thread for sums and the current k-block's products; the rest of its share is
// for addresses and scales.
constexpr int kSumRegisters = 192;       // of 232, or 255 where one math warpgroup works alone
constexpr int kSumRegistersThree = 128;  // of 152, with three math warpgroups
constexpr int kSumRegistersParts = 160;  // where a stage holds several scale blocks
// Of groups, with swapped operands or where a warp copies scales; and with both, where others copy
// codes.
constexpr int kSumRegistersGrouped = 160;
constexpr int kSumRegistersGroupedCopies = 96;
constexpr int64_t kMaxSwapM = 256;              // beyond, swapping only costs
constexpr int kStoreBufferBytes = 3 * 16 * 64;  // of a math warp, for TMA stores
constexpr int kWorkRingBytes = 4 * 32;          // WorkRing::kBytes of device/group_walk.cuh

// The model's constants, fitted to 127 measurements on one H200; times in nanoseconds.
constexpr double kLaunch = 2650;  // launch, first loads, last stores
constexpr double kChain = 80;     // cycles of a k-block in one warpgroup: barriers, wgmma, its wait
constexpr double kChainBeside = 210;    // more where two warpgroups share the rows
constexpr double kPromoteColumn = 0.2;  // cycles of one column of 64 rows
constexpr double kScaledColumn = 0.2;   // more where each column has a scale of its own
constexpr double kScaleRun = 2.6;       // cycles of each run of columns that shares a scale
constexpr double kClock = 1.94;         // cycles a nanosecond that these amount to
constexpr double kTensor = 0.376;       // of 4096 products, several warpgroups taking turns
constexpr double kTensorBlock = 159;    // of a k-block beside them
constexpr double kL2Bytes = 13400;      // a nanosecond, into all SMs
constexpr double kSmBytes = 208;        // into one SM
constexpr double kHbmBytes = 3660;
constexpr double kMemoryMix = 0.374;  // how much of the shorter of memory and compute shows
constexpr double kStoreColumn = 17.3;
constexpr double kSplit = 200;         // two meetings of a cluster and the sums
constexpr double kSplitEach = 1210;    // of every further split
constexpr double kShareGain = 0.985;   // of sharing an operand's tiles
constexpr int64_t kLongRun = 12;       // turns, from which on it shows
constexpr double kCpAsyncBytes = 7.5;  // a nanosecond, by three warps, 4 bytes a lane
constexpr double kPlainBytes = 2;      // the same, byte by byte
constexpr double kScaleCopy = 0.45;    // of a scale of a k-block that comes alone, by 4 bytes

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// What the CTAs of a cluster share: the tiles of the columns (they are neighbours along the rows),
// or those of the rows. The numbers are those of Spec::kShare.
enum class Share : int { kNone = 0, kColumns = 1, kRows = 2 };

// One candidate before it becomes a plan. Rows are those of wgmma: of m, or, swapped, of n.
struct Choice {
  bool swap = false;
  int rows = 0;
  int columns = 0;
  int warpgroup_rows = 1;
  int warpgroup_columns = 1;
  int split = 1;
  Share share = Share::kNone;
  bool tma_store = false;
  int stages = 0;
  double time = 0;

  int warpgroups() const { return warpgroup_rows * warpgroup_columns; }
  int group_columns() const { return columns / warpgroup_columns; }
  int waves() const { return rows / warpgroup_rows / 64; }
  int cluster() const { return shares() ? kShareCluster : split; }
  bool shares() const { return share != Share::kNone; }
  bool shares_columns() const { return share == Share::kColumns; }
  bool shares_rows() const { return share == Share::kRows; }
  bool shares_a() const { return swap ? shares_columns() : shares_rows(); }
  bool shares_b() const { return swap ? shares_rows() : shares_columns(); }
  // The rows and columns of one unit of work: a tile, or the tiles of a sharing cluster.
  int unit_rows() const { return rows * (shares_columns() ? kShareCluster : 1); }
  int unit_columns() const { return columns * (shares_rows() ? kShareCluster : 1); }
};

struct Inputs {
  const PlannerInput& input;
  Feed feed_a;
  Feed feed_b;

  Feed row_feed(const Choice& c) const { return c.swap ? feed_b : feed_a; }
  Feed column_feed(const Choice& c) const { return c.swap ? feed_a : feed_b; }
  // Units of work along m, over all groups, and along n.
  int64_t units_m(const Choice& c) const {
    return planned_windows(input, c.swap ? c.unit_columns() : c.unit_rows());
  }
  int64_t units_n(const Choice& c) const {
    return ceil_div(input.problem.n, c.swap ? c.unit_rows() : c.unit_columns());
  }
};

// Config::kScheduled: whether a warp finds the tiles of groups.
bool scheduled(const GemmProblem& p) {
  const Grouping& g = p.grouping;
  const bool one_group =
      g.layout == GroupLayout::kMasked && g.groups == 1 && !g.zero_ungrouped && !g.count_invalid;
  return g.grouped() && !one_group;
}

// Of sm90_config.cuh.
int groups_spanned(int count, int group) {
  if (group % count == 0) return 1;
  return count % group == 0 ? count / group : static_cast<int>(ceil_div(count - 1, group)) + 1;
}

// Of sm90_config.cuh.
int64_t scale_slots(const Choice& c, const GemmProblem& p, bool ahead) {
  const int64_t k_blocks = ceil_div(p.k_bytes(), kTileK);
  const int64_t quad_stages = 4 * int64_t{p.group_k} / kTileK;
  int64_t most = 0;
  for (int rank = 0; rank < c.split; ++rank) {
    const int64_t begin = k_blocks * rank / c.split;
    const int64_t end = k_blocks * (rank + 1) / c.split;
    const int64_t near_end = (end - c.stages) / quad_stages * quad_stages;
    for (int64_t start = begin; start < end;) {
      int64_t whole = 0;
      int64_t held = 0;
      for (int64_t at = start;; ++whole) {
        const int64_t next = std::min((at / quad_stages + 1) * quad_stages, end);
        held += next - at;
        if (held > c.stages - 1) break;
        at = next < end ? next : begin;
      }
      most = std::max(most, whole);
      start = std::max((start / quad_stages + 1) * quad_stages, near_end);
    }
  }
  return (ahead ? 3 : 2) + most;
}

// How scales reach shared memory. Maps are of rows of whole quads, and one spans all groups, which
// must be whole rows apart, and no more of them than a map's 32-bit coordinates count.
Feed scale_feed(const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const auto spans = [&](int64_t group_stride, int64_t ld) {
    return group_stride % ld == 0 &&
           group_stride / ld <= INT32_MAX / std::max<int64_t>(p.grouping.groups, 1);
  };
  const bool legal = p.scaled() && p.scale_dtype == DType::kF32 &&
                     p.a_scale_major == ScaleMajor::kRow && p.b_scale_major == ScaleMajor::kRow &&
                     p.a_scale_ld_or_dense() % 4 == 0 && p.b_scale_ld_or_dense() % 4 == 0 &&
                     spans(p.grouping.a_scale_stride, p.a_scale_ld_or_dense()) &&
                     spans(p.grouping.b_scale_stride, p.b_scale_ld_or_dense()) &&
                     in.feed_a == Feed::kTma && in.feed_b == Feed::kTma;
  return legal ? Feed::kTma : Feed::kCpAsync;
}

// Config::kSharedBytes of gemm_sm90.cu.
int64_t shared_bytes(const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const auto scale_bytes = [](int64_t entries) { return ceil_div(16 * entries, 128) * 128; };
  const int64_t slot = !p.scaled()
                           ? 0
                           : scale_bytes(groups_spanned(c.rows, c.swap ? p.group_n : 1)) +
                                 scale_bytes(groups_spanned(c.columns, c.swap ? 1 : p.group_n));
  return c.stages * (int64_t{c.rows + c.columns} * kTileK + 16) +
         scale_slots(c, p, scale_feed(in) != Feed::kTma) * slot +
         (c.tma_store ? 4 * c.warpgroups() * kStoreBufferBytes : 0) +
         (scheduled(p) ? kWorkRingBytes : 0);
}

// Partial sums lie over the stages: Config::kPartialBytes.
bool partials_fit(const Choice& c) {
  const int tile_m = c.swap ? c.columns : c.rows;
  const int tile_n = c.swap ? c.rows : c.columns;
  return c.split == 1 || 4 * tile_m * (tile_n + 4) <= c.stages * (c.rows + c.columns) * kTileK;
}

// Clusters that run at once. A cluster lies inside one GPC, of which 14 SMs are sure to be there:
// of 132 SMs, 32 clusters of 4 did not run at once.
int64_t resident_clusters(int sm_count, int cluster) {
  constexpr int kGpc = 14;
  if (cluster <= 2) return std::max(1, sm_count / cluster);
  return std::max(1, sm_count / kGpc * (kGpc / cluster));
}

int64_t units(const Choice& c, const Inputs& in) {
  return in.units_m(c) * in.units_n(c);
}

// Units that the busiest cluster works on, one after the other.
int64_t turns(const Choice& c, const Inputs& in) {
  return ceil_div(units(c, in), resident_clusters(in.input.sm_count, c.cluster()));
}

// The same on average over what the rows of groups may come to.
double average_turns(const Choice& c, const Inputs& in, double short_window) {
  return average_turns(in.input, c.swap ? c.unit_columns() : c.unit_rows(), in.units_n(c),
                       resident_clusters(in.input.sm_count, c.cluster()), short_window);
}

double copy_time(Feed feed, double bytes) {
  switch (feed) {
    case Feed::kTma: return 0;
    case Feed::kCpAsync: return bytes / kCpAsyncBytes;
    case Feed::kPlain: return bytes / kPlainBytes;
  }
  return 0;
}

double estimate(const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const double blocks = static_cast<double>(ceil_div(ceil_div(p.k_bytes(), kTileK), c.split));
  const double parts = std::max(1.0, static_cast<double>(kTileK) / p.group_k);
  const int common = std::gcd(c.group_columns(), c.swap ? 1 : p.group_n);
  const bool scaled_columns = common % 8 != 0;
  const int whole_runs = c.group_columns() / common;
  const double runs = scaled_columns ? c.group_columns() / 4.0 : whole_runs;
  // A warpgroup multiplies, waits and promotes in turn; several of them fill the tensor cores.
  const double promote =
      !p.scaled() ? 0
                  : (kPromoteColumn + (scaled_columns ? kScaledColumn : 0)) * c.group_columns() +
                        kScaleRun * runs + kChain + (c.warpgroup_columns > 1 ? kChainBeside : 0);
  const double chain = c.waves() * (2.0 * c.group_columns() + parts * promote) / kClock;
  double tensor = 0;
  if (c.warpgroups() > 1) {
    tensor = kTensor * c.rows * c.columns / 32 + kTensorBlock + kScaleRun * runs * c.waves();
    // Over a long run less traffic from L2 is power for the tensor cores.
    if (c.shares() && turns(c, in) >= kLongRun) tensor *= kShareGain;
  }
  const double bytes = double{kTileK} * (c.rows + c.columns);
  const double active =
      static_cast<double>(std::min<int64_t>(units(c, in) * c.cluster(), in.input.sm_count));
  const double shared = double{kTileK} * (c.shares_columns() ? c.columns
                                          : c.shares_rows()  ? c.rows
                                                             : 0);
  const double load = std::max({(bytes - shared / 2) * active / kL2Bytes, bytes / kSmBytes,
                                copy_time(in.row_feed(c), double{kTileK} * c.rows) +
                                    copy_time(in.column_feed(c), double{kTileK} * c.columns)});
  // Rows of scales that are no multiple of 16 bytes apart are copied float by float.
  const bool single_scales =
      p.scaled() && scale_feed(in) != Feed::kTma &&
      (p.a_scale_major != ScaleMajor::kRow || p.a_scale_ld_or_dense() % 4 != 0);
  const double scales = single_scales ? kScaleCopy * (c.swap ? c.columns : c.rows) : 0;
  const double block = std::max({chain, tensor, load});
  // Rows behind a group's end are not multiplied: of a window that is half empty one warpgroup, or
  // one wave of each. Of a cluster's two windows that hold no more than one, each CTA has half.
  double short_window = 1;
  const bool halves = scheduled(p) || !c.shares_columns();
  if (!c.swap && halves && c.warpgroups() > 1 && c.rows > 64) {
    short_window = std::max({c.waves() > 1 ? chain / 2 : chain, tensor / 2, load}) / block;
  }
  const double compute = average_turns(c, in, short_window) *
                         (blocks * (block + scales) + c.waves() * c.group_columns() * kStoreColumn);
  // Each operand comes from memory once at least. Half of the weights come again for a group's
  // second window; where there are more, that hides behind the products.
  const GroupLoad groups = group_load(in.input);
  const double m = static_cast<double>(groups.rows);
  const double windows =
      average_turns(in.input, c.swap ? c.unit_columns() : c.unit_rows(), 1, groups.groups);
  const double again = p.grouping.grouped() ? std::clamp(windows - 1, 0.0, 1.0) / 2 : 0;
  const double memory = ((1 + again) * static_cast<double>(groups.groups) * p.n * p.k_bytes() +
                         m * p.k_bytes() + m * p.n * dtype_info(p.out_dtype).bytes) /
                        kHbmBytes;
  const double longer = std::max(compute, memory);
  const double shorter = std::min(compute, memory);
  const double overlap = kMemoryMix * shorter * (shorter / longer) * (shorter / longer);
  const double split = c.split > 1 ? kSplit + kSplitEach * (c.split - 1) : 0;
  return kLaunch + longer + overlap + split;
}

// Columns of tiles in a band, which is walked row by row.
int64_t walk_columns(const Choice& c, const Inputs& in) {
  constexpr int64_t kBand = 16;
  constexpr int64_t kResidentBytes = int64_t{24} << 20;
  const GemmProblem& p = in.input.problem;
  const int64_t all = std::max<int64_t>(1, c.swap ? in.units_m(c) : in.units_n(c));
  // Swapped, the columns are a group's few windows: its weights are read once for all of them, and
  // how many there are must not make another kernel.
  if (p.grouping.grouped() && c.swap) return kBand;
  // Tiles that all run at once: those that read the same weights begin side by side, so that the
  // weights come from memory once (237 x 4096 x 4096 on an H200: 12.4 us; side by side along
  // n 15.1).
  if (!scheduled(p) && turns(c, in) == 1) return c.swap ? all : 1;
  // Weights that stay in L2 are walked whole for each band of rows, so that a is read once; larger
  // ones in bands.
  return p.n * p.k_bytes() <= kResidentBytes ? all : kBand;
}

bool finish(Choice& c, const Inputs& in) {
  const PlannerInput& input = in.input;
  const GemmProblem& p = input.problem;
  const int limit = arch_info(p.arch).shared_bytes_per_cta;
  int registers = p.group_k % kTileK == 0 ? kSumRegisters : kSumRegistersParts;
  if (c.warpgroups() == 3) registers = std::min(registers, kSumRegistersThree);
  if (p.grouping.grouped() && p.scaled()) {
    const bool copies = scale_feed(in) != Feed::kTma;
    const bool codes = in.feed_a != Feed::kTma || in.feed_b != Feed::kTma;
    if (c.swap || copies) registers = std::min(registers, kSumRegistersGrouped);
    if (c.swap && codes) registers = std::min(registers, kSumRegistersGroupedCopies);
  }
  if ((c.waves() + 1) * c.group_columns() / 2 > registers) return false;
  if (c.group_columns() % (c.swap ? 8 : 16) != 0) return false;
  if (c.group_columns() > 64 && c.group_columns() % 16 != 0) return false;
  const int box_columns = 64 / dtype_info(p.out_dtype).bytes;
  c.tma_store = !c.swap && c.split == 1 && store_for(p) == Store::kTma &&
                c.group_columns() % box_columns == 0;
  // No more than tiles alone leave room for: what scales need is a walk over k for each count.
  c.stages = std::min(kMaxStages, limit / ((c.rows + c.columns) * kTileK));
  while (c.stages > 1 && shared_bytes(c, in) > limit) --c.stages;
  if (input.overrides.stages) {
    if (*input.overrides.stages > c.stages) return false;
    c.stages = *input.overrides.stages;
    if (shared_bytes(c, in) > limit) return false;
  }
  if (c.stages < 2 || !partials_fit(c)) return false;
  c.time = estimate(c, in);
  return true;
}

// Whether the CTAs of a cluster may share an operand, and it may pay.
bool may_share(const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  const bool grouped = p.grouping.grouped();
  const bool tma = in.feed_a == Feed::kTma && in.feed_b == Feed::kTma;
  if (c.split > 1 || !tma || c.warpgroups() == 1) return false;
  if ((c.shares_rows() ? c.rows : c.columns) % (8 * kShareCluster) != 0) return false;
  // The larger operand. Of groups, either: two windows share the weights, of which a group's last
  // has none beside it when their number is odd; along n that happens once a window at most.
  if (!grouped && (c.swap || c.shares_columns() != (c.columns >= c.rows))) return false;
  if (c.swap && c.shares_b()) return false;
  // Names of rows are read for at most 256 of them in one step.
  if (p.grouping.layout == GroupLayout::kRowIndices &&
      (c.swap ? c.unit_columns() : c.unit_rows()) > kMostNames)
    return false;
  // Sharing ties two CTAs together; it pays where there is much to do, and more than few rows; or
  // where a group's one window is shared by two.
  if (in.input.overrides.cluster) return true;
  if (!grouped) return turns(c, in) >= 4;
  if (c.shares_a() && (c.swap ? c.columns < 64 : c.rows < 128)) return false;
  return turns(c, in) >= 2 || (c.shares_b() && c.rows >= 128 && in.input.planned_m <= c.rows);
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
  constexpr std::array<Shape, 6> kShapes = {
      {{64, 1, 1}, {64, 1, 2}, {128, 2, 1}, {128, 1, 2}, {192, 3, 1}, {256, 2, 1}}
  };
  const int64_t k_blocks = ceil_div(p.k_bytes(), kTileK);
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
        // Three warpgroups have no registers left for where a tile is, and windows of 256 rows
        // waste more at the ends of groups than they save.
        if (p.grouping.grouped() &&
            (shape.warpgroup_rows == 3 || (shape.rows > 128 && !forced_rows)))
          continue;
        // A narrower tile would bring the weights in more than once; twice, from L2, where few
        // groups leave SMs idle.
        if (swap && !forced_columns &&
            columns < std::min<int64_t>(input.planned_m, 128) / (p.grouping.grouped() ? 2 : 1))
          continue;
        Choice c;
        c.swap = swap;
        c.rows = shape.rows;
        c.columns = columns;
        c.warpgroup_rows = shape.warpgroup_rows;
        c.warpgroup_columns = shape.warpgroup_columns;
        const int64_t tiles = units(c, in);
        for (c.split = 1; c.split <= kMaxSplit; ++c.split) {
          if (force.split_k && *force.split_k != c.split) continue;
          if (c.split > 1 && (p.batch_invariant || k_blocks < 2 * c.split)) continue;
          if (c.split > 1 && !p.scaled()) continue;
          // k is split to occupy idle SMs only.
          if (c.split > 1 && !force.split_k && tiles * c.split > input.sm_count) continue;
          for (const Share share : {Share::kNone, Share::kColumns, Share::kRows}) {
            c.share = share;
            if (force.cluster && *force.cluster != c.cluster()) continue;
            if (c.shares() && !may_share(c, in)) continue;
            if (finish(c, in)) list.push_back(c);
          }
        }
      }
    }
  }
  return list;
}

void add_reasons(GemmPlan& plan, const Choice& c, const Inputs& in) {
  const GemmProblem& p = in.input.problem;
  std::vector<std::string>& reasons = plan.reasons;
  const int64_t tiles = planned_windows(in.input, plan.tile_m) * ceil_div(p.n, plan.tile_n);
  if (p.grouping.grouped()) reasons.push_back(group_reason(in.input, plan.tile_m));
  reasons.push_back(fmt::format(
      "{} x {} tiles: {} of them in {} turn(s) on {} SMs; the model's estimate is {:.1f} us",
      plan.tile_m, plan.tile_n, tiles, turns(c, in), in.input.sm_count, c.time / 1000));
  if (c.swap) {
    reasons.push_back(fmt::format(
        "operands swapped: weights take the side of wgmma that is a multiple of 64, the "
        "{} rows of a the side that is {} wide",
        in.input.planned_m, c.columns));
  }
  if (!p.scaled()) {
    reasons.push_back("operands of 16 bits have no scales: the tensor cores sum over all of k");
  } else if (p.scale_dtype == DType::kF8E8M0) {
    reasons.push_back(
        "scales are F8_E8M0: they become fp32 on their way to shared memory, since Hopper's tensor "
        "cores take none");
  }
  reasons.push_back(
      c.warpgroups() == 1
          ? std::string("one math warpgroup: the tile is too small for more")
          : fmt::format(
                "{} math warpgroups, beside each other along {}: one promotes while another "
                "multiplies",
                c.warpgroups(), (c.warpgroup_rows > 1) != c.swap ? "m" : "n"));
  if (c.shares()) {
    reasons.push_back(
        fmt::format("clusters of {} share their tiles of {} by multicast: less is read from L2, "
                    "whose power the "
                    "tensor cores can use",
                    kShareCluster, c.shares_b() ? "b" : "a"));
  }
  if (c.split > 1) {
    reasons.push_back(fmt::format(
        "k split over {} CTAs of a cluster: {} tiles alone would leave SMs idle; partial sums are "
        "added in the order of the splits, so a row's bits depend on this number and not on timing",
        c.split, tiles));
  }
  if (p.scale_dtype == DType::kF8E8M0) {
    reasons.push_back(
        "scales are F8_E8M0: expanded to fp32, exactly, on their way to shared memory");
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
  if (!aligned_output_rows(p)) {
    reasons.push_back("single-element stores: output rows are not 16-byte aligned");
  } else if (!c.tma_store) {
    reasons.push_back(c.split > 1 ? "direct stores: the splits are summed first"
                      : c.swap    ? "direct stores: swapped results lie across a warp's rows"
                      : store_for(p) != Store::kTma
                          ? "direct stores: groups of out are no whole rows apart"
                          : "direct stores: a warpgroup's columns are no multiple of a box");
  }
}

GemmPlan to_plan(const Choice& c, const Inputs& in) {
  const PlannerInput& input = in.input;
  GemmPlan plan;
  plan.problem = input.problem;
  plan.family = c.swap ? KernelFamily::kSm90Swap : KernelFamily::kSm90;
  plan.planned_m = input.planned_m;
  plan.estimate_us = c.time / 1000;
  plan.tile_m = c.swap ? c.columns : c.rows;
  plan.tile_n = c.swap ? c.rows : c.columns;
  plan.tile_k = kTileK;
  plan.stages = c.stages;
  plan.threads = 128 * (1 + c.warpgroups());
  plan.cluster = c.cluster();
  plan.split_k = c.split;
  plan.grid = GridKind::kPersistent;
  plan.feed_a = in.feed_a;
  plan.feed_b = in.feed_b;
  plan.store = c.tma_store ? Store::kTma : Store::kDirect;
  // A CTA fetches its part of what the cluster shares.
  plan.a_map = {in.feed_a == Feed::kTma, plan.tile_m / (c.shares_a() ? kShareCluster : 1), kTileK,
                Swizzle::k128B};
  plan.b_map = {in.feed_b == Feed::kTma, plan.tile_n / (c.shares_b() ? kShareCluster : 1), kTileK,
                Swizzle::k128B};
  if (scale_feed(in) == Feed::kTma) {
    const int row_boxes = groups_spanned(c.rows, c.swap ? input.problem.group_n : 1);
    const int column_boxes = groups_spanned(c.columns, c.swap ? 1 : input.problem.group_n);
    plan.a_scale_map = {true, c.swap ? column_boxes : row_boxes, 4, Swizzle::kNone};
    plan.b_scale_map = {true, c.swap ? row_boxes : column_boxes, 4, Swizzle::kNone};
  }
  plan.out_map = {c.tma_store, 16, 64 / dtype_info(input.problem.out_dtype).bytes, Swizzle::k64B};
  plan.shared_bytes = static_cast<int32_t>(shared_bytes(c, in));
  plan.extra_fields = {
      {"kSwap",             c.swap ? 1 : 0                  },
      {"kWarpgroupRows",    c.warpgroup_rows                },
      {"kWarpgroupColumns", c.warpgroup_columns             },
      {"kShare",            static_cast<int>(c.share)       },
      {"kScaleFeed",        static_cast<int>(scale_feed(in))},
      {"kWalkColumns",      walk_columns(c,                   in)},
      {"kStoreVector",                   aligned_output_rows(input.problem) ? 1 : 0                                     },
  };
  add_reasons(plan, c, in);
  return plan;
}

Inputs inputs_for(const PlannerInput& input) {
  return {input, feed_a_for(input.problem), feed_b_for(input.problem)};
}

}  // namespace

std::vector<GemmPlan> sm90_candidates(const PlannerInput& input) {
  std::vector<GemmPlan> plans;
  const Inputs in = inputs_for(input);
  for (const Choice& c : choices(in)) plans.push_back(to_plan(c, in));
  return plans;
}

Result<GemmPlan> plan_sm90(const PlannerInput& input) {
  const Inputs in = inputs_for(input);
  const std::vector<Choice> list = choices(in);
  if (list.empty()) {
    return unsupported(
        "overrides: no kernel has that combination; tiles are 64, 128, 192 or 256 x 16..256 in "
        "steps of 16 or, with swapped operands, 8..256 x 64 or 128, as far as registers and shared "
        "memory reach; k is split up to 8 ways over a cluster, or clusters of 2 share an operand");
  }
  // Among equals the first: operands on their own sides, smaller tiles, fewer splits.
  const Choice best = *std::min_element(
      list.begin(), list.end(), [](const Choice& x, const Choice& y) { return x.time < y.time; });
  return to_plan(best, in);
}

}  // namespace jitgemm
