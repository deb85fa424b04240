// SPDX-License-Identifier: Apache-2.0
// Block-scaled FP8 product for Hopper: a persistent, warp-specialised kernel. One producer
// warpgroup fills a ring of shared-memory stages (tiles and scales by TMA, where it can address
// them, else by copies); one to three math warpgroups multiply each k-block with wgmma and promote
// it into fp32 registers:
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

  // Whether no group ends in the tile, as far as rows are m. TMA clips at the matrix alone.
  static __device__ __forceinline__ bool whole(const TileOrigin& tile) {
    return !Config::kGrouped || Config::kSwap || tile.row + Config::kRows <= tile.end;
  }
  // Whether the tile may be stored beside other products: one that ends early has no last products
  // of every wave, and takes the way around TMA.
  static __device__ __forceinline__ bool can_wait(const TileOrigin& tile) {
    return !Config::kStoresAtOnce && (whole(tile) || (!Config::kTmaStore && Config::kWaves == 1));
  }

  // The waves of a tile, one after another, all in one way: the sums stay in registers only where
  // their loop is unrolled, and the compiler leaves one that branches in every round as it is.
  template <bool kWhole>
  __device__ __forceinline__ void store_waves(const TileOrigin& tile, const Accumulators& acc) {
#pragma unroll
    for (int wave = 0; wave < Config::kWaves; ++wave) {
      store<kWhole>(tile, wave, acc[wave]);
    }
  }
  __device__ __forceinline__ void store_now(const TileOrigin& tile, const Accumulators& acc) {
    if (whole(tile)) {
      store_waves<true>(tile, acc);
    } else {
      store_waves<false>(tile, acc);
    }
  }
  // kWhole: the tile is known to be whole, if that matters.
  template <bool kWhole>
  __device__ __forceinline__ void store(TileOrigin tile, int wave,
                                        const float (&acc)[Config::kRegisters]) {
    if constexpr (Config::kSwap) {
      store_columns(p, tile, thread, wave, acc);
    } else if constexpr (Config::kTmaStore && kWhole) {
      if constexpr (Spec::kGroupLayout == kMasked) {
        // From here on rows are those of all groups together, which one map spans.
        tile.row += owner_of_rows(tile.group) * p.out_group_rows;
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
    tiles.pass(tile);
    tile = tiles.passed();
    tiles.release_passed();
    epilogue.store_now(tile, acc);
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
    if (has_operands(tile) && walk.k_begin() < walk.k_end()) {
      multiply_tile<Config::kWaves>(walk, tile, consumer, partial, acc, [](int, bool, bool) {});
    }
    named_barrier_sync(1, Config::kMathThreads);  // no warpgroup still reads the stages
    write_partials(shared, thread, acc);
    meet_cluster();
    reduce_partials(shared, p, tile, walk.rank);
    meet_cluster();
  }
}

// Sums are stored while the tensor cores work: those of the first of two waves during the tile's
// last products, those of the last wave during the first products of the next tile. A tile that
// cannot wait is stored when it is done.
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
  Tiles tiles(shared, walk);
  bool pending = false;  // the last wave of the tile passed
  const auto store_pending = [&] {
    epilogue.store<true>(tiles.passed(), kLast, acc[kLast]);
    tiles.release_passed();
    clear(acc[kLast]);
  };
  const auto store_first = [&](const TileOrigin& tile) {
    if (kLast > 0 && Epilogue::can_wait(tile)) {
      epilogue.store<true>(tile, 0, acc[0]);
      clear(acc[0]);
    }
  };
  for (TileOrigin tile; tiles.open(tile);) {
    Consumer at = consumer;
    if (has_operands(tile)) {
      consumer.skip_tile();
    }
    // Of a group's last window, the rows behind its end are not multiplied.
    const int rows = Config::kGrouped && !Config::kSwap ? tile.end - tile.row - thread.first_row()
                                                        : static_cast<int>(Config::kGroupRows);
    if (has_operands(tile) && rows > 64 * kLast) {
      multiply_tile<Config::kWaves>(walk, tile, at, partial, acc,
                                    [&](int wave, bool first, bool last) {
                                      if (wave == 0 && first && pending) {
                                        store_pending();
                                      }
                                      if (wave > 0 && last) {
                                        store_first(tiles.opened(tile));
                                      }
                                    });
    } else {
      if (pending) {
        store_pending();
      }
      if (!has_operands(tile)) {
        store_first(tile);
      } else if (kLast == 0 || rows <= 0) {
        pass_tile(walk, at);
      } else {
        multiply_tile<1>(walk, tile, at, partial, acc, [](int, bool, bool) {});
      }
    }
    consumer.full = at.full;
    tiles.pass(tile);
    tile = tiles.passed();
    pending = Epilogue::can_wait(tile);
    if (!pending) {
      if constexpr (Config::kStoresAtOnce) {
        epilogue.store_now(tile, acc);
      } else {
        epilogue.store_waves<false>(tile, acc);
      }
#pragma unroll
      for (int wave = 0; wave < Config::kWaves; ++wave) {
        clear(acc[wave]);
      }
      tiles.release_passed();
    }
  }
  if (pending) {
    epilogue.store<true>(tiles.passed(), kLast, acc[kLast]);
  }
  epilogue.finish();
}

