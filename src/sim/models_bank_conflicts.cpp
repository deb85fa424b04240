// SPDX-License-Identifier: Apache-2.0
#include "sim/models_bank_conflicts.h"

#include <algorithm>
#include <array>
#include <vector>

namespace jitgemm::sim {
namespace {

constexpr uint32_t kBanks = 32;
constexpr uint32_t kWordBytes = 4;

}  // namespace

Wavefronts count_wavefronts(std::span<const uint32_t> offsets, uint32_t bytes) {
  Wavefronts result;
  const uint32_t lanes_at_once = kBanks * kWordBytes / std::max(bytes, kWordBytes);
  std::vector<uint32_t> words;
  for (size_t first = 0; first < offsets.size(); first += lanes_at_once) {
    words.clear();
    for (const uint32_t offset :
         offsets.subspan(first, std::min<size_t>(lanes_at_once, offsets.size() - first))) {
      for (uint32_t word = offset / kWordBytes; word <= (offset + bytes - 1) / kWordBytes; ++word) {
        words.push_back(word);
      }
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<uint32_t, kBanks> load{};
    uint32_t most = 0;
    for (const uint32_t word : words) most = std::max(most, ++load[word % kBanks]);
    result.needed += most;
    ++result.ideal;
  }
  return result;
}

}  // namespace jitgemm::sim
