// SPDX-License-Identifier: Apache-2.0
// Everything of gemm_sm90.cu that follows from Spec: roles, the shared-memory layout, the walk over
// tiles, and the checks that a Spec is legal. Included after Spec is defined.
#pragma once

#include "device/convert.cuh"
#include "device/group_walk.cuh"
#include "device/mbarrier.cuh"
#include "device/tile_walk.cuh"

constexpr int gcd(int a, int b) {
  return b == 0 ? a : gcd(b, a % b);
}
constexpr int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}

enum FeedKind { kFeedTma = 0, kFeedCpAsync = 1, kFeedPlain = 2 };
// What the CTAs of a cluster share: the operand of the columns (they are neighbours along the
// rows), or the operand of the rows.
enum ShareKind { kShareNone = 0, kShareColumns = 1, kShareRows = 2 };

// How many groups of `group` neighbours `count` neighbours can lie in, starting at a multiple of
// `count`.
constexpr int groups_spanned(int count, int group) {
  return group % count == 0   ? 1
         : count % group == 0 ? count / group
                              : ceil_div(count - 1, group) + 1;
}

// The slots for quads of scales. One is filled when all stages of the one before it have been
// filled anew (of `ahead` further back), so beside it there must be one more than can lie whole
// inside one stage less than all. (planner_sm90.cpp reckons the same.)
constexpr int scale_slots(int k_blocks, int splits, int stages, int quad_stages, int ahead) {
  int most = 0;
  for (int rank = 0; rank < splits; ++rank) {
    const int begin = k_blocks * rank / splits;
    const int end = k_blocks * (rank + 1) / splits;
    // From the tile's first quad, and from those that reach to its end or past it: all others are
    // like each other.
    const int near_end = (end - stages) / quad_stages * quad_stages;
    for (int start = begin; start < end;) {
      int whole = 0;
      int held = 0;
      int at = start;
      while (true) {
        const int boundary = (at / quad_stages + 1) * quad_stages;
        const int next = boundary < end ? boundary : end;
        held += next - at;
        if (held > stages - 1) break;
        ++whole;
        at = next < end ? next : begin;
      }
      most = whole > most ? whole : most;
      const int following = (start / quad_stages + 1) * quad_stages;
      start = following > near_end ? following : near_end;
    }
  }
  return 2 + ahead + most;
}

// Everything that follows from Spec. Enumerators, because constexpr members become global data.
struct Config {
  enum : int {
    kSwap = Spec::kSwap,
    kRows = kSwap ? Spec::kTileN : Spec::kTileM,
    kColumns = kSwap ? Spec::kTileM : Spec::kTileN,
    kRowType = kSwap ? Spec::kTypeB : Spec::kTypeA,
    kColumnType = kSwap ? Spec::kTypeA : Spec::kTypeB,
    kRowFeed = kSwap ? Spec::kFeedB : Spec::kFeedA,
    kColumnFeed = kSwap ? Spec::kFeedA : Spec::kFeedB,
    kScaled = Spec::kScaled,                // 16-bit operands have no scales
    kRowGroup = kSwap ? Spec::kGroupN : 1,  // rows that share a scale
    kColumnGroup = kSwap ? 1 : Spec::kGroupN,

    kWarpgroups = Spec::kWarpgroupRows * Spec::kWarpgroupColumns,
    kMathThreads = 128 * kWarpgroups,
    kMathWarps = 4 * kWarpgroups,
    kGroupRows = kRows / Spec::kWarpgroupRows,  // of one math warpgroup
    kGroupColumns = kColumns / Spec::kWarpgroupColumns,
    kWaves = kGroupRows / 64,
    kRegisters = kGroupColumns / 2,  // accumulators of one wave, each thread

    kKBlocks = ceil_div(Spec::kK, Spec::kTileK),
    // A stage is promoted in parts that never straddle a scale block.
    kPartK = gcd(Spec::kGroupK, Spec::kTileK),
    kParts = Spec::kTileK / kPartK,
    kStepsPerPart = kPartK / 32,

