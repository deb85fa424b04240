// SPDX-License-Identifier: Apache-2.0
#include "sim/models_sparse.h"

#include <utility>

namespace jitgemm::sim {

Sparsity sparsity_of(int bits) {
  return bits == 32  ? Sparsity::kOneOfTwo
         : bits == 4 ? Sparsity::kTwoPairsOfFour
                     : Sparsity::kTwoOfFour;
}

uint32_t chunk_elements(Sparsity sparsity) {
  switch (sparsity) {
    case Sparsity::kTwoOfFour: return 4;
    case Sparsity::kOneOfTwo: return 2;
    case Sparsity::kTwoPairsOfFour: return 8;
  }
  return 0;
}

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

std::vector<size_t> expand_sparse_rows(std::vector<uint32_t>& codes,
                                       std::span<const uint32_t> places, size_t k) {
  std::vector<size_t> misplaced;
  std::vector<uint32_t> whole(places.size() * 2);
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t row = i / (k / 2);
    if (places[i] != kNowhere) {
      whole[row * k + places[i]] = codes[i];
    } else if (codes[i] != 0 && (misplaced.empty() || misplaced.back() != row)) {
      misplaced.push_back(row);
    }
  }
  codes = std::move(whole);
  return misplaced;
}

}  // namespace jitgemm::sim
