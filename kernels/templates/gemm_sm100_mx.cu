// SPDX-License-Identifier: Apache-2.0
// Products on SM100 that the tensor core sums over all of K: FP8 with power-of-two scales, which it
// applies itself, or 16-bit operands without scales.
//
// kind::mxf8f6f4 takes one UE8M0 scale per row and 32 elements of K. Two warps turn the operands'
// scales (F8_E8M0, or fp32 that the caller declares to be powers of two: the exponent is taken)
// into scale words beside each stage; tcgen05.cp brings them to tensor memory, and the accumulator
// runs over all of K. The epilogue converts once. Everything about operand tiles is in
// device/sm100_pipeline.cuh.
#ifndef JITGEMM_SPECIALIZED
#include "example/gemm_sm100_mx_spec.cuh"
#endif

#include "device/sm100_pipeline.cuh"
#include "device/sm100_split.cuh"
#include "device/sm100_store.cuh"

namespace sm100 {

struct Scaled {
  static constexpr int kAccumulators = Spec::kAccumulators;
  // Two accumulators that are wider than tensor memory has room for overlap: the last columns of
  // the first are the first of the second. The epilogue reads those columns first, and the next
  // tile's products begin once it has.
  static constexpr int kAccumulatorStride = Spec::kAccumulatorStride;
  static constexpr int kOverlap = kAccumulators == 2 && kAccumulatorStride < Geometry::kColumns
                                      ? Geometry::kColumns - kAccumulatorStride
                                      : 0;
  // Scale words of 128 rows: 512 bytes of shared memory, four columns of tensor memory
  // (PTX ISA 9.7.16.10.7, scale_vec::1X). Every stage has its own columns, so that a copy never
  // meets a matrix instruction that still reads the ones before.
  static constexpr int kColumnScaleBlocks = ceil_div(Geometry::kColumns, 128);
  static constexpr bool kScaled = Spec::kScaled != 0;
  static constexpr int kScaleBlocks = kScaled ? 1 + kColumnScaleBlocks : 0;
  static constexpr int kScaleBlockBytes = 512;
  static constexpr int kScaleBlockColumns = 4;
  static constexpr int kScaleColumns =
      (kAccumulators - 1) * kAccumulatorStride + ceil_div(Geometry::kColumns, 32) * 32;
  static constexpr int kUsedColumns =
      kScaleColumns + Spec::kStages * kScaleBlocks * kScaleBlockColumns;
  static constexpr int kAllocatedColumns = allocated_columns(kUsedColumns);
  static_assert(kAccumulators >= 1 && kUsedColumns <= 512,
                "accumulators and scales in 512 columns of tensor memory");

  static constexpr int kWarpColumns = Geometry::kColumns / (Spec::kEpilogueWarps / 4);
  static_assert(kWarpColumns % 16 == 0, "an epilogue warp reads 16 columns at a time");
  static_assert(kOverlap == 0 ||
                    (kWarpColumns == Geometry::kColumns && 2 * kOverlap <= kWarpColumns),
                "every epilogue warp reads what overlaps");

  // Shared memory, in bytes from the 1024-aligned start.
  static constexpr int kLaneTiles = 0;
  static constexpr int kColumnTiles = kLaneTiles + Spec::kStages * Geometry::kLaneBytes;
  static constexpr int kSlabs = kColumnTiles + Spec::kStages * Geometry::kColumnBytes;
  static constexpr int kRowSlabBytes =
      Geometry::kSwap ? 0 : Spec::kEpilogueWarps * kSlabsPerWarp * kSlabBytes;
  static constexpr int kScales =
      kSlabs + (kRowSlabBytes > SplitExchange::kBytes ? kRowSlabBytes : SplitExchange::kBytes);
  static constexpr int kFull = kScales + Spec::kStages * kScaleBlocks * kScaleBlockBytes;
  static constexpr int kEmpty = kFull + 8 * Spec::kStages;
  static constexpr int kAccumulatorFull = kEmpty + 8 * Spec::kStages;
  static constexpr int kAccumulatorEmpty = kAccumulatorFull + 8 * kAccumulators;
  static constexpr int kExchanged = kAccumulatorEmpty + 8 * kAccumulators;
  static constexpr int kConsumed = kExchanged + 8;
  static constexpr int kOverlapEmpty = kConsumed + 8;
  static constexpr int kTensorMemory = kOverlapEmpty + (kOverlap > 0 ? 16 : 0);
  static constexpr int kWorkRing = kTensorMemory + 16;
  static constexpr int kSharedBytes =
      kWorkRing + (Geometry::kGrouped ? static_cast<int>(WorkRing::kBytes) : 0);
  static_assert(kSharedBytes == Spec::kSharedBytes, "the planner's sum differs from the kernel's");

