// SPDX-License-Identifier: Apache-2.0
// The order in which a persistent grid visits tiles, and the cursor over pipeline stages. Counts
// units (a tile, or the tiles of one cluster) and stages; knows nothing of operands.
#pragma once

// Units are visited in bands of kBandColumns columns, row after row inside a band, so that the CTAs
// that run at one time share both operands in L2.
template <int kBandColumns>
struct TileWalk {
  int rows;
  int columns;

  __device__ __forceinline__ int count() const { return rows * columns; }

  __device__ __forceinline__ void at(int index, int& row, int& column) const {
    const int per_band = rows * kBandColumns;
    const int band = index / per_band;
    const int within = index - band * per_band;
    const int first = band * kBandColumns;
    const int width = columns - first < kBandColumns ? columns - first : kBandColumns;
    row = within / width;
    column = first + within - row * width;
  }
};

// Position in a ring of kStages slots. The phase is the parity that the next wait on the slot's
// "full" barrier needs; a producer waits on "empty" with the opposite one, so that the first round
// passes.
template <int kStages>
struct StageCursor {
  int stage = 0;
  unsigned phase = 0;

  __device__ __forceinline__ void next() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  template <int kCount>
  __device__ __forceinline__ void skip() {
    stage += kCount % kStages;
    phase ^= kCount / kStages % 2;
    if (stage >= kStages) {
      stage -= kStages;
      phase ^= 1;
    }
  }
};
