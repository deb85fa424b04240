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

#include "device/convert.cuh"
#include "device/mbarrier.cuh"
#include "device/memory.cuh"
#include "device/params.cuh"
#include "device/tile_walk.cuh"
#include "device/tma.cuh"
#include "device/wgmma.cuh"

constexpr int gcd(int a, int b) {
  return b == 0 ? a : gcd(b, a % b);
}
constexpr int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}

enum FeedKind { kFeedTma = 0, kFeedCpAsync = 1, kFeedPlain = 2 };
// What the CTAs of a cluster share: the operand of the columns (they are neighbours along the
// rows), or the operand of the rows.
enum ShareKind { kShareNone = 0, kShareColumns = 1, kShareRows = 2 };

// Everything that follows from Spec. Enumerators, because constexpr members become global data.
struct Config {
  enum : int {
    kSwap = Spec::kSwap,
    kRows = kSwap ? Spec::kTileN : Spec::kTileM,
    kColumns = kSwap ? Spec::kTileM : Spec::kTileN,
    kRowType = kSwap ? Spec::kTypeB : Spec::kTypeA,
    kColumnType = kSwap ? Spec::kTypeA : Spec::kTypeB,
    kRowFeed = kSwap ? Spec::kFeedB : Spec::kFeedA,
    kColumnFeed = kSwap ? Spec::kFeedA : Spec::kFeedB,
    kRowGroup = kSwap ? Spec::kGroupN : 1,  // rows that share a scale
    kColumnGroup = kSwap ? 1 : Spec::kGroupN,

    kWarpgroups = Spec::kWarpgroupRows * Spec::kWarpgroupColumns,
    kMathThreads = 128 * kWarpgroups,
    kMathWarps = 4 * kWarpgroups,
    kGroupRows = kRows / Spec::kWarpgroupRows,  // of one math warpgroup
    kGroupColumns = kColumns / Spec::kWarpgroupColumns,
    kWaves = kGroupRows / 64,
    kRegisters = kGroupColumns / 2,  // accumulators of one wave, each thread

    kKBlocks = ceil_div(Spec::kK, Spec::kTileK),
    // A stage is promoted in parts that never straddle a scale block.
    kPartK = gcd(Spec::kGroupK, Spec::kTileK),
    kParts = Spec::kTileK / kPartK,
    kStepsPerPart = kPartK / 32,

    // Row scales: one a row, or one for all rows of the tile. Column scales: one for each run of
    // kColumnRun columns, the longest that never straddles a scale block; one a column if that is
    // shorter than the 8 columns of an accumulator block.
    kOneRowScale = kRowGroup % kRows == 0,
    kRowScales = kOneRowScale ? 1 : kRows,
    kCommonRun = gcd(kGroupColumns, kColumnGroup),
    kColumnRun = kCommonRun % 8 == 0 ? kCommonRun : 1,
    kColumnScales = kColumns / kColumnRun,
    kGroupColumnScales = kGroupColumns / kColumnRun,
    // Scales travel in a ring of their own, four scale blocks of k a slot, so that row-major scales
    // move 16 bytes at a time. The ring reaches a little further ahead than the tiles'.
    kScaleBlocks = ceil_div(Spec::kK, Spec::kGroupK),
    kScaleSlots = 1 + ceil_div(Spec::kStages * Spec::kTileK, 4 * Spec::kGroupK),

    kRowTileBytes = kRows * Spec::kTileK,
    kColumnTileBytes = kColumns * Spec::kTileK,
    kTmaBytes = (kRowFeed == kFeedTma ? kRowTileBytes : 0) +
                (kColumnFeed == kFeedTma ? kColumnTileBytes : 0),