  static constexpr int kScaleWarps = kScaled ? 2 : 0;
};

// One thread of the MMA warp; in a pair, the leader's only.
__device__ __forceinline__ void multiply(const Stages& stages, SharedAddress shared,
                                         const Walk& walk, StepRange range) {
  const unsigned tensor_memory = tensor_memory_base(shared + Scaled::kTensorMemory);
  StageCursor<Spec::kStages> stage;
  StageCursor<Scaled::kAccumulators> accumulator;
  unsigned overlap_phase = 1;  // the first tile finds nothing to wait for
  Tiles tiles(walk, stages.work);
  for (Tile tile; tiles.next<true>(tile);) {
    if (!has_operands(tile)) continue;
    const SharedAddress accumulator_empty =
        shared + Scaled::kAccumulatorEmpty + 8 * accumulator.stage;
    if constexpr (Geometry::kPair == 2) {
      mbarrier_wait_cluster(accumulator_empty, accumulator.phase ^ 1);
    } else {
      mbarrier_wait(accumulator_empty, accumulator.phase ^ 1);
    }
    if constexpr (Scaled::kOverlap > 0) {
      if constexpr (Geometry::kPair == 2) {
        mbarrier_wait_cluster(shared + Scaled::kOverlapEmpty, overlap_phase);
      } else {
        mbarrier_wait(shared + Scaled::kOverlapEmpty, overlap_phase);
      }
      overlap_phase ^= 1;
    }
    const unsigned d = tensor_memory + accumulator.stage * Scaled::kAccumulatorStride;
    for (int step = range.begin; step < range.end; step += Geometry::kStepsPerStage) {
      if constexpr (Geometry::kPair == 2) {
        mbarrier_wait_cluster(stages.full + 8 * stage.stage, stage.phase);
      } else {
        mbarrier_wait(stages.full + 8 * stage.stage, stage.phase);
      }
      tcgen05::fence_after_thread_sync();
      const SharedAddress words =
          shared + Scaled::kScales + stage.stage * Scaled::kScaleBlocks * Scaled::kScaleBlockBytes;
      const unsigned lane_scales = tensor_memory + Scaled::kScaleColumns +
                                   stage.stage * Scaled::kScaleBlocks * Scaled::kScaleBlockColumns;
      const unsigned column_scales = lane_scales + Scaled::kScaleBlockColumns;
#pragma unroll
      for (int block = 0; block < Scaled::kScaleBlocks; ++block) {
        tcgen05::copy_scales<Geometry::kPair>(
            lane_scales + block * Scaled::kScaleBlockColumns,
            tcgen05::scale_descriptor(words + block * Scaled::kScaleBlockBytes));
      }
      unsigned long long lane_tile = tcgen05::operand_descriptor(stages.lane_tile(stage.stage));
      unsigned long long column_tile = tcgen05::operand_descriptor(stages.column_tile(stage.stage));
#pragma unroll
      for (int i = 0; i < Geometry::kStepsPerStage; ++i) {
        if (!Scaled::kScaled && step + i < range.end) {
          constexpr unsigned kDescriptor = tcgen05::f8f6f4_descriptor(
              Geometry::kTypeLane - kF16Operand, Geometry::kTypeColumn - kF16Operand,
              Geometry::kLanes * Geometry::kPair, Geometry::kColumns);
          tcgen05::mma_f16<Geometry::kPair>(d, lane_tile, column_tile, kDescriptor,
                                            step + i != range.begin);
          lane_tile += tcgen05::kDescriptorStepPer32Bytes;
          column_tile += tcgen05::kDescriptorStepPer32Bytes;
        }
        if (Scaled::kScaled && step + i < range.end) {
          const unsigned descriptor = tcgen05::mxf8f6f4_descriptor(
              Geometry::kTypeLane, Geometry::kTypeColumn, Geometry::kLanes * Geometry::kPair,
              Geometry::kColumns, i);
          tcgen05::mma_mxf8f6f4<Geometry::kPair>(d, lane_tile, column_tile, descriptor, lane_scales,
                                                 column_scales, step + i != range.begin);
          lane_tile += tcgen05::kDescriptorStepPer32Bytes;
          column_tile += tcgen05::kDescriptorStepPer32Bytes;
        }
      }
      commit_stage(stages.empty + 8 * stage.stage);
      stage.next();
    }
    commit(shared + Scaled::kAccumulatorFull + 8 * accumulator.stage);
    accumulator.next();
  }
}

// One operand's scales, as a scale warp reads them; kPacked: words of four bytes, which strides
// count. Rows and scale blocks beyond the operand read
// as one: what they scale is zero or never stored, but it must be defined.
template <bool kPacked>
struct ScaleSource {
  const void* data;
  long long stride_row;
  long long stride_k;
  long long stride_group;
  int run;  // rows that share a scale

