// SPDX-License-Identifier: Apache-2.0
// The producer warpgroup of gemm_sm90.cu: fills stages with tiles, by TMA or by copies in the same
// layout, and the slots of scales. Knows the rings and their barriers, nothing of what is computed.
#pragma once

#include "device/memory.cuh"
#include "device/params.cuh"
#include "device/sm90_config.cuh"
#include "device/tma.cuh"

template <int kTileRows, bool kShared>
__device__ __forceinline__ void load_tile(SharedAddress tile, const TensorMap* map, int k, int row,
                                          int rank, SharedAddress barrier) {
  if constexpr (kShared) {
    // Each CTA fetches its slice of the shared tile and writes it into all of them.
    constexpr int kSlice = kTileRows / Spec::kCluster;
    static_assert(kSlice % 8 == 0, "a slice keeps the swizzle pattern");
    tma_load_2d_multicast(tile + rank * kSlice * Spec::kTileK, map, k, row + rank * kSlice, barrier,
                          static_cast<unsigned short>((1u << Spec::kCluster) - 1));
  } else {
    tma_load_2d(tile, map, k, row, barrier);
  }
}

__device__ __forceinline__ void issue_tma(const Shared& shared, const GemmParams& p,
                                          const Cursor& cursor, int k_block, TileOrigin tile,
                                          int rank) {
  const TensorMap* row_map = Config::kSwap ? &p.b_map : &p.a_map;
  const TensorMap* column_map = Config::kSwap ? &p.a_map : &p.b_map;
  const SharedAddress barrier = shared.full(cursor.stage);
  const int k = k_block * Spec::kTileK;
  int row = tile.row;
  int column = tile.column;
  if constexpr (Config::kGrouped) {
    row += tile.group * (Config::kSwap ? p.b_group_rows : p.a_group_rows);
    column += tile.group * (Config::kSwap ? p.a_group_rows : p.b_group_rows);
  }
  mbarrier_arrive_expect_tx(barrier, Config::kTmaBytes);
  if constexpr (Config::kRowFeed == kFeedTma) {
    load_tile<Config::kRows, Config::kMulticast && Spec::kShare == kShareRows>(
        shared.row_tile(cursor.stage), row_map, k, row, rank, barrier);
  }
  if constexpr (Config::kColumnFeed == kFeedTma) {
    load_tile<Config::kColumns, Config::kMulticast && Spec::kShare == kShareColumns>(
        shared.column_tile(cursor.stage), column_map, k, column, rank, barrier);
  }
}

// The quad of scales of the stage's k-block, on the stage's barrier.
__device__ __forceinline__ void issue_scales(const Shared& shared, const GemmParams& p,
                                             SharedAddress barrier, int slot, int k_block,
                                             const TileOrigin& tile) {
  const TensorMap* row_map = Config::kSwap ? &p.b_scale_map : &p.a_scale_map;
  const TensorMap* column_map = Config::kSwap ? &p.a_scale_map : &p.b_scale_map;
  const int block = k_block / Config::kQuadStages * 4;
  const SharedAddress scales = shared.scales(slot);
  int row = tile.row / Config::kRowGroup;
  int column = tile.column / Config::kColumnGroup;
  if constexpr (Config::kGrouped) {
    row += tile.group * (Config::kSwap ? p.b_scale_group_rows : p.a_scale_group_rows);
    column += tile.group * (Config::kSwap ? p.a_scale_group_rows : p.b_scale_group_rows);
  }
  mbarrier_expect_tx(barrier, 16 * (Config::kRowScales + Config::kColumnScales));
  tma_load_2d(scales, row_map, block, row, barrier);
  tma_load_2d(scales + Config::kColumnScaleOffset, column_map, block, column, barrier);
}

__device__ __forceinline__ void prefetch_maps(const GemmParams& p) {
  if constexpr (Config::kRowFeed == kFeedTma && Config::kColumnFeed == kFeedTma) {
    tma_prefetch_map(&p.a_map);
    tma_prefetch_map(&p.b_map);
  }
  if (Config::kScaleTma && p.scale_maps != 0) {
    tma_prefetch_map(&p.a_scale_map);
    tma_prefetch_map(&p.b_scale_map);
  }
}

