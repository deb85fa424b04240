// SPDX-License-Identifier: Apache-2.0
// What both SM100 kernels derive from Spec: which operand lies along tensor memory's lanes, tile
// counts, the order in which a CTA (or a CTA pair) walks the tiles, K's split into steps. Included
// after Spec is defined; knows nothing of barriers or scales.
#pragma once

#include "device/group_walk.cuh"
#include "device/params.cuh"
#include "device/tile_walk.cuh"

namespace sm100 {

constexpr __device__ int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}
constexpr __device__ int gcd(int a, int b) {
  return b == 0 ? a : gcd(b, a % b);
}

// The matrix instruction computes D[lane, column] = sum over k of L[lane, k] * C[column, k]. L is
// the operand on the lane side: a, or b when the operands are swapped because m is small.
struct Geometry {
  static constexpr bool kSwap = Spec::kSwap != 0;
  static constexpr int kPair = Spec::kPair;  // CTAs that share one matrix instruction: 1 or 2
  // CTAs that share one C operand by multicast: each brings a slice of it to all of them.
  static constexpr int kShare = Spec::kShare;
  static constexpr int kLanes = 128;  // rows of L that one CTA loads and whose results it has
  static constexpr int kColumns = kSwap ? Spec::kTileM : Spec::kTileN;
  static constexpr int kColumnRows = kColumns / kPair;  // rows of C that one CTA multiplies from
  static constexpr int kColumnSlice = kColumnRows / kShare;  // and those that it loads
  static constexpr int kRowBytes = 128;  // kTileK one-byte codes, one swizzled row
  static constexpr int kLaneBytes = kLanes * kRowBytes;
  static constexpr int kColumnBytes = kColumnRows * kRowBytes;
  static constexpr int kFeedLane = kSwap ? Spec::kFeedB : Spec::kFeedA;
  static constexpr int kFeedColumn = kSwap ? Spec::kFeedA : Spec::kFeedB;
  static constexpr int kTypeLane = kSwap ? Spec::kTypeB : Spec::kTypeA;
  static constexpr int kTypeColumn = kSwap ? Spec::kTypeA : Spec::kTypeB;

  // One matrix instruction takes a step of 32 along K; a stage of shared memory holds four.
  static constexpr int kStepsPerStage = 4;
  static constexpr int kSteps = ceil_div(Spec::kK, 32);
  static constexpr int kStepsPerGroup = Spec::kGroupK / 32;
  // A split of K begins at a stage and at a scale block alike.
  static constexpr int kSplitUnit =
      kStepsPerStage / gcd(kStepsPerStage, kStepsPerGroup) * kStepsPerGroup;
  static constexpr int kSplitUnits = ceil_div(kSteps, kSplitUnit);

  static_assert(Spec::kTileK == 128, "a stage is one 128-byte swizzled row");
  static_assert((kSwap ? Spec::kTileN : Spec::kTileM) == kLanes, "a CTA has 128 lanes");
  static_assert(kPair == 1 || kPair == 2, "an instruction spans one CTA or a pair");
  static_assert(kColumns % (16 * kPair) == 0 && kColumns >= 16 && kColumns <= 256,
                "PTX ISA 9.7.16.2.1: N is 16..256 in steps of 16 (32 in a pair)");
  static_assert(Spec::kGroupK % 32 == 0 && Spec::kGroupK >= 32, "one step is 32 along K");
  static_assert(Spec::kGroupN >= 1, "");
  static_assert(kPair == 1 || (kFeedLane == 0 && kFeedColumn == 0), "a pair is fed by TMA");
  static_assert(kShare == 1 || (kPair == 1 && Spec::kSplitK == 1 && kColumnSlice % 8 == 0 &&
                                kFeedLane == 0 && kFeedColumn == 0),
                "CTAs share whole swizzle atoms, by TMA, and neither pair up nor split K");
  static_assert(Spec::kCluster == kPair * kShare * Spec::kSplitK,
                "a cluster is one pair, or CTAs that share C, or those that split K between them");
  static_assert(Spec::kSplitK == 1 || kPair == 1, "a pair doesn't split K");
  static_assert(Spec::kSplitK <= kSplitUnits, "every split has work");

  static constexpr bool kGrouped = Spec::kGroupLayout != kNotGrouped;
  static_assert(!kGrouped || Spec::kCluster == 1, "a CTA finds its tiles alone");
};

__device__ __forceinline__ int problem_m(const GemmParams& p) {
  if constexpr (Spec::kM != 0) return Spec::kM;
  return p.m;
}

