// SPDX-License-Identifier: Apache-2.0
// Where the CTAs of a cluster split K between them: their partial sums meet through distributed
// shared memory and are added in the order of rank, so that a sum never depends on who was first.
// For swapped operands, whose results leave without a slab. Knows nothing of scales.
#pragma once

#include "device/sm100_geometry.cuh"
#include "device/sm100_store.cuh"

namespace sm100 {

// Each CTA's partial sums stay in its own shared memory. `exchanged` tells every CTA that all are
// written; `consumed`, that all were read and may be overwritten by the next tile's.
struct SplitExchange {
  SharedAddress sums;  // [column][lane], fp32
  SharedAddress exchanged;
  SharedAddress consumed;
  unsigned phase = 0;

  static constexpr int kBytes = Spec::kSplitK == 1 ? 0 : Geometry::kColumns * Geometry::kLanes * 4;
  static constexpr int kArrivals = Spec::kEpilogueWarps * Spec::kSplitK;
  static_assert(Spec::kSplitK == 1 || Geometry::kSwap, "K is split for swapped operands only");

  static __device__ __forceinline__ void arrive_everywhere(SharedAddress barrier, int lane) {
    __syncwarp();
    if (lane < Spec::kSplitK) mbarrier_arrive_remote_release(barrier, lane);
  }

  // mine[j] is this thread's sum for column first_column + j. CTA r stores the columns r, r +
  // splits and so on of each warp.
  template <int kWarpColumns>
  __device__ __forceinline__ void reduce(const GemmParams& p, const float (&mine)[kWarpColumns],
                                         const Tile& tile, int rank, int lane, int lane_in_tile,
                                         int first_column) {
    mbarrier_wait_cluster(consumed, phase ^ 1);
    const SharedAddress own = sums + 4 * (first_column * Geometry::kLanes + lane_in_tile);
#pragma unroll
    for (int j = 0; j < kWarpColumns; ++j) {
      store_shared(own + 4 * j * Geometry::kLanes, __float_as_uint(mine[j]));
    }
    arrive_everywhere(exchanged, lane);
    mbarrier_wait_cluster(exchanged, phase);
    for (int j = rank; j < kWarpColumns; j += Spec::kSplitK) {
      float part[Spec::kSplitK];
#pragma unroll
      for (int r = 0; r < Spec::kSplitK; ++r) {
        part[r] = load_cluster_float(own + 4 * j * Geometry::kLanes, r);
      }
      float total = part[0];
#pragma unroll
      for (int r = 1; r < Spec::kSplitK; ++r) total += part[r];
      store_transposed(p, tile, tile.column0 + first_column + j, tile.lane0 + lane_in_tile, total);
    }
    arrive_everywhere(consumed, lane);
    phase ^= 1;
  }
};

}  // namespace sm100
