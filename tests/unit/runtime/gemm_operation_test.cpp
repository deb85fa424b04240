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
  const GemmOperation operation(plan, std::make_shared<NoKernel>(), device);
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

}  // namespace
}  // namespace jitgemm
