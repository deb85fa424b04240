// SPDX-License-Identifier: Apache-2.0
// The operand side of both SM100 kernels: the roles of the warps, the ring of shared-memory stages
// and the warps that fill it. The kernels differ in what follows: how scales travel and where they
// are applied. Knows nothing of scales or of the output.
#pragma once

#include "device/row_feed.cuh"
#include "device/sm100_geometry.cuh"
#include "device/tcgen05.cuh"
#include "device/tma.cuh"

namespace sm100 {

// Warps 0-3 control; then the epilogue's, whose index modulo 4 is the group of 32 tensor-memory
// lanes that the hardware lets them reach; then, where an operand isn't fed by TMA, four that feed.
enum : int {
  kTmaWarp = 0,
  kMmaWarp = 1,
  kScaleWarp = 2,  // also owns tensor memory
  kSpareWarp = 3,
  kFirstEpilogueWarp = 4,
  kFeedWarps = 4,
};

struct Roles {
  static constexpr bool kTmaLane = Geometry::kFeedLane == 0;
  static constexpr bool kTmaColumn = Geometry::kFeedColumn == 0;
  static constexpr bool kAnyTma = kTmaLane || kTmaColumn;
  static constexpr bool kAnyFeed = !kTmaLane || !kTmaColumn;
  static constexpr bool kAnyCpAsync = Geometry::kFeedLane == 1 || Geometry::kFeedColumn == 1;
  static constexpr bool kAnyPlain = Geometry::kFeedLane == 2 || Geometry::kFeedColumn == 2;
  static constexpr int kFirstFeedWarp = kFirstEpilogueWarp + Spec::kEpilogueWarps;
  static constexpr int kScheduleWarp = Spec::kScheduleWarp;  // grouped products; else -1
  static constexpr int kFeedEnd = kFirstFeedWarp + (kAnyFeed ? kFeedWarps : 0);
  static constexpr int kWarps = kFeedEnd + (kScheduleWarp == kFeedEnd ? 1 : 0);
  static_assert((kScheduleWarp >= 0) == Geometry::kGrouped, "one warp finds the tiles of groups");
  static_assert(Spec::kEpilogueWarps == 4 || Spec::kEpilogueWarps == 8,
                "one or two warps a group of 32 lanes");
  static_assert(Spec::kThreads == 32 * kWarps, "every warp has a role");

  // Registers (PTX ISA 9.7.19.5 "setmaxnreg"): above 256 threads the even share is too small for
  // the epilogue, so the other warpgroups give up what they don't need.
  static constexpr bool kMovesRegisters = kWarps > 8;
  static constexpr int kEvenShare = 65536 / Spec::kThreads / 8 * 8;
  static constexpr int kSmallShare = 64;
  static constexpr int kOtherWarps = kWarps - Spec::kEpilogueWarps;
  static constexpr int kLargeShareUnbounded =
      (kEvenShare * kWarps - kSmallShare * kOtherWarps) / Spec::kEpilogueWarps / 8 * 8;
  static constexpr int kLargeShare = kLargeShareUnbounded < 248 ? kLargeShareUnbounded : 248;
};

template <int kCount>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kCount));
}
template <int kCount>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kCount));
}

// The warps and threads that read each tile of a grouped product.
constexpr __device__ int work_readers(int scale_warps) {
  return (Roles::kAnyTma ? 1 : 0) + (Roles::kAnyFeed ? kFeedWarps : 0) + 1 + scale_warps +
         Spec::kEpilogueWarps;
}

// The warp that finds the tiles of a grouped product.
__device__ __forceinline__ void schedule(const GemmParams& p, SharedAddress ring, int lane) {
  GroupWalk<GroupOrder> walk(p, lane);
  WorkWriter writer = {{ring}, {}};
  GroupTile tile;
  do {
    tile = walk.next();
    writer.put(tile, lane);
  } while (tile.row < tile.end);
}

// The ring of operand stages as every role sees it: addresses in this CTA's shared memory.
struct Stages {
  SharedAddress lane_tiles;
  SharedAddress column_tiles;
  SharedAddress full;  // one barrier a stage; in a pair, the leader's are used
  SharedAddress empty;
  SharedAddress work;  // the ring of tiles of a grouped product

  static constexpr unsigned kTmaBytes = (Roles::kTmaLane ? Geometry::kLaneBytes : 0) +
                                        (Roles::kTmaColumn ? Geometry::kColumnBytes : 0);
  static constexpr unsigned kFullArrivals =
      (Roles::kAnyTma ? 1 : 0) + (Roles::kAnyFeed ? kFeedWarps * 32 : 0);

  __device__ __forceinline__ SharedAddress lane_tile(int stage) const {
    return lane_tiles + stage * Geometry::kLaneBytes;
  }
  __device__ __forceinline__ SharedAddress column_tile(int stage) const {
    return column_tiles + stage * Geometry::kColumnBytes;
  }
};