    // Shared memory, in bytes from a base that is a multiple of 1024.
    kRowTiles = 0,
    kColumnTiles = kRowTiles + Spec::kStages * kRowTileBytes,
    kScaleRing = kColumnTiles + Spec::kStages * kColumnTileBytes,
    kScaleSlotBytes = 16 * (kRowScales + kColumnScales),
    kBarriers = kScaleRing + kScaleSlots * kScaleSlotBytes,
    kSharedBytes = kBarriers + 8 * 2 * (Spec::kStages + kScaleSlots),
    // Split-K partials lie over the stages, as [m][n] with rows of kPartialStride floats. The 4
    // extra floats spread a warp's stores over the banks.
    kPartialStride = Spec::kTileN + 4,
    kPartialBytes = 4 * Spec::kTileM * kPartialStride,

    // The producer warpgroup: warps 0-2 feed tiles (one thread is enough for TMA), warp 3 scales.
    kCopyFeed = kRowFeed != kFeedTma || kColumnFeed != kFeedTma,
    kCopyThreads = 96,
    kFullArrivals = (kTmaBytes > 0 ? 1 : 0) + (kCopyFeed ? kCopyThreads : 0),
    kMulticast = Spec::kCluster > 1 && Spec::kShare != kShareNone,
    kEmptyArrivals = kMathWarps * (kMulticast ? Spec::kCluster : 1),
  };
};

static_assert(Spec::kArch == 90, "wgmma exists on sm_90a alone");
static_assert(Spec::kTileK == 128, "a stage is one 128-byte swizzle row");
static_assert(Spec::kGroupK % 32 == 0 && Spec::kGroupN >= 1, "scale blocks");
static_assert(Config::kGroupRows % 64 == 0 && Config::kWaves <= 2,
              "a warpgroup has 64 or 128 rows");
static_assert(Config::kRows % Spec::kWarpgroupRows == 0, "rows are dealt evenly");
static_assert(Config::kColumns % (8 * Spec::kWarpgroupColumns) == 0,
              "wgmma's N is a multiple of 8");
static_assert(Config::kSwap || Config::kGroupColumns % 16 == 0, "the store pairs 8-column blocks");
static_assert(Config::kColumns <= 256 && Config::kRows <= 256, "a TMA box has at most 256 rows");
static_assert(Spec::kThreads == Config::kMathThreads + 128, "math warpgroups and one producer");
static_assert(Spec::kSplitK == 1 || (Spec::kSplitK == Spec::kCluster && Spec::kShare == kShareNone),
              "the splits of a tile are the CTAs of a cluster");
static_assert(!Config::kMulticast || !Config::kCopyFeed, "only TMA multicasts");
static_assert(Spec::kSplitK == 1 || Config::kPartialBytes <= Config::kScaleRing,
              "partials fit over the stages");
static_assert(Config::kSharedBytes == Spec::kSharedBytes, "the planner reckons the same");
static_assert(Config::kSharedBytes <= 232448, "PTX ISA: sm_90 has 227 KiB a CTA");

struct TileOrigin {
  int row;
  int column;
};

struct Walk {
  enum : int {
    kUnitRows = Config::kRows * (Spec::kShare == kShareColumns ? Spec::kCluster : 1),
    kUnitColumns = Config::kColumns * (Spec::kShare == kShareRows ? Spec::kCluster : 1),
  };

  TileWalk<Spec::kWalkColumns> walk;
  int first;
  int step;
  int rank;  // in the cluster

  __device__ __forceinline__ explicit Walk(int m)
      : walk{ceil_div(Config::kSwap ? Spec::kN : m, kUnitRows),
             ceil_div(Config::kSwap ? m : Spec::kN, kUnitColumns)},
        first(static_cast<int>(blockIdx.x) / Spec::kCluster),
        step(static_cast<int>(gridDim.x) / Spec::kCluster),
        rank(Spec::kCluster > 1 ? static_cast<int>(cluster_cta_rank()) : 0) {}

  __device__ __forceinline__ TileOrigin at(int unit) const {
    int row, column;
    walk.at(unit, row, column);
    return {row * kUnitRows + (Spec::kShare == kShareColumns ? rank * Config::kRows : 0),
            column * kUnitColumns + (Spec::kShare == kShareRows ? rank * Config::kColumns : 0)};
  }

