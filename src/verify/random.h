// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers: Philox4x32-10 and what test inputs are drawn from it. Every number
// is a pure function of (seed, stream, index), so any part of a tensor can be drawn alone, by any
// thread or on a device, with the same bits. Normal draws use IEEE add, multiply, divide and square
// root only, never libm, so that a device twin can reproduce them bit for bit.
#pragma once

#include <array>
#include <cstdint>

namespace jitgemm {

using PhiloxBlock = std::array<uint32_t, 4>;

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11): ten rounds.
PhiloxBlock philox4x32(PhiloxBlock counter, std::array<uint32_t, 2> key);

class RandomStream {
 public:
  RandomStream(uint64_t seed, uint32_t stream) : seed_(seed), stream_(stream) {}

  // 32 uniform bits.
  uint32_t bits(uint64_t index) const;
  // Uniform on [0, 1), a multiple of 2^-24: exact in fp32.
  float uniform(uint64_t index) const;
  // Uniform on the integers low..high, both included; high - low < 2^31.
  int32_t integer(uint64_t index, int32_t low, int32_t high) const;
  // Standard normal, rounded once to fp32. Box-Muller: indices 2i and 2i+1 share one Philox block.
  float normal(uint64_t index) const;
  // Both of them, at the price of one.
  std::array<float, 2> normal_pair(uint64_t pair) const;

 private:
  PhiloxBlock block(uint64_t index) const;

  uint64_t seed_;
  uint32_t stream_;
};

}  // namespace jitgemm
