// SPDX-License-Identifier: Apache-2.0
// Every case on every device at hand: the simulator as each arch, with its sanitizer on and under
// several schedules, and the GPU named in JITGEMM_TEST_DEVICE if it is set.
#include "gemm_cases.h"
#include "selftest/gemm_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace jitgemm {
namespace {

struct TestDevice {
  std::string name;
  Arch arch;
  std::string seed;  // of the simulator's schedule
};

void PrintTo(const TestDevice& device, std::ostream* out) {
  *out << device.name;
}

std::vector<TestDevice> test_devices() {
  std::vector<TestDevice> devices;
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    for (const char* seed : {"0", "7"}) devices.push_back({"sim", arch, seed});
  }
  if (const char* gpu = std::getenv("JITGEMM_TEST_DEVICE"))
    devices.push_back({gpu, Arch::kSm90a, "0"});
  return devices;
}

class Gemm : public testing::TestWithParam<std::tuple<TestDevice, GemmCase>> {};

TEST_P(Gemm, MatchesFloat64) {
  const auto& [target, c] = GetParam();
  ContextOptions options;
  options.sim_seed = target.seed;
  const Result<std::shared_ptr<Context>> context = Context::create(options);
  ASSERT_TRUE(context) << context.error().to_string();
  const Result<Device*> device = (*context)->device(target.name, target.arch);
  ASSERT_TRUE(device) << device.error().to_string();

  const GemmProblem problem = c.problem(target.arch);
  const Result<BlockScaledTensors> tensors = make_block_scaled_tensors(problem, c.data, 1);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  GemmCaseOptions case_options;
  case_options.exact = c.data == InputKind::kSmallIntegers;
  case_options.scale_shift = c.scale_shift;
  PlanOverrides overrides;
  overrides.align_rows = c.align_rows;
  const Result<GemmCaseResult> result =
      run_gemm_case(**context, **device, problem, overrides, *tensors, case_options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->verdict.passed) << result->verdict.text << "\n" << to_string(result->plan);
  EXPECT_NE(result->plan.family, KernelFamily::kReference)
      << "the planner may never choose the reference kernel";
  EXPECT_EQ(result->image.spill_bytes, 0);
  EXPECT_EQ(result->image.stack_bytes, 0);
  EXPECT_EQ(result->image.warnings, "");
  // The tensor cores must do the work, whatever feeds them.
  const char* instruction =
      arch_info(problem.arch).has_tensor_memory ? "tcgen05.mma" : "wgmma.mma_async";
  EXPECT_NE(result->image.ptx.find(instruction), std::string::npos);
}

std::string case_name(const testing::TestParamInfo<std::tuple<TestDevice, GemmCase>>& info) {
  const auto& [target, c] = info.param;
  std::string device = target.name == "sim" ? fmt::format("sim_seed_{}", target.seed) : "gpu";
  return fmt::format("{}_{}_{}", arch_info(target.arch).target, device, c.name);
}

INSTANTIATE_TEST_SUITE_P(Cases, Gemm,
                         testing::Combine(testing::ValuesIn(test_devices()),
                                          testing::ValuesIn(gemm_cases())),
                         case_name);

INSTANTIATE_TEST_SUITE_P(Quantizing, Gemm,
                         testing::Combine(testing::ValuesIn(test_devices()),
                                          testing::ValuesIn(quantizing_cases())),
                         case_name);

// Targets that share their kernels with sm_100a: a few cases say that they compile and run.
std::vector<GemmCase> few_cases() {
  std::vector<GemmCase> few;
  for (const GemmCase& c : gemm_cases()) {
    for (const char* name :
         {"integers_tails_everywhere", "seed_bf16", "rows_7", "rows_of_4_bytes", "e8m0_scales"}) {
      if (c.name == name) few.push_back(c);
    }
  }
  return few;
}

INSTANTIATE_TEST_SUITE_P(OtherTargets, Gemm,
                         testing::Combine(testing::Values(TestDevice{"sim", Arch::kSm103a, "0"},
                                                          TestDevice{"sim", Arch::kSm100f, "0"},
                                                          TestDevice{"sim", Arch::kSm103f, "0"}),
                                          testing::ValuesIn(few_cases())),
                         case_name);

TEST(Gemm, NoRowsSucceedAndLaunchNothing) {
  const auto context = *Context::create({});
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    Device* device = *context->device("sim", arch);
    GemmProblem problem = GemmCase{.name = "no_rows", .m = 0}.problem(arch);
    const auto prepared = context->prepare(problem, {}, *device);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    EXPECT_TRUE(prepared->operation->launch({}, nullptr).ok());
  }
}

TEST(Gemm, ReferenceKernelAgreesByOverride) {
  const auto context = *Context::create({});
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    Device* device = *context->device("sim", arch);
    const GemmProblem problem =
        GemmCase{.name = "reference", .m = 13, .n = 40, .k = 150}.problem(arch);
    const BlockScaledTensors tensors =
        *make_block_scaled_tensors(problem, InputKind::kUniformCodes, 3);
    PlanOverrides overrides;
    overrides.family = KernelFamily::kReference;
    const auto result = run_gemm_case(*context, *device, problem, overrides, tensors, {});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_TRUE(result->verdict.passed) << result->verdict.text;
    EXPECT_EQ(result->plan.source, PlanSource::kOverride);
  }
}

}  // namespace
}  // namespace jitgemm
