// SPDX-License-Identifier: Apache-2.0
// Calls: through registers, of functions by themselves, with a stack; what a compiler made of them,
// and what is refused or reported.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

namespace jitgemm::sim::call_test {
namespace {

using testing::HasSubstr;

int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

int sum_down(const int* above, int depth) {
  int own[4];
  for (int i = 0; i < 4; ++i) own[i] = above[i] + depth * i;
  if (depth == 0) return own[0] + own[1] + own[2] + own[3];
  return sum_down(own, depth - 1) + own[depth & 3];
}

// tests/ptx/corpus/src/calls.cu: every thread recurses to a depth of its own and calls functions of
// its own through pointers.
class CompiledCalls : public testing::TestWithParam<const char*> {};

TEST_P(CompiledCalls, GiveTheResultsOfTheSource) {
  std::ifstream file(std::string(JITGEMM_SOURCE_DIR "/tests/ptx/corpus/") + GetParam());
  std::stringstream text;
  text << file.rdbuf();
  constexpr int kThreads = 40, kWords = 5;
  std::vector<int32_t> out(6 * kThreads), in(kThreads);
  for (int i = 0; i < kThreads; ++i) in[static_cast<size_t>(i)] = (i * 7) % 23;
  for (const uint64_t seed : {0, 1, 2}) {
    Runner runner(text.str());
    runner.launch.entry = "calls";
    runner.options.seed = seed;
    runner.buffer(out, false).buffer(in).value(kWords).grid(1, kThreads);
    ASSERT_EQ(runner.outcome(), "");
    for (int i = 0; i < kThreads; ++i) {
      const int x = in[static_cast<size_t>(i)];
      const int start[4] = {x, 1, 2, 3};
      int total = 0;
      for (int k = kWords - 1; k >= 0; --k) total = total * 3 + x + k;
      const int expected[6] = {ackermann(2, i & 3),
                               sum_down(start, i & 7),
                               x % 2 == 0 ? 1 : 0,
                               i % 3 == 0   ? 2 * x
                               : i % 3 == 1 ? -x
                               : x % 2 == 0 ? 1
                                            : 0,
                               i % 2 == 0 ? x * x * 3 : kWords * 3,
                               total};
      for (size_t k = 0; k < 6; ++k)
        EXPECT_EQ(out[6 * static_cast<size_t>(i) + k], expected[k])
            << "thread " << i << ", result " << k << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, CompiledCalls,
                         testing::Values("calls_sm_90a.ptx", "calls_sm_100a.ptx"));

std::string outcome(const std::string& body, const std::string& globals, uint32_t threads = 32) {
  Runner runner(kernel_text("", body, globals));
  runner.grid(1, threads);
  return runner.outcome();
}

// A function that calls itself as long as its argument differs from 0, or for ever.
std::string descent(bool ends) {
  return std::string(R"(.func descend(.reg .b32 n) {
  .reg .pred p; .reg .b32 below; .local .b32 own[4];
  st.local.b32 [own], n;
  setp.eq.u32 p, n, 0;
)") + (ends ? "  @p bra done;" : "") +
         R"(
  sub.u32 below, n, 1;
  call descend, (below);
  ld.local.b32 below, [own];
  setp.ne.u32 p, below, n;
  @p trap;
done:
  ret;
})";
}

TEST(Calls, EveryLevelOfARecursionHasItsOwnLocals) {
  EXPECT_EQ(outcome("mov.u32 %r1, %tid.x;\ncall descend, (%r1);\nret;", descent(true)), "");
}

TEST(Calls, RecursionWithoutEndOverflowsTheStack) {
  const std::string found =
      outcome("mov.u32 %r1, %tid.x;\ncall descend, (%r1);\nret;", descent(false));
  EXPECT_THAT(found, HasSubstr("stack overflow"));
  EXPECT_THAT(found, HasSubstr("a call's frame of"));
  EXPECT_THAT(found, HasSubstr("call descend"));
}

const char* const kTwoFunctions =
    ".func (.reg .b32 r) one(.reg .b32 a) { add.u32 r, a, 1; ret; }\n"
    ".func (.reg .b32 r) other(.reg .b64 a) { mov.b32 r, 2; ret; }\n";
const char* const kPrototype = "proto: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n";

TEST(Calls, AnAddressOfNoFunctionIsAFault) {
  EXPECT_THAT(outcome(std::string(kPrototype) +
                          "mov.u64 %rd1, one;\nadd.u64 %rd1, %rd1, 4;\nmov.b32 %r2, 0;\n"
                          "call (%r1), %rd1, (%r2), proto;\nret;",
                      kTwoFunctions),
              HasSubstr("is the address of no function"));
}

TEST(Calls, AFunctionOfAnotherPrototypeIsAFault) {
  const std::string body =
      std::string(kPrototype) + "mov.u64 %rd1, one;\nmov.u64 %rd2, other;\nmov.b32 %r2, 0;\n";
  EXPECT_EQ(outcome(body + "call (%r1), %rd1, (%r2), proto;\nret;", kTwoFunctions), "");
  EXPECT_THAT(outcome(body + "call (%r1), %rd2, (%r2), proto;\nret;", kTwoFunctions),
              HasSubstr("'other' is not among the functions that this call may reach"));
}

TEST(Calls, ATargetThatIsNotInTheListIsAFault) {
  const std::string globals = std::string(kTwoFunctions) +
                              ".func (.reg .b32 r) third(.reg .b32 a) { add.u32 r, a, 3; ret; }\n";
  const auto body = [](const char* target) {
    return fmt::format(
        "list: .calltargets one;\nmov.u64 %rd1, {};\nmov.b32 %r2, 0;\n"
        "call (%r1), %rd1, (%r2), list;\nret;",
        target);
  };
  EXPECT_EQ(outcome(body("one"), globals), "");
  EXPECT_THAT(outcome(body("third"), globals), HasSubstr("illegal call through a register"));
}

TEST(Calls, AnAllocationEndsWithItsFunction) {
  const std::string globals =
      ".func (.reg .b64 r) leak() { alloca.u64 r, 16; st.local.b32 [r], 1; ret; }\n";
  EXPECT_THAT(outcome("call (%rd1), leak;\nld.local.b32 %r1, [%rd1];\nret;", globals),
              HasSubstr("above the top of the thread's stack"));
  EXPECT_EQ(
      outcome("alloca.u64 %rd1, 16;\nst.local.b32 [%rd1], 1;\nld.local.b32 %r1, [%rd1];\nret;",
              globals),
      "");
}

TEST(Calls, AnAllocationThatDoesNotFitOverflowsTheStack) {
  EXPECT_THAT(outcome("mov.b64 %rd2, 1000000;\nalloca.u64 %rd1, %rd2;\nret;", ""),
              HasSubstr("an allocation of 1000000 bytes"));
}

TEST(Calls, OnlyASavedStackPointerIsRestored) {
  EXPECT_EQ(outcome("stacksave.u64 %rd1;\nalloca.u64 %rd2, 32;\nstackrestore.u64 %rd1;\nret;", ""),
            "");
  EXPECT_THAT(
      outcome("stacksave.u64 %rd1;\nadd.u64 %rd1, %rd1, 8;\nstackrestore.u64 %rd1;\nret;", ""),
      HasSubstr("was not saved on this stack"));
}

TEST(Calls, WhatCannotRunIsRefusedWithItsPlace) {
  struct Refusal {
    std::string body, globals, place;
  };
  const Refusal refusals[] = {
      {"call missing, (%r1);\nret;",   ".extern .func missing(.reg .b32 a);\n",
       "call: function 'missing' is not defined in the module"                                                             },
      {"mov.u64 %rd1, missing;\nret;", ".extern .func missing(.reg .b32 a);\n",
       "mov.u64: function 'missing' is not defined in the module"                                                          },
      {"mov.u64 %rd1, k;\nret;",       "",                                      "mov.u64: an entry is launched, not called"},
  };
  for (const Refusal& r : refusals) {
    const std::string text = kernel_text("", r.body, r.globals);
    const Result<Program> program = Program::load(text);
    ASSERT_FALSE(program.has_value()) << r.body;
    EXPECT_EQ(program.error().code(), StatusCode::kUnsupported);
    const auto at = static_cast<long>(text.find(r.body));
    const auto line = 1 + std::count(text.begin(), text.begin() + at, '\n');
    EXPECT_EQ(program.error().message(), fmt::format("{}:1: {}", line, r.place));
  }
}

// A function that nobody calls is refused as well: a driver would not load the module either.
TEST(Calls, AnUndefinedFunctionIsRefusedInUnreachableText) {
  const Result<Program> program = Program::load(kernel_text(
      "", "ret;", ".extern .func missing();\n.func unused() {\n  call missing;\n  ret;\n}\n"));
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().message(),
            "6:3: call: function 'missing' is not defined in the module");
}

TEST(Calls, LanesThatCallDifferentFunctionsMeetBehindTheCall) {
  // vote.sync with all lanes right after the call would fault if they did not.
  const std::string globals =
      ".func (.reg .b32 r) deep(.reg .b32 n) { .reg .pred p; .reg .b32 m; mov.b32 r, 0;\n"
      "setp.eq.u32 p, n, 0;\n@p ret;\nsub.u32 m, n, 1;\ncall (r), deep, (m);\nadd.u32 r, r, 1;\n"
      "ret; }\n"
      ".func (.reg .b32 r) flat(.reg .b32 n) { mov.b32 r, n; ret; }\n";
  EXPECT_EQ(outcome(std::string(kPrototype) + R"(
  mov.u32 %r1, %tid.x;
  mov.u64 %rd1, deep;
  mov.u64 %rd2, flat;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  selp.b64 %rd3, %rd1, %rd2, %p1;
  setp.ne.u32 %p2, %r1, 5;
  mov.b32 %r3, %r1;
  @%p2 call (%r3), %rd3, (%r1), proto;
  setp.ne.u32 %p3, %r3, %r1;
  bar.warp.sync -1;
  vote.sync.any.pred %p4, %p3, -1;
  @%p4 trap;
  ret;)",
                    globals),
            "");
}

}  // namespace
}  // namespace jitgemm::sim::call_test