    // Groups, and warps that copy scales: these need more registers, and math warps have fewer.
    kGroupedCopies = Spec::kGroupLayout != kNotGrouped && kScaled && Spec::kScaleFeed != kFeedTma,
    // Scales of the tile in shared memory: one an entry, for each group of rows or columns that the
    // tile can lie in.
    kRowScales = kScaled ? groups_spanned(kRows, kRowGroup) : 0,
    kColumnScales = kScaled ? groups_spanned(kColumns, kColumnGroup) : 0,
    kOneRowScale = kRowScales == 1,
    // The longest runs of columns that share a scale wherever the tile begins; 1 if that is shorter
    // than the 8 columns of an accumulator block.
    kCommonRun = gcd(kGroupColumns, kColumnGroup),
    kColumnRun = kCommonRun % 8 == 0 ? kCommonRun : 1,
    // Column scales that a math thread loads ahead into registers, while they are few: one a run,
    // or, where runs are short, those of its two columns in each block of 8. 0: too many.
    kRuns = kGroupColumns / kColumnRun,
    kHeldScales =
        kColumnRun != 1 ? (kRuns <= 8 ? kRuns : 0) : (kGroupColumns <= 64 ? kGroupColumns / 4 : 0),
    // Scales travel four scale blocks of k at a time, a quad, so that row-major scales move 16
    // bytes at a time. A quad spans whole stages, whose barriers speak for its slot as well.
    kScaleBlocks = ceil_div(Spec::kK, Spec::kGroupK),
    kQuadStages = 4 * Spec::kGroupK / Spec::kTileK,
    // By TMA, where launches can give maps (GemmParams::scale_maps): any other way through the
    // shared memory costs wgmma more.
    kScaleTma = Spec::kScaleFeed == kFeedTma,
    // Copies run a quad ahead, unless they only stand in for TMA.
    kScalesAhead = kScaleTma ? 0 : 1,
    kScaleSlots = scale_slots(kKBlocks, Spec::kSplitK, Spec::kStages, kQuadStages, kScalesAhead),

    kRowTileBytes = kRows * Spec::kTileK,
    kColumnTileBytes = kColumns * Spec::kTileK,
    kTmaBytes = (kRowFeed == kFeedTma ? kRowTileBytes : 0) +
                (kColumnFeed == kFeedTma ? kColumnTileBytes : 0),

    // Shared memory, in bytes from a base that is a multiple of 1024.
    kRowTiles = 0,
    kColumnTiles = kRowTiles + Spec::kStages * kRowTileBytes,
    // TMA stores: each math warp stages boxes of 16 rows of 64 bytes, swizzled, some at a time.
    kTmaStore = Spec::kStore == 1,
    kOutBytes = Spec::kOut == kF32 ? 4 : 2,
    kStoreColumns = 64 / kOutBytes,
    kStoreBuffers = kColumnTiles + Spec::kStages * kColumnTileBytes,
    kStoreBufferBytes = 16 * 64,
    kStoreBuffersPerWarp = 3,
    kScaleRing =
        kStoreBuffers + (kTmaStore ? kStoreBuffersPerWarp * kMathWarps * kStoreBufferBytes : 0),
    kColumnScaleOffset = ceil_div(16 * kRowScales, 128) * 128,  // TMA writes at multiples of 128
    kScaleSlotBytes = kColumnScaleOffset + ceil_div(16 * kColumnScales, 128) * 128,
    kBarriers = kScaleRing + kScaleSlots * kScaleSlotBytes,
    // Grouped products: the ring through which tiles reach the roles.
    kGrouped = Spec::kGroupLayout != kNotGrouped,
    // One group with rows of its own is a plain product of as many rows as the device finds in
    // memory; else one warp finds the tiles.
    kOneGroup = Spec::kGroupLayout == kMasked && Spec::kGroups == 1 && Spec::kZeroUngrouped == 0 &&
                Spec::kCountInvalid == 0,
    kScheduled = kGrouped && !kOneGroup,
    kWorkRing = kBarriers + 8 * 2 * Spec::kStages,
    kSharedBytes = kWorkRing + (kScheduled ? WorkRing::kBytes : 0),
    // Split-K partials lie over the stages, as [m][n] with rows of kPartialStride floats. The 4
    // extra floats spread a warp's stores over the banks.
    kPartialStride = Spec::kTileN + 4,
    kPartialBytes = 4 * Spec::kTileM * kPartialStride,

