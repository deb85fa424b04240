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

// Where the sums of a tile go when k is not split, one wave of rows at a time.
struct Epilogue {
  const Shared& shared;
  const GemmParams& p;
  const MathThread& thread;
  int store_buffer;

  __device__ __forceinline__ void store(TileOrigin tile, int wave,
                                        const float (&acc)[Config::kRegisters]) {
    if constexpr (Config::kSwap) {
      store_columns(p, tile, thread, wave, acc);
    } else if constexpr (Config::kTmaStore) {
      if constexpr (Spec::kGroupLayout == kMasked) {
        // From here on rows are those of all groups together, which one map spans.
        tile.row += owner_of_rows(tile.group) * p.out_group_rows;
        tile.end += owner_of_rows(tile.group) * p.out_group_rows;
      }
      store_rows_by_tma(shared, p, tile, thread, wave, acc, store_buffer);
    } else {
      store_rows(p, tile, thread, wave, acc);
    }
  }

  __device__ __forceinline__ void finish() const {
    if (Config::kTmaStore && thread.lane == 0) {
      tma_store_wait<0>();
    }
  }
};

__device__ __forceinline__ void clear(float (&registers)[Config::kRegisters]) {
#pragma unroll
  for (int i = 0; i < Config::kRegisters; ++i) {
    registers[i] = 0.0f;
  }
}

// 16-bit operands: a tile's sums lie where the tensor cores put them, until they are stored.
__device__ __forceinline__ void consume_unscaled(const Shared& shared, const GemmParams& p,
                                                 const Walk& walk, const MathThread& thread) {
  Consumer consumer(shared, thread);
  Epilogue epilogue{shared, p, thread, 0};
  Accumulators acc;
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.open(tile);) {
    multiply_unscaled(walk, tile, consumer, acc);
    tiles.reread(tile);
    tiles.close();
#pragma unroll
    for (int wave = 0; wave < Config::kWaves; ++wave) {
      epilogue.store(tile, wave, acc[wave]);
    }
  }
  epilogue.finish();
}

// The splits of a tile add up before anything is stored.
__device__ __forceinline__ void consume_split(const Shared& shared, const GemmParams& p,
                                              const Walk& walk, const MathThread& thread) {
  Consumer consumer(shared, thread);
  Accumulators acc;
  float partial[Config::kRegisters];
  clear(partial);
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.next(tile);) {
#pragma unroll
    for (int wave = 0; wave < Config::kWaves; ++wave) {
      clear(acc[wave]);
    }
    if (walk.k_begin() < walk.k_end()) {
      multiply_tile(walk, tile, consumer, partial, acc, [](int, bool, bool) {});
    }
    named_barrier_sync(1, Config::kMathThreads);  // no warpgroup still reads the stages
    write_partials(shared, thread, acc);
    meet_cluster();
    reduce_partials(shared, p, tile, walk.rank);
    meet_cluster();
  }
}

// Sums are stored while the tensor cores work: those of the first of two waves during the tile's
// last products, those of the last wave during the first products of the next tile. Without
// registers for where the tile before was, a tile is stored when it is done.
__device__ __forceinline__ void consume(const Shared& shared, const GemmParams& p, const Walk& walk,
                                        const MathThread& thread) {
  constexpr int kLast = Config::kWaves - 1;
  Consumer consumer(shared, thread);
  Epilogue epilogue{shared, p, thread, 0};
  Accumulators acc;
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
    clear(acc[wave]);
  }
  float partial[Config::kRegisters];
  clear(partial);
  constexpr bool kDefers = !Config::kFewRegisters;
  TileOrigin previous;
  bool pending = false;
  const auto store_and_clear = [&](const TileOrigin& tile, int wave) {
    epilogue.store(tile, wave, acc[wave]);
    clear(acc[wave]);
  };
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.open(tile);) {
    if (has_operands(tile)) {
      multiply_tile(walk, tile, consumer, partial, acc, [&](int wave, bool first, bool last) {
        if constexpr (kDefers) {
          if (wave == 0 && first && pending) {
            store_and_clear(previous, kLast);
          }
          if (wave > 0 && last) {
            store_and_clear(tile, 0);
          }
        }
      });
    } else if (pending) {
      store_and_clear(previous, kLast);
    }
    tiles.reread(tile);
    tiles.close();
    if constexpr (kDefers) {
      previous = tile;
      pending = true;
    } else {
#pragma unroll
      for (int wave = 0; wave < Config::kWaves; ++wave) {
        store_and_clear(tile, wave);
      }
    }
  }
  if (pending) {
    epilogue.store(previous, kLast, acc[kLast]);
  }
  epilogue.finish();
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads, 1)
    jitgemm_kernel(const __grid_constant__ GemmParams p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const Shared shared{shared_address(shared_memory)};
  const int m = Spec::kM > 0 ? Spec::kM : p.m;
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Walk walk(m);

  // Scales come with the tiles, or from a warp that arrives as well.
  const bool scale_tma = Config::kScaleTma && p.scale_maps != 0;
  const int scale_warps = Config::kScaled && !scale_tma ? 1 : 0;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Spec::kStages; ++stage) {
      mbarrier_init(shared.full(stage), Config::kFullArrivals + scale_warps);
      mbarrier_init(shared.empty(stage), Config::kEmptyArrivals);
    }
    if constexpr (Config::kGrouped) {
      WorkRing{shared.base + Config::kWorkRing}.init(Config::kWorkReaders + scale_warps);
    }
    mbarrier_init_fence();
  } else if (threadIdx.x == 32) {
    prefetch_maps(p);  // what the first loads would wait for
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
      if constexpr (Config::kScaled) {
        if (!scale_tma) produce_scales(shared, p, walk, lane);
      }
    } else if (Config::kGrouped && role == Config::kScheduleRole) {
      if constexpr (Config::kGrouped) schedule(shared, p, lane);
    } else if constexpr (Config::kCopyFeed) {
      produce_by_copies(shared, p, walk, role, lane);
    } else if (role == 0) {
      produce_by_tma(shared, p, walk, scale_tma);
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
    const MathThread thread{warp / 4, warp % 4, lane};
    if constexpr (!Config::kScaled) {
      consume_unscaled(shared, p, walk, thread);
    } else if constexpr (Spec::kSplitK > 1) {
      consume_split(shared, p, walk, thread);
    } else {
      consume(shared, p, walk, thread);
    }
  }
  if constexpr (Config::kMulticast) {
    __syncwarp();
    cluster_sync();  // neighbours may still arrive on this CTA's barriers
  }
}