  static constexpr unsigned kOne = Spec::kScaleType == 0 ? 0x3f800000u : 127u;
  static constexpr int kGroups = ceil_div(Spec::kK, Spec::kGroupK);

  // The scale of a row of the operand's rows [0, rows), in one of its groups.
  __device__ __forceinline__ unsigned raw(int group, int rows, int row, int k_group) const {
    if (row >= rows || k_group >= kGroups) return kOne;
    long long at = row / run * stride_row + (kPacked ? k_group / 4 : k_group) * stride_k;
    if constexpr (Geometry::kGrouped) at += group * stride_group;
    if constexpr (kPacked) at = 4 * at + k_group % 4;
    if constexpr (Spec::kScaleType == 0) return static_cast<const unsigned*>(data)[at];
    return static_cast<const unsigned char*>(data)[at];
  }
};

// The exponent of a positive fp32 power of two is its UE8M0 code; 2^-127, a subnormal, is code 0.
__device__ __forceinline__ unsigned scale_code(unsigned raw) {
  return Spec::kScaleType == 0 ? raw >> 23 & 0xff : raw;
}

// The scales of the four steps of a stage, a byte each; raw[g] is that of the g-th scale block
// which the stage touches.
template <int kTouched>
__device__ __forceinline__ unsigned scale_word(const unsigned (&raw)[kTouched], int first_step) {
  constexpr int kGroupSteps = Geometry::kStepsPerGroup;
  if constexpr (kTouched == 1) return scale_code(raw[0]) * 0x01010101u;
  unsigned word = 0;
#pragma unroll
  for (int i = 0; i < Geometry::kStepsPerStage; ++i) {
    const int touched = (first_step + i) / kGroupSteps - first_step / kGroupSteps;
    unsigned value = raw[0];
#pragma unroll
    for (int g = 1; g < kTouched; ++g) {
      if (touched == g) value = raw[g];
    }
    word |= scale_code(value) << (8 * i);
  }
  return word;
}

// The scale warps: each takes 64 rows of every block of 128 scale words. Reads of kBatch stages are
// in flight while the words of the kBatch stages before them are written.
template <class LaneScales, class ColumnScales>
__device__ __forceinline__ void write_scales(const LaneScales& lane_source,
                                             const ColumnScales& column_source,
                                             const Stages& stages, SharedAddress words,
                                             const Walk& walk, StepRange range, int half,
                                             int lane) {
  constexpr int kGroupSteps = Geometry::kStepsPerGroup;
  // Scale blocks that one stage of four steps can touch.
  constexpr int kTouched = kGroupSteps == 1 ? 4 : kGroupSteps % 4 == 0 ? 1 : 2;
  constexpr int kBatch = 4 / kTouched;
  const int first = range.begin / Geometry::kStepsPerStage;
  const int last = ceil_div(range.end, Geometry::kStepsPerStage);
  constexpr int kRows = 2 * Scaled::kScaleBlocks;  // of one thread

  unsigned current[kBatch][kTouched][kRows] = {};
  unsigned next[kBatch][kTouched][kRows] = {};
  StageCursor<Spec::kStages> ring;
  int stage = first;
  int next_stage = first;
  bool loaded = false;
  Tiles tiles(walk, stages.work);
  Tile tile = {};
  bool open = tiles.next(tile);
  bool more = open && has_operands(tile);
  while (loaded || open) {
    if (more) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        const int group0 = (next_stage + b) * Geometry::kStepsPerStage / kGroupSteps;
#pragma unroll
        for (int g = 0; g < kTouched; ++g) {
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
            const int row = r % 2 * 32 + half * 64 + lane;
            if (r < 2) {
              next[b][g][r] =
                  lane_source.raw(tile.group, lane_rows(tile), tile.lane0 + row, group0 + g);
            } else {
              next[b][g][r] = column_source.raw(tile.group, column_rows(tile),
                                                tile.column0 + (r / 2 - 1) * 128 + row, group0 + g);
            }
          }
        }
      }
    }
    if (loaded) {
#pragma unroll
      for (int b = 0; b < kBatch; ++b) {
        if (stage + b < last) {
          mbarrier_wait(stages.empty + 8 * ring.stage, ring.phase ^ 1);
          // Row 32 c + l of a block of 128 is word c of the 16 bytes of l.
          const SharedAddress to = words +
                                   ring.stage * Scaled::kScaleBlocks * Scaled::kScaleBlockBytes +
                                   lane * 16 + half * 8;
          const int first_step = (stage + b) * Geometry::kStepsPerStage;
#pragma unroll
          for (int block = 0; block < Scaled::kScaleBlocks; ++block) {
            unsigned word[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
              unsigned raw[kTouched];
#pragma unroll
              for (int g = 0; g < kTouched; ++g) raw[g] = current[b][g][2 * block + r];
              word[r] = scale_word(raw, first_step);
            }
            asm volatile(
                "st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to + block * Scaled::kScaleBlockBytes),
                "r"(word[0]), "r"(word[1])
                : "memory");
          }
          fence_proxy_async_shared();
          if constexpr (Geometry::kPair == 2) {
            mbarrier_arrive_remote_release(stages.full + 8 * ring.stage, 0);
          } else {
            mbarrier_arrive(stages.full + 8 * ring.stage);
          }
          ring.next();
        }
      }
    }
    loaded = more;
    stage = next_stage;
    next_stage += kBatch;
    // What was read of a tile is written before a second one is waited for: whoever waits for the
    // words keeps the slot that it may come in.
    if (next_stage >= last || !more) {
      next_stage = first;
      open = open && tiles.next(tile);
      more = open && has_operands(tile);
    }
