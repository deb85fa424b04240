// SPDX-License-Identifier: Apache-2.0
// Every grouped case on every device at hand: the simulator as each arch, with its sanitizer on and
// under several schedules, and the GPU named in JITGEMM_TEST_DEVICE if it is set.
#include "grouped_cases.h"
#include "selftest/grouped_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace jitgemm {
namespace {

struct TestDevice {
  std::string name;
  Arch arch;
  std::string seed;  // of the simulator's schedule; "varied": another one for every case
};

void PrintTo(const TestDevice& device, std::ostream* out) {
  *out << device.name;
}

std::vector<TestDevice> test_devices() {
  std::vector<TestDevice> devices;
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    for (const char* seed : {"0", "varied"}) devices.push_back({"sim", arch, seed});
  }
  if (const char* gpu = std::getenv("JITGEMM_TEST_DEVICE"))
    devices.push_back({gpu, Arch::kSm90a, "0"});
  return devices;
}

class Grouped : public testing::TestWithParam<std::tuple<TestDevice, GroupedCase>> {};

TEST_P(Grouped, MatchesFloat64AndTouchesNothingElse) {
  const auto& [target, c] = GetParam();
  ContextOptions options;
  options.sim_seed = target.seed;
  if (target.seed == "varied") options.sim_seed = fmt::format("{}", 1 + 37 * c.name.size() % 101);
  // Groups that overlap write the same rows: what they are then is undefined.
  if (!c.compared) options.sim_sanitize = "no-races";
  const Result<std::shared_ptr<Context>> context = Context::create(options);
  ASSERT_TRUE(context) << context.error().to_string();
  const Result<Device*> device = (*context)->device(target.name, target.arch);
  ASSERT_TRUE(device) << device.error().to_string();

  const GemmProblem problem = c.problem(target.arch);
  const Result<GroupedTensors> tensors = make_grouped_tensors(problem, c.data, 1);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  GroupedCaseOptions case_options;
  case_options.exact = c.data == InputKind::kSmallIntegers;
  case_options.verify = c.compared;
  const Result<GroupedCaseResult> result =
      run_grouped_case(**context, **device, problem, c.overrides(target.arch), *tensors,
                       c.group_rows(), case_options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->verdict.passed) << result->verdict.text << "\n" << to_string(result->plan);
  if (c.invalid >= 0) {
    EXPECT_EQ(result->invalid_count, static_cast<uint32_t>(c.invalid));
  }
  EXPECT_NE(result->plan.family, KernelFamily::kReference);
  EXPECT_EQ(result->image.spill_bytes, 0) << to_string(result->plan);
  EXPECT_EQ(result->image.stack_bytes, 0) << to_string(result->plan);
  EXPECT_EQ(result->image.warnings, "");
  const char* instruction =
      arch_info(problem.arch).has_tensor_memory ? "tcgen05.mma" : "wgmma.mma_async";
  EXPECT_NE(result->image.ptx.find(instruction), std::string::npos);
}

std::string case_name(const testing::TestParamInfo<std::tuple<TestDevice, GroupedCase>>& info) {
  const auto& [target, c] = info.param;
  const std::string device = target.name == "sim" ? fmt::format("sim_seed_{}", target.seed) : "gpu";
  return fmt::format("{}_{}_{}", arch_info(target.arch).target, device, c.name);
}

INSTANTIATE_TEST_SUITE_P(Cases, Grouped,
                         testing::Combine(testing::ValuesIn(test_devices()),
                                          testing::ValuesIn(grouped_cases())),
                         case_name);

std::vector<TestDevice> devices_with_wgmma() {
  std::vector<TestDevice> devices = test_devices();
  std::erase_if(devices, [](const TestDevice& d) { return arch_info(d.arch).has_tensor_memory; });
  return devices;
}

INSTANTIATE_TEST_SUITE_P(Clusters, Grouped,
                         testing::Combine(testing::ValuesIn(devices_with_wgmma()),
                                          testing::ValuesIn(clustered_cases())),
                         case_name);
INSTANTIATE_TEST_SUITE_P(Splits, Grouped,
                         testing::Combine(testing::ValuesIn(devices_with_wgmma()),
                                          testing::ValuesIn(split_cases())),
                         case_name);

TEST(Grouped, NoRowsSucceedAndLaunchNothing) {
  const auto context = *Context::create({});
  for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
    Device* device = *context->device("sim", arch);
    GroupedCase c;
    c.groups = 4;
    const auto prepared = context->prepare(c.problem(arch), {}, *device);
    ASSERT_TRUE(prepared) << prepared.error().to_string();
    EXPECT_TRUE(prepared->operation->launch({}, nullptr).ok());
  }
}

}  // namespace
}  // namespace jitgemm
