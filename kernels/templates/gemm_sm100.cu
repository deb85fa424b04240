// SPDX-License-Identifier: Apache-2.0
// Block-scaled FP8 product on SM100, scales arbitrary fp32 and applied exactly.
//
// The tensor core sums one scale block at a time, from zero, into a ring of tensor-memory buffers.
// Epilogue warps read each partial sum and add it to fp32 registers: s = sa * sb is rounded once,
// then acc = fma(partial, s, acc). The MMA of the next blocks doesn't wait for that, nor do loads:
// they run over the ends of tiles. Specialised by Spec; everything about operand tiles is in
// device/sm100_pipeline.cuh.
#ifndef JITGEMM_SPECIALIZED
#include "example/gemm_sm100_spec.cuh"
#endif

#include "device/memory.cuh"
#include "device/sm100_pipeline.cuh"
#include "device/sm100_split.cuh"
#include "device/sm100_store.cuh"

namespace sm100 {

struct Exact {
  static constexpr int kAccumulators = Spec::kAccumulators;
  // Buffers begin at multiples of 32 columns; the allocation is a power of two.
  static constexpr int kAccumulatorStride = ceil_div(Geometry::kColumns, 32) * 32;
  static constexpr int kUsedColumns = kAccumulators * kAccumulatorStride;
  static constexpr int kAllocatedColumns = allocated_columns(kUsedColumns);
  static_assert(kAccumulators >= 2 && kUsedColumns <= 512,
                "at least two accumulators in 512 columns of tensor memory");

  // How many neighbouring columns share one scale; 1 where that isn't known at compile time.
  static constexpr int kScaleRun = Geometry::kSwap                     ? 1
                                   : Spec::kGroupN % Spec::kTileN == 0 ? Geometry::kColumns
                                   : Spec::kTileN % Spec::kGroupN == 0 && Spec::kGroupN % 16 == 0
                                       ? Spec::kGroupN
                                       : 1;
  static constexpr int kColumnScales = Geometry::kColumns / kScaleRun;
  static constexpr int kScaleFloats = Geometry::kLanes + ceil_div(kColumnScales, 4) * 4;

  // Columns of one epilogue warp, and how many it reads from tensor memory at a time.
  static constexpr int kWarpColumns = Geometry::kColumns / (Spec::kEpilogueWarps / 4);
  static constexpr int kChunk = kWarpColumns % 32 == 0 && kWarpColumns <= 64 ? 32 : 16;
  static_assert(kWarpColumns % 16 == 0 && kWarpColumns <= 128,
                "an epilogue thread holds up to 128 columns, in chunks of 16");

