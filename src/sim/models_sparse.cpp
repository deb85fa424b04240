// SPDX-License-Identifier: Apache-2.0
#include "sim/models_sparse.h"

#include <algorithm>

namespace jitgemm::sim {

std::vector<uint32_t> sparse_places(Sparsity sparsity, std::span<const uint8_t> metadata) {
  std::vector<uint32_t> places;
  for (uint32_t chunk = 0; chunk < metadata.size(); ++chunk) {
    const uint32_t bits = metadata[chunk] & 15u;
    if (sparsity == Sparsity::kOneOfTwo) {
      if (bits != 0b0100 && bits != 0b1110) return {};
      places.push_back(2 * chunk + (bits == 0b1110 ? 1 : 0));
      continue;
    }
    const uint32_t first = bits & 3, second = bits >> 2;
    if (first == second) return {};
    if (sparsity == Sparsity::kTwoPairsOfFour) {
      for (const uint32_t pair : {first, second}) {
        places.push_back(8 * chunk + 2 * pair);
        places.push_back(8 * chunk + 2 * pair + 1);
      }
      continue;
    }
    places.push_back(4 * chunk + first);
    places.push_back(4 * chunk + second);
  }
  return places;
}

void expand_sparse_row(std::span<const uint32_t> stored, std::span<const uint32_t> places,
                       std::span<uint32_t> row) {
  std::fill(row.begin(), row.end(), 0u);
  for (size_t i = 0; i < stored.size(); ++i) row[places[i]] = stored[i];
}

}  // namespace jitgemm::sim
