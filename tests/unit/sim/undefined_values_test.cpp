// SPDX-License-Identifier: Apache-2.0
// What programs that are not held to strict rules may do with memory that was never written, and
// with the meeting of lanes at .aligned instructions; and that strict rules forbid both.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm::sim::undefined_values_test {
namespace {

using ::testing::HasSubstr;

struct Outcomes {
  std::string strict, lenient;
};

Outcomes run(const std::string& body, uint32_t threads = 32, size_t words = 64) {
  Outcomes out;
  for (const bool strict : {true, false}) {
    std::vector<uint32_t> result(words);
    Runner runner(
        kernel_text(".param .u64 k_param_0", "ld.param.u64 %rd1, [k_param_0];\n" + body,
                    ".shared .align 1024 .b8 tile[2048];\n.shared .align 8 .b64 done;\n"));
    runner.options.strict = strict;
    runner.grid(1, threads).buffer(result, false);
    (strict ? out.strict : out.lenient) = runner.outcome();
  }
  return out;
}

const char* const kCopyOfNothing = R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r2, 8, %r1;
  st.shared.u32 [%r3], %r2;
  ld.shared.v2.u32 {%r4, %r5}, [%r3];
  xor.b32 %r5, %r5, %r2;
  st.shared.v2.u32 [%r3+512], {%r4, %r5};
  ld.shared.v2.u32 {%r6, %r7}, [%r3+512];
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd2, %rd2, %rd1;
)";

TEST(UndefinedValues, CopiesOfWhatWasNeverWrittenPassWhileNobodyUsesThem) {
  const Outcomes out = run(std::string(kCopyOfNothing) + "st.global.u32 [%rd2], %r6;\nret;\n");
  EXPECT_THAT(out.strict, HasSubstr("read of memory never written"));
  EXPECT_EQ(out.lenient, "");
}

TEST(UndefinedValues, TheOutsideMayNotSeeThem) {
  const Outcomes out = run(std::string(kCopyOfNothing) + "st.global.u32 [%rd2], %r7;\nret;\n");
  EXPECT_THAT(out.lenient, HasSubstr("the value to store was never written"));
  EXPECT_THAT(out.lenient, HasSubstr("memory never written was read before: shared offset"));
}

TEST(UndefinedValues, NorMayBranchesAndAddresses) {
  const Outcomes branch =
      run(std::string(kCopyOfNothing) + "setp.eq.u32 %p1, %r7, 0;\n@%p1 bra E;\nE:\nret;\n");
  EXPECT_THAT(branch.lenient, HasSubstr("guard predicate was never written"));
  const Outcomes address = run(std::string(kCopyOfNothing) + "ld.shared.u32 %r8, [%r7];\nret;\n");
  EXPECT_THAT(address.lenient, HasSubstr("the address was never written"));
}

TEST(UndefinedValues, LocalMemoryIsTheSame) {
  const std::string body = R"(
  .local .align 8 .b8 room[16];
  mov.u64 %rd3, room;
  st.local.u32 [%rd3], 5;
  ld.local.v2.u32 {%r1, %r2}, [%rd3];
  st.local.v2.u32 [%rd3+8], {%r1, %r2};
  ld.local.u32 %r3, [%rd3+8];
  st.global.u32 [%rd1], %r3;
  ret;
)";
  const Outcomes out = run(body);
  EXPECT_THAT(out.strict, HasSubstr("read of memory never written"));
  EXPECT_EQ(out.lenient, "");
}

// LLVM does this for a vector of which one element is undefined. Legal under every rule.
TEST(UndefinedValues, APartThatIsDefinedCanBeTakenOutOfAPackedRegister) {
  const std::string body = R"(
  mov.u32 %r1, 7;
  mov.b64 %rd4, {%r9, %r1};
  mov.b64 {%r2, %r3}, %rd4;
  st.global.u32 [%rd1], )";
  EXPECT_EQ(run(body + "%r3;\nret;\n").strict, "");
  EXPECT_THAT(run(body + "%r2;\nret;\n").strict, HasSubstr("value to store was never written"));
  EXPECT_THAT(run(body + "%r3;\nst.global.u64 [%rd1], %rd4;\nret;\n").strict,
              HasSubstr("value to store was never written"));
}