  __device__ __forceinline__ int k_begin() const {
    return Spec::kSplitK == 1 ? 0 : Config::kKBlocks * rank / Spec::kSplitK;
  }
  __device__ __forceinline__ int k_end() const {
    return Spec::kSplitK == 1 ? Config::kKBlocks : Config::kKBlocks * (rank + 1) / Spec::kSplitK;
  }
};

using Cursor = StageCursor<Spec::kStages>;
using ScaleCursor = StageCursor<Config::kScaleSlots>;

struct Shared {
  SharedAddress base;
  __device__ __forceinline__ SharedAddress row_tile(int stage) const {
    return base + Config::kRowTiles + stage * Config::kRowTileBytes;
  }
  __device__ __forceinline__ SharedAddress column_tile(int stage) const {
    return base + Config::kColumnTiles + stage * Config::kColumnTileBytes;
  }
  __device__ __forceinline__ SharedAddress scales(int slot) const {
    return base + Config::kScaleRing + slot * Config::kScaleSlotBytes;
  }
  __device__ __forceinline__ SharedAddress full(int stage) const {
    return base + Config::kBarriers + 8 * stage;
  }
  __device__ __forceinline__ SharedAddress empty(int stage) const {
    return full(Spec::kStages + stage);
  }
  __device__ __forceinline__ SharedAddress scales_full(int slot) const {
    return full(2 * Spec::kStages + slot);
  }
  __device__ __forceinline__ SharedAddress scales_empty(int slot) const {
    return full(2 * Spec::kStages + Config::kScaleSlots + slot);
  }
};

// Split-K: after the k-blocks of a tile all threads of the cluster meet twice, around the reduction
// that reads every CTA's partials. Partials and tiles share memory: the fence orders the ordinary
// accesses before the next tile's TMA.
__device__ __forceinline__ void meet_cluster() {
  if constexpr (Spec::kSplitK > 1) {
    __syncwarp();
    fence_proxy_async();
    cluster_sync();
  }
}

// ---- producer: tiles by TMA ---------------------------------------------------------------------

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
  mbarrier_arrive_expect_tx(barrier, Config::kTmaBytes);
  if constexpr (Config::kRowFeed == kFeedTma) {
    load_tile<Config::kRows, Config::kMulticast && Spec::kShare == kShareRows>(
        shared.row_tile(cursor.stage), row_map, k, tile.row, rank, barrier);
  }
  if constexpr (Config::kColumnFeed == kFeedTma) {
    load_tile<Config::kColumns, Config::kMulticast && Spec::kShare == kShareColumns>(
        shared.column_tile(cursor.stage), column_map, k, tile.column, rank, barrier);
  }
}

// One warp: every lane waits and counts, one issues.
__device__ __forceinline__ void produce_by_tma(const Shared& shared, const GemmParams& p,
                                               const Walk& walk) {
  const bool leader = elect_one();
  if (leader) {
    tma_prefetch_map(&p.a_map);
    tma_prefetch_map(&p.b_map);
  }
  Cursor cursor;
  for (int unit = walk.first; unit < walk.walk.count(); unit += walk.step) {
    const TileOrigin tile = walk.at(unit);
    for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
      mbarrier_wait(shared.empty(cursor.stage), cursor.phase ^ 1);
      if (leader) {
        issue_tma(shared, p, cursor, k_block, tile, walk.rank);
      }
      cursor.next();
    }
    meet_cluster();
    meet_cluster();
  }
}

