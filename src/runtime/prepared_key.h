// SPDX-License-Identifier: Apache-2.0
// Under which a prepared operation is found again: the device and every field of the problem.
#pragma once

#include "device/device.h"
#include "problem/gemm_problem.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace jitgemm {

struct PreparedKey {
  const Device* device = nullptr;
  GemmProblem problem;
  bool operator==(const PreparedKey&) const = default;
};

struct PreparedKeyHash {
  size_t operator()(const PreparedKey& key) const {
    const GemmProblem& p = key.problem;
    // The fields that differ in practice; equality compares all of them. Each is multiplied by an
    // odd number of its own, so that the products do not wait for each other.
    size_t hash = std::hash<const void*>()(key.device);
    const auto add = [&hash](int64_t value, uint64_t factor) {
      hash += static_cast<size_t>(value) * factor;
    };
    add(p.m, 0x9e3779b97f4a7c15ULL);
    add(p.n, 0xbf58476d1ce4e5b9ULL);
    add(p.k, 0x94d049bb133111ebULL);
    add(static_cast<int64_t>(p.out_dtype) * 16 + static_cast<int64_t>(p.m_policy),
        0xd6e8feb86659fd93ULL);
    add(p.lda, 0xff51afd7ed558ccdULL);
    add(p.ldb, 0xc4ceb9fe1a85ec53ULL);
    add(p.ldo, 0xa0761d6478bd642fULL);
    if (p.grouping.grouped()) {
      add(p.grouping.groups, 0xe7037ed1a0b428dbULL);
      add(p.grouping.expected_m * 8 + static_cast<int64_t>(p.grouping.layout),
          0x8ebc6af09c88c6e3ULL);
    }
    // The table takes the low bits, which the high ones have to reach.
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
    return hash;
  }
};

}  // namespace jitgemm
