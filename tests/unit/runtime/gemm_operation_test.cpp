// SPDX-License-Identifier: Apache-2.0
// Workspace checks, for whichever plan asks for one: a plan is made by hand.
#include "runtime/gemm_operation.h"

#include "device/sim_device.h"

#include <gtest/gtest.h>

namespace jitgemm {
namespace {

class NoKernel final : public LoadedKernel {};

TEST(GemmOperation, WorkspaceThatIsMissingMisalignedOrSmallIsRefused) {
  SimDevice device(Arch::kSm90a, {});
  GemmPlan plan;
  plan.problem.m = 16;
  plan.problem.n = 64;
  plan.problem.k = 128;
  plan.tile_m = 64;
  plan.tile_n = 64;
  plan.threads = 128;
  plan.workspace_bytes = 4096;
  const GemmOperation operation({plan.problem, {plan}}, {std::make_shared<NoKernel>()}, device);
  const struct {
    uint64_t address;
    uint64_t bytes;
    const char* message;
  } cases[] = {
      {0,      4096, "workspace: expected an address, found NULL"                            },
      {0x1010, 4096, "workspace: expected an address that is a multiple of 256, found 0x1010"},
      {0x1000, 4095, "workspace_bytes: expected at least 4096, found 4095"                   },
      {0x1000, 0,    "workspace_bytes: expected at least 4096, found 0"                      },
  };
  for (const auto& row : cases) {
    GemmArguments arguments;
    arguments.a = arguments.b = arguments.a_scales = arguments.b_scales = arguments.out = 0x10000;
    arguments.m = 16;
    arguments.workspace = row.address;
    arguments.workspace_bytes = row.bytes;
    const Status status = operation.launch(arguments, nullptr);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), row.message);
  }
}

TEST(GemmOperation, QuantisingChecksItsWorkspaceForTheLaunchsM) {
  SimDevice device(Arch::kSm90a, {});
  GemmProblem problem;
  problem.m = 100;
  problem.n = 64;
  problem.k = 200;
  problem.a_dtype = DType::kBF16;
  problem.m_policy = MPolicy::kClass;
  const Result<OperationPlan> plan = plan_operation(problem);
  ASSERT_TRUE(plan) << plan.error().to_string();
  const auto kernel = std::make_shared<NoKernel>();
  const GemmOperation operation(*plan, {kernel, kernel}, device);
  // Codes in rows of 208 bytes, to the next multiple of 256, then two fp32 scales a row.
  EXPECT_EQ(operation.workspace_bytes(100), 20992U + 800U);
  EXPECT_EQ(operation.workspace_bytes(1), 256U + 8U);
  EXPECT_EQ(operation.workspace_bytes(0), 0U);

  GemmArguments arguments;
  arguments.a = arguments.b = arguments.b_scales = arguments.out = 0x10000;
  arguments.m = 200;
  arguments.workspace = 0x20000;
  arguments.workspace_bytes = operation.workspace_bytes(100);
  Status status = operation.launch(arguments, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "workspace_bytes: expected at least 43328, found 21792");

  arguments.m = 100;
  arguments.a_scales = 0x30000;
  status = operation.launch(arguments, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "a_scales: expected NULL, since the operation makes them, found 0x30000");
}

}  // namespace
}  // namespace jitgemm