// ---- producer: tiles by ordinary copies ---------------------------------------------------------

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
                                                  const Walk& walk, int m, int warp, int lane) {
  // A thread's copies of a stage land while it issues those of the next kLag stages.
  constexpr int kLag = Spec::kStages - 1 < 3 ? Spec::kStages - 1 : 3;
  Cursor cursor;
  Cursor landed;
  int in_flight = 0;
  const auto publish = [&] {
    fence_proxy_async_shared();
    mbarrier_arrive(shared.full(landed.stage));
    landed.next();
    --in_flight;
  };
  for (int unit = walk.first; unit < walk.walk.count(); unit += walk.step) {
    const TileOrigin tile = walk.at(unit);
    for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
      mbarrier_wait(shared.empty(cursor.stage), cursor.phase ^ 1);
      if (Config::kTmaBytes > 0 && warp == 0 && lane == 0) {
        issue_tma(shared, p, cursor, k_block, tile, walk.rank);
      }
      const int k = k_block * Spec::kTileK;
      if constexpr (Config::kRowFeed != kFeedTma) {
        copy_tile<Config::kRowFeed, Config::kRows>(
            shared.row_tile(cursor.stage), Config::kSwap ? p.b : p.a, Config::kSwap ? p.ldb : p.lda,
            Config::kSwap ? Spec::kN : m, tile.row, k, warp, lane);
      }
      if constexpr (Config::kColumnFeed != kFeedTma) {
        copy_tile<Config::kColumnFeed, Config::kColumns>(
            shared.column_tile(cursor.stage), Config::kSwap ? p.a : p.b,
            Config::kSwap ? p.lda : p.ldb, Config::kSwap ? m : Spec::kN, tile.column, k, warp,
            lane);
      }
      cp_async_commit();
      cursor.next();
      if (++in_flight > kLag) {
        cp_async_wait<kLag>();
        publish();
      }
    }
    if (Spec::kSplitK > 1 || unit + walk.step >= walk.walk.count()) {
      cp_async_wait<0>();
      while (in_flight > 0) {
        publish();
      }
    }
    meet_cluster();
    meet_cluster();
  }
}

// ---- producer: scales ---------------------------------------------------------------------------

// The first scale block of k of this CTA's share, and the one behind its last.
__device__ __forceinline__ int first_scale_block(const Walk& walk) {
  return walk.k_begin() * Spec::kTileK / Spec::kGroupK;
}
__device__ __forceinline__ int end_scale_block(const Walk& walk) {
  return walk.k_end() == Config::kKBlocks ? Config::kScaleBlocks
                                          : ceil_div(walk.k_end() * Spec::kTileK, Spec::kGroupK);
}

// The scales of one operand, whatever their strides.
struct ScaleSource {
  const float* scales;
  long long stride;
  long long stride_k;
  int extent;    // rows (or columns) of the operand
  bool vectors;  // four k-blocks may be read at once

  __device__ __forceinline__ ScaleSource(const void* pointer, long long stride_,
                                         long long stride_k_, int extent_)
      : scales(static_cast<const float*>(pointer)),
        stride(stride_),
        stride_k(stride_k_),
        extent(extent_),
        vectors(stride_k_ == 1 && stride_ % 4 == 0 &&
                reinterpret_cast<unsigned long long>(pointer) % 16 == 0) {}

  // Copies blocks 4 * quad to 4 * quad + 3 of kCount scales, kRun rows apart, to kCount times 16
  // bytes. What does not exist becomes zero without being read.
  template <int kCount, int kRun, int kGroup>
  __device__ __forceinline__ void copy(SharedAddress destination, int origin, int quad,
                                       int lane) const {
#pragma unroll 1
    for (int first = 0; first < kCount; first += 32) {
      const int row = origin + (first + lane) * kRun;
      const int blocks = row < extent ? Config::kScaleBlocks - 4 * quad : 0;
      const float* source = scales;
      if (blocks > 0) {
        source += row / kGroup * stride + 4 * quad * stride_k;
      }
      if (kCount % 32 == 0 || first + lane < kCount) {
        const SharedAddress slot = destination + 16 * (first + lane);
        if (vectors) {
          cp_async_16(slot, source, blocks >= 4 ? 16 : blocks > 0 ? 4 * blocks : 0);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            cp_async_4(slot + 4 * i, i < blocks ? source + i * stride_k : scales,
                       i < blocks ? 4 : 0);
          }
        }
      }
    }
  }
};

