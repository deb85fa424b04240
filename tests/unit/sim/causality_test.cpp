// SPDX-License-Identifier: Apache-2.0
// What counts is what synchronisation orders, not what happened to come first: programs whose
// accesses are in the right order in this run and yet unordered are reported, and their repaired
// twins run clean.
#include "sim/causality.h"

#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jitgemm::sim::causality_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const std::string kShared = ".shared .align 1024 .b8 s[9216];\n";

std::string outcome(const std::string& body, uint32_t threads, bool strict = true,
                    uint32_t ctas = 1) {
  std::vector<uint32_t> memory(4096, 7);
  Runner runner(kernel_text(".param .u64 k_param_0",
                            "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, s;\n"
                            "mov.u32 %r2, %tid.x;\n" +
                                body + "\nret;",
                            kShared));
  runner.options.strict = strict;
  runner.grid(ctas, threads, ctas).buffer(memory);
  return runner.outcome();
}

TEST(Clocks, JoinKeepsTheLatestEpochOfEachAgent) {
  Clock a, b;
  a.set(0, 5);
  a.set(3, 1);
  b.set(0, 2);
  b.set(1, 9);
  a.join(b);
  EXPECT_EQ(a.at(0), 5u);
  EXPECT_EQ(a.at(1), 9u);
  EXPECT_EQ(a.at(3), 1u);
  EXPECT_EQ(a.at(7), 0u);
}

TEST(Clocks, FenceOfSomeLanesCoversTheirWritesAlone) {
  FencedClock fenced;
  fenced.raise(2, {3, 6, 0x1});
  EXPECT_TRUE(fenced.covers(2, 3, 0xf));
  EXPECT_TRUE(fenced.covers(2, 6, 0x1));
  EXPECT_FALSE(fenced.covers(2, 6, 0x3));
  EXPECT_FALSE(fenced.covers(2, 7, 0x1));
  fenced.raise(2, {0, 6, 0x2});
  EXPECT_TRUE(fenced.covers(2, 6, 0x3));
}

// Every lane writes four bytes; lane 0 fences and copies all of them.
std::string lanes_write(const std::string& before_fence) {
  return "shl.b32 %r3, %r2, 2;\nadd.u32 %r3, %r1, %r3;\nst.shared.b32 [%r3], %r2;\n" +
         before_fence +
         "\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra E;\nfence.proxy.async.shared::cta;\n"
         "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 128;\n"
         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nE:";
}

TEST(Causality, ProxyFenceOfOneLaneDoesNotCoverTheWritesOfOthers) {
  EXPECT_THAT(outcome(lanes_write(""), 32), HasSubstr("without a proxy fence"));
  EXPECT_EQ(outcome(lanes_write("bar.warp.sync -1;"), 32), "");
}

// Warp 0 writes and arrives, warp 1 waits and copies.
std::string handed_over(const std::string& before, const std::string& after,
                        const std::string& wait) {
  return "add.u32 %r4, %r1, 64;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra I;\n"
         "mbarrier.init.shared.b64 [%r4], 1;\nI:\nbar.sync 0;\nsetp.eq.u32 %p2, %r2, 0;\n"
         "setp.eq.u32 %p3, %r2, 32;\n@!%p2 bra C;\nst.shared.b32 [%r1], %r2;\n"
         "st.shared.b32 [%r1+4], %r2;\nst.shared.b32 [%r1+8], %r2;\nst.shared.b32 [%r1+12], "
         "%r2;\n" +
         before + "\nmbarrier.arrive.shared.b64 %rd2, [%r4];\n" + after +
         "\nbra E;\nC:\n@!%p3 bra E;\n" + wait +
         "\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;\n"
         "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nE:";
}
const std::string kFence = "fence.proxy.async.shared::cta;";
const std::string kWait = "W: mbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;\n@!%p4 bra W;\n";