    // The producer warpgroup: warps 0-2 feed tiles (one thread is enough for TMA), warp 3 scales.
    // Scheduled products need warp 2 to find the tiles.
    kCopyFeed = kRowFeed != kFeedTma || kColumnFeed != kFeedTma,
    kCopyThreads = kScheduled ? 64 : 96,
    // Grouped products whose tiles do not wait to be stored: beside so many sums there are no
    // registers for it, unless TMA stores; and warps that copy codes speak for a stage when they
    // have asked for three more, for which they may need a tile that finds no place while one
    // waits.
    kStoresAtOnce = kGrouped && (kCopyFeed || ((kWaves + 1) * kRegisters > 144 &&
                                               (kGroupedCopies || !kTmaStore))),
    kScheduleRole = 2,
    kWorkReaders = kMathWarps + (kCopyFeed ? kCopyThreads / 32 : 1),  // and who copies scales
    kFullArrivals = (kTmaBytes > 0 ? 1 : 0) + (kCopyFeed ? kCopyThreads : 0),  // and scales
    kMulticast = Spec::kCluster > 1 && Spec::kShare != kShareNone,
    // Two CTAs that share the weights of a group's two windows halve what is no more than one.
    kHalvesWindows = kScheduled && !kSwap && Spec::kShare == kShareColumns && kRows % 128 == 0,
    kEmptyArrivals = kMathWarps * (kMulticast ? Spec::kCluster : 1),
  };
};

static_assert(Spec::kArch == 90, "wgmma exists on sm_90a alone");
static_assert(Spec::kTileK == 128, "a stage is one 128-byte swizzle row");
static_assert(Spec::kGroupK % 32 == 0 && Spec::kGroupN >= 1, "scale blocks");
static_assert(!Config::kScaleTma ||
                  (Config::kScaled && Spec::kScaleType == 0 && Config::kColumnScales <= 256),
              "a box of fp32 scales");
static_assert(Config::kGroupRows % 64 == 0 && Config::kWaves <= 2,
              "a warpgroup has 64 or 128 rows");
static_assert(Config::kRows % Spec::kWarpgroupRows == 0, "rows are dealt evenly");
static_assert(Config::kColumns % (8 * Spec::kWarpgroupColumns) == 0,
              "wgmma's N is a multiple of 8");
static_assert(Config::kSwap || Config::kGroupColumns % 16 == 0, "the store pairs 8-column blocks");
static_assert(Config::kColumns <= 256 && Config::kRows <= 256, "a TMA box has at most 256 rows");
static_assert(Spec::kThreads == Config::kMathThreads + 128, "math warpgroups and one producer");
static_assert(Spec::kSplitK == 1 || (Spec::kSplitK == Spec::kCluster && Spec::kShare == kShareNone),
              "the splits of a tile are the CTAs of a cluster");
static_assert(!Config::kTmaStore || (!Config::kSwap && Spec::kSplitK == 1 &&
                                     Config::kGroupColumns % Config::kStoreColumns == 0),
              "TMA stores whole boxes of a tile whose rows are those of the output");
static_assert(Config::kScaled || Spec::kSplitK == 1, "16-bit operands do not split k");
static_assert(!Config::kMulticast || !Config::kCopyFeed, "only TMA multicasts");
static_assert(!Config::kHalvesWindows || Spec::kCluster == 2,
              "a window is halved between two CTAs");
static_assert(Spec::kSplitK == 1 || Config::kPartialBytes <= Config::kScaleRing,
              "partials fit over the stages");
static_assert(Config::kSharedBytes == Spec::kSharedBytes, "the planner reckons the same");
static_assert(Config::kSharedBytes <= 232448, "PTX ISA: sm_90 has 227 KiB a CTA");

// Where a tile begins, in rows and columns of the wgmma, and the row of a and out that ends it.
// Where every group has rows of its own, rows are counted in the group. A negative group is ~group
// of rows without operands, which become zero.
struct TileOrigin {
  int row;
  int column;
  int end;
  int group;
};

struct Walk {
  enum : int {
    kUnitRows = Config::kRows * (Spec::kShare == kShareColumns ? Spec::kCluster : 1),
    kUnitColumns = Config::kColumns * (Spec::kShare == kShareRows ? Spec::kCluster : 1),
  };