TEST(UndefinedValues, WhatWasPackedIsForgottenWhenTheRegisterIsWrittenAgain) {
  const std::string body = R"(
  mov.u32 %r1, 7;
  mov.b64 %rd4, {%r9, %r1};
  mov.b64 %rd4, %rd5;
  mov.b64 {%r2, %r3}, %rd4;
  st.global.u32 [%rd1], %r3;
  ret;
)";
  EXPECT_THAT(run(body).strict, HasSubstr("value to store was never written"));
}

// A of 16 x 16 in f16 whose rows 8 to 15 nobody wrote.
std::string product(int stored_register) {
  return fmt::format(R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, %tid.x;
  and.b32 %r3, %r2, 7;
  mad.lo.u32 %r4, %r2, 32, %r1;
  setp.lt.u32 %p1, %r2, 8;
  mov.u32 %r5, 0x3c003c00;
  @%p1 st.shared.v4.u32 [%r4], {{%r5, %r5, %r5, %r5}};
  @%p1 st.shared.v4.u32 [%r4+16], {{%r5, %r5, %r5, %r5}};
  bar.warp.sync -1;
  and.b32 %r6, %r2, 15;
  shr.u32 %r7, %r2, 4;
  mad.lo.u32 %r8, %r6, 32, %r1;
  mad.lo.u32 %r8, %r7, 16, %r8;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r10, %r11, %r12, %r13}}, [%r8];
  mov.f32 %f1, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f2, %f3, %f4, %f5}}, {{%r10, %r11, %r12, %r13}}, {{%r5, %r5}}, {{%f1, %f1, %f1, %f1}};
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd2, %rd2, %rd1;
  st.global.f32 [%rd2], %f{};
  ret;
)",
                     stored_register);
}

TEST(UndefinedValues, AProductLosesItsRowsAlone) {
  EXPECT_THAT(run(product(2)).strict, HasSubstr("read of memory never written"));
  EXPECT_EQ(run(product(2)).lenient, "");
  EXPECT_EQ(run(product(3)).lenient, "");
  EXPECT_THAT(run(product(4)).lenient, HasSubstr("the value to store was never written"));
}

// %r5 is written in lanes below 16, %r6 in three lanes of each four. `good`: lanes that get a
// value.
struct FragmentForm {
  std::string text;
  uint32_t good;
};

std::string use_of_fragment(const FragmentForm& form, uint32_t lanes) {
  return fmt::format(R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r2, 16, %r1;
  mov.u32 %r4, 0;
  and.b32 %r7, %r2, 3;
  setp.lt.u32 %p1, %r2, 16;
  setp.lt.u32 %p2, %r7, 3;
  @%p1 mov.u32 %r5, %r2;
  @%p2 mov.u32 %r6, %r2;
  {}
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd2, %rd2, %rd1;
  mov.u32 %r8, {:#x};
  shr.u32 %r8, %r8, %r2;
  and.b32 %r8, %r8, 1;
  setp.ne.u32 %p3, %r8, 0;
  @%p3 st.global.u32 [%rd2], %r10;
  ret;
)",
                     form.text, lanes);
}

TEST(UndefinedValues, OneRuleHoldsForAllFragments) {
  const FragmentForm forms[] = {
      {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r10, %r11}, {%r5, %r4, %r4, %r4}, "
       "{%r4, %r4}, {%r4, %r4};",                                                           0xffff    },
      {"mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r10, %r11}, {%r5}, {%r4}, {%r4, %r4};",
       0xffff                                                                                                },
      {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r10, %r11, %r12, %r13}, {%r5, %r4}, "
       "{%r4, %r4}, {%r4, %r4, %r4, %r4};",                                                 0xffff    },
      {"mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {%r10, %r11, %r12, %r13}, {%r5, %r4}, "
       "{%r4, %r4}, {%r4, %r4, %r4, %r4};",                                                 0xccccffff},
      {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r10, %r11, %r12, %r13}, {%r4, %r4}, "
       "{%r4, %r4}, {%r5, %r4, %r4, %r4};",                                                 0xffff    },
      {"movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r5;",                                         0x33333333},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r5};\nbar.warp.sync -1;\n"
       "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r3];",                           0xffff    },
 // Of three lanes of four: columns 0 to 5, which are rows in memory.
      {"stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r3], {%r6};\nbar.warp.sync -1;\n"
       "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r10}, [%r3];",              0xffffff  },
 // Rows 12 to 15 of memory, which the last lane of each four has a column of.
      {"setp.lt.u32 %p4, %r2, 12;\n@%p4 st.shared.v2.u32 [%r3], {%r4, %r4};\nbar.warp.sync -1;\n"
       "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8x16.b4x16_p64 {%r10, %r11}, [%r3];", 0x77777777},
  };
  for (const FragmentForm& form : forms) {
    const Outcomes good = run(use_of_fragment(form, form.good));
    EXPECT_THAT(good.strict, HasSubstr("never written")) << form.text;
    EXPECT_EQ(good.lenient, "") << form.text;
    for (uint32_t lane = 0; lane < 32; ++lane) {
      if ((form.good >> lane & 1) != 0) continue;
      EXPECT_THAT(run(use_of_fragment(form, 1u << lane)).lenient,
                  HasSubstr("the value to store was never written"))
          << form.text << lane;
    }
  }
}