#pragma unroll
    for (int b = 0; b < kBatch; ++b) {
#pragma unroll
      for (int g = 0; g < kTouched; ++g) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) current[b][g][r] = next[b][g][r];
      }
    }
  }
}

// kWidth columns of a tile, from its column `column` on.
template <int kWidth>
__device__ __forceinline__ void put(RowStore& store, const GemmParams& p, const Tile& tile,
                                    const float (&value)[kWidth], int epilogue_warp,
                                    int lane_in_tile, int column) {
  if constexpr (Geometry::kSwap) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      store_transposed(p, tile, tile.column0 + column + j, tile.lane0 + lane_in_tile, value[j]);
    }
  } else if constexpr (Spec::kSplitK == 1) {
    store.put(tile, value, tile.lane0 + epilogue_warp % 4 * 32, tile.column0 + column);
  }
}

__device__ __forceinline__ void convert(const GemmParams& p, SharedAddress shared, const Walk& walk,
                                        int rank, int epilogue_warp, int lane) {
  const int lane_in_tile = epilogue_warp % 4 * 32 + lane;
  const int first_column = epilogue_warp / 4 * Scaled::kWarpColumns;
  // Tensor-memory addresses: lane in the upper half, column in the lower (PTX ISA 9.7.16.1).
  const unsigned own = tensor_memory_base(shared + Scaled::kTensorMemory) +
                       ((epilogue_warp % 4 * 32) << 16) + first_column;
  RowStore store(p, shared + Scaled::kSlabs + epilogue_warp * kSlabsPerWarp * kSlabBytes, lane);
  StageCursor<Scaled::kAccumulators> accumulator;
  SplitExchange exchange = {shared + Scaled::kSlabs, shared + Scaled::kExchanged,
                            shared + Scaled::kConsumed};
  constexpr int kWidth = Spec::kSplitK > 1                          ? Scaled::kWarpColumns
                         : Scaled::kWarpColumns % kSlabColumns == 0 ? static_cast<int>(kSlabColumns)
                                                                    : 16;
  constexpr int kLoad = kWidth % 32 == 0 ? 32 : 16;
  Tiles tiles(walk, shared + Scaled::kWorkRing);
  for (Tile tile; tiles.next(tile);) {
    if (!has_operands(tile)) {
      const float zero[kWidth] = {};
      for (int c = 0; c < Scaled::kWarpColumns; c += kWidth) {
        put(store, p, tile, zero, epilogue_warp, lane_in_tile, first_column + c);
      }
      continue;
    }
    mbarrier_wait(shared + Scaled::kAccumulatorFull + 8 * accumulator.stage, accumulator.phase);
    tcgen05::fence_after_thread_sync();
    const unsigned d = own + accumulator.stage * Scaled::kAccumulatorStride;
    const auto give_back = [&](SharedAddress barrier) {
      tcgen05::fence_before_thread_sync();
      __syncwarp();
      if (lane == 0) {
        if constexpr (Geometry::kPair == 2) {
          mbarrier_arrive_remote(barrier, 0);
        } else {
          mbarrier_arrive(barrier);
        }
      }
    };
    static_assert(Scaled::kOverlap % kWidth == 0, "a chunk overlaps or it doesn't");
    // What overlaps comes first: the last columns of the first accumulator.
    const int rotation = Scaled::kOverlap > 0 && accumulator.stage == 0
                             ? Scaled::kWarpColumns - Scaled::kOverlap
                             : 0;
#pragma unroll 1
    for (int i = 0; i < Scaled::kWarpColumns; i += kWidth) {
      const int c =
          i + rotation < Scaled::kWarpColumns ? i + rotation : i + rotation - Scaled::kWarpColumns;
      unsigned bits[kWidth / kLoad][kLoad];
#pragma unroll
      for (int j = 0; j < kWidth / kLoad; ++j) tcgen05::load(bits[j], d + c + j * kLoad);
#pragma unroll
      for (int j = 0; j < kWidth / kLoad; ++j) tcgen05::wait_load(bits[j]);
      if (Scaled::kOverlap > 0 && i + kWidth == Scaled::kOverlap) {
        give_back(shared + Scaled::kOverlapEmpty);
      }
      if (i + kWidth == Scaled::kWarpColumns) {
        give_back(shared + Scaled::kAccumulatorEmpty + 8 * accumulator.stage);
      }
      float value[kWidth];
#pragma unroll
      for (int j = 0; j < kWidth; ++j) value[j] = __uint_as_float(bits[j / kLoad][j % kLoad]);
      const int column = first_column + c;
      if constexpr (Spec::kSplitK > 1) {
        exchange.reduce(p, value, tile, rank, lane, lane_in_tile, column);
      } else {
        put(store, p, tile, value, epilogue_warp, lane_in_tile, column);
      }
    }
    accumulator.next();
  }
  store.finish();
}