__device__ __forceinline__ void produce_scales(const Shared& shared, const GemmParams& p,
                                               const Walk& walk, int m, int lane) {
  const ScaleSource a(p.a_scales, p.a_scale_stride_m, p.a_scale_stride_k, m);
  const ScaleSource b(p.b_scales, p.b_scale_stride_n, p.b_scale_stride_k, Spec::kN);
  const ScaleSource& rows = Config::kSwap ? b : a;
  const ScaleSource& columns = Config::kSwap ? a : b;
  ScaleCursor cursor;
  for (int unit = walk.first; unit < walk.walk.count(); unit += walk.step) {
    const TileOrigin tile = walk.at(unit);
    const int end = end_scale_block(walk);
    for (int quad = first_scale_block(walk) / 4; 4 * quad < end; ++quad) {
      mbarrier_wait(shared.scales_empty(cursor.stage), cursor.phase ^ 1);
      const SharedAddress slot = shared.scales(cursor.stage);
      rows.copy<Config::kRowScales, 1, Config::kRowGroup>(slot, tile.row, quad, lane);
      columns.copy<Config::kColumnScales, Config::kColumnRun, Config::kColumnGroup>(
          slot + 16 * Config::kRowScales, tile.column, quad, lane);
      mbarrier_arrive_after_cp_async(shared.scales_full(cursor.stage));
      cursor.next();
    }
    meet_cluster();
    meet_cluster();
  }
  cp_async_wait_all();
}

// ---- math ---------------------------------------------------------------------------------------

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
                                        const float (&row_scale)[2],
                                        const float (&run_scale)[Config::kGroupColumnScales],
                                        SharedAddress column_scales) {
#pragma unroll
  for (int block = 0; block < Config::kGroupColumns / 8; ++block) {
    float scale[4];
    if constexpr (Config::kColumnRun == 1) {
      const float even = load_shared_float(column_scales + 16 * 8 * block);
      const float odd = load_shared_float(column_scales + 16 * (8 * block + 1));
      scale[0] = __fmul_rn(row_scale[0], even);
      scale[1] = __fmul_rn(row_scale[0], odd);
      scale[2] = __fmul_rn(row_scale[1], even);
      scale[3] = __fmul_rn(row_scale[1], odd);
    } else {
      const float run = run_scale[8 * block / Config::kColumnRun];
      scale[0] = scale[1] = __fmul_rn(row_scale[0], run);
      scale[2] = scale[3] = __fmul_rn(row_scale[1], run);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      acc[4 * block + i] = __fmaf_rn(partial[4 * block + i], scale[i], acc[4 * block + i]);
    }
  }
}

// The slots that a math warp holds, and the way to give them back.
struct Consumer {
  Shared shared;
  int lane;
  Cursor tiles;
  ScaleCursor scales;
  int quad = -1;  // of scale blocks, that the slot holds; -1: none held

  __device__ __forceinline__ Consumer(const Shared& shared_, int lane_)
      : shared(shared_), lane(lane_) {}

  __device__ __forceinline__ void release_tile() {
    __syncwarp();
    if constexpr (Config::kMulticast) {
      // To every CTA that writes into this one's stages. They learn only that wgmma has read the
      // stage, so no wider ordering than the default is needed.
      if (lane < Spec::kCluster) {
        mbarrier_arrive_remote(shared.empty(tiles.stage), lane);
      }
    } else if (lane == 0) {
      mbarrier_arrive(shared.empty(tiles.stage));
    }
  }

  __device__ __forceinline__ void release_scales() {
    if (quad >= 0) {
      __syncwarp();
      if (lane == 0) {
        mbarrier_arrive(shared.scales_empty(scales.stage));
      }
      scales.next();
      quad = -1;
    }
  }

  // Where the scales of a block of k are: row or column i is 16 * i further.
  __device__ __forceinline__ SharedAddress scales_at(int block) {
    if (block / 4 != quad) {
      release_scales();
      mbarrier_wait(shared.scales_full(scales.stage), scales.phase);
      quad = block / 4;
    }
    return shared.scales(scales.stage) + 4 * (block % 4);
  }