// One warp: every lane waits and counts, one issues.
__device__ __forceinline__ void produce_by_tma(const Shared& shared, const GemmParams& p,
                                               const Walk& walk, bool scale_tma) {
  const bool leader = elect_one();
  Cursor cursor;
  ScaleSlot scales;
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.next(tile);) {
    if (!has_operands(tile)) {
      attend_meetings();
      continue;
    }
    for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
      mbarrier_wait(shared.empty(cursor.stage), cursor.phase ^ 1);
      if constexpr (Config::kScaleTma) {
        if (ScaleSlot::begins_quad(k_block, walk.k_begin())) {
          scales.next();
          if (scale_tma && leader) {
            issue_scales(shared, p, shared.full(cursor.stage), scales.slot, k_block, tile);
          }
        }
      }
      if (leader) {
        issue_tma(shared, p, cursor, k_block, tile, walk.rank);
      }
      cursor.next();
    }
    attend_meetings();
  }
}

// The tile of an operand whose rows TMA cannot address, in the layout that TMA would have written.
// A warp takes a row at a time, each lane 4 codes; codes beyond the operand read as zero.
template <int kFeed, int kTileRows>
__device__ __forceinline__ void copy_tile(SharedAddress tile, const unsigned char* operand,
                                          long long stride, int rows, int first_row, int k,
                                          int warp, int lane) {
  const int valid_codes = Spec::kK - k - 4 * lane;
  const unsigned bytes = valid_codes >= 4 ? 4 : valid_codes > 0 ? valid_codes : 0;
#pragma unroll 4
  for (int row = warp; row < kTileRows; row += Config::kCopyThreads / 32) {
    const SharedAddress destination = tile + swizzle_128b(row, 4 * lane);
    const bool inside = first_row + row < rows && bytes > 0;
    const unsigned char* source =
        inside ? operand + (first_row + row) * stride + k + 4 * lane : operand;
    if constexpr (kFeed == kFeedCpAsync) {
      cp_async_4(destination, source, inside ? bytes : 0);
    } else {
      unsigned word = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (inside && i < static_cast<int>(bytes)) {
          word |= static_cast<unsigned>(source[i]) << (8 * i);
        }
      }
      store_shared(destination, word);
    }
  }
}

__device__ __forceinline__ void produce_by_copies(const Shared& shared, const GemmParams& p,
                                                  const Walk& walk, int warp, int lane) {
  // A thread's copies of a stage land while it issues those of the next kLag stages. Of 16-bit
  // operands the math warps keep a stage until the next one is there.
  constexpr int kMost = Spec::kStages - (Config::kScaled ? 1 : 2);
  constexpr int kLag = kMost < 3 ? kMost : 3;
  Cursor cursor;
  Cursor landed;
  int in_flight = 0;
  const auto publish = [&] {
    fence_proxy_async_shared();
    mbarrier_arrive(shared.full(landed.stage));
    landed.next();
    --in_flight;
  };
  const auto publish_all = [&] {
    cp_async_wait<0>();
    while (in_flight > 0) {
      publish();
    }
  };
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.next(tile);) {
    if (!has_operands(tile)) {
      // Whoever waits for these stages keeps the slot that the next tile may come in.
      publish_all();
      attend_meetings();
      continue;
    }
    const unsigned char* a = p.a + (Config::kGrouped ? tile.group * p.a_group_stride : 0);
    const unsigned char* b = p.b + (Config::kGrouped ? tile.group * p.b_group_stride : 0);
    for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
      mbarrier_wait(shared.empty(cursor.stage), cursor.phase ^ 1);
      if (Config::kTmaBytes > 0 && warp == 0 && lane == 0) {
        issue_tma(shared, p, cursor, k_block, tile, walk.rank);
      }
      const int k = k_block * Spec::kTileK;
      if constexpr (Config::kRowFeed != kFeedTma) {
        copy_tile<Config::kRowFeed, Config::kRows>(
            shared.row_tile(cursor.stage), Config::kSwap ? b : a, Config::kSwap ? p.ldb : p.lda,
            Config::kSwap ? Spec::kN : tile.end, tile.row, k, warp, lane);
      }
      if constexpr (Config::kColumnFeed != kFeedTma) {
        copy_tile<Config::kColumnFeed, Config::kColumns>(
            shared.column_tile(cursor.stage), Config::kSwap ? a : b, Config::kSwap ? p.lda : p.ldb,
            Config::kSwap ? tile.end : Spec::kN, tile.column, k, warp, lane);
      }
      cp_async_commit();
      cursor.next();
      if (++in_flight > kLag) {
        cp_async_wait<kLag>();
        publish();
      }
    }
    if constexpr (Spec::kSplitK > 1) {
      publish_all();
    }
    attend_meetings();
  }
  publish_all();
}

