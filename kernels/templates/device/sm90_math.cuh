// SPDX-License-Identifier: Apache-2.0
// The math warpgroups of gemm_sm90.cu: wgmma over the stages, promotion of each scale block into
// fp32 sums. Knows the rings and their barriers, nothing of where tiles come from or go to.
#pragma once

#include "device/memory.cuh"
#include "device/sm90_config.cuh"
#include "device/wgmma.cuh"

// One math warpgroup's position and the coordinates of its threads' accumulators in the tile.
struct MathThread {
  int warpgroup;
  int warp;  // in the warpgroup
  int lane;

  __device__ __forceinline__ int first_row() const {
    return warpgroup / Spec::kWarpgroupColumns * Config::kGroupRows;
  }
  __device__ __forceinline__ int first_column() const {
    return warpgroup % Spec::kWarpgroupColumns * Config::kGroupColumns;
  }
  // The row of accumulators 0 and 1 of each block of 8 columns; 2 and 3 are 8 rows further.
  __device__ __forceinline__ int row(int wave) const {
    return first_row() + 64 * wave + 16 * warp + lane / 4;
  }
  // The column of accumulator 4 * block.
  __device__ __forceinline__ int column(int block) const {
    return first_column() + 8 * block + 2 * (lane % 4);
  }
};

using Accumulators = float[Config::kWaves][Config::kRegisters];

// The column scales of one scale block of k, as one math thread sees them: i counts runs of columns
// or, where runs are short, the thread's columns, two in each block of 8.
struct ColumnScales {
  SharedAddress entries;
  int first;  // the thread's first column in the tile
  int remainder;

  __device__ __forceinline__ float load(int i) const {
    const int offset = Config::kColumnRun == 1 ? 8 * (i / 2) + i % 2 : Config::kColumnRun * i;
    return load_shared_float(entries + 16 * scale_entry<Config::kColumns, Config::kColumnGroup>(
                                                remainder, first + offset));
  }
};

// acc += partial * (row scale * column scale), the two scales multiplied first.
__device__ __forceinline__ void promote(float (&acc)[Config::kRegisters],
                                        const float (&partial)[Config::kRegisters],
                                        const float (&row_scale)[2], const float* held_scale,
                                        const ColumnScales& columns) {
  const auto column_scale = [&](int i) {
    return Config::kHeldScales > 0 ? held_scale[i] : columns.load(i);
  };
#pragma unroll
  for (int block = 0; block < Config::kGroupColumns / 8; ++block) {
    float scale[4];
    if constexpr (Config::kColumnRun == 1) {
      const float even = column_scale(2 * block);
      const float odd = column_scale(2 * block + 1);
      scale[0] = __fmul_rn(row_scale[0], even);
      scale[1] = __fmul_rn(row_scale[0], odd);
      scale[2] = __fmul_rn(row_scale[1], even);
      scale[3] = __fmul_rn(row_scale[1], odd);
    } else {
      const float run = column_scale(8 * block / Config::kColumnRun);
      scale[0] = scale[1] = __fmul_rn(row_scale[0], run);
      scale[2] = scale[3] = __fmul_rn(row_scale[1], run);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      acc[4 * block + i] = __fmaf_rn(partial[4 * block + i], scale[i], acc[4 * block + i]);
    }
  }
}

// One math warp's walk over the stages.
struct Consumer {
  Shared shared;
  MathThread thread;
  Cursor stages;
  ScaleSlot scales;
  int remainder = 0;  // of the tile's first n, divided by the n that share a scale
  bool full = false;  // the stage was, when asked while the tensor cores worked
  // Zero (the grid has one row), though the compiler cannot know: it keeps scales that all lanes
  // share out of the uniform registers, where moving them would stall the warp.
  unsigned zero;
  // The lower halves of the descriptors of stage 0; another stage's are a plain sum further, since
  // addresses never carry out of the field. All lanes have the same, and the shuffle lets the
  // compiler know: uniform registers are where wgmma wants them.
  unsigned first_rows;
  unsigned first_columns;

  __device__ __forceinline__ Consumer(const Shared& shared_, const MathThread& thread_)
      : shared(shared_),
        thread(thread_),
        zero(thread_.lane & (gridDim.y - 1)),
        first_rows(uniform(
            wgmma_descriptor_low(shared_.row_tile(0) + thread_.first_row() * Spec::kTileK))),
        first_columns(uniform(wgmma_descriptor_low(shared_.column_tile(0) +
                                                   thread_.first_column() * Spec::kTileK))) {}

