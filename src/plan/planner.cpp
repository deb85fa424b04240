// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm {
namespace {

// The m that MPolicy::kAny plans for: large enough for full tiles.
constexpr int64_t kAnyPlannedM = 4096;

int64_t planned_m(const GemmProblem& problem) {
  switch (problem.m_policy) {
    case MPolicy::kExact: return std::max<int64_t>(problem.m, 1);
    case MPolicy::kClass: return m_class_bound(std::max<int64_t>(problem.m, 1));
    case MPolicy::kAny: return kAnyPlannedM;
  }
  return problem.m;
}

}  // namespace

Feed feed_for(int64_t row_bytes, int32_t alignment) {
  if (row_bytes % 16 == 0 && alignment >= 16) return Feed::kTma;
  if (row_bytes % 4 == 0 && alignment >= 4) return Feed::kCpAsync;
  return Feed::kPlain;
}

Store store_for(const GemmProblem& problem) {
  const int64_t row_bytes = problem.ldo_or_dense() * dtype_info(problem.out_dtype).bytes;
  return row_bytes % 16 == 0 && problem.alignment >= 16 ? Store::kTma : Store::kDirect;
}

Result<GemmPlan> plan_gemm(const GemmProblem& problem, const PlanRequest& request) {
  JITGEMM_TRY(validate(problem));
  if (problem.grouping.grouped()) {
    return unsupported("layout: grouped products have no kernel yet");
  }
  const ArchInfo& arch = arch_info(problem.arch);
  const PlannerInput input{problem, planned_m(problem),
                           request.sm_count > 0 ? request.sm_count : arch.default_sm_count,
                           request.overrides};
  const int major = arch.compute_capability / 10;
  if (request.overrides.family) {
    const KernelFamilyInfo& family = kernel_family_info(*request.overrides.family);
    if (family.major != 0 && family.major != major) {
      return unsupported(fmt::format("kernel: '{}' is not for {}", family.name, arch.target));
    }
  }
  Result<GemmPlan> plan = request.overrides.family == KernelFamily::kReference
                              ? plan_reference(input)
                          : major == 9 ? plan_sm90(input)
                                       : plan_sm100(input);
  if (!plan) return plan.error().with_context("planning " + to_string(problem));
  if (request.overrides.any()) plan->source = PlanSource::kOverride;
  return plan;
}

}  // namespace jitgemm
