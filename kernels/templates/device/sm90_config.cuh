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

    // Row scales: one a row, or one for all rows of the tile. Column scales: one for each run of
    // kColumnRun columns, the longest that never straddles a scale block; one a column if that is
    // shorter than the 8 columns of an accumulator block.
    kOneRowScale = kRowGroup % kRows == 0,
    kRowScales = !kScaled       ? 0
                 : kOneRowScale ? 1
                                : kRows,
    kCommonRun = gcd(kGroupColumns, kColumnGroup),
    kColumnRun = kCommonRun % 8 == 0 ? kCommonRun : 1,
    kColumnScales = !kScaled ? 0 : kColumns / kColumnRun,
    // Column scales that a math thread loads ahead into registers, while they are few: one a run,
    // or, where each column has its own, those of its two columns in each block of 8. 0: too many.
    kRuns = kGroupColumns / kColumnRun,
    kHeldScales =
        kColumnRun != 1 ? (kRuns <= 8 ? kRuns : 0) : (kGroupColumns <= 64 ? kGroupColumns / 4 : 0),
    // Scales travel in a ring of their own, four scale blocks of k a slot, so that row-major scales
    // move 16 bytes at a time. The ring reaches a little further ahead than the tiles'.
    kScaleBlocks = ceil_div(Spec::kK, Spec::kGroupK),
    kScaleSlots = 1 + ceil_div(Spec::kStages * Spec::kTileK, 4 * Spec::kGroupK),

    kRowTileBytes = kRows * Spec::kTileK,
    kColumnTileBytes = kColumns * Spec::kTileK,
    kTmaBytes = (kRowFeed == kFeedTma ? kRowTileBytes : 0) +
                (kColumnFeed == kFeedTma ? kColumnTileBytes : 0),

    // Shared memory, in bytes from a base that is a multiple of 1024.
    kRowTiles = 0,
    kColumnTiles = kRowTiles + Spec::kStages * kRowTileBytes,
    // TMA stores: each math warp stages 16 rows of 64 bytes, twice, in a swizzled square.
    kTmaStore = Spec::kStore == 1,
    kOutBytes = Spec::kOut == kF32 ? 4 : 2,
    kStoreColumns = 64 / kOutBytes,
    kStoreBuffers = kColumnTiles + Spec::kStages * kColumnTileBytes,
    kStoreBufferBytes = 16 * 64,
    kScaleRing = kStoreBuffers + (kTmaStore ? 2 * kMathWarps * kStoreBufferBytes : 0),
    kScaleSlotBytes = 16 * (kRowScales + kColumnScales),
    kBarriers = kScaleRing + kScaleSlots * kScaleSlotBytes,
    // Grouped products: the ring through which tiles reach the roles.
    kGrouped = Spec::kGroupLayout != kNotGrouped,
    kWorkRing = kBarriers + 8 * 2 * (Spec::kStages + kScaleSlots),
    kSharedBytes = kWorkRing + (kGrouped ? WorkRing::kBytes : 0),
    // Split-K partials lie over the stages, as [m][n] with rows of kPartialStride floats. The 4
    // extra floats spread a warp's stores over the banks.
    kPartialStride = Spec::kTileN + 4,
    kPartialBytes = 4 * Spec::kTileM * kPartialStride,

    // The producer warpgroup: warps 0-2 feed tiles (one thread is enough for TMA), warp 3 scales.
    // Grouped products need warp 2 to find the tiles.
    kCopyFeed = kRowFeed != kFeedTma || kColumnFeed != kFeedTma,
    kCopyThreads = kGrouped ? 64 : 96,
    kScheduleRole = 2,
    kWorkReaders = kMathWarps + (kScaled ? 1 : 0) + (kCopyFeed ? kCopyThreads / 32 : 1),
    kFullArrivals = (kTmaBytes > 0 ? 1 : 0) + (kCopyFeed ? kCopyThreads : 0),
    kMulticast = Spec::kCluster > 1 && Spec::kShare != kShareNone,
    kEmptyArrivals = kMathWarps * (kMulticast ? Spec::kCluster : 1),
  };
};

