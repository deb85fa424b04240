// SPDX-License-Identifier: Apache-2.0
// The quantising template through the compiler, for every kind of source, codes and scales: no
// warning, no spill, no stack.
#include "compile/nvrtc_compiler.h"
#include "plan/quantize_plan.h"
#include "specialize/kernel_source.h"

#include <gtest/gtest.h>

namespace jitgemm {
namespace {

TEST(QuantizeCompile, CleanForEverySourceCodeAndScale) {
  const Result<std::unique_ptr<NvrtcCompiler>> compiler = NvrtcCompiler::open("");
  ASSERT_TRUE(compiler) << compiler.error().message();
  const struct {
    Arch arch;
    DType a;
    DType codes;
    DType scales;
    int64_t k;
    int32_t group_k;
  } cases[] = {
      {Arch::kSm90a,  DType::kBF16, DType::kF8E4M3, DType::kF32,    7168, 128 },
      {Arch::kSm100a, DType::kF16,  DType::kF8E5M2, DType::kF8E8M0, 7168, 32  },
      {Arch::kSm90a,  DType::kF32,  DType::kF8E4M3, DType::kF32,    3883, 128 },
      {Arch::kSm100a, DType::kF32,  DType::kF8E4M3, DType::kF8E8M0, 8192, 1024},
      {Arch::kSm90a,  DType::kBF16, DType::kF8E5M2, DType::kF32,    8192, 8192},
  };
  for (const auto& c : cases) {
    GemmProblem p;
    p.arch = c.arch;
    p.m = 64;
    p.n = 64;
    p.k = c.k;
    p.a_dtype = c.a;
    p.a_code_dtype = c.codes;
    p.scale_dtype = c.scales;
    p.group_k = c.group_k;
    const QuantizePlan plan = plan_quantize(p);
    SCOPED_TRACE(to_string(plan));
    const Result<KernelSource> source = specialize(plan, TemplateStore());
    ASSERT_TRUE(source) << source.error().message();
    const Result<KernelImage> image = (*compiler)->compile(*source);
    ASSERT_TRUE(image) << image.error().message();
    EXPECT_EQ(image->warnings, "");
    EXPECT_EQ(image->spill_bytes, 0);
    EXPECT_EQ(image->stack_bytes, 0);
  }
}

}  // namespace
}  // namespace jitgemm
