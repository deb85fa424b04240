// SPDX-License-Identifier: Apache-2.0
// wgmma through whole kernels: results, and for each ordering rule a kernel that breaks it and its
// twin.
#include "unit/sim/ptx_run.h"
#include "unit/sim/tensor_core_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm::sim::wgmma_test {
namespace {

using ::testing::HasSubstr;

// 128 threads; A (2048 bytes) and B (256 bytes) come by bulk copy; D is 64 x 8.
struct Kernel {
  std::string zero =
      "mov.f32 %f1, 0f00000000;\nmov.f32 %f2, 0f00000000;\nmov.f32 %f3, 0f00000000;\nmov.f32 %f4, "
      "0f00000000;";
  std::string fence = "wgmma.fence.sync.aligned;";
  std::string mma =
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1, %f2, %f3, %f4}, %rd10, %rd11, "
      "%p3, 1, 1;";
  std::string again;
  std::string wait = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;";
  std::string wait_for_copy = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n@!%p2 bra W;";
  std::string touch;

  std::string text() const {
    return kernel_text(".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2",
                       R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, bar;
  mov.u32 %r2, tile_a;
  mov.u32 %r3, tile_b;
  mov.u32 %r4, %tid.x;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra S;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 2304;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 2048, [%r1];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 256, [%r1];
S:
  bar.sync 0;
  )" + wait_for_copy + "\n" +
                           touch + "\n" + descriptor("%rd10", "%r2", "%r10", "%rd12", kWgmmaHigh) +
                           descriptor("%rd11", "%r3", "%r10", "%rd12", kWgmmaHigh) +
                           "setp.eq.u32 %p3, %r4, 1000;\n" + zero + "\n" + fence + "\n" + mma +
                           "\n" + again + "\n" + wait + R"(
  shr.u32 %r11, %r4, 5;
  and.b32 %r12, %r4, 31;
  shr.u32 %r13, %r12, 2;
  and.b32 %r14, %r12, 3;
  shl.b32 %r15, %r11, 4;
  add.u32 %r15, %r15, %r13;
  shl.b32 %r15, %r15, 5;
  shl.b32 %r16, %r14, 3;
  add.u32 %r15, %r15, %r16;
  cvt.u64.u32 %rd13, %r15;
  add.u64 %rd14, %rd3, %rd13;
  st.global.f32 [%rd14], %f1;
  st.global.f32 [%rd14+4], %f2;
  st.global.f32 [%rd14+256], %f3;
  st.global.f32 [%rd14+260], %f4;
  ret;
)",
                       ".shared .align 1024 .b8 tile_a[2048];\n.shared .align 1024 .b8 "
                       "tile_b[256];\n.shared .align 8 .b64 bar;\n");
  }
};

struct Outcome {
  std::string fault;
  std::vector<float> d;
  SmallMatrix a{64, 1}, b{8, 2};
};

Outcome run(const Kernel& kernel, Numerics numerics = Numerics::kHopper, uint64_t seed = 0,
            bool integers = false) {
  Outcome out;
  std::vector<uint8_t> a = out.a.packed(integers), b = out.b.packed(integers);
  out.d.assign(512, -1.0f);
  Runner runner(kernel.text());
  runner.options.numerics = numerics;
  runner.options.seed = seed;
  runner.grid(1, 128).buffer(a).buffer(b).buffer(out.d, false);
  out.fault = runner.outcome();
  return out;
}

TEST(Wgmma, ComputesTheProductInEveryNumericsModeAndOrder) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kHopper, Numerics::kBlackwell}) {
    for (const uint64_t seed : {0, 5}) {
      const Outcome out = run({}, numerics, seed);
      ASSERT_EQ(out.fault, "");
      for (int i = 0; i < 64; ++i) {
        for (int j = 0; j < 8; ++j) {
          ASSERT_EQ(out.d[static_cast<size_t>(8 * i + j)], dot(out.a, i, out.b, j))
              << i << "," << j;
        }
      }
    }
  }
}

TEST(Wgmma, TwoInARowAccumulateAndNegate) {
  Kernel kernel;
  kernel.again =
      "setp.ne.u32 %p3, %r4, 1000;\n"
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1, %f2, %f3, %f4}, %rd10, %rd11, "
      "%p3, -1, 1;\n"
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1, %f2, %f3, %f4}, %rd10, %rd11, "
      "%p3, -1, 1;";
  const Outcome out = run(kernel);
  ASSERT_EQ(out.fault, "");
  EXPECT_EQ(out.d[9], -dot(out.a, 1, out.b, 1));
}

TEST(Wgmma, IntegersAccumulateExactly) {
  Kernel kernel;
  kernel.mma =
      "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%f1, %f2, %f3, %f4}, %rd10, %rd11, %p3;";
  const Outcome out = run(kernel, Numerics::kHopper, 0, true);
  ASSERT_EQ(out.fault, "");
  int32_t word = 0;
  std::memcpy(&word, &out.d[8 * 37 + 3], sizeof word);
  EXPECT_EQ(word, dot(out.a, 37, out.b, 3));
}

TEST(Wgmma, WithoutTheFenceAfterRegisterWritesIsReported) {
  Kernel kernel;
  kernel.fence = "";
  EXPECT_THAT(run(kernel).fault, HasSubstr("no wgmma.fence"));
}

// After a first product and its wait, something happens to registers, and a second product follows.
constexpr std::string_view kSecond =
    "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1, %f2, %f3, %f4}, %rd10, %rd11, %p3, "
    "1, 1;";
constexpr std::string_view kCommitAndWait =
    "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