// A load into this CTA's shared memory that counts its bytes at the pair leader's barrier. PTX ISA
// 9.7.9.25.5.2: with .cta_group::2 the barrier may be the peer's.
__device__ __forceinline__ void tma_load_2d_pair(SharedAddress destination, const TensorMap* map,
                                                 int x, int y, SharedAddress barrier) {
  asm volatile(
      "{\n"
      ".reg .b32 leader;\n"
      "mapa.shared::cluster.u32 leader, %4, 0;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".cta_group::2 [%0], [%1, {%2, %3}], [leader];\n"
      "}\n" ::"r"(destination),
      "l"(map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}

__device__ __forceinline__ void load_tile(SharedAddress destination, const TensorMap* map, int x,
                                          int y, SharedAddress barrier) {
  if constexpr (Geometry::kPair == 2) {
    tma_load_2d_pair(destination, map, x, y, barrier);
  } else {
    tma_load_2d(destination, map, x, y, barrier);
  }
}

// The rows of C that this CTA loads begin here: in a pair each CTA brings half of the columns, of
// CTAs that share them each a slice.
__device__ __forceinline__ int column_row(const Tile& tile, int rank) {
  return tile.column0 + (Geometry::kPair == 2   ? rank * Geometry::kColumnRows
                         : Geometry::kShare > 1 ? rank * Geometry::kColumnSlice
                                                : 0);
}

// A stage's rows of C, to this CTA or to all that share them.
__device__ __forceinline__ void load_column_tile(SharedAddress tile, const TensorMap* map, int x,
                                                 int y, SharedAddress barrier, int rank) {
  if constexpr (Geometry::kShare > 1) {
    tma_load_2d_multicast(tile + rank * Geometry::kColumnSlice * Geometry::kRowBytes, map, x, y,
                          barrier, (1 << Geometry::kShare) - 1);
  } else {
    load_tile(tile, map, x, y, barrier);
  }
}

// Before a CTA ends: the tensor core's last arrivals at its barriers must find it there. Every
// stage is empty again once each of the ring's barriers has completed the round before.
__device__ __forceinline__ void wait_until_drained(const Stages& stages,
                                                   StageCursor<Spec::kStages> ring) {
#pragma unroll 1
  for (int i = 0; i < Spec::kStages; ++i) {
    mbarrier_wait(stages.empty + 8 * ring.stage, ring.phase ^ 1);
    ring.next();
  }
}

// The TMA warp, one thread: runs up to kStages ahead of the tensor core, over tile ends.
__device__ __forceinline__ void produce_by_tma(const GemmParams& p, const Stages& stages,
                                               const Walk& walk, StepRange range, int rank) {
  const TensorMap* lane_map = Geometry::kSwap ? &p.b_map : &p.a_map;
  const TensorMap* column_map = Geometry::kSwap ? &p.a_map : &p.b_map;
  if constexpr (Roles::kTmaLane) tma_prefetch_map(lane_map);
  if constexpr (Roles::kTmaColumn) tma_prefetch_map(column_map);
  StageCursor<Spec::kStages> ring;
  const int first = range.begin / Geometry::kStepsPerStage;
  const int last = ceil_div(range.end, Geometry::kStepsPerStage);
  Tiles tiles(walk, stages.work);
  for (Tile tile; tiles.next<true>(tile);) {
    if (!has_operands(tile)) continue;
    int lane_row = tile.lane0;
    int first_column_row = column_row(tile, rank);
    if constexpr (Geometry::kGrouped) {
      lane_row += tile.group * (Geometry::kSwap ? p.b_group_rows : p.a_group_rows);
      first_column_row += tile.group * (Geometry::kSwap ? p.a_group_rows : p.b_group_rows);
    }
    for (int block = first; block < last; ++block) {
      const SharedAddress full = stages.full + 8 * ring.stage;
      mbarrier_wait(stages.empty + 8 * ring.stage, ring.phase ^ 1);
      // In a pair the leader expects the bytes of both.
      if (Geometry::kPair == 1 || rank == 0) {
        mbarrier_arrive_expect_tx(full, Stages::kTmaBytes * Geometry::kPair);
      }
      if constexpr (Roles::kTmaLane) {
        load_tile(stages.lane_tile(ring.stage), lane_map, block * Spec::kTileK, lane_row, full);
      }
      if constexpr (Roles::kTmaColumn) {
        load_column_tile(stages.column_tile(ring.stage), column_map, block * Spec::kTileK,
                         first_column_row, full, rank);
      }
      ring.next();
    }
  }
  wait_until_drained(stages, ring);
}

// The feed warps, for operands that TMA can't read. cp.async copies are left in flight over
// kFeedLag stages before they are fenced for the tensor core and announced.
__device__ __forceinline__ void produce_by_feed(const GemmParams& p, const Stages& stages,
                                                const Walk& walk, StepRange range, int warp,
                                                int lane) {
  constexpr int kFeedLag =
      !Roles::kAnyCpAsync ? 0 : (Spec::kStages - 1 < 3 ? Spec::kStages - 1 : 3);
  const unsigned char* lane_data = Geometry::kSwap ? p.b : p.a;
  const unsigned char* column_data = Geometry::kSwap ? p.a : p.b;
  const long long lane_ld = Geometry::kSwap ? p.ldb : p.lda;
  const long long column_ld = Geometry::kSwap ? p.lda : p.ldb;
  StageCursor<Spec::kStages> ring;
  StageCursor<Spec::kStages> announced;
  int in_flight = 0;
  const int first = range.begin / Geometry::kStepsPerStage;
  const int last = ceil_div(range.end, Geometry::kStepsPerStage);
  const auto announce_all = [&] {
    if constexpr (Roles::kAnyCpAsync) {
      cp_async_wait<0>();
      fence_proxy_async_shared();
      for (; in_flight > 0; --in_flight) {
        mbarrier_arrive(stages.full + 8 * announced.stage);
        announced.next();
      }
    }
  };
  Tiles tiles(walk, stages.work);
  for (Tile tile; tiles.next(tile);) {
    if (!has_operands(tile)) {
      // Whoever waits for these stages keeps the slot that the next tile may come in.
      announce_all();
      continue;
    }
    const long long a_offset = Geometry::kGrouped ? tile.group * p.a_group_stride : 0;
    const long long b_offset = Geometry::kGrouped ? tile.group * p.b_group_stride : 0;
    const unsigned char* lane_group = lane_data + (Geometry::kSwap ? b_offset : a_offset);
    const unsigned char* column_group = column_data + (Geometry::kSwap ? a_offset : b_offset);
    for (int block = first; block < last; ++block) {
      const int k0 = block * Spec::kTileK;
      mbarrier_wait(stages.empty + 8 * ring.stage, ring.phase ^ 1);
      const FeedTile lane_tile = {stages.lane_tile(ring.stage), lane_group, lane_ld,
                                  lane_rows(tile), tile.lane0};
      const FeedTile column_tile = {stages.column_tile(ring.stage), column_group, column_ld,
                                    column_rows(tile), tile.column0};
      if constexpr (Roles::kAnyCpAsync) {
        feed_rows<true, Geometry::kFeedLane == 1 ? Geometry::kLanes : 0,
                  Geometry::kFeedColumn == 1 ? Geometry::kColumnRows : 0, Spec::kK, kFeedWarps>(
            lane_tile, column_tile, k0, warp, lane);
      }
      if constexpr (Roles::kAnyPlain) {
        feed_rows<false, Geometry::kFeedLane == 2 ? Geometry::kLanes : 0,
                  Geometry::kFeedColumn == 2 ? Geometry::kColumnRows : 0, Spec::kK, kFeedWarps>(
            lane_tile, column_tile, k0, warp, lane);
      }
      if constexpr (Roles::kAnyCpAsync) cp_async_commit();
      if (in_flight == kFeedLag) {
        if constexpr (Roles::kAnyCpAsync) cp_async_wait<kFeedLag>();
        fence_proxy_async_shared();
        mbarrier_arrive(stages.full + 8 * announced.stage);
        announced.next();
      } else {
        ++in_flight;
      }
      ring.next();
    }
  }
  announce_all();
  if constexpr (!Roles::kAnyTma) wait_until_drained(stages, ring);
}

// A stage is free, or an accumulator ready, once the tensor core is done with everything before.
__device__ __forceinline__ void commit(SharedAddress barrier) {
  if constexpr (Geometry::kPair == 2) {
    tcgen05::commit_multicast<2>(barrier, 0b11);
  } else {
    tcgen05::commit<1>(barrier);
  }
}

// A stage may be filled anew. Where CTAs share C, by each of them once all are done with it.
__device__ __forceinline__ void commit_stage(SharedAddress barrier) {
  if constexpr (Geometry::kShare > 1) {
    tcgen05::commit_multicast<1>(barrier, (1 << Geometry::kShare) - 1);
  } else {
    commit(barrier);
  }
}

// What thread 0 does for all: barriers are ready for TMA, tcgen05 and the pair's other CTA once the
// CTA (cluster) synchronises.
__device__ __forceinline__ void init_barriers(SharedAddress first, int count, unsigned arrivals) {
  for (int i = 0; i < count; ++i) mbarrier_init(first + 8 * i, arrivals);
}

// tcgen05.alloc takes a power of two from 32 on.
constexpr __device__ int allocated_columns(int used) {
  int columns = 32;
  while (columns < used) columns *= 2;
  return columns;
}

// Each role reads it for itself: a register held across all roles is one that the epilogue lacks.
__device__ __forceinline__ unsigned tensor_memory_base(SharedAddress slot) {
  unsigned base;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(base) : "r"(slot) : "memory");
  return base;
}

// Every thread of the CTA or cluster, at the start and at the end of a kernel.
__device__ __forceinline__ void sync_all() {
  tcgen05::fence_before_thread_sync();
  if constexpr (Spec::kCluster > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }
  tcgen05::fence_after_thread_sync();
}

}  // namespace sm100
