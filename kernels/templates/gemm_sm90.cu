// SPDX-License-Identifier: Apache-2.0
// Block-scaled FP8 product for Hopper: a persistent, warp-specialised kernel. One producer
// warpgroup fills a ring of shared-memory stages (tiles by TMA, scales by cp.async); one or two
// math warpgroups multiply each k-block with wgmma and promote it into fp32 registers:
//   s = a_scale * b_scale (rounded once), acc = fma(dot of the k-block, s, acc), k-blocks in rising
//   order.
// The kernel speaks of rows and columns of the wgmma: rows are m and columns n, or, with
// Spec::kSwap, rows are n and columns m, so that few tokens make a narrow tile.
#ifndef JITGEMM_SPECIALIZED
#include "example/gemm_sm90_spec.cuh"
#endif

#include "device/params.cuh"
#include "device/sm90_math.cuh"
#include "device/sm90_producer.cuh"
#include "device/sm90_store.cuh"

__device__ __forceinline__ void consume(const Shared& shared, const GemmParams& p, const Walk& walk,
                                        const MathThread& thread) {
  Consumer consumer(shared, thread);
  int store_buffer = 0;
  Accumulators acc;
  float partial[Config::kRegisters];
#pragma unroll
  for (int i = 0; i < Config::kRegisters; ++i) {
    partial[i] = 0.0f;
  }
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.open(tile);) {
    if constexpr (Config::kScaled) {
      multiply_tile(walk, tile, consumer, partial, acc);
    } else {
      multiply_unscaled(walk, tile, consumer, acc);
    }
    tiles.close(tile);
    if constexpr (Spec::kSplitK > 1) {
      named_barrier_sync(1, Config::kMathThreads);  // no warpgroup still reads the stages
      write_partials(shared, thread, acc);
      meet_cluster();
      reduce_partials(shared, p, tile, walk.rank);
      meet_cluster();
    } else if constexpr (Config::kSwap) {
      store_columns(p, tile, thread, acc);
    } else if constexpr (Config::kTmaStore) {
      if constexpr (Spec::kGroupLayout == kMasked) {
        // From here on rows are those of all groups together, which one map spans.
        tile.row += tile.group * p.out_group_rows;
        tile.end += tile.group * p.out_group_rows;
      }
      store_rows_by_tma(shared, p, tile, thread, acc, store_buffer);
    } else {
      store_rows(p, tile, thread, acc);
    }
  }
  if (Config::kTmaStore && thread.lane == 0) {
    tma_store_wait<0>();
  }
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads, 1)
    jitgemm_kernel(const __grid_constant__ GemmParams p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const Shared shared{shared_address(shared_memory)};
  const int m = Spec::kM > 0 ? Spec::kM : p.m;
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Walk walk(m);

  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Spec::kStages; ++stage) {
      mbarrier_init(shared.full(stage), Config::kFullArrivals);
      mbarrier_init(shared.empty(stage), Config::kEmptyArrivals);
    }
    for (int slot = 0; slot < Config::kScaleSlots; ++slot) {
      mbarrier_init(shared.scales_full(slot), 32);
      mbarrier_init(shared.scales_empty(slot), Config::kMathWarps);
    }
    if constexpr (Config::kGrouped) {
      WorkRing{shared.base + Config::kWorkRing}.init(Config::kWorkReaders);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  wait_for_predecessor();
  if constexpr (Config::kMulticast) {
    cluster_sync();  // no CTA may reach barriers that its neighbour has not initialised
  }

  // The launch divides the registers evenly; the producer gives most of its share to the math
  // warpgroups, where there are two or three. With one there are enough for all.
  if (warp >= Config::kMathWarps) {
    if constexpr (Config::kWarpgroups == 2) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else if constexpr (Config::kWarpgroups == 3) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    }
    const int role = warp - Config::kMathWarps;
    if (role == 3) {
      if constexpr (Config::kScaled) produce_scales(shared, p, walk, lane);
    } else if (Config::kGrouped && role == Config::kScheduleRole) {
      if constexpr (Config::kGrouped) schedule(shared, p, lane);
    } else if constexpr (Config::kCopyFeed) {
      produce_by_copies(shared, p, walk, role, lane);
    } else if (role == 0) {
      produce_by_tma(shared, p, walk);
    } else if constexpr (Spec::kSplitK > 1) {
      for (int unit = walk.first; unit < walk.walk.count(); unit += walk.step) {
        meet_cluster();
        meet_cluster();
      }
    }
  } else {
    if constexpr (Config::kWarpgroups == 2) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    } else if constexpr (Config::kWarpgroups == 3) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 152;");
    }
    consume(shared, p, walk, MathThread{warp / 4, warp % 4, lane});
  }
  if constexpr (Config::kMulticast) {
    __syncwarp();
    cluster_sync();  // neighbours may still arrive on this CTA's barriers
  }
}