constexpr std::string_view kFence = "wgmma.fence.sync.aligned;\n";

struct FenceCase {
  const char* name;
  std::string between;  // after the wait for the first product
  std::string second;
  bool needs_fence;
};

void PrintTo(const FenceCase& c, std::ostream* out) {
  *out << c.name;
}

class WgmmaFence : public testing::TestWithParam<FenceCase> {};

TEST_P(WgmmaFence, IsAskedForWhereTheIsaAsksForIt) {
  const FenceCase& c = GetParam();
  Kernel kernel;
  kernel.again = std::string(kCommitAndWait) + c.between + c.second;
  const std::string fault = run(kernel).fault;
  if (c.needs_fence) {
    EXPECT_THAT(fault, HasSubstr("no wgmma.fence"));
  } else {
    EXPECT_EQ(fault, "");
  }
  kernel.again = std::string(kCommitAndWait) + c.between + std::string(kFence) + c.second;
  EXPECT_EQ(run(kernel).fault, "");
}

const FenceCase kFenceCases[] = {
    {"NothingBetween",           "",                                             std::string(kSecond), false},
    {"OtherRegisters",           "mov.f32 %f9, 0f3f800000;\n",                   std::string(kSecond), false},
    {"AccumulatorRead",          "add.f32 %f9, %f2, %f2;\n",                     std::string(kSecond), true },
    {"AccumulatorReadByOneLane", "@!%p1 mov.b32 %r20, %f4;\n",                   std::string(kSecond), true },
    {"AccumulatorStored",        "@!%p1 st.global.v2.f32 [%rd3], {%f1, %f2};\n", std::string(kSecond),
     true                                                                                                   },
    {"AccumulatorWritten",       "mov.f32 %f3, 0f00000000;\n",                   std::string(kSecond), true },
    {"AnotherShape",             "",
     "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd10, %rd11, %p3, "
     "1, 1, 0, 0;",                                                                                    true },
    {"AccumulatorBecomesA",      "",
     "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f5, %f6, %f7, %f8}, {%f1, %f2, %f3, "
     "%f4}, %rd11, %p3, 1, 1;",                                                                        true },
};

INSTANTIATE_TEST_SUITE_P(Accesses, WgmmaFence, testing::ValuesIn(kFenceCases),
                         [](const auto& c) { return c.param.name; });

TEST(Wgmma, ReadingTheAccumulatorBeforeTheWaitIsReported) {
  Kernel kernel;
  kernel.wait = "wgmma.commit_group.sync.aligned;";
  EXPECT_THAT(run(kernel).fault, HasSubstr("asynchronous operation"));
}

TEST(Wgmma, AWaitThatLeavesTheGroupPendingIsReported) {
  Kernel kernel;
  kernel.wait = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;";
  EXPECT_THAT(run(kernel).fault, HasSubstr("asynchronous operation"));
}

TEST(Wgmma, AWaitWithoutCommitIsReported) {
  Kernel kernel;
  kernel.wait = "wgmma.wait_group.sync.aligned 0;";
  EXPECT_THAT(run(kernel).fault, HasSubstr("asynchronous operation"));
}

TEST(Wgmma, OperandsThatTheCopyHasNotCompletedAreReported) {
  Kernel kernel;
  kernel.wait_for_copy = "";
  EXPECT_THAT(run(kernel).fault, HasSubstr("asynchronous write has not completed"));
}

TEST(Wgmma, GenericWritesToOperandsNeedAProxyFence) {
  Kernel kernel;
  kernel.touch = "mov.u32 %r20, 0;\n@!%p1 st.shared.u32 [%r3], %r20;\nbar.sync 0;";
  EXPECT_THAT(run(kernel).fault, HasSubstr("proxy fence"));
  kernel.touch =
      "mov.u32 %r20, 0;\n@!%p1 st.shared.u32 [%r3], %r20;\nfence.proxy.async;\nbar.sync 0;";
  EXPECT_EQ(run(kernel).fault, "");
}

TEST(Wgmma, IllegalDescriptorFieldsAreNamed) {
  Kernel kernel;
  kernel.zero += "\nor.b64 %rd11, %rd11, 0x8000;";
  EXPECT_THAT(run(kernel).fault, HasSubstr("bits 14-15"));
}

TEST(Wgmma, AFromRegistersMatchesAFromSharedMemory) {
  // Each thread loads its fragment of A from the packed tile by the manual's layout: lane/4 is the
  // row, lane%4 the word; registers 1 and 3 are 8 rows down, 2 and 3 are 16 bytes to the right.
  Kernel kernel;
  kernel.zero += R"(
  shr.u32 %r21, %r4, 5;
  and.b32 %r22, %r4, 31;
  shr.u32 %r23, %r22, 2;
  and.b32 %r24, %r22, 3;
  shl.b32 %r21, %r21, 9;
  shl.b32 %r23, %r23, 4;
  shl.b32 %r24, %r24, 2;
  add.u32 %r25, %r2, %r21;
  add.u32 %r25, %r25, %r23;
  add.u32 %r25, %r25, %r24;
  ld.shared.u32 %r31, [%r25];
  ld.shared.u32 %r32, [%r25+256];
  ld.shared.u32 %r33, [%r25+128];
  ld.shared.u32 %r34, [%r25+384];)";
  kernel.mma =
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1, %f2, %f3, %f4}, {%r31, %r32, "
      "%r33, %r34}, %rd11, %p3, 1, 1;";
  const Outcome out = run(kernel);
  ASSERT_EQ(out.fault, "");
  EXPECT_EQ(out.d, run({}).d);
}

}  // namespace
}  // namespace jitgemm::sim::wgmma_test