__device__ __forceinline__ void run(const GemmParams& p) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const SharedAddress shared = shared_address(shared_memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int rank = Spec::kCluster > 1 ? static_cast<int>(cluster_cta_rank()) : 0;
  const Stages stages = {shared + Scaled::kLaneTiles, shared + Scaled::kColumnTiles,
                         shared + Scaled::kFull, shared + Scaled::kEmpty,
                         shared + Scaled::kWorkRing};

  if (threadIdx.x == 0) {
    init_barriers(shared + Scaled::kFull, Spec::kStages,
                  Stages::kFullArrivals + Scaled::kScaleWarps * 32 * Geometry::kPair);
    init_barriers(shared + Scaled::kEmpty, Spec::kStages, Geometry::kShare);
    init_barriers(shared + Scaled::kAccumulatorFull, Scaled::kAccumulators, 1);
    init_barriers(shared + Scaled::kAccumulatorEmpty, Scaled::kAccumulators,
                  Spec::kEpilogueWarps * Geometry::kPair);
    init_barriers(shared + Scaled::kExchanged, 2, SplitExchange::kArrivals);
    if constexpr (Scaled::kOverlap > 0) {
      init_barriers(shared + Scaled::kOverlapEmpty, 1, Spec::kEpilogueWarps * Geometry::kPair);
    }
    if constexpr (Geometry::kGrouped) {
      WorkRing{stages.work}.init(work_readers(Scaled::kScaleWarps));
    }
    mbarrier_init_fence();
  }
  if (warp == kScaleWarp) {
    tcgen05::alloc<Geometry::kPair>(shared + Scaled::kTensorMemory, Scaled::kAllocatedColumns);
    tcgen05::relinquish_alloc_permit<Geometry::kPair>();
  }
  sync_all();
  wait_for_predecessor();

  const Walk walk(p, rank);
  const StepRange range = step_range(rank);
  if (warp >= kFirstEpilogueWarp && warp < Roles::kFirstFeedWarp) {
    convert(p, shared, walk, rank, warp - kFirstEpilogueWarp, lane);
  } else if (warp == kTmaWarp) {
    if constexpr (Roles::kAnyTma) {
      if (elect_one()) produce_by_tma(p, stages, walk, range, rank);
    }
  } else if (warp == kMmaWarp) {
    if ((Geometry::kPair == 1 || rank == 0) && elect_one()) multiply(stages, shared, walk, range);
  } else if (warp == Roles::kScheduleWarp) {
    if constexpr (Geometry::kGrouped) schedule(p, stages.work, lane);
  } else if (warp == kScaleWarp || warp == kSpareWarp) {
    if constexpr (Scaled::kScaled) {
      const ScaleSource<Spec::kPackedA != 0> a = {p.a_scales, p.a_scale_stride_m,
                                                  p.a_scale_stride_k, p.a_scale_group_stride, 1};
      const ScaleSource<Spec::kPackedB != 0> b = {p.b_scales, p.b_scale_stride_n,
                                                  p.b_scale_stride_k, p.b_scale_group_stride,
                                                  Spec::kGroupN};
      const SharedAddress words = shared + Scaled::kScales;
      if constexpr (Geometry::kSwap) {
        write_scales(b, a, stages, words, walk, range, warp - kScaleWarp, lane);
      } else {
        write_scales(a, b, stages, words, walk, range, warp - kScaleWarp, lane);
      }
    }
  } else {
    if constexpr (Roles::kAnyFeed) {
      produce_by_feed(p, stages, walk, range, warp - Roles::kFirstFeedWarp, lane);
    }
  }
  __syncwarp();
  sync_all();
  if (warp == kScaleWarp) {
    tcgen05::dealloc<Geometry::kPair>(tensor_memory_base(shared + Scaled::kTensorMemory),
                                      Scaled::kAllocatedColumns);
  }
}

}  // namespace sm100

extern "C" __global__ void __launch_bounds__(Spec::kThreads, 1)
    jitgemm_kernel(const __grid_constant__ GemmParams p) {
  sm100::run(p);
}
