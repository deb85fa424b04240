// SPDX-License-Identifier: Apache-2.0
// One product as the tests of kernels write it: a problem and what the planner is told of it, each
// word of which the case names; and its way through the compiler.
#pragma once

#include "compile/nvrtc_compiler.h"
#include "plan/planner.h"
#include "specialize/kernel_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <utility>

namespace jitgemm {

struct KernelCase {
  std::string name;
  GemmProblem problem;
  PlanOverrides overrides;

  KernelCase(Arch arch, std::string case_name, int64_t m, int64_t n, int64_t k)
      : name(std::move(case_name)) {
    problem.arch = arch;
    problem.m = m;
    problem.n = n;
    problem.k = k;
  }

  KernelCase out(DType value) && {
    problem.out_dtype = value;
    return std::move(*this);
  }
  KernelCase types(DType a, DType b) && {
    problem.a_dtype = a;
    problem.b_dtype = b;
    return std::move(*this);
  }
  KernelCase groups(int32_t group_n, int32_t group_k) && {
    problem.group_n = group_n;
    problem.group_k = group_k;
    return std::move(*this);
  }
  KernelCase column_scales() && {
    problem.a_scale_major = ScaleMajor::kColumn;
    problem.b_scale_major = ScaleMajor::kColumn;
    return std::move(*this);
  }
  KernelCase pow2() && {
    problem.scale_values = ScaleValues::kPowerOfTwo;
    return std::move(*this);
  }
  KernelCase bytes() && {
    problem.scale_dtype = DType::kF8E8M0;
    return std::move(*this);
  }
  KernelCase lds(int64_t lda, int64_t ldb, int64_t ldo) && {
    problem.lda = lda;
    problem.ldb = ldb;
    problem.ldo = ldo;
    return std::move(*this);
  }
  KernelCase policy(MPolicy value) && {
    problem.m_policy = value;
    return std::move(*this);
  }
  KernelCase grouped(int32_t groups) && {
    problem.grouping.layout = GroupLayout::kRowIndices;
    problem.grouping.groups = groups;
    problem.grouping.expected_m = problem.m / groups;
    problem.m_policy = MPolicy::kClass;
    return std::move(*this);
  }

  // Of one k range, unless split() says more. How CTAs of a cluster work together is left to the
  // planner, unless alone(), pair(), share() or split() says it.
  KernelCase tile(int32_t m, int32_t n) && {
    overrides.tile_m = m;
    overrides.tile_n = n;
    overrides.split_k = 1;
    return std::move(*this);
  }
  KernelCase stages(int32_t count) && {
    overrides.stages = count;
    return std::move(*this);
  }
  KernelCase alone() && {
    overrides.cluster = 1;
    return std::move(*this);
  }
  KernelCase pair() && {
    overrides.cluster = 2;
    overrides.constants = {
        {"kPair", 2}
    };
    return std::move(*this);
  }
  KernelCase share(int32_t ctas) && {
    overrides.cluster = ctas;
    overrides.constants = {
        {"kShare", ctas}
    };
    return std::move(*this);
  }
  KernelCase split(int32_t count) && {
    overrides.cluster = count;
    overrides.split_k = count;
    return std::move(*this);
  }
};

inline void PrintTo(const KernelCase& c, std::ostream* out) {
  *out << c.name;
}

struct CompiledKernel {
  GemmPlan plan;
  KernelImage image;
};

// Plans, specialises and compiles; expects no warning, no spill, no stack, and shared memory that
// the target has. Nothing where a step fails, which is a failure of the test.
inline std::unique_ptr<CompiledKernel> compile_clean(const GemmProblem& problem,
                                                     const PlanOverrides& overrides = {}) {
  PlanRequest request;
  request.overrides = overrides;
  const Result<GemmPlan> plan = plan_gemm(problem, request);
  EXPECT_TRUE(plan) << plan.error().to_string();
  if (!plan) return nullptr;
  const std::string about = to_string(*plan);
  const Result<KernelSource> source = specialize(*plan, TemplateStore());
  EXPECT_TRUE(source) << about << source.error().to_string();
  const Result<std::unique_ptr<NvrtcCompiler>> compiler = NvrtcCompiler::open("");
  EXPECT_TRUE(compiler) << compiler.error().to_string();
  if (!source || !compiler) return nullptr;
  Result<KernelImage> image = (*compiler)->compile(*source);
  EXPECT_TRUE(image) << about << image.error().to_string();
  if (!image) return nullptr;
  EXPECT_EQ(image->warnings, "") << about;
  EXPECT_EQ(image->spill_bytes, 0) << about;
  EXPECT_EQ(image->stack_bytes, 0) << about;
  EXPECT_LE(plan->shared_bytes + image->static_shared_bytes,
            arch_info(problem.arch).shared_bytes_per_cta)
      << about;
  return std::make_unique<CompiledKernel>(CompiledKernel{*plan, *std::move(image)});
}

}  // namespace jitgemm