extern "C" __global__ void __launch_bounds__(Spec::kThreads, 1)
    jitgemm_kernel(const __grid_constant__ GemmParams p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const Shared shared{shared_address(shared_memory)};
  int m = Spec::kM > 0 ? Spec::kM : p.m;
  if constexpr (Config::kOneGroup) {
    wait_for_predecessor();  // which may write the count
    m = clamp(*p.group_rows, p.m);
  }
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Walk walk(m);

  // Scales come with the tiles, or from a warp whose lanes arrive as well.
  const bool scale_tma = Config::kScaleTma && p.scale_maps != 0;
  const int scale_warps = Config::kScaled && !scale_tma ? 1 : 0;
  if (warp < 4) {
    // Each warp takes every fourth stage: one thread alone would be what a launch waits for. One
    // lane of it does, not one a stage: the compiler puts a fence before every barrier whose
    // address it does not know to be uniform.
    if (elect_one()) {
#pragma unroll
      for (int stage = 0; stage < Spec::kStages; stage += 4) {
        if (stage + warp < Spec::kStages) {
          mbarrier_init(shared.full(stage + warp), Config::kFullArrivals + 32 * scale_warps);
          mbarrier_init(shared.empty(stage + warp), Config::kEmptyArrivals);
        }
      }
      if constexpr (Config::kScheduled) {
        static_assert(WorkRing::kSlots == 4, "one a warp");
        const WorkRing ring{shared.base + Config::kWorkRing};
        ring.init_slot(warp, Config::kWorkReaders + scale_warps);
      }
      mbarrier_init_fence();
    }
  } else if (threadIdx.x == 128) {
    prefetch_maps(p);  // what the first loads would wait for
  }
  __syncthreads();
  if constexpr (!Config::kOneGroup) {
    wait_for_predecessor();
  }
  if constexpr (Config::kMulticast) {
    cluster_sync();  // no CTA may reach barriers that its neighbour has not initialised
  }

  // The launch divides the registers evenly; the producer gives most of its share to the math
  // warpgroups, where there are two or three. With one there are enough for all.
  if (warp >= Config::kMathWarps) {
    if constexpr (Config::kWarpgroups == 2 && Config::kGroupedCopies) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    } else if constexpr (Config::kWarpgroups == 2) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    } else if constexpr (Config::kWarpgroups == 3) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    }
    const int role = warp - Config::kMathWarps;
    if (role == 3) {
      if constexpr (Config::kScaled) {
        if (!scale_tma) produce_scales(shared, p, walk, lane);
      }
    } else if (Config::kScheduled && role == Config::kScheduleRole) {
      if constexpr (Config::kScheduled) schedule(shared, p, lane);
    } else if constexpr (Config::kCopyFeed) {
      produce_by_copies(shared, p, walk, role, lane);
    } else if (role == 0) {
      produce_by_tma(shared, p, walk, scale_tma);
    }
  } else {
    if constexpr (Config::kWarpgroups == 2 && Config::kGroupedCopies) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    } else if constexpr (Config::kWarpgroups == 2) {
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