  template <class T>
  static __device__ __forceinline__ T uniform(T value) {
    return __shfl_sync(0xffffffffu, value, 0);
  }
  // Descriptors of the tiles of the stage; along k, 32 codes are 2 further.
  __device__ __forceinline__ unsigned rows() const {
    return first_rows + static_cast<unsigned>(stages.stage * (Config::kRowTileBytes / 16));
  }
  __device__ __forceinline__ unsigned columns() const {
    return first_columns + static_cast<unsigned>(stages.stage * (Config::kColumnTileBytes / 16));
  }

  __device__ __forceinline__ void wait_for_stage() const {
    if (!full) {
      mbarrier_wait(shared.full(stages.stage), stages.phase);
    }
  }
  // On to the next stage.
  __device__ __forceinline__ void advance() {
    stages.next();
    full = mbarrier_test(shared.full(stages.stage), stages.phase);
  }

  // To where the next tile begins, whether this one is multiplied or not: what is known apart from
  // which, the compiler keeps in uniform registers.
  __device__ __forceinline__ void skip_tile() {
    stages.skip<Config::kKBlocks>();
    scales.skip_tile();
    full = false;
  }

  // The warp reads the stage's tiles and scales no more.
  __device__ __forceinline__ void release(int stage) const {
    __syncwarp();
    if constexpr (Config::kMulticast) {
      // To every CTA that writes into this one's stages. They learn only that wgmma has read the
      // stage, so no wider ordering than the default is needed.
      if (thread.lane < Spec::kCluster) {
        mbarrier_arrive_remote(shared.empty(stage), thread.lane);
      }
    } else if (thread.lane == 0) {
      mbarrier_arrive(shared.empty(stage));
    }
  }

  // Of the scale block that is the `block`-th of its quad.
  __device__ __forceinline__ SharedAddress block_scales(int block) const {
    return shared.scales(scales.slot) + 4 * block + zero;
  }
  __device__ __forceinline__ void load_row_scale(SharedAddress block, int wave,
                                                 float (&row_scale)[2]) const {
    const auto load = [&](int row) {
      return load_shared_float(block +
                               16 * scale_entry<Config::kRows, Config::kRowGroup>(remainder, row));
    };
    row_scale[0] = load(thread.row(wave));
    row_scale[1] = Config::kOneRowScale ? row_scale[0] : load(thread.row(wave) + 8);
  }
  __device__ __forceinline__ ColumnScales column_scales(SharedAddress block) const {
    return {block + Config::kColumnScaleOffset,
            Config::kColumnRun == 1 ? thread.column(0) : thread.first_column(), remainder};
  }
};

// 16-bit operands: the tensor core sums over all of k, and one stage's products run while the next
// stage is waited for.
__device__ __forceinline__ void multiply_unscaled(const Walk& walk, const TileOrigin& tile,
                                                  Consumer& consumer, Accumulators& acc) {
  using Mma = Wgmma<Config::kGroupColumns, Config::kRowType, Config::kColumnType>;
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
    for (int i = 0; i < Config::kRegisters; ++i) {
      acc[wave][i] = 0.0f;
    }
  }
  if (!has_operands(tile)) {
    return;
  }
  int running = -1;
  for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
    const int stage = consumer.stages.stage;
    mbarrier_wait(consumer.shared.full(stage), consumer.stages.phase);
    const unsigned rows = consumer.rows();
    const unsigned columns = consumer.columns();
    // The sums must be in their registers before the fence.
#pragma unroll
    for (int wave = 0; wave < Config::kWaves; ++wave) {
      Mma::keep(acc[wave]);
    }
    wgmma_fence();
#pragma unroll
    for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
      for (int i = 0; i < Spec::kTileK / 32; ++i) {
        Mma::run(acc[wave], wgmma_descriptor(rows + (64 * Spec::kTileK / 16) * wave + 2 * i),
                 wgmma_descriptor(columns + 2 * i), true);
      }
    }
    wgmma_commit();
    if (running >= 0) {
      wgmma_wait<1>();
      consumer.release(running);
    }
    running = stage;
    consumer.stages.next();
  }
  wgmma_wait<0>();
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
    Mma::keep(acc[wave]);
  }
  consumer.release(running);
}

// The stages that multiply_tile takes in one turn of its loop: what depends on the place of a stage
// in its quad is then known to the compiler. Not where registers are short.
constexpr int kStagesPerTurn = Config::kWarpgroups == 3 ? 1 : 4;

// The tile has no rows for this warpgroup: its stages pass unread.
__device__ __forceinline__ void pass_tile(const Walk& walk, Consumer& consumer) {
  for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
    if (ScaleSlot::begins_quad(k_block, walk.k_begin())) consumer.scales.next();
    consumer.wait_for_stage();
    const int stage = consumer.stages.stage;
    consumer.advance();
    consumer.release(stage);
  }
}