// The power of two that an E8M0 byte stands for (OCP microscaling formats: 2^(code - 127), 255 is
// NaN).
__device__ __forceinline__ unsigned exponent_to_float_bits(unsigned code) {
  return code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23;
}

// The scales of one operand, whatever their strides. kPacked: words of four E8M0 bytes, which
// strides then count.
template <bool kPacked>
struct ScaleSource {
  const float* scales;
  long long stride;
  long long stride_k;
  bool vectors;  // four k-blocks may be read at once

  __device__ __forceinline__ ScaleSource(const void* pointer, long long stride_,
                                         long long stride_k_, long long group_stride)
      : scales(static_cast<const float*>(pointer)),
        stride(stride_),
        stride_k(stride_k_),
        vectors(stride_k_ == 1 && stride_ % 4 == 0 && group_stride % 4 == 0 &&
                reinterpret_cast<unsigned long long>(pointer) % 16 == 0) {}

  // Copies a quad of kCount entries, of which `extent` exist from entry `origin` on, to kCount
  // times 16 bytes. What does not exist becomes zero without being read. The scales of a group
  // begin `offset` elements behind the first.
  template <int kCount>
  __device__ __forceinline__ void copy(SharedAddress destination, long long offset, int origin,
                                       int extent, int quad, int lane) const {
    constexpr int kBatch = Spec::kScaleType == 0 || kCount < 128 ? 1 : 2;  // of reads in flight
#pragma unroll kBatch
    for (int entry = lane; entry < kCount; entry += 32) {
      const int blocks = origin + entry < extent ? Config::kScaleBlocks - 4 * quad : 0;
      const long long row_offset = offset + (origin + entry) * stride;
      const SharedAddress slot = destination + 16 * entry;
      if constexpr (Spec::kScaleType == 0) {
        copy_floats(slot, row_offset, 4 * quad, blocks);
      } else {
        copy_exponents(slot, row_offset, 4 * quad, blocks);
      }
    }
  }

 private:
  // Four scales from `block` on, of which `blocks` exist.
  __device__ __forceinline__ void copy_floats(SharedAddress slot, long long row_offset, int block,
                                              int blocks) const {
    const float* source = blocks > 0 ? scales + row_offset + block * stride_k : scales;
    if (vectors) {
      cp_async_16(slot, source, blocks >= 4 ? 16 : blocks > 0 ? 4 * blocks : 0);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        cp_async_4(slot + 4 * i, i < blocks ? source + i * stride_k : scales, i < blocks ? 4 : 0);
      }
    }
  }

  // The same for E8M0 bytes, which become fp32 on the way.
  __device__ __forceinline__ void copy_exponents(SharedAddress slot, long long row_offset,
                                                 int block, int blocks) const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(scales);
    const auto* words = reinterpret_cast<const unsigned*>(scales);
    unsigned word = 0;
    if constexpr (kPacked) {
      if (blocks > 0) {
        word = words[row_offset + block / 4 * stride_k];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (i < blocks) {
          word |= static_cast<unsigned>(bytes[row_offset + (block + i) * stride_k]) << (8 * i);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      store_shared(slot + 4 * i, exponent_to_float_bits(word >> (8 * i) & 0xff));
    }
  }
};

