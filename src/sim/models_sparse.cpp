// SPDX-License-Identifier: Apache-2.0
#include "sim/models_sparse.h"

#include <algorithm>

namespace jitgemm::sim {

std::vector<uint32_t> sparse_places(Sparsity sparsity, std::span<const uint8_t> metadata,
                                    bool equal_indices) {
  std::vector<uint32_t> places;
  for (uint32_t chunk = 0; chunk < metadata.size(); ++chunk) {
    const uint32_t bits = metadata[chunk] & 15u;
    if (sparsity == Sparsity::kOneOfTwo) {
      if (bits != 0b0100 && bits != 0b1110) return {};
      places.push_back(2 * chunk + (bits == 0b1110 ? 1 : 0));
      continue;
    }
    const uint32_t first = bits & 3, second = bits >> 2;
    if (first == second && !equal_indices) return {};
    const bool pairs = sparsity == Sparsity::kTwoPairsOfFour;
    for (const uint32_t index : {first, second}) {
      const bool nowhere = first == second && places.size() % (pairs ? 4 : 2) != 0;
      if (pairs) {
        places.push_back(nowhere ? kNowhere : 8 * chunk + 2 * index);
        places.push_back(nowhere ? kNowhere : 8 * chunk + 2 * index + 1);
      } else {
        places.push_back(nowhere ? kNowhere : 4 * chunk + index);
      }
    }
  }
  return places;
}

bool expand_sparse_row(std::span<const uint32_t> stored, std::span<const uint32_t> places,
                       std::span<uint32_t> row) {
  std::fill(row.begin(), row.end(), 0u);
  bool all_placed = true;
  for (size_t i = 0; i < stored.size(); ++i) {
    if (places[i] != kNowhere) {
      row[places[i]] = stored[i];
    } else {
      all_placed = all_placed && stored[i] == 0;
    }
  }
  return all_placed;
}

}  // namespace jitgemm::sim