  // Shared memory, in bytes from the 1024-aligned start. The slabs serve row stores or, where K is
  // split, the exchange of partial sums.
  static constexpr int kLaneTiles = 0;
  static constexpr int kColumnTiles = kLaneTiles + Spec::kStages * Geometry::kLaneBytes;
  static constexpr int kSlabs = kColumnTiles + Spec::kStages * Geometry::kColumnBytes;
  static constexpr int kRowSlabBytes =
      Geometry::kSwap ? 0 : Spec::kEpilogueWarps * kSlabsPerWarp * kSlabBytes;
  static constexpr int kScales =
      kSlabs + (kRowSlabBytes > SplitExchange::kBytes ? kRowSlabBytes : SplitExchange::kBytes);
  static constexpr int kBarriers = kScales + Spec::kScaleStages * kScaleFloats * 4;
  static constexpr int kFull = kBarriers;
  static constexpr int kEmpty = kFull + 8 * Spec::kStages;
  static constexpr int kAccumulatorFull = kEmpty + 8 * Spec::kStages;
  static constexpr int kAccumulatorEmpty = kAccumulatorFull + 8 * kAccumulators;
  static constexpr int kScaleFull = kAccumulatorEmpty + 8 * kAccumulators;
  static constexpr int kScaleEmpty = kScaleFull + 8 * Spec::kScaleStages;
  static constexpr int kExchanged = kScaleEmpty + 8 * Spec::kScaleStages;
  static constexpr int kConsumed = kExchanged + 8;
  static constexpr int kTensorMemory = kConsumed + 8;
  static constexpr int kWorkRing = kTensorMemory + 16;
  static constexpr int kSharedBytes =
      kWorkRing + (Geometry::kGrouped ? static_cast<int>(WorkRing::kBytes) : 0);
  static_assert(kSharedBytes == Spec::kSharedBytes, "the planner's sum differs from the kernel's");
};

// One thread of the MMA warp; in a pair, the leader's only. `scale block` and `stage` advance
// independently: a scale block may be a part of a stage or span several.
__device__ __forceinline__ void multiply(const Stages& stages, SharedAddress shared,
                                         const Walk& walk, StepRange range) {
  const unsigned tensor_memory = tensor_memory_base(shared + Exact::kTensorMemory);
  constexpr unsigned kDescriptor =
      tcgen05::f8f6f4_descriptor(Geometry::kTypeLane, Geometry::kTypeColumn,
                                 Geometry::kLanes * Geometry::kPair, Geometry::kColumns);
  StageCursor<Spec::kStages> stage;
  StageCursor<Exact::kAccumulators> accumulator;
  Tiles tiles(walk, stages.work);
  for (Tile tile; tiles.next<true>(tile);) {
    if (!has_operands(tile)) continue;
    int step_in_group = 0;
    for (int step = range.begin; step < range.end; step += Geometry::kStepsPerStage) {
      mbarrier_wait(stages.full + 8 * stage.stage, stage.phase);
      tcgen05::fence_after_thread_sync();
      unsigned long long lane_tile = tcgen05::operand_descriptor(stages.lane_tile(stage.stage));
      unsigned long long column_tile = tcgen05::operand_descriptor(stages.column_tile(stage.stage));
#pragma unroll
      for (int i = 0; i < Geometry::kStepsPerStage; ++i) {
        if (step + i < range.end) {
          if (step_in_group == 0) {
            const SharedAddress empty = shared + Exact::kAccumulatorEmpty + 8 * accumulator.stage;
            if constexpr (Geometry::kPair == 2) {
              mbarrier_wait_cluster(empty, accumulator.phase ^ 1);
            } else {
              mbarrier_wait(empty, accumulator.phase ^ 1);
            }
            tcgen05::fence_after_thread_sync();
          }
          tcgen05::mma_f8f6f4<Geometry::kPair>(
              tensor_memory + accumulator.stage * Exact::kAccumulatorStride, lane_tile, column_tile,
              kDescriptor, step_in_group != 0);
          lane_tile += tcgen05::kDescriptorStepPer32Bytes;
          column_tile += tcgen05::kDescriptorStepPer32Bytes;
          if (++step_in_group == Geometry::kStepsPerGroup || step + i + 1 == range.end) {
            commit(shared + Exact::kAccumulatorFull + 8 * accumulator.stage);
            accumulator.next();
            step_in_group = 0;
          }
        }
      }
      commit_stage(stages.empty + 8 * stage.stage);
      stage.next();
    }
  }
}

// The scale warp: fetches the scales of one block after the other, kScaleStages ahead. Rows beyond
// the operands get zero, without a read.
__device__ __forceinline__ void fetch_scales(const GemmParams& p, SharedAddress shared,
                                             const Walk& walk, StepRange range, int lane) {
  const float* lane_scales = static_cast<const float*>(Geometry::kSwap ? p.b_scales : p.a_scales);
  const float* column_scales = static_cast<const float*>(Geometry::kSwap ? p.a_scales : p.b_scales);
  const long long lane_stride = Geometry::kSwap ? p.b_scale_stride_n : p.a_scale_stride_m;
  const long long column_stride = Geometry::kSwap ? p.a_scale_stride_m : p.b_scale_stride_n;
  const long long lane_stride_k = Geometry::kSwap ? p.b_scale_stride_k : p.a_scale_stride_k;
  const long long column_stride_k = Geometry::kSwap ? p.a_scale_stride_k : p.b_scale_stride_k;
  constexpr int kLaneGroup = Geometry::kSwap ? Spec::kGroupN : 1;
  constexpr int kColumnGroup = Geometry::kSwap ? 1 : Spec::kGroupN;
  StageCursor<Spec::kScaleStages> ring;
  const int first = range.begin / Geometry::kStepsPerGroup;
  const int last = ceil_div(range.end, Geometry::kStepsPerGroup);
  Tiles tiles(walk, shared + Exact::kWorkRing);
  for (Tile tile; tiles.next(tile);) {
    if (!has_operands(tile)) continue;
    const long long a_offset = Geometry::kGrouped ? tile.group * p.a_scale_group_stride : 0;
    const long long b_offset = Geometry::kGrouped ? tile.group * p.b_scale_group_stride : 0;
    const float* lane_group = lane_scales + (Geometry::kSwap ? b_offset : a_offset);
    const float* column_group = column_scales + (Geometry::kSwap ? a_offset : b_offset);
    for (int block = first; block < last; ++block) {
      mbarrier_wait(shared + Exact::kScaleEmpty + 8 * ring.stage, ring.phase ^ 1);
      const SharedAddress to = shared + Exact::kScales + ring.stage * Exact::kScaleFloats * 4;
      const float* lane_block = lane_group + block * lane_stride_k;
      const float* column_block = column_group + block * column_stride_k;
#pragma unroll
      for (int i = lane; i < Geometry::kLanes; i += 32) {
        const int row = tile.lane0 + i;
        const bool inside = row < lane_rows(tile);
        cp_async_4(to + 4 * i, lane_block + (inside ? row / kLaneGroup * lane_stride : 0),
                   inside ? 4 : 0);
      }
#pragma unroll
      for (int i = lane; i < Exact::kColumnScales; i += 32) {
        const int row = tile.column0 + i * Exact::kScaleRun;
        const bool inside = row < column_rows(tile);
        cp_async_4(to + 4 * (Geometry::kLanes + i),
                   column_block + (inside ? row / kColumnGroup * column_stride : 0),
                   inside ? 4 : 0);
      }
      mbarrier_arrive_after_cp_async(shared + Exact::kScaleFull + 8 * ring.stage);
      ring.next();
    }
  }
  cp_async_wait<0>();
}

// Two neighbouring columns at once (PTX ISA 9.7.3.6 "fma", .f32x2): each half rounds as fma.rn.f32.
__device__ __forceinline__ void fma_pair(unsigned long long& sum, unsigned x0, unsigned x1,
                                         float s0, float s1) {
  asm("{\n"
      ".reg .b64 x, s;\n"
      "mov.b64 x, {%1, %2};\n"
      "mov.b64 s, {%3, %4};\n"
      "fma.rn.f32x2 %0, x, s, %0;\n"
      "}\n"
      : "+l"(sum)
      : "r"(x0), "r"(x1), "f"(s0), "f"(s1));
}

__device__ __forceinline__ void unpack(unsigned long long pair, float& low, float& high) {
  asm("mov.b64 {%0, %1}, %2;" : "=f"(low), "=f"(high) : "l"(pair));
}

// One epilogue thread's part of a tile: one tensor-memory lane, kWarpColumns columns.
struct Promotion {
  static constexpr int kChunk = Exact::kChunk;
  static constexpr int kChunks = Exact::kWarpColumns / kChunk;