TEST(Causality, ProxyFenceMustStandBetweenTheWriteAndTheHandover) {
  EXPECT_EQ(outcome(handed_over(kFence, "", kWait), 64), "");
  // A fence of the reader after the wait lies on the path too.
  EXPECT_EQ(outcome(handed_over("", "", kWait + kFence), 64), "");
  EXPECT_THAT(outcome(handed_over("", kFence, kWait), 64), HasSubstr("no fence.proxy.async"));
  EXPECT_THAT(outcome(handed_over("", "", kFence + "\n" + kWait), 64),
              HasSubstr("no fence.proxy.async"));
}

TEST(Causality, AWriteThatWasNotWaitedForIsNotOrdered) {
  EXPECT_THAT(outcome(handed_over(kFence, "", "nanosleep.u32 100;\nnanosleep.u32 100;"), 64),
              HasSubstr("generic write consumed by the async proxy"));
}

// Warp 0 loads by TMA and waits; warp 1 sees a flag in global memory without synchronising.
std::string flagged(const std::string& waits) {
  return "add.u32 %r4, %r1, 64;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra I;\n"
         "mbarrier.init.shared.b64 [%r4], 1;\nfence.mbarrier_init.release.cluster;\n"
         "mov.b32 %r9, 0;\nst.global.b32 [%rd1+1024], %r9;\nI:\nbar.sync 0;\n"
         "setp.eq.u32 %p2, %r2, 0;\nsetp.eq.u32 %p3, %r2, 32;\n@!%p2 bra C;\n"
         "mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r4], 16;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, "
         "[%r4];\n" +
         kWait +
         "mov.b32 %r9, 1;\nst.relaxed.gpu.global.b32 [%rd1+1024], %r9;\nbra E;\nC:\n@!%p3 bra E;\n"
         "F: ld.relaxed.gpu.global.b32 %r9, [%rd1+1024];\nsetp.ne.u32 %p5, %r9, 1;\n@%p5 bra F;\n" +
         waits + "ld.shared.b32 %r10, [%r1];\nE:";
}

TEST(Causality, ReadingACompleteCopyNeedsTheWaitAllTheSame) {
  EXPECT_THAT(outcome(flagged(""), 64), HasSubstr("has not waited for the mbarrier"));
  EXPECT_EQ(
      outcome(flagged("V: mbarrier.try_wait.parity.shared.b64 %p6, [%r4], 0;\n@!%p6 bra V;\n"), 64),
      "");
}

// One warp allocates, another one copies into tensor memory and reads it back.
std::string copied(const std::string& after_barrier, const std::string& commit_guard,
                   const std::string& after_wait) {
  return "shl.b32 %r3, %r2, 6;\nadd.u32 %r3, %r1, %r3;\n"
         "st.shared.v4.b32 [%r3], {%r2, %r2, %r2, %r2};\n"
         "st.shared.v4.b32 [%r3+16], {%r2, %r2, %r2, %r2};\n"
         "st.shared.v4.b32 [%r3+32], {%r2, %r2, %r2, %r2};\n"
         "st.shared.v4.b32 [%r3+48], {%r2, %r2, %r2, %r2};\nfence.proxy.async.shared::cta;\n"
         "add.u32 %r4, %r1, 8192;\nsetp.eq.u32 %p1, %r2, 0;\nsetp.lt.u32 %p2, %r2, 32;\n"
         "@%p1 mbarrier.init.shared.b64 [%r4], 1;\n"
         "@%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+8], 32;\nbar.sync "
         "0;\n" +
         after_barrier +
         "\nld.shared.b32 %r5, [%r4+8];\nshr.u32 %r6, %r1, 4;\ncvt.u64.u32 %rd2, %r6;\n"
         "or.b64 %rd2, %rd2, 0x401000080000;\nsetp.eq.u32 %p3, %r2, 0;\n"
         "@%p3 tcgen05.cp.cta_group::1.128x128b [%r5], %rd2;\n" +
         commit_guard +
         " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n" + kWait +
         after_wait +
         "\nshr.u32 %r7, %r2, 5;\nshl.b32 %r7, %r7, 21;\nadd.u32 %r7, %r7, %r5;\n"
         "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r8}, [%r7];\ntcgen05.wait::ld.sync.aligned;\n"
         "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
         "@%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 32;";
}
const std::string kAfter = "tcgen05.fence::after_thread_sync;";

