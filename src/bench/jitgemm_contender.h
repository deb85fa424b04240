// SPDX-License-Identifier: Apache-2.0
// One plan of this library as a contender.
#pragma once

#include "bench/contender.h"
#include "bench/grouped_operands.h"
#include "bench/operands.h"
#include "plan/operation_plan.h"
#include "runtime/gemm_operation.h"

#include <vector>

namespace jitgemm::bench {

// The arguments of a problem for each set of operands, without a workspace.
std::vector<GemmArguments> launch_sets(const GemmProblem& problem, const Operands& operands);
std::vector<GemmArguments> launch_sets(const GemmProblem& problem, const GroupedOperands& operands);

// Builds and loads the plan's kernels. `sets`: launch_sets().
Result<std::unique_ptr<Contender>> make_jitgemm_contender(Workbench& bench,
                                                          const OperationPlan& plan,
                                                          std::vector<GemmArguments> sets,
                                                          GroupedForm form = GroupedForm::kTight);

}  // namespace jitgemm::bench
