// SPDX-License-Identifier: Apache-2.0
// From a math warpgroup's fp32 sums to the output of gemm_sm90.cu: direct or TMA stores, and the
// sum over the splits of k. Rows and columns that do not exist are not written.
#pragma once

#include "device/memory.cuh"
#include "device/params.cuh"
#include "device/sm90_math.cuh"
#include "device/tma.cuh"

using Output = OutputStorage<Spec::kOut>::Type;

// The output of the tile's group; everywhere the same where groups share all rows.
__device__ __forceinline__ Output* group_output(const GemmParams& p, const TileOrigin& tile) {
  Output* out = static_cast<Output*>(p.out);
  if constexpr (Spec::kGroupLayout == kMasked) {
    out += owner_of_rows(tile.group) * p.out_group_stride;
  }
  return out;
}

// One output of the row that starts at `line`, if it exists.
__device__ __forceinline__ void store_one(Output* line, int end, int row_m, int column_n,
                                          float value) {
  if (row_m < end && column_n < Spec::kN) {
    line[column_n] = convert_output<Spec::kOut>(value);
  }
}

// Rows are m. A quad of lanes holds 8 columns of a row, two a lane. With vector stores, fp32 goes
// out in pairs; 16-bit outputs first trade halves with the neighbouring lane, so that each lane has
// 4 columns of one of two blocks and the quad writes 32 bytes in a row.
__device__ __forceinline__ void store_rows(const GemmParams& p, TileOrigin tile,
                                           const MathThread& thread, int wave,
                                           const float (&acc)[Config::kRegisters]) {
  const int m = tile.end;
  constexpr bool kWholeTiles = Spec::kN % Walk::kUnitColumns == 0;  // no column tail in a cluster
  const bool odd = thread.lane % 2 != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = tile.row + thread.row(wave) + 8 * half;
    const int first = tile.column + thread.column(0);
    const int quad_column =
        tile.column + thread.first_column() + (odd ? 8 : 0) + 4 * (thread.lane % 4 / 2);
    Output* line = group_output(p, tile) + row * p.ldo;
    Output* quad_line = one_address(line + quad_column);
    Output* pair_line = one_address(line + first);
#pragma unroll
    for (int block = 0; block < Config::kGroupColumns / 8; block += 2) {
      const float* v = &acc[4 * block + 2 * half];
      if constexpr (Spec::kStoreVector == 0) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          store_one(line, m, row, first + 8 * (block + i / 2) + i % 2, v[4 * (i / 2) + i % 2]);
        }
      } else if constexpr (Spec::kOut == kF32) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int column = first + 8 * (block + i);
          const bool whole = kWholeTiles || column + 1 < Spec::kN;
          store_global_if(row < m && whole, pair_line + 8 * (block + i),
                          make_uint2(__float_as_uint(v[4 * i]), __float_as_uint(v[4 * i + 1])));
          if (!whole) {
            store_one(line, m, row, column, v[4 * i]);
          }
        }
      } else {
        const unsigned own[2] = {pack_outputs<Spec::kOut>(v[0], v[1]),
                                 pack_outputs<Spec::kOut>(v[4], v[5])};
        const unsigned received = __shfl_xor_sync(0xffffffffu, odd ? own[0] : own[1], 1);
        const uint2 words = odd ? make_uint2(received, own[1]) : make_uint2(own[0], received);
        const int column = quad_column + 8 * block;
        const bool whole = kWholeTiles || column + 3 < Spec::kN;
        store_global_if(row < m && whole, quad_line + 8 * block, words);
        if constexpr (!kWholeTiles) {
#pragma unroll
          for (int i = 0; i < 3; ++i) {
            const unsigned word = i < 2 ? words.x : words.y;
            if (!whole && row < m && column + i < Spec::kN) {
              line[column + i] = static_cast<Output>(word >> (16 * (i % 2)));
            }
          }
        }
      }
    }
  }
}

// Rows are m, by TMA: a warp stages 16 rows of kStoreColumns columns and one lane stores the box,
// while the next buffer is filled. Rows and columns that do not exist are clipped, but not where a
// group ends.
__device__ __forceinline__ void store_rows_by_tma(const Shared& shared, const GemmParams& p,
                                                  TileOrigin tile, const MathThread& thread,
                                                  int wave, const float (&acc)[Config::kRegisters],
                                                  int& buffer) {
  const int warp = 4 * thread.warpgroup + thread.warp;
  const SharedAddress buffers = shared.base + Config::kStoreBuffers +
                                Config::kStoreBuffersPerWarp * warp * Config::kStoreBufferBytes;
  const int first_row = tile.row + thread.first_row() + 64 * wave + 16 * thread.warp;
#pragma unroll
  for (int chunk = 0; chunk < Config::kGroupColumns / Config::kStoreColumns; ++chunk) {
    const SharedAddress box = buffers + buffer * Config::kStoreBufferBytes;
    buffer = buffer == Config::kStoreBuffersPerWarp - 1 ? 0 : buffer + 1;
    if (thread.lane == 0) {
      tma_store_wait_read<Config::kStoreBuffersPerWarp - 1>();
    }
    __syncwarp();
    const float* v = &acc[chunk * Config::kStoreColumns / 2];
    if constexpr (Spec::kOut == kF32) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = thread.lane / 4 + 8 * (i % 2);
        const int byte = 32 * (i / 2) + 8 * (thread.lane % 4);
        const float* pair = v + 4 * (i / 2) + 2 * (i % 2);
        store_shared(box + swizzle_64b(row, byte),
                     make_uint2(__float_as_uint(pair[0]), __float_as_uint(pair[1])));
      }
    } else {
      // Lane l addresses row l % 8 of matrix l / 8; matrices are rows 0-7 and 8-15 of one block
      // of 8 columns, then of the next.
      const int row = thread.lane % 16;
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float* w = v + 8 * i;
        store_shared_matrices(
            box + swizzle_64b(row, 32 * i + 16 * (thread.lane / 16)),
            pack_outputs<Spec::kOut>(w[0], w[1]), pack_outputs<Spec::kOut>(w[2], w[3]),
            pack_outputs<Spec::kOut>(w[4], w[5]), pack_outputs<Spec::kOut>(w[6], w[7]));
      }
    }
    fence_proxy_async_shared();
    __syncwarp();
    const int column = tile.column + thread.first_column() + chunk * Config::kStoreColumns;
    if (thread.lane == 0) {
      tma_store_2d(&p.out_map, box, column, first_row);
      tma_store_commit();
    }
  }
}

