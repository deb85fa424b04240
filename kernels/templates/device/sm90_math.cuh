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

// acc += partial * (row scale * column scale), the two scales multiplied first.
__device__ __forceinline__ void promote(float (&acc)[Config::kRegisters],
                                        const float (&partial)[Config::kRegisters],
                                        const float (&row_scale)[2], const float* held_scale,
                                        SharedAddress column_scales) {
#pragma unroll
  for (int block = 0; block < Config::kGroupColumns / 8; ++block) {
    float scale[4];
    if constexpr (Config::kColumnRun == 1) {
      const bool held = Config::kHeldScales > 0;
      const float even =
          held ? held_scale[2 * block] : load_shared_float(column_scales + 16 * 8 * block);
      const float odd = held ? held_scale[2 * block + 1]
                             : load_shared_float(column_scales + 16 * (8 * block + 1));
      scale[0] = __fmul_rn(row_scale[0], even);
      scale[1] = __fmul_rn(row_scale[0], odd);
      scale[2] = __fmul_rn(row_scale[1], even);
      scale[3] = __fmul_rn(row_scale[1], odd);
    } else {
      const int index = 8 * block / Config::kColumnRun;
      const float run = Config::kHeldScales > 0 ? held_scale[index]
                                                : load_shared_float(column_scales + 16 * index);
      scale[0] = scale[1] = __fmul_rn(row_scale[0], run);
      scale[2] = scale[3] = __fmul_rn(row_scale[1], run);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      acc[4 * block + i] = __fmaf_rn(partial[4 * block + i], scale[i], acc[4 * block + i]);
    }
  }
}

// What a math warpgroup needs for one step, a stage's part that has one scale block: where its
// operands are, and the scales that do not fit beside the products.
struct Step {
  unsigned long long rows;
  unsigned long long columns;
  SharedAddress scales;
  float row_scale[2];  // of the first wave
  float held_scale[Config::kHeldScales > 0 ? Config::kHeldScales : 1];
  bool full;  // the stage was there when asked
};

// One math warp's walk over the steps. Whatever has a latency is asked for one step ahead, while
// the tensor cores work.
struct Consumer {
  Shared shared;
  MathThread thread;
  Cursor tiles;
  ScaleCursor slots;
  int quad = -1;  // of scale blocks, that the slot holds; -1: none held
  // Zero (the grid has one row), though the compiler cannot know: it keeps scales that all lanes
  // share out of the uniform registers, where moving them would stall the warp.
  unsigned zero;
  // Of stage 0; another stage's are a plain sum further, since addresses never carry out of the
  // field.
  unsigned long long first_rows;
  unsigned long long first_columns;

  __device__ __forceinline__ Consumer(const Shared& shared_, const MathThread& thread_)
      : shared(shared_),
        thread(thread_),
        zero(thread_.lane & (gridDim.y - 1)),
        first_rows(wgmma_descriptor(shared_.row_tile(0) + thread_.first_row() * Spec::kTileK)),
        first_columns(
            wgmma_descriptor(shared_.column_tile(0) + thread_.first_column() * Spec::kTileK)) {}

