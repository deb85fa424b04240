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
    size_t hash = std::hash<const void*>()(key.device);
    const auto mix = [&hash](int64_t value) {
      hash = (hash ^ static_cast<size_t>(value)) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 32;
    };
    // The fields that differ in practice; equality compares all of them.
    mix(p.m);
    mix(p.n);
    mix(p.k);
    mix(static_cast<int64_t>(p.out_dtype) * 16 + static_cast<int64_t>(p.m_policy));
    mix(p.lda);
    mix(p.ldb);
    mix(p.ldo);
    if (p.grouping.grouped()) {
      mix(p.grouping.groups);
      mix(p.grouping.expected_m * 8 + static_cast<int64_t>(p.grouping.layout));
    }
    return hash;
  }
};

}  // namespace jitgemm