// acc += the products of the first kWaves waves of the tile. meanwhile(wave, first, last) is called
// while the tensor cores work on the products of `wave`, in the first and the last step of the
// tile.
template <int kWaves, class Meanwhile>
__device__ __forceinline__ void multiply_tile(const Walk& walk, const TileOrigin& tile,
                                              Consumer& consumer,
                                              float (&partial)[Config::kRegisters],
                                              Accumulators& acc, const Meanwhile& meanwhile) {
  using Mma = Wgmma<Config::kGroupColumns, Config::kRowType, Config::kColumnType>;
  constexpr bool kWhole = Spec::kSplitK == 1;  // the tile has all of k
  // Quads begin with turns, or turns with quads.
  constexpr bool kQuadsAligned = kWhole && (kStagesPerTurn % Config::kQuadStages == 0 ||
                                            Config::kQuadStages % kStagesPerTurn == 0);
  constexpr int kLastWave = kWaves - 1;
  const int k_begin = walk.k_begin();
  const int k_end = walk.k_end();
  consumer.remainder = (Config::kSwap ? tile.row : tile.column) % Spec::kGroupN;
#pragma unroll 1
  for (int turn = k_begin; turn < k_end; turn += kStagesPerTurn) {
#pragma unroll
    for (int u = 0; u < kStagesPerTurn; ++u) {
      const int k_block = turn + u;
      if ((!kWhole || Config::kKBlocks % kStagesPerTurn != 0) && k_block >= k_end) {
        break;
      }
      if (!kQuadsAligned || u % Config::kQuadStages == 0) {
        if (ScaleSlot::begins_quad(k_block, k_begin)) consumer.scales.next();
      }
      // turn % kQuadStages + u where that is the same: the compiler then sees what the stages of a
      // turn have in common.
      const int place = !kQuadsAligned ? k_block % Config::kQuadStages
                        : kStagesPerTurn % Config::kQuadStages == 0
                            ? u % Config::kQuadStages
                            : turn % Config::kQuadStages + u;
      const bool last_stage =
          (!kWhole || u == (Config::kKBlocks - 1) % kStagesPerTurn) && k_block == k_end - 1;
      const int stage = consumer.stages.stage;
      const unsigned rows = consumer.rows();
      const unsigned columns = consumer.columns();
      consumer.wait_for_stage();
#pragma unroll
      for (int part = 0; part < Config::kParts; ++part) {
        // A last stage that is not full has fewer parts.
        const bool last_part =
            part == Config::kParts - 1 ||
            (last_stage && k_block == Config::kKBlocks - 1 && Spec::kK % Spec::kTileK != 0 &&
             part == ceil_div(Spec::kK % Spec::kTileK, Config::kPartK) - 1);
        float held_scale[Config::kHeldScales > 0 ? Config::kHeldScales : 1];
        const int block = (place * Spec::kTileK + part * Config::kPartK) / Spec::kGroupK;
        const SharedAddress scales = consumer.block_scales(block);
        const ColumnScales column_scales = consumer.column_scales(scales);
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave) {
          Mma::keep(partial);  // in its registers before the fence
          wgmma_fence();
#pragma unroll
          for (int i = 0; i < Config::kStepsPerPart; ++i) {
            const int step = 2 * (part * Config::kStepsPerPart + i);
            Mma::run(partial, wgmma_descriptor(rows + (64 * Spec::kTileK / 16) * wave + step),
                     wgmma_descriptor(columns + step), i > 0);
          }
          wgmma_commit();
          // Whatever has a latency is asked for while the tensor cores work; without this the
          // compiler would put it, and its waits, between the products.
          __syncwarp();
          float row_scale[2];
          consumer.load_row_scale(scales, wave, row_scale);
          if (wave == 0) {
#pragma unroll
            for (int i = 0; i < Config::kHeldScales; ++i) {
              held_scale[i] = column_scales.load(i);
            }
          }
          const bool last = wave == kLastWave && last_part;
          if (!kWhole || u == 0 || u == (Config::kKBlocks - 1) % kStagesPerTurn) {
            meanwhile(wave, u == 0 && part == 0 && k_block == k_begin, last_stage && last_part);
          }
          if (last) {
            consumer.advance();
          }
          wgmma_wait<0>();
          Mma::keep(partial);
          // Column scales that promote() has yet to read lie in the stage's slot.
          if (last && Config::kHeldScales > 0) {
            consumer.release(stage);
          }
          promote(acc[wave], partial, row_scale, held_scale, column_scales);
          if (last && Config::kHeldScales == 0) {
            consumer.release(stage);
          }
        }
        if (last_part) {
          break;
        }
      }
    }
  }
}