// Where a tile begins, and the row of a and out that ends it. With a pair, lane0 is this CTA's own.
// Where every group has rows of its own, rows are counted in the group. A negative group is ~group
// of rows without operands, which become zero.
struct Tile {
  int lane0;
  int column0;
  int end;
  int group;
};

// The rows of either operand end here, for this tile.
__device__ __forceinline__ int lane_rows(const Tile& tile) {
  return Geometry::kSwap ? Spec::kN : tile.end;
}
__device__ __forceinline__ int column_rows(const Tile& tile) {
  return Geometry::kSwap ? tile.end : Spec::kN;
}

// Whether the tile has operands: all do, except for rows that are only to be zeroed.
__device__ __forceinline__ bool has_operands(const Tile& tile) {
  return !Geometry::kGrouped || Spec::kZeroUngrouped == 0 || tile.group >= 0;
}

// The tiles of one CTA or cluster. Bands run along the lane side: consecutive tiles share their C
// operand, so that CTAs that run at the same time touch a compact part of both operands in L2.
struct Walk {
  TileWalk<8> order;
  int m;
  int tiles;
  int first;
  int step;
  int lane_offset;

  // Lanes of a cluster: neighbours along L for the CTAs of a pair and for those that share C.
  static constexpr int kUnitLanes = Geometry::kLanes * Geometry::kPair * Geometry::kShare;

  __device__ __forceinline__ Walk(const GemmParams& p, int rank)
      : order{ceil_div(Geometry::kSwap ? problem_m(p) : Spec::kN, Geometry::kColumns),
              ceil_div(Geometry::kSwap ? Spec::kN : problem_m(p), kUnitLanes)},
        m(problem_m(p)),
        tiles(order.count()),
        first(static_cast<int>(blockIdx.x) / Spec::kCluster),
        step(static_cast<int>(gridDim.x) / Spec::kCluster),
        lane_offset(kUnitLanes > Geometry::kLanes ? rank * Geometry::kLanes : 0) {}

  __device__ __forceinline__ Tile at(int index) const {
    int column, lane;
    order.at(index, column, lane);
    return {lane * kUnitLanes + lane_offset, column * Geometry::kColumns, m, 0};
  }
};

// The order of the tiles of one group: that of the whole product, over the group's windows.
struct GroupOrder {
  enum : int { kWindow = Spec::kTileM, kColumns = Spec::kTileN, kCluster = 1, kShortLast = 0 };

  static __device__ __forceinline__ void at(int windows, int index, int& window, int& column_tile) {
    constexpr int kTilesN = ceil_div(Spec::kN, Spec::kTileN);
    const TileWalk<8> order = {Geometry::kSwap ? windows : kTilesN,
                               Geometry::kSwap ? kTilesN : windows};
    int column, lane;
    order.at(index, column, lane);
    window = Geometry::kSwap ? column : lane;
    column_tile = Geometry::kSwap ? lane : column;
  }
};

// One role's way through the tiles of its CTA. `ring` is that of a grouped product.
struct Tiles {
  const Walk& walk;
  int index;
  WorkReader reader;

  __device__ __forceinline__ Tiles(const Walk& walk_, SharedAddress ring)
      : walk(walk_), index(walk_.first), reader{{ring}, {}} {}

  // False when there are no more. All lanes of a warp or, with kThread, one thread.
  template <bool kThread = false>
  __device__ __forceinline__ bool next(Tile& tile) {
    if constexpr (Geometry::kGrouped) {
      GroupTile found;
      if (!reader.next<kThread>(found)) return false;
      tile = {Geometry::kSwap ? found.column : found.row,
              Geometry::kSwap ? found.row : found.column, found.end, found.group};
      return true;
    } else {
      if (index >= walk.tiles) return false;
      tile = walk.at(index);
      index += walk.step;
      return true;
    }
  }
};

// The steps of K that this CTA sums.
struct StepRange {
  int begin;
  int end;
};

__device__ __forceinline__ StepRange step_range(int rank) {
  if constexpr (Spec::kSplitK == 1) return {0, Geometry::kSteps};
  const int begin = rank * Geometry::kSplitUnits / Spec::kSplitK * Geometry::kSplitUnit;
  const int end = (rank + 1) * Geometry::kSplitUnits / Spec::kSplitK * Geometry::kSplitUnit;
  return {begin, end < Geometry::kSteps ? end : Geometry::kSteps};
}

}  // namespace sm100