  unsigned long long sum[Exact::kWarpColumns / 2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (unsigned long long& pair : sum) pair = 0;
  }

  // Adds one partial sum. `part` is its address for this warp's lanes and first column; `release`
  // is called once everything is in registers, so that the tensor core can reuse the buffer.
  template <class Release>
  __device__ __forceinline__ void add(unsigned part, SharedAddress scales, float lane_scale,
                                      int first_column, Release release) {
    // One scale for all of a warp's columns is the usual case.
    constexpr bool kOneScale = Exact::kScaleRun % Exact::kWarpColumns == 0;
    const float scale = kOneScale ? lane_scale * column_scale(scales, first_column) : lane_scale;
    unsigned value[2][kChunk];
    tcgen05::load(value[0], part);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      tcgen05::wait_load(value[c % 2]);
      if (c + 1 < kChunks) {
        tcgen05::load(value[(c + 1) % 2], part + (c + 1) * kChunk);
      } else {
        release();
      }
      add_chunk<kOneScale>(value[c % 2], c, scales, scale, first_column + c * kChunk);
    }
  }

  static __device__ __forceinline__ float column_scale(SharedAddress scales, int column) {
    return load_shared_float(scales + 4 * (Geometry::kLanes + column / Exact::kScaleRun));
  }

  // `scale` is the product of both operands' where there is one, else the lane's alone.
  template <bool kOneScale>
  __device__ __forceinline__ void add_chunk(const unsigned (&value)[kChunk], int chunk,
                                            SharedAddress scales, float scale, int column) {
    if constexpr (Exact::kScaleRun == 1) {
#pragma unroll
      for (int j = 0; j < kChunk; j += 4) {
        float s[4];
        asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3])
                     : "r"(scales + 4 * (Geometry::kLanes + column + j))
                     : "memory");
        unsigned long long* to = &sum[(chunk * kChunk + j) / 2];
        fma_pair(to[0], value[j], value[j + 1], scale * s[0], scale * s[1]);
        fma_pair(to[1], value[j + 2], value[j + 3], scale * s[2], scale * s[3]);
      }
    } else {
#pragma unroll
      for (int half = 0; half < kChunk; half += 16) {
        const float s = kOneScale ? scale : scale * column_scale(scales, column + half);
#pragma unroll
        for (int j = half; j < half + 16; j += 2) {
          fma_pair(sum[(chunk * kChunk + j) / 2], value[j], value[j + 1], s, s);
        }
      }
    }
  }
};

