// SPDX-License-Identifier: Apache-2.0
// Whole kernels through the door of the simulator: arithmetic, memory, loops, launches.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace jitgemm::sim {
namespace {

using ::testing::HasSubstr;

const char* const kSumLoop = R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u32 %r1, [k_param_2];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra $L_end;
  mov.u32 %r6, 0;
  mov.u32 %r7, 0;
$L_loop:
  mul.wide.s32 %rd5, %r7, 4;
  add.s64 %rd6, %rd3, %rd5;
  ld.global.u32 %r8, [%rd6];
  add.s32 %r6, %r6, %r8;
  add.s32 %r7, %r7, 1;
  setp.le.s32 %p2, %r7, %r5;
  @%p2 bra $L_loop;
  mul.wide.s32 %rd7, %r5, 4;
  add.s64 %rd8, %rd4, %rd7;
  st.global.u32 [%rd8], %r6;
$L_end:
  ret;
)";
const char* const kThreeParameters =
    ".param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_2";

// Ops point into their kernel, which must stay where they look while the module grows.
TEST(Simulator, EveryEntryOfAModuleOfManyRuns) {
  constexpr int kEntries = 9;
  std::string text = ".version 8.6\n.target sm_100a\n.address_size 64\n";
  for (int i = 0; i < kEntries; ++i) {
    text += fmt::format(R"(.visible .entry e{0}(.param .u64 out, .param .u32 x) {{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [x];
  add.u32 %r2, %r1, {0};
  st.global.u32 [%rd1], %r2;
  ret;
}}
)",
                        i);
  }
  const Result<Program> program = Program::load(text);
  ASSERT_TRUE(program.has_value()) << program.error().to_string();
  for (int i = 0; i < kEntries; ++i) {
    std::vector<int> out(1);
    Runner runner("");
    runner.grid(1, 32).buffer(out, false).value(100);
    runner.launch.entry = fmt::format("e{}", i);
    const Result<Report> report = runner.run(*program);
    ASSERT_TRUE(report.has_value()) << report.error().to_string();
    EXPECT_EQ(out[0], 100 + i);
  }
}

TEST(Simulator, PrefixSumsWithLoopsOfDifferentLengthsAreRight) {
  constexpr int kCount = 100;
  std::vector<int> in(kCount), out(kCount);
  std::iota(in.begin(), in.end(), 3);
  Runner runner(kernel_text(kThreeParameters, kSumLoop));
  runner.grid(2, 64).buffer(in).buffer(out, false).value(kCount);
  const Result<Report> report = runner.run();
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  int sum = 0;
  for (int i = 0; i < kCount; ++i) {
    sum += in[static_cast<size_t>(i)];
    EXPECT_EQ(out[static_cast<size_t>(i)], sum) << i;
  }
  EXPECT_GT(report->instructions, 100u);
  EXPECT_EQ(report->ctas, 2u);
  EXPECT_THAT(report->to_string(), HasSubstr("ld"));
}

TEST(Simulator, AnEntryThatDoesNotExistIsAnInvalidArgument) {
  Runner runner(kernel_text("", "ret;"));
  runner.launch.entry = "other";
  EXPECT_EQ(runner.run().error().code(), StatusCode::kInvalidArgument);
}

TEST(Simulator, ParametersOfTheWrongSizeAreAnInvalidArgument) {
  Runner runner(kernel_text(kThreeParameters, "ret;"));
  runner.value(1);
  EXPECT_EQ(runner.run().error().code(), StatusCode::kInvalidArgument);
}

TEST(Simulator, CompiledPrintfsAreSilentAndFailedAssertionsAreTraps) {
  const std::string externals = R"(
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
)";
  const std::string body = R"(
  ld.param.u32 %r1, [k_param_0];
  setp.ne.u32 %p1, %r1, 0;
  {
  .param .b64 a;
  .param .b64 b;
  .param .b32 r;
  st.param.b64 [a], 0;
  st.param.b64 [b], 0;
  call.uni (r), vprintf, (a, b);
  ld.param.b32 %r2, [r];
  }
  @%p1 bra $L_fine;
  {
  .param .b64 a;
  .param .b64 b;
  .param .b32 c;
  .param .b64 d;
  .param .b64 e;
  call.uni __assertfail, (a, b, c, d, e);
  }
$L_fine:
  ret;)";
  Runner fine(kernel_text(".param .u32 k_param_0", body, externals));
  fine.value(1u);
  expect_clean(fine);
  Runner failing(kernel_text(".param .u32 k_param_0", body, externals));
  failing.value(0u);
  EXPECT_THAT(failing.outcome(), HasSubstr("an assertion of the program failed"));
}

}  // namespace
}  // namespace jitgemm::sim
