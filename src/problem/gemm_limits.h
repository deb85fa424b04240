// SPDX-License-Identifier: Apache-2.0
// How large a product may be: what 32-bit extents and 64-bit offsets can hold. Asked once for a
// problem, and for the rows of each launch whose kernel takes m at run time.
#pragma once

#include "problem/gemm_problem.h"
#include "support/status.h"

#include <cstdint>

namespace jitgemm {

// m, n and k are 32-bit inside kernels, rounded up to whole tiles; offsets are 64-bit.
inline constexpr int64_t kMaxExtent = INT32_MAX - 1024;

// INVALID_ARGUMENT if a and out with m rows, or a's scales, are too large. Strides are valid.
Status check_rows(const GemmProblem& problem, int64_t m);
// The same for b and its scales.
Status check_columns(const GemmProblem& problem);

}  // namespace jitgemm
