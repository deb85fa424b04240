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
    // Column scales that a math thread loads ahead into registers: one a run, or, where each column
    // has its own, those of its two columns in each block of 8, while they are few. 0: too many.
    kHeldScales = kColumnRun != 1       ? kGroupColumns / kColumnRun
                  : kGroupColumns <= 64 ? kGroupColumns / 4
                                        : 0,
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
    // TMA stores: each math warp stages 16 rows of 64 bytes, twice, in a swizzled square.
    kTmaStore = Spec::kStore == 1,
    kOutBytes = Spec::kOut == kF32 ? 4 : 2,
    kStoreColumns = 64 / kOutBytes,
    kStoreBuffers = kColumnTiles + Spec::kStages * kColumnTileBytes,
    kStoreBufferBytes = 16 * 64,
    kScaleRing = kStoreBuffers + (kTmaStore ? 2 * kMathWarps * kStoreBufferBytes : 0),
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
static_assert(!Config::kTmaStore || (!Config::kSwap && Spec::kSplitK == 1 &&
                                     Config::kGroupColumns % Config::kStoreColumns == 0),
              "TMA stores whole boxes of a tile whose rows are those of the output");
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
      const float run = held_scale[8 * block / Config::kColumnRun];
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

__device__ __forceinline__ void multiply_tile(const Walk& walk, Consumer& consumer,
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
  if (Spec::kSplitK > 1 && k >= k_end) {
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

// Rows are m, by TMA: a warp stages 16 rows of kStoreColumns columns, one lane stores the box, and
// the other buffer is filled meanwhile. Rows and columns that do not exist are clipped.
__device__ __forceinline__ void store_rows_by_tma(const Shared& shared, const GemmParams& p,
                                                  TileOrigin tile, const MathThread& thread,
                                                  const Accumulators& acc, int& buffer) {
  const int warp = 4 * thread.warpgroup + thread.warp;
  const SharedAddress buffers =
      shared.base + Config::kStoreBuffers + 2 * warp * Config::kStoreBufferBytes;
#pragma unroll
  for (int wave = 0; wave < Config::kWaves; ++wave) {
#pragma unroll
    for (int chunk = 0; chunk < Config::kGroupColumns / Config::kStoreColumns; ++chunk) {
      const SharedAddress box = buffers + buffer * Config::kStoreBufferBytes;
      buffer ^= 1;
      if (thread.lane == 0) {
        tma_store_wait_read<1>();
      }
      __syncwarp();
      const float* v = &acc[wave][chunk * Config::kStoreColumns / 2];
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
      if (thread.lane == 0) {
        tma_store_2d(&p.out_map, box,
                     tile.column + thread.first_column() + chunk * Config::kStoreColumns,
                     tile.row + thread.first_row() + 64 * wave + 16 * thread.warp);
        tma_store_commit();
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
  Consumer consumer(shared, thread);
  int store_buffer = 0;
  Accumulators acc;
  float partial[Config::kRegisters];
#pragma unroll
  for (int i = 0; i < Config::kRegisters; ++i) {
    partial[i] = 0.0f;
  }
  for (int unit = walk.first; unit < walk.walk.count(); unit += walk.step) {
    const TileOrigin tile = walk.at(unit);
    multiply_tile(walk, consumer, partial, acc);
    if constexpr (Spec::kSplitK > 1) {
      named_barrier_sync(1, Config::kMathThreads);  // no warpgroup still reads the stages
      write_partials(shared, thread, acc);
      meet_cluster();
      reduce_partials(shared, p, m, tile, walk.rank);
      meet_cluster();
    } else if constexpr (Config::kSwap) {
      store_columns(p, m, tile, thread, acc);
    } else if constexpr (Config::kTmaStore) {
      store_rows_by_tma(shared, p, tile, thread, acc, store_buffer);
    } else {
      store_rows(p, m, tile, thread, acc);
    }
  }
  if (Config::kTmaStore && thread.lane == 0) {
    tma_store_wait<0>();
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
    } else if constexpr (Config::kWarpgroups == 3) {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 152;");
    }
    consume(shared, p, walk, m, MathThread{warp / 4, warp % 4, lane});
  }
  if constexpr (Config::kMulticast) {
    __syncwarp();
    cluster_sync();  // neighbours may still arrive on this CTA's barriers
  }
}