  TileWalk<Spec::kWalkColumns> walk;
  int m;
  int first;
  int step;
  int rank;  // in the cluster

  __device__ __forceinline__ explicit Walk(int m_)
      : walk{ceil_div(Config::kSwap ? Spec::kN : m_, kUnitRows),
             ceil_div(Config::kSwap ? m_ : Spec::kN, kUnitColumns)},
        m(m_),
        first(static_cast<int>(blockIdx.x) / Spec::kCluster),
        step(static_cast<int>(gridDim.x) / Spec::kCluster),
        rank(Spec::kCluster > 1 ? static_cast<int>(cluster_cta_rank()) : 0) {}

  __device__ __forceinline__ TileOrigin at(int unit) const {
    int row, column;
    walk.at(unit, row, column);
    TileOrigin tile = {row * kUnitRows, column * kUnitColumns, m, 0};
    move_to_rank(tile);
    return tile;
  }
  // From where the cluster's part of the product begins to where this CTA's does.
  __device__ __forceinline__ void move_to_rank(TileOrigin& tile) const {
    if (Spec::kShare == kShareColumns) tile.row += rank * Config::kRows;
    if (Spec::kShare == kShareRows) tile.column += rank * Config::kColumns;
  }

  __device__ __forceinline__ int k_begin() const {
    return Spec::kSplitK == 1 ? 0 : Config::kKBlocks * rank / Spec::kSplitK;
  }
  __device__ __forceinline__ int k_end() const {
    return Spec::kSplitK == 1 ? Config::kKBlocks : Config::kKBlocks * (rank + 1) / Spec::kSplitK;
  }
};

using Cursor = StageCursor<Spec::kStages>;

// The slot of the scales of a k-block, which moves on wherever another quad begins.
struct ScaleSlot {
  int slot = Config::kScaleSlots - 1;

  static __device__ __forceinline__ bool begins_quad(int k_block, int k_begin) {
    return k_block % Config::kQuadStages == 0 || k_block == k_begin;
  }
  __device__ __forceinline__ void next() { slot = slot == Config::kScaleSlots - 1 ? 0 : slot + 1; }
  // Past all quads of a tile.
  __device__ __forceinline__ void skip_tile() {
    constexpr int kQuads = ceil_div(Config::kKBlocks, Config::kQuadStages);
    slot += kQuads % Config::kScaleSlots;
    if (slot >= Config::kScaleSlots) slot -= Config::kScaleSlots;
  }
};

// The entry of the scale of the row or column `offset` in a tile that begins `remainder` behind a
// group's first.
template <int kTile, int kGroup>
__device__ __forceinline__ int scale_entry(int remainder, int offset) {
  return kGroup % kTile == 0   ? 0
         : kTile % kGroup == 0 ? offset / kGroup
                               : (remainder + offset) / kGroup;
}

struct Shared {
  SharedAddress base;
  __device__ __forceinline__ SharedAddress row_tile(int stage) const {
    return base + Config::kRowTiles + stage * Config::kRowTileBytes;
  }
  __device__ __forceinline__ SharedAddress column_tile(int stage) const {
    return base + Config::kColumnTiles + stage * Config::kColumnTileBytes;
  }
  __device__ __forceinline__ SharedAddress scales(int slot) const {
    return base + Config::kScaleRing + slot * Config::kScaleSlotBytes;
  }
  __device__ __forceinline__ SharedAddress full(int stage) const {
    return base + Config::kBarriers + 8 * stage;
  }
  __device__ __forceinline__ SharedAddress empty(int stage) const {
    return full(Spec::kStages + stage);
  }
};

// The order of the tiles of one group: that of the whole product, over the group's windows.
struct GroupOrder {
  enum : int {
    kWindow = Config::kSwap ? Walk::kUnitColumns : Walk::kUnitRows,
    kColumns = Config::kSwap ? Walk::kUnitRows : Walk::kUnitColumns,
    kCluster = Spec::kCluster,
    // Only where a unit is two windows: a CTA's own short window, put last, would read weights
    // again that the windows before it have just read.
    kShortLast = Config::kHalvesWindows,
  };