// Every lane reads, all meet at an .aligned instruction that orders no memory, one lane tells the
// other warp, which writes.
TEST(UndefinedValues, LanesThatMeetAtAlignedInstructionsKnowOfEachOtherWithoutStrictRules) {
  const std::string body = R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, %tid.x;
  mov.u32 %r9, done;
  setp.eq.u32 %p1, %r2, 0;
  setp.lt.u32 %p2, %r2, 32;
  mad.lo.u32 %r3, %r2, 4, %r1;
  st.shared.u32 [%r3], %r2;
  @%p1 mbarrier.init.shared.b64 [%r9], 1;
  bar.sync 0;
  @!%p2 bra OTHER;
  ld.shared.u32 %r4, [%r3];
  movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;
  @%p1 mbarrier.arrive.shared.b64 %rd3, [%r9];
  ret;
OTHER:
W:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r9], 0;
  @!%p3 bra W;
  st.shared.u32 [%r3+-128], %r2;
  ret;
)";
  const Outcomes out = run(body, 64);
  EXPECT_THAT(out.strict, HasSubstr("data race"));
  EXPECT_EQ(out.lenient, "");
}

std::string two_stores(const std::string& value) {
  return "mov.u32 %r1, tile;\nmov.u32 %r2, %tid.x;\nshr.u32 %r3, %r2, 5;\nst.shared.u32 [%r1], " +
         value + ";\nbar.sync 0;\nret;\n";
}

TEST(LenientRules, TheLowestBitOfAPhasesParityCounts) {
  const Outcomes out = run(R"(
  mov.u32 %r9, done;
  mov.u32 %r2, %tid.x;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 mbarrier.init.shared.b64 [%r9], 1;
  bar.sync 0;
  mbarrier.try_wait.parity.shared.b64 %p3, [%r9], 0xffffffff;
  selp.u32 %r3, 1, 0, %p3;
  st.global.u32 [%rd1], %r3;
  ret;
)");
  EXPECT_THAT(out.strict, HasSubstr("phase parity 4294967295"));
  EXPECT_EQ(out.lenient, "");
}

TEST(LenientRules, WarpsMayWriteOneAndTheSameValue) {
  EXPECT_THAT(run(two_stores("7"), 64).strict, HasSubstr("data race"));
  EXPECT_EQ(run(two_stores("7"), 64).lenient, "");
  EXPECT_THAT(run(two_stores("%r3"), 64).lenient, HasSubstr("data race"));
}

TEST(LenientRules, ABarrierOfTheCtaPublishesItsMbarrier) {
  const std::string body = R"(
  mov.u32 %r1, tile;
  mov.u32 %r2, %tid.x;
  mov.u32 %r9, done;
  setp.eq.u32 %p1, %r2, 0;
  setp.eq.u32 %p2, %r2, 32;
  mov.u32 %r3, 5;
  @%p1 st.global.v4.u32 [%rd1], {%r3, %r3, %r3, %r3};
  @%p1 mbarrier.init.shared.b64 [%r9], 1;
  bar.sync 0;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r9], 16;
  @%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r9];
W:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r9], 0;
  @!%p3 bra W;
  ret;
)";
  const Outcomes out = run(body, 64);
  EXPECT_THAT(out.strict, HasSubstr("no fence.mbarrier_init"));
  EXPECT_EQ(out.lenient, "");
}

}  // namespace
}  // namespace jitgemm::sim::undefined_values_test
