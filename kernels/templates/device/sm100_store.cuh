// SPDX-License-Identifier: Apache-2.0
// From registers to the output, for both SM100 kernels: a lane of an epilogue warp holds one row
// (or, with swapped operands, one column) of the tile. Rows go through a swizzled slab of shared
// memory and leave by TMA where that is legal, else by predicated stores that are contiguous over
// the warp.
#pragma once

#include "device/convert.cuh"
#include "device/memory.cuh"
#include "device/sm100_geometry.cuh"
#include "device/tma.cuh"

namespace sm100 {

using Output = typename OutputStorage<Spec::kOut>::Type;

enum : int {
  kSlabRows = 32,
  kSlabBytes = kSlabRows * 128,
  kSlabColumns = 128 / static_cast<int>(sizeof(Output)),
  kSlabsPerWarp = 2,  // one is written while the other leaves
};

// The output of the tile's group; everywhere the same where groups share all rows.
__device__ __forceinline__ Output* group_output(const GemmParams& p, const Tile& tile) {
  Output* out = static_cast<Output*>(p.out);
  if constexpr (Spec::kGroupLayout == kMasked)
    out += owner_of_rows(tile.group) * p.out_group_stride;
  return out;
}

// One epilogue warp's way out. Columns are the output's.
struct RowStore {
  const GemmParams& p;
  SharedAddress slabs;
  int lane;
  int turn = 0;

  __device__ __forceinline__ RowStore(const GemmParams& params, SharedAddress slab_base,
                                      int lane_id)
      : p(params), slabs(slab_base), lane(lane_id) {}

  // 32 rows from row0 on, kWidth columns from column0 on; value[j] is this lane's at column0 + j.
  template <int kWidth>
  __device__ __forceinline__ void put(const Tile& tile, const float (&value)[kWidth], int row0,
                                      int column0) {
    static_assert(kWidth <= kSlabColumns && kWidth * sizeof(Output) % 16 == 0, "");
    const int rows = tile.end - row0;
    if (rows <= 0 || column0 >= Spec::kN) return;
    const SharedAddress slab = slabs + turn * kSlabBytes;
    turn ^= 1;
    if constexpr (Spec::kStore == 1) {
      if (lane == 0) tma_store_wait_read<kSlabsPerWarp - 1>();
    }
    __syncwarp();
    // Opaque here, else the eight addresses of a row are kept in registers throughout the kernel.
    SharedAddress row = slab + lane * 128;
    unsigned key = (lane & 7) << 4;
    asm volatile("" : "+r"(row), "+r"(key));
    constexpr int kPerUnit = 16 / static_cast<int>(sizeof(Output));
#pragma unroll
    for (int unit = 0; unit < kWidth / kPerUnit; ++unit) {
      unsigned word[4];
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        if constexpr (Spec::kOut == kF32) {
          word[w] = __float_as_uint(value[unit * 4 + w]);
        } else {
          word[w] = pack_outputs<Spec::kOut>(value[unit * 8 + 2 * w], value[unit * 8 + 2 * w + 1]);
        }
      }
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(row + (unit * 16 ^ key)),
                   "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                   : "memory");
    }
    if constexpr (Spec::kStore == 1) {
      static_assert(Spec::kStore == 0 || kWidth == kSlabColumns, "the box is a whole slab");
      fence_proxy_async_shared();
    }
    __syncwarp();
    // TMA clips at the matrix, not at the group: whoever owns the rows behind it writes them.
    const bool by_tma = Spec::kStore == 1 && (!Geometry::kGrouped || rows >= kSlabRows);
    if (Spec::kStore == 1 && lane == 0) {
      if (by_tma) {
        const int group_row =
            Spec::kGroupLayout == kMasked ? owner_of_rows(tile.group) * p.out_group_rows : 0;
        tma_store_2d(&p.out_map, slab, column0, group_row + row0);
      }
      tma_store_commit();  // an empty group where nothing was stored: they are counted
    }
    if (!by_tma) {
      Output* out = group_output(p, tile) + row0 * p.ldo + column0;
      const int last = rows < kSlabRows ? rows : kSlabRows;
      for (int r = 0; r < last; ++r) {
#pragma unroll
        for (int c = lane; c < kWidth; c += 32) {
          if (column0 + c < Spec::kN) {
            const SharedAddress at = slab + swizzle_128b(r, c * static_cast<int>(sizeof(Output)));
            if constexpr (Spec::kOut == kF32) {
              float element;
              asm volatile("ld.shared.f32 %0, [%1];" : "=f"(element) : "r"(at) : "memory");
              out[r * p.ldo + c] = element;
            } else {
              unsigned short element;
              asm volatile("ld.shared.b16 %0, [%1];" : "=h"(element) : "r"(at) : "memory");
              out[r * p.ldo + c] = element;
            }
          }
        }
      }
    }
  }

  // Before the CTA ends: shared memory must outlive the copies that read it.
  __device__ __forceinline__ void finish() {
    if constexpr (Spec::kStore == 1) {
      if (lane == 0) tma_store_wait<0>();
    }
  }
};

// Swapped operands: this lane's value belongs to out[row, column]; the warp's columns are
// contiguous.
__device__ __forceinline__ void store_transposed(const GemmParams& p, const Tile& tile, int row,
                                                 int column, float value) {
  if (row < tile.end && column < Spec::kN) {
    group_output(p, tile)[row * p.ldo + column] = convert_output<Spec::kOut>(value);
  }
}

}  // namespace sm100