TEST(Causality, TensorFencesAreDemandedOnlyIfStrict) {
  EXPECT_EQ(outcome(copied(kAfter, "@%p3", kAfter), 128), "");
  EXPECT_THAT(outcome(copied("", "@%p3", kAfter), 128), HasSubstr("after_thread_sync"));
  EXPECT_THAT(outcome(copied(kAfter, "@%p3", ""), 128), HasSubstr("after_thread_sync"));
  EXPECT_EQ(outcome(copied("", "@%p3", ""), 128, false), "");
}

TEST(Causality, CommitTracksTheExecutingThreadAlone) {
  EXPECT_THAT(outcome("setp.eq.u32 %p7, %r2, 1;\n" + copied(kAfter, "@%p7", kAfter), 128),
              HasSubstr("no tcgen05.commit"));
}

TEST(Causality, LoadsOfOtherWarpsMustBeOrderedBeforeDealloc) {
  std::string text = copied(kAfter, "@%p3", kAfter);
  text.erase(text.rfind("bar.sync 0;"), 11);
  // Or the schedule frees the columns before another warp gets to its load.
  EXPECT_THAT(outcome(text, 128),
              AnyOf(HasSubstr("tcgen05.dealloc of columns"), HasSubstr("are not allocated")));
}

std::string pair(const std::string& guard) {
  return "mov.u32 %r3, %cluster_ctarank;\nsetp.eq.u32 %p1, %r3, 0;\n"
         "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 32;\n"
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nld.shared.b32 %r5, "
         "[%r1];\n" +
         guard + " tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r5, 32;";
}

TEST(Causality, DeallocOfAPairWaitsForThePeer) {
  EXPECT_EQ(outcome(pair(""), 32, true, 2), "");
  EXPECT_NE(outcome(pair("@%p1"), 32, true, 2), "");
}

// A and B of ones; the descriptor of B differs in the last warp by `difference`.
std::string warpgroup(uint32_t difference) {
  return "shl.b32 %r3, %r2, 6;\nadd.u32 %r3, %r1, %r3;\nmov.b32 %r4, 0x38383838;\n"
         "st.shared.v4.b32 [%r3], {%r4, %r4, %r4, %r4};\n"
         "st.shared.v4.b32 [%r3+16], {%r4, %r4, %r4, %r4};\n"
         "st.shared.v4.b32 [%r3+32], {%r4, %r4, %r4, %r4};\n"
         "st.shared.v4.b32 [%r3+48], {%r4, %r4, %r4, "
         "%r4};\nfence.proxy.async.shared::cta;\nbar.sync 0;\n"
         "shr.u32 %r6, %r1, 4;\ncvt.u64.u32 %rd2, %r6;\nor.b64 %rd2, %rd2, 0x1000080000;\n"
         "add.u64 %rd3, %rd2, 256;\nsetp.ge.u32 %p1, %r2, 96;\n@%p1 add.u64 %rd3, %rd3, " +
         std::to_string(difference) +
         ";\nsetp.ne.u32 %p2, %r2, %r2;\nwgmma.fence.sync.aligned;\n"
         "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%f1, %f2, %f3, %f4}, %rd2, %rd3, "
         "%p2, 1, 1;\n"
         "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;";
}

TEST(Causality, WarpsOfAWarpgroupPassTheSameDescriptors) {
  EXPECT_EQ(outcome(warpgroup(0), 128), "");
  EXPECT_THAT(outcome(warpgroup(16), 128), HasSubstr("they must be the same"));
  EXPECT_THAT(outcome(warpgroup(0), 96), HasSubstr("no whole warpgroup"));
}

}  // namespace
}  // namespace jitgemm::sim::causality_test