// Rows are n: 8 lanes hold 8 neighbouring outputs. With vector stores, 16-bit outputs trade with
// the lane 4 further, so that a lane writes two neighbours at once.
__device__ __forceinline__ void store_columns(const GemmParams& p, TileOrigin tile,
                                              const MathThread& thread, int wave,
                                              const float (&acc)[Config::kRegisters]) {
  const int m = tile.end;
  Output* out = group_output(p, tile);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = tile.row + thread.row(wave) + 8 * half;
#pragma unroll
    for (int block = 0; block < Config::kGroupColumns / 8; ++block) {
      const float* v = &acc[4 * block + 2 * half];
      const int column = tile.column + thread.column(block);
      if constexpr (Spec::kStoreVector == 0 || Spec::kOut == kF32) {
        store_one(out + column * p.ldo, m, column, row, v[0]);
        store_one(out + (column + 1) * p.ldo, m, column + 1, row, v[1]);
      } else {
        const bool odd = thread.lane / 4 % 2 != 0;
        const float received = __shfl_xor_sync(0xffffffffu, odd ? v[0] : v[1], 4);
        const int row_m = column + (odd ? 1 : 0);
        const int column_n = row - (odd ? 1 : 0);
        const float low = odd ? received : v[0];
        const float high = odd ? v[1] : received;
        if (row_m < m && column_n + 1 < Spec::kN) {
          store_global(out + row_m * p.ldo + column_n, pack_outputs<Spec::kOut>(low, high));
        } else {
          store_one(out + row_m * p.ldo, m, row_m, column_n, low);
        }
      }
    }
  }
}

__device__ __forceinline__ void write_partials(const Shared& shared, const MathThread& thread,
                                               const Accumulators& acc) {
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
    for (int i = 0; i < Config::kRegisters; ++i) {
      const int row = thread.row(wave) + 8 * (i / 2 % 2);
      const int column = thread.column(i / 4) + i % 2;
      const int index = Config::kSwap ? column * Config::kPartialStride + row
                                      : row * Config::kPartialStride + column;
      store_shared(shared.base + 4 * index, __float_as_uint(acc[wave][i]));
    }
  }
}

// Each CTA sums its share of the tile over all CTAs of the cluster, in the order of the splits.
__device__ __forceinline__ void reduce_partials(const Shared& shared, const GemmParams& p,
                                                TileOrigin tile, int rank) {
  const int m = tile.end;
  constexpr int kQuads = Spec::kTileN / 4;
  const int first_m = Config::kSwap ? tile.column : tile.row;
  const int first_n = Config::kSwap ? tile.row : tile.column;
  Output* out = group_output(p, tile);
  for (int i = rank * Config::kMathThreads + static_cast<int>(threadIdx.x);
       i < Spec::kTileM * kQuads; i += Spec::kSplitK * Config::kMathThreads) {
    const int row_m = i / kQuads;
    const int column_n = i % kQuads * 4;
    if (first_m + row_m >= m) {
      break;
    }
    const SharedAddress source = shared.base + 4 * (row_m * Config::kPartialStride + column_n);
    float4 part[Spec::kSplitK];
#pragma unroll
    for (int split = 0; split < Spec::kSplitK; ++split) {
      part[split] = load_cluster_float4(source, split);
    }
    float4 sum = part[0];
#pragma unroll
    for (int split = 1; split < Spec::kSplitK; ++split) {
      sum.x += part[split].x;
      sum.y += part[split].y;
      sum.z += part[split].z;
      sum.w += part[split].w;
    }
    const int n = first_n + column_n;
    Output* line = out + (first_m + row_m) * p.ldo;
    Output* destination = line + n;
    if (Spec::kStoreVector != 0 && n + 3 < Spec::kN) {
      if constexpr (Spec::kOut == kF32) {
        store_global(destination, sum);
      } else {
        store_global(destination, make_uint2(pack_outputs<Spec::kOut>(sum.x, sum.y),
                                             pack_outputs<Spec::kOut>(sum.z, sum.w)));
      }
    } else {
      store_one(line, m, first_m + row_m, n, sum.x);
      store_one(line, m, first_m + row_m, n + 1, sum.y);
      store_one(line, m, first_m + row_m, n + 2, sum.z);
      store_one(line, m, first_m + row_m, n + 3, sum.w);
    }
  }
  __syncwarp();
}