__device__ __forceinline__ void promote(const GemmParams& p, SharedAddress shared, const Walk& walk,
                                        StepRange range, int rank, int epilogue_warp, int lane) {
  const int lane_in_tile = epilogue_warp % 4 * 32 + lane;
  const int first_column = epilogue_warp / 4 * Exact::kWarpColumns;
  // Tensor-memory addresses: lane in the upper half, column in the lower (PTX ISA 9.7.16.1).
  const unsigned own = tensor_memory_base(shared + Exact::kTensorMemory) +
                       ((epilogue_warp % 4 * 32) << 16) + first_column;
  RowStore store(p, shared + Exact::kSlabs + epilogue_warp * kSlabsPerWarp * kSlabBytes, lane);
  StageCursor<Exact::kAccumulators> accumulator;
  StageCursor<Spec::kScaleStages> scale_stage;
  Promotion promotion;
  SplitExchange exchange = {shared + Exact::kSlabs, shared + Exact::kExchanged,
                            shared + Exact::kConsumed};
  const int blocks =
      ceil_div(range.end, Geometry::kStepsPerGroup) - range.begin / Geometry::kStepsPerGroup;
  Tiles tiles(walk, shared + Exact::kWorkRing);
  for (Tile tile; tiles.next(tile);) {
    promotion.clear();
    const int tile_blocks = has_operands(tile) ? blocks : 0;
    for (int block = 0; block < tile_blocks; ++block) {
      const SharedAddress scales =
          shared + Exact::kScales + scale_stage.stage * Exact::kScaleFloats * 4;
      mbarrier_wait(shared + Exact::kScaleFull + 8 * scale_stage.stage, scale_stage.phase);
      const float lane_scale = load_shared_float(scales + 4 * lane_in_tile);
      mbarrier_wait(shared + Exact::kAccumulatorFull + 8 * accumulator.stage, accumulator.phase);
      tcgen05::fence_after_thread_sync();
      promotion.add(own + accumulator.stage * Exact::kAccumulatorStride, scales, lane_scale,
                    first_column, [&] {
                      tcgen05::fence_before_thread_sync();
                      __syncwarp();
                      if (lane == 0) {
                        const SharedAddress empty =
                            shared + Exact::kAccumulatorEmpty + 8 * accumulator.stage;
                        if constexpr (Geometry::kPair == 2) {
                          mbarrier_arrive_remote(empty, 0);
                        } else {
                          mbarrier_arrive(empty);
                        }
                      }
                    });
      __syncwarp();
      if (lane == 0) mbarrier_arrive(shared + Exact::kScaleEmpty + 8 * scale_stage.stage);
      accumulator.next();
      scale_stage.next();
    }
    if constexpr (Spec::kSplitK > 1) {
      float sum[Exact::kWarpColumns];
#pragma unroll
      for (int j = 0; j < Exact::kWarpColumns; j += 2) {
        unpack(promotion.sum[j / 2], sum[j], sum[j + 1]);
      }
      exchange.reduce(p, sum, tile, rank, lane, lane_in_tile, first_column);
    } else if constexpr (Geometry::kSwap) {
#pragma unroll
      for (int j = 0; j < Exact::kWarpColumns; j += 2) {
        float low, high;
        unpack(promotion.sum[j / 2], low, high);
        store_transposed(p, tile, tile.column0 + first_column + j, tile.lane0 + lane_in_tile, low);
        store_transposed(p, tile, tile.column0 + first_column + j + 1, tile.lane0 + lane_in_tile,
                         high);
      }
    } else {
      constexpr int kWidth =
          Exact::kWarpColumns % kSlabColumns == 0 ? static_cast<int>(kSlabColumns) : 16;
#pragma unroll
      for (int c = 0; c < Exact::kWarpColumns; c += kWidth) {
        float row[kWidth];
#pragma unroll
        for (int j = 0; j < kWidth; j += 2) unpack(promotion.sum[(c + j) / 2], row[j], row[j + 1]);
        store.put(tile, row, tile.lane0 + epilogue_warp % 4 * 32, tile.column0 + first_column + c);
      }
    }
  }
  store.finish();
}