  __device__ __forceinline__ void wait_tile() const {
    mbarrier_wait(shared.full(tiles.stage), tiles.phase);
  }
  // Whether the next stage is there. Asked early, the answer's latency hides behind wgmma.
  __device__ __forceinline__ bool next_tile_is_full() const {
    Cursor next = tiles;
    next.next();
    return mbarrier_test(shared.full(next.stage), next.phase);
  }
};

__device__ __forceinline__ void multiply_tile(const Walk& walk, const MathThread& thread,
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
  bool full = false;
  for (int k_block = walk.k_begin(); k_block < walk.k_end(); ++k_block) {
    const int stage = consumer.tiles.stage;
    if (!full) {
      consumer.wait_tile();
    }
    const SharedAddress row_tile =
        consumer.shared.row_tile(stage) + thread.first_row() * Spec::kTileK;
    const unsigned long long columns =
        wgmma_descriptor(consumer.shared.column_tile(stage) + thread.first_column() * Spec::kTileK);
#pragma unroll
    for (int part = 0; part < Config::kParts; ++part) {
      const int k = k_block * Spec::kTileK + part * Config::kPartK;
      const bool last_part = part == Config::kParts - 1 || k + Config::kPartK >= Spec::kK;
      const SharedAddress scales = consumer.scales_at(k / Spec::kGroupK);
      const SharedAddress column_scales =
          scales + 16 * (Config::kRowScales + (Config::kColumnRun == 1
                                                   ? thread.column(0)
                                                   : thread.first_column() / Config::kColumnRun));
      float run_scale[Config::kGroupColumnScales];
      if constexpr (Config::kColumnRun != 1) {
#pragma unroll
        for (int i = 0; i < Config::kGroupColumnScales; ++i) {
          run_scale[i] = load_shared_float(column_scales + 16 * i);
        }
      }
#pragma unroll
      for (int wave = 0; wave < Config::kWaves; ++wave) {
        // Everything that has a latency is asked for before the products are issued: a warp may be
        // held at a wgmma for as long as the tensor cores are busy with the other warpgroup's.
        float row_scale[2];
        if constexpr (Config::kOneRowScale) {
          row_scale[0] = row_scale[1] = load_shared_float(scales);
        } else {
          row_scale[0] = load_shared_float(scales + 16 * thread.row(wave));
          row_scale[1] = load_shared_float(scales + 16 * (thread.row(wave) + 8));
        }
        const bool last = wave == Config::kWaves - 1 && last_part;
        if (last) {
          full = k_block + 1 < walk.k_end() && consumer.next_tile_is_full();
        }
        const unsigned long long rows = wgmma_descriptor(row_tile + 64 * wave * Spec::kTileK);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < Config::kStepsPerPart; ++step) {
          const int advance = 2 * (part * Config::kStepsPerPart + step);
          Mma::run(partial, rows + advance, columns + advance, step > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        Mma::keep(partial);
        if (last) {
          consumer.release_tile();
        }
        promote(acc[wave], partial, row_scale, run_scale, column_scales);
      }
      if (last_part) {
        break;
      }
    }
    consumer.tiles.next();
  }
  consumer.release_scales();
}

// ---- stores -------------------------------------------------------------------------------------

using Output = OutputStorage<Spec::kOut>::Type;

// One output of the row that starts at `line`, if it exists.
__device__ __forceinline__ void store_one(Output* line, int m, int row_m, int column_n,
                                          float value) {
  if (row_m < m && column_n < Spec::kN) {
    line[column_n] = convert_output<Spec::kOut>(value);
  }
}

// Rows are m. A quad of lanes holds 8 columns of a row, two a lane. With vector stores, fp32 goes
// out in pairs; 16-bit outputs first trade halves with the neighbouring lane, so that each lane has
// 4 columns of one of two blocks and the quad writes 32 bytes in a row.
__device__ __forceinline__ void store_rows(const GemmParams& p, int m, TileOrigin tile,
                                           const MathThread& thread, const Accumulators& acc) {
  constexpr bool kWholeTiles = Spec::kN % Spec::kTileN == 0;  // no column tail
  const bool odd = thread.lane % 2 != 0;
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile.row + thread.row(wave) + 8 * half;
      const int first = tile.column + thread.column(0);
      const int quad_column =
          tile.column + thread.first_column() + (odd ? 8 : 0) + 4 * (thread.lane % 4 / 2);
      Output* line = static_cast<Output*>(p.out) + row * p.ldo;
      Output* quad_line = one_address(line + quad_column);
      Output* pair_line = one_address(line + first);
#pragma unroll
      for (int block = 0; block < Config::kGroupColumns / 8; block += 2) {
        const float* v = &acc[wave][4 * block + 2 * half];
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
}

// Rows are n: 8 lanes hold 8 neighbouring outputs. With vector stores, 16-bit outputs trade with
// the lane 4 further, so that a lane writes two neighbours at once.
__device__ __forceinline__ void store_columns(const GemmParams& p, int m, TileOrigin tile,
                                              const MathThread& thread, const Accumulators& acc) {
  Output* out = static_cast<Output*>(p.out);
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile.row + thread.row(wave) + 8 * half;
#pragma unroll
      for (int block = 0; block < Config::kGroupColumns / 8; ++block) {
        const float* v = &acc[wave][4 * block + 2 * half];
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
}

// ---- split-K ------------------------------------------------------------------------------------

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
__device__ __forceinline__ void reduce_partials(const Shared& shared, const GemmParams& p, int m,
                                                TileOrigin tile, int rank) {
  constexpr int kQuads = Spec::kTileN / 4;
  const int first_m = Config::kSwap ? tile.column : tile.row;
  const int first_n = Config::kSwap ? tile.row : tile.column;
  Output* out = static_cast<Output*>(p.out);
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

__device__ __forceinline__ void consume(const Shared& shared, const GemmParams& p, const Walk& walk,
                                        int m, const MathThread& thread) {
  Consumer consumer(shared, thread.lane);
  Accumulators acc;
  float partial[Config::kRegisters];
#pragma unroll
  for (int i = 0; i < Config::kRegisters; ++i) {
    partial[i] = 0.0f;
  }
  for (int unit = walk.first; unit < walk.walk.count(); unit += walk.step) {
    const TileOrigin tile = walk.at(unit);
    multiply_tile(walk, thread, consumer, partial, acc);
    if constexpr (Spec::kSplitK > 1) {
      named_barrier_sync(1, Config::kMathThreads);  // no warpgroup still reads the stages
      write_partials(shared, thread, acc);
      meet_cluster();
      reduce_partials(shared, p, m, tile, walk.rank);
      meet_cluster();
    } else if constexpr (Config::kSwap) {
      store_columns(p, m, tile, thread, acc);
    } else {
      store_rows(p, m, tile, thread, acc);
    }
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
    mbarrier_init_fence();
  }
  __syncthreads();
  if constexpr (Config::kMulticast) {
    cluster_sync();  // no CTA may reach barriers that its neighbour has not initialised
  }

  // Registers of a thread: 168 at launch with two math warpgroups, then 40 for the producer and 232
  // for the others. With one there are enough for all.
  if (warp >= Config::kMathWarps) {
    if constexpr (Config::kWarpgroups == 2) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    }
    const int role = warp - Config::kMathWarps;
    if (role == 3) {
      produce_scales(shared, p, walk, m, lane);
    } else if constexpr (Config::kCopyFeed) {
      produce_by_copies(shared, p, walk, m, role, lane);
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
    }
    consume(shared, p, walk, m, MathThread{warp / 4, warp % 4, lane});
  }
  if constexpr (Config::kMulticast) {
    __syncwarp();
    cluster_sync();  // neighbours may still arrive on this CTA's barriers
  }
}
