// SPDX-License-Identifier: Apache-2.0
// The shapes that every kernel must get right, small enough for the simulator. One list, many
// devices.
#pragma once

#include "problem/gemm_problem.h"
#include "verify/inputs.h"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace jitgemm {

struct GemmCase {
  std::string name;
  int64_t m = 128;
  int64_t n = 128;
  int64_t k = 512;
  InputKind data = InputKind::kUniformCodes;
  DType out = DType::kF32;
  int32_t group_n = 128;
  int32_t group_k = 128;
  DType a = DType::kF8E4M3;
  DType b = DType::kF8E4M3;
  ScaleMajor a_major = ScaleMajor::kRow;
  ScaleMajor b_major = ScaleMajor::kRow;
  DType scales = DType::kF32;
  ScaleValues values = ScaleValues::kAnyFloat;
  MPolicy policy = MPolicy::kExact;
  int64_t padding = 0;  // elements added to every leading dimension
  int32_t alignment = 16;
  size_t scale_shift = 0;          // bytes that scales begin behind an aligned address
  DType a_codes = DType::kF8E4M3;  // of an `a` that the operation quantises
  // Whether rows are copied to where TMA can address them; empty: as the planner decides.
  std::optional<bool> align_rows = {};

  GemmProblem problem(Arch arch) const;
};

std::vector<GemmCase> gemm_cases();
// Those whose `a` the operation quantises first: two launches over one workspace, whose contents
// are poison before. The codes and scales are compared with the host quantiser bit for bit.
std::vector<GemmCase> quantizing_cases();

inline void PrintTo(const GemmCase& c, std::ostream* out) {
  *out << c.name;
}

}  // namespace jitgemm