__device__ __forceinline__ void run(const GemmParams& p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const SharedAddress shared = shared_address(shared_memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int rank = Spec::kCluster > 1 ? static_cast<int>(cluster_cta_rank()) : 0;
  const Stages stages = {shared + Exact::kLaneTiles, shared + Exact::kColumnTiles,
                         shared + Exact::kFull, shared + Exact::kEmpty, shared + Exact::kWorkRing};

  if (threadIdx.x == 0) {
    init_barriers(shared + Exact::kFull, Spec::kStages, Stages::kFullArrivals);
    init_barriers(shared + Exact::kEmpty, Spec::kStages, Geometry::kShare);
    init_barriers(shared + Exact::kAccumulatorFull, Exact::kAccumulators, 1);
    init_barriers(shared + Exact::kAccumulatorEmpty, Exact::kAccumulators,
                  Spec::kEpilogueWarps * Geometry::kPair);
    init_barriers(shared + Exact::kScaleFull, Spec::kScaleStages, 32);
    init_barriers(shared + Exact::kScaleEmpty, Spec::kScaleStages, Spec::kEpilogueWarps);
    init_barriers(shared + Exact::kExchanged, 2, SplitExchange::kArrivals);
    if constexpr (Geometry::kGrouped) {
      WorkRing{stages.work}.init(work_readers(1));
    }
    mbarrier_init_fence();
  }
  if (warp == kScaleWarp) {
    tcgen05::alloc<Geometry::kPair>(shared + Exact::kTensorMemory, Exact::kAllocatedColumns);
    tcgen05::relinquish_alloc_permit<Geometry::kPair>();
  }
  sync_all();
  wait_for_predecessor();
  const Walk walk(p, rank);
  const StepRange range = step_range(rank);
  if (warp >= kFirstEpilogueWarp && warp < Roles::kFirstFeedWarp) {
    if constexpr (Roles::kMovesRegisters) take_registers<Roles::kLargeShare>();
    promote(p, shared, walk, range, rank, warp - kFirstEpilogueWarp, lane);
  } else {
    if constexpr (Roles::kMovesRegisters) give_registers<Roles::kSmallShare>();
    if (warp == kTmaWarp) {
      if constexpr (Roles::kAnyTma) {
        if (elect_one()) produce_by_tma(p, stages, walk, range, rank);
      }
    } else if (warp == kMmaWarp) {
      if ((Geometry::kPair == 1 || rank == 0) && elect_one()) {
        multiply(stages, shared, walk, range);
      }
    } else if (warp == kScaleWarp) {
      fetch_scales(p, shared, walk, range, lane);
    } else if (warp == Roles::kScheduleWarp) {
      if constexpr (Geometry::kGrouped) schedule(p, stages.work, lane);
    } else if (warp >= Roles::kFirstFeedWarp) {
      if constexpr (Roles::kAnyFeed) {
        produce_by_feed(p, stages, walk, range, warp - Roles::kFirstFeedWarp, lane);
      }
    }
  }
  __syncwarp();
  sync_all();
  if (warp == kScaleWarp) {
    tcgen05::dealloc<Geometry::kPair>(tensor_memory_base(shared + Exact::kTensorMemory),
                                      Exact::kAllocatedColumns);
  }
}

}  // namespace sm100

extern "C" __global__ void __launch_bounds__(Spec::kThreads, 1)
    jitgemm_kernel(const __grid_constant__ GemmParams p) {
  sm100::run(p);
}