// The warp that copies scales. Where slots allow it asks for a quad before it speaks for the stages
// of the one before: small scattered reads take longer than tiles do.
struct ScaleFeed {
  const Shared& shared;
  Cursor cursor;
  ScaleSlot scales;
  int owed = 0;  // stages whose scales have been asked for, all of one quad

  // Tells the stages owed that their scales are there. kLater: quads asked for since.
  template <int kLater>
  __device__ __forceinline__ void settle() {
    if (owed == 0) return;
    if constexpr (Spec::kScaleType == 0) {
      cp_async_wait<kLater>();
    }
    for (; owed > 0; --owed) {
      mbarrier_wait(shared.empty(cursor.stage), cursor.phase ^ 1);
      mbarrier_arrive(shared.full(cursor.stage));  // every lane for what it has written
      cursor.next();
    }
  }
};

__device__ __forceinline__ void produce_scales(const Shared& shared, const GemmParams& p,
                                               const Walk& walk, int lane) {
  const ScaleSource<Spec::kPackedA != 0> a(p.a_scales, p.a_scale_stride_m, p.a_scale_stride_k,
                                           Config::kGrouped ? p.a_scale_group_stride : 0);
  const ScaleSource<Spec::kPackedB != 0> b(p.b_scales, p.b_scale_stride_n, p.b_scale_stride_k,
                                           Config::kGrouped ? p.b_scale_group_stride : 0);
  // Where a tile must be over before the next one is known, its last stages are settled first.
  constexpr bool kTileByTile = Config::kScheduled || Spec::kSplitK > 1;
  constexpr int kScaleRowsN = ceil_div(Spec::kN, Spec::kGroupN);
  ScaleFeed feed{shared};
  Tiles tiles(shared, walk);
  for (TileOrigin tile; tiles.next(tile);) {
    if (!has_operands(tile)) {
      attend_meetings();
      continue;
    }
    const long long a_offset = Config::kGrouped ? tile.group * p.a_scale_group_stride : 0;
    const long long b_offset = Config::kGrouped ? tile.group * p.b_scale_group_stride : 0;
    for (int k_block = walk.k_begin(); k_block < walk.k_end();) {
      const int quad = k_block / Config::kQuadStages;
      if constexpr (Config::kScalesAhead == 0) {
        feed.template settle<0>();
      }
      feed.scales.next();
      const SharedAddress row_slot = shared.scales(feed.scales.slot);
      const SharedAddress column_slot = row_slot + Config::kColumnScaleOffset;
      const int row = tile.row / Config::kRowGroup;
      const int column = tile.column / Config::kColumnGroup;
      if constexpr (Config::kSwap) {
        b.template copy<Config::kRowScales>(row_slot, b_offset, row, kScaleRowsN, quad, lane);
        a.template copy<Config::kColumnScales>(column_slot, a_offset, column, tile.end, quad, lane);
      } else {
        a.template copy<Config::kRowScales>(row_slot, a_offset, row, tile.end, quad, lane);
        b.template copy<Config::kColumnScales>(column_slot, b_offset, column, kScaleRowsN, quad,
                                               lane);
      }
      cp_async_commit();
      feed.template settle<1>();
      const int next = (quad + 1) * Config::kQuadStages;
      const int end = next < walk.k_end() ? next : walk.k_end();
      feed.owed = end - k_block;
      k_block = end;
    }
    if constexpr (kTileByTile) {
      feed.template settle<0>();
    }
    attend_meetings();
  }
  feed.template settle<0>();
}

// Grouped products: the warp that finds the tiles of this CTA.
__device__ __forceinline__ void schedule(const Shared& shared, const GemmParams& p, int lane) {
  GroupWalk<GroupOrder> walk(p, lane);
  WorkWriter writer = {{shared.base + Config::kWorkRing}, {}};
  GroupTile tile;
  bool first = true;
  do {
    tile = walk.next();
    writer.put(tile, lane);
    // Of the tile in front, whose splits meet after this one is known.
    if (!first) attend_meetings();
    first = false;
  } while (tile.row < tile.end);
}