static_assert(Spec::kArch == 90, "wgmma exists on sm_90a alone");
static_assert(Spec::kTileK == 128, "a stage is one 128-byte swizzle row");
static_assert(Spec::kGroupK % 32 == 0 && Spec::kGroupN >= 1, "scale blocks");
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
static_assert(Spec::kSplitK == 1 || Config::kPartialBytes <= Config::kScaleRing,
              "partials fit over the stages");
static_assert(!Config::kGrouped || Spec::kCluster == 1, "a CTA finds its tiles alone");
static_assert(Config::kSharedBytes == Spec::kSharedBytes, "the planner reckons the same");
static_assert(Config::kSharedBytes <= 232448, "PTX ISA: sm_90 has 227 KiB a CTA");

// Where a tile begins, in rows and columns of the wgmma, and the row of a and out that ends it.
// Where every group has rows of its own, rows are counted in the group; group -1 has no operands,
// and its rows become zero.
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
    return {row * kUnitRows + (Spec::kShare == kShareColumns ? rank * Config::kRows : 0),
            column * kUnitColumns + (Spec::kShare == kShareRows ? rank * Config::kColumns : 0), m,
            0};
  }

  __device__ __forceinline__ int k_begin() const {
    return Spec::kSplitK == 1 ? 0 : Config::kKBlocks * rank / Spec::kSplitK;
  }
  __device__ __forceinline__ int k_end() const {
    return Spec::kSplitK == 1 ? Config::kKBlocks : Config::kKBlocks * (rank + 1) / Spec::kSplitK;
  }
};

using Cursor = StageCursor<Spec::kStages>;
using ScaleCursor = StageCursor<Config::kScaleSlots>;

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
  __device__ __forceinline__ SharedAddress scales_full(int slot) const {
    return full(2 * Spec::kStages + slot);
  }
  __device__ __forceinline__ SharedAddress scales_empty(int slot) const {
    return full(2 * Spec::kStages + Config::kScaleSlots + slot);
  }
};

// The order of the tiles of one group: that of the whole product, over the group's windows.
struct GroupOrder {
  static __device__ __forceinline__ void at(int windows, int index, int& window, int& column_tile) {
    constexpr int kTilesN = ceil_div(Spec::kN, Spec::kTileN);
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

  __device__ __forceinline__ Tiles(const Shared& shared, const Walk& walk_)
      : walk(walk_), unit(walk_.first), reader{{shared.base + Config::kWorkRing}, {}} {}

  // False when there are no more. All lanes of a warp.
  __device__ __forceinline__ bool next(TileOrigin& tile) {
    if constexpr (Config::kGrouped) {
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

  // The same in two steps, for the math warps: between them the tile's place, which a grouped
  // product has in shared memory, needs no registers.
  __device__ __forceinline__ bool open(TileOrigin& tile) {
    if constexpr (Config::kGrouped) {
      GroupTile found;
      if (!reader.open(found)) return false;
      tile = origin(found);
      return true;
    } else {
      return next(tile);
    }
  }
  __device__ __forceinline__ void close(TileOrigin& tile) {
    if constexpr (Config::kGrouped) {
      GroupTile found;
      reader.read(found);
      reader.release();
      tile = origin(found);
    }
  }

 private:
  static __device__ __forceinline__ TileOrigin origin(const GroupTile& found) {
    return {Config::kSwap ? found.column : found.row, Config::kSwap ? found.row : found.column,
            found.end, found.group};
  }
};

// Whether the tile has operands: all do, except for rows that are only to be zeroed.
__device__ __forceinline__ bool has_operands(const TileOrigin& tile) {
  return !Config::kGrouped || Spec::kZeroUngrouped == 0 || tile.group >= 0;
}

// Split-K: after the k-blocks of a tile all threads of the cluster meet twice, around the reduction
// that reads every CTA's partials. Partials and tiles share memory: the fence orders the ordinary
// accesses before the next tile's TMA.
__device__ __forceinline__ void meet_cluster() {
  if constexpr (Spec::kSplitK > 1) {
    __syncwarp();
    fence_proxy_async();
    cluster_sync();
  }
}