  __device__ __forceinline__ void release_tile(int stage) const {
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

  __device__ __forceinline__ void release_scales() {
    if (quad >= 0) {
      __syncwarp();
      if (thread.lane == 0) {
        mbarrier_arrive(shared.scales_empty(slots.stage));
      }
      slots.next();
      quad = -1;
    }
  }

  __device__ __forceinline__ void load_row_scale(SharedAddress scales, int wave,
                                                 float (&row_scale)[2]) const {
    if constexpr (Config::kOneRowScale) {
      row_scale[0] = row_scale[1] = load_shared_float(scales);
    } else {
      row_scale[0] = load_shared_float(scales + 16 * thread.row(wave));
      row_scale[1] = load_shared_float(scales + 16 * (thread.row(wave) + 8));
    }
  }

  __device__ __forceinline__ SharedAddress column_scales(SharedAddress scales) const {
    return scales + 16 * (Config::kRowScales + (Config::kColumnRun == 1
                                                    ? thread.column(0)
                                                    : thread.first_column() / Config::kColumnRun));
  }

  // The step that starts at k, in the stage of `tiles`.
  __device__ __forceinline__ void prepare(unsigned k, Step& step) {
    step.full = mbarrier_test(shared.full(tiles.stage), tiles.phase);
    const unsigned advance = 2 * (k % Spec::kTileK / 32);  // along k, in units of 16 bytes
    step.rows = first_rows + (tiles.stage * (Config::kRowTileBytes / 16) + advance);
    step.columns = first_columns + (tiles.stage * (Config::kColumnTileBytes / 16) + advance);
    const int block = static_cast<int>(k / Spec::kGroupK);
    if (block / 4 != quad) {
      release_scales();
      mbarrier_wait(shared.scales_full(slots.stage), slots.phase);
      quad = block / 4;
    }
    step.scales = shared.scales(slots.stage) + 4 * (block % 4) + zero;
    load_row_scale(step.scales, 0, step.row_scale);
#pragma unroll
    for (int i = 0; i < Config::kHeldScales; ++i) {
      const int column = Config::kColumnRun == 1 ? 8 * (i / 2) + i % 2 : i;
      step.held_scale[i] = load_shared_float(column_scales(step.scales) + 16 * column);
    }
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
    const int stage = consumer.tiles.stage;
    mbarrier_wait(consumer.shared.full(stage), consumer.tiles.phase);
    const unsigned long long rows =
        consumer.first_rows + static_cast<unsigned>(stage * (Config::kRowTileBytes / 16));
    const unsigned long long columns =
        consumer.first_columns + static_cast<unsigned>(stage * (Config::kColumnTileBytes / 16));
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
        Mma::run(acc[wave], rows + (64 * Spec::kTileK / 16) * wave + 2 * i, columns + 2 * i, true);
      }
    }
    wgmma_commit();
    if (running >= 0) {
      wgmma_wait<1>();
      consumer.release_tile(running);
    }
    running = stage;
    consumer.tiles.next();
  }
  wgmma_wait<0>();
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
    Mma::keep(acc[wave]);
  }
  consumer.release_tile(running);
}

__device__ __forceinline__ void multiply_tile(const Walk& walk, const TileOrigin& tile,
                                              Consumer& consumer,
                                              float (&partial)[Config::kRegisters],
                                              Accumulators& acc) {
  using Mma = Wgmma<Config::kGroupColumns, Config::kRowType, Config::kColumnType>;
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
    for (int i = 0; i < Config::kRegisters; ++i) {
      acc[wave][i] = 0.0f;
    }
  }
  int k = walk.k_begin() * Spec::kTileK;
  const int k_end = walk.k_end() == Config::kKBlocks ? Spec::kK : walk.k_end() * Spec::kTileK;
  if ((Spec::kSplitK > 1 && k >= k_end) || !has_operands(tile)) {
    return;
  }
  Step step;
  consumer.prepare(k, step);
  while (true) {
    const int stage = consumer.tiles.stage;
    if (!step.full) {
      mbarrier_wait(consumer.shared.full(stage), consumer.tiles.phase);
    }
    const int next_k = k + Config::kPartK;
    const bool last_of_tile = next_k >= k_end;
    const bool last_of_stage = Config::kParts == 1 || next_k % Spec::kTileK == 0 || last_of_tile;
    Step next;
#pragma unroll
    for (int wave = 0; wave < Config::kWaves; ++wave) {
      constexpr int kLast = Config::kWaves - 1;
      float row_scale[2] = {step.row_scale[0], step.row_scale[1]};
      if (wave > 0) {
        consumer.load_row_scale(step.scales, wave, row_scale);
      }
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < Config::kStepsPerPart; ++i) {
        Mma::run(partial, step.rows + (64 * Spec::kTileK / 16) * wave + 2 * i, step.columns + 2 * i,
                 i > 0);
      }
      wgmma_commit();
      if (wave == kLast && last_of_stage) {
        consumer.tiles.next();
      }
      // Column scales that promote() still has to read keep their slot until then.
      if (wave == kLast && Config::kHeldScales > 0 && !last_of_tile) {
        consumer.prepare(next_k, next);
      }
      wgmma_wait<0>();
      Mma::keep(partial);
      if (wave == kLast && last_of_stage) {
        consumer.release_tile(stage);
      }
      promote(acc[wave], partial, row_scale, step.held_scale, consumer.column_scales(step.scales));
    }
    if (last_of_tile) {
      break;
    }
    if constexpr (Config::kHeldScales == 0) {
      consumer.prepare(next_k, next);
    }
    step = next;
    k = next_k;
  }
  consumer.release_scales();
}
