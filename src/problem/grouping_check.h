// SPDX-License-Identifier: Apache-2.0
// Whether the grouping of a problem makes sense: a part of validate, in a file of its own.
#pragma once

#include "problem/gemm_problem.h"
#include "support/status.h"

namespace jitgemm {

// OK for a problem that is not grouped. Extents and strides of a single group are valid already.
Status check_grouping(const GemmProblem& problem);
// The part that depends on the rows of a launch.
Status check_group_rows(const GemmProblem& problem, int64_t m);

}  // namespace jitgemm