  static __device__ __forceinline__ void at(int windows, int index, int& window, int& column_tile) {
    constexpr int kTilesN = ceil_div(Spec::kN, kColumns);
    const TileWalk<Spec::kWalkColumns> walk = {Config::kSwap ? kTilesN : windows,
                                               Config::kSwap ? windows : kTilesN};
    int row, column;
    walk.at(index, row, column);
    window = Config::kSwap ? column : row;
    column_tile = Config::kSwap ? row : column;
  }
};

// One role's way through the tiles of its CTA.
struct Tiles {
  const Walk& walk;
  int unit;
  WorkReader reader;
  TileOrigin last;  // the tile passed; of groups it stays where the scheduler put it

  __device__ __forceinline__ Tiles(const Shared& shared, const Walk& walk_)
      : walk(walk_), unit(walk_.first), reader{{shared.base + Config::kWorkRing}, {}} {}

  // False when there are no more. All lanes of a warp.
  __device__ __forceinline__ bool next(TileOrigin& tile) {
    if constexpr (Config::kScheduled) {
      GroupTile found;
      if (!reader.next(found)) return false;
      tile = origin(found);
      return true;
    } else {
      if (unit >= walk.walk.count()) return false;
      tile = walk.at(unit);
      unit += walk.step;
      return true;
    }
  }

  // The same in steps, for the math warps, which store a tile while they multiply the next: the
  // place of the tile passed is known until it is released, and takes no registers where tiles have
  // groups.
  __device__ __forceinline__ bool open(TileOrigin& tile) {
    if constexpr (Config::kScheduled) {
      GroupTile found;
      if (!reader.open(found)) return false;
      tile = origin(found);
      return true;
    } else {
      return next(tile);
    }
  }
  // The tile opened, again.
  __device__ __forceinline__ TileOrigin opened(const TileOrigin& tile) const {
    if constexpr (Config::kScheduled) {
      GroupTile found;
      reader.reread_opened(found);
      return origin(found);
    } else {
      return tile;
    }
  }
  __device__ __forceinline__ void pass(const TileOrigin& tile) {
    if constexpr (Config::kScheduled) {
      reader.pass();
    } else {
      last = tile;
    }
  }
  __device__ __forceinline__ TileOrigin passed() const {
    if constexpr (Config::kScheduled) {
      GroupTile found;
      reader.reread_passed(found);
      return origin(found);
    } else {
      return last;
    }
  }
  __device__ __forceinline__ void release_passed() const {
    if constexpr (Config::kScheduled) {
      reader.release_passed();
    }
  }

 private:
  // This CTA's part of what the scheduler found for the cluster; without rows if the group ends
  // before it. Neighbours along m that find no more than one of them has room for take half each.
  __device__ __forceinline__ TileOrigin origin(const GroupTile& found) const {
    TileOrigin tile = {Config::kSwap ? found.column : found.row,
                       Config::kSwap ? found.row : found.column, found.end, found.group};
    if constexpr (Config::kHalvesWindows) {
      const int part = found.end - found.row <= Config::kRows ? Config::kRows / 2
                                                              : static_cast<int>(Config::kRows);
      tile.row += walk.rank * part;
      tile.end = found.end - tile.row < part ? found.end : tile.row + part;
    } else {
      walk.move_to_rank(tile);
    }
    return tile;
  }
};

// Whether the tile has operands: all do, except for rows that are only to be zeroed.
__device__ __forceinline__ bool has_operands(const TileOrigin& tile) {
  return !Config::kGrouped || Spec::kZeroUngrouped == 0 || tile.group >= 0;
}

// Split-K: after the k-blocks of a tile all threads of the cluster that have not ended meet twice,
// around the reduction that reads every CTA's partials (PTX ISA, barrier.cluster: exited threads
// are not waited for). Partials and tiles share memory: the fence orders the ordinary accesses
// before the next tile's TMA.
__device__ __forceinline__ void meet_cluster() {
  if constexpr (Spec::kSplitK > 1) {
    __syncwarp();
    fence_proxy_async();
    cluster_sync();
  }
}

// Both, for a warp without a part in the sums.
__device__ __forceinline__ void attend_meetings() {
  meet_cluster();
  meet_cluster();
}
