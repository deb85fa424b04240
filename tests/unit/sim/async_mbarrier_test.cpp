// SPDX-License-Identifier: Apache-2.0
// mbarriers and bulk copies through whole kernels: every rule has a kernel that breaks it and a
// twin that keeps it. Kernels are one text with named gaps; a case fills or empties them.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace jitgemm::sim::async_mbarrier_test {
namespace {

using ::testing::HasSubstr;

const char* const kShared =
    ".shared .align 128 .b8 data[1024];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 bar2;\n";
const char* const kTwo = ".param .u64 k_param_0, .param .u64 k_param_1";

// Thread 0 announces and copies 256 bytes, all 32 threads wait and copy them to the output.
struct Load {
  std::string init = "mbarrier.init.shared.b64 [%r1], 1;";
  std::string expect = "mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 256;";
  std::string wait = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n@!%p2 bra W;";
  std::string bytes = "256";
  std::string fences = "fence.mbarrier_init.release.cluster;\nfence.proxy.async;";
  std::string after;

  std::string text() const {
    return kernel_text(kTwo,
                       R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  mov.u32 %r1, bar;
  mov.u32 %r2, data;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra S;
  )" + init + "\n" + fences +
                           "\n" + expect + R"(
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], )" +
                           bytes + R"(, [%r1];
S:
  bar.sync 0;
  )" + wait + R"(
  shl.b32 %r4, %r3, 3;
  add.u32 %r5, %r2, %r4;
  ld.shared.u64 %rd3, [%r5];
  cvt.u64.u32 %rd4, %r4;
  add.u64 %rd5, %rd2, %rd4;
  st.global.u64 [%rd5], %rd3;
  bar.sync 0;
  )" + after + R"(
  ret;
)",
                       kShared);
  }
};

struct LoadResult {
  std::string outcome;
  bool equal = false;
};

LoadResult run(const Load& load, uint64_t seed = 0) {
  std::vector<uint64_t> in(64), out(32);
  std::iota(in.begin(), in.end(), 1000);
  Runner runner(load.text());
  runner.options.seed = seed;
  runner.grid(1, 32).buffer(in).buffer(out, false);
  LoadResult result;
  result.outcome = runner.outcome();
  result.equal = std::equal(out.begin(), out.end(), in.begin());
  return result;
}

TEST(AsyncMbarrier, BytesOfABulkCopyAreThereAfterTheWait) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    const LoadResult r = run({}, seed);
    EXPECT_EQ(r.outcome, "");
    EXPECT_TRUE(r.equal);
  }
}

TEST(AsyncMbarrier, ReadingWithoutTheWaitIsReported) {
  Load load;
  load.wait = "";
  EXPECT_THAT(run(load).outcome, HasSubstr("asynchronous write has not completed"));
}

TEST(AsyncMbarrier, AnArrivalWithoutExpectTxLetsReadersThroughAndIsReported) {
  Load load;
  load.expect = "mbarrier.arrive.shared.b64 %rd9, [%r1];";
  EXPECT_NE(run(load).outcome, "");
}

TEST(AsyncMbarrier, AnnouncingTooManyBytesIsADeadlockThatNamesTheCount) {
  Load load;
  load.expect = "mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 272;";
  EXPECT_THAT(run(load).outcome, HasSubstr("transaction count 16"));
}

TEST(AsyncMbarrier, AnnouncingTooFewBytesIsAMismatch) {
  Load load;
  load.expect = "mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 240;";
  EXPECT_THAT(run(load).outcome, HasSubstr("transaction count mismatch"));
}

TEST(AsyncMbarrier, SizesThatAreNoMultipleOf16AreMisaligned) {
  Load load;
  load.bytes = "264";
  EXPECT_THAT(run(load).outcome, HasSubstr("misaligned"));
}

TEST(AsyncMbarrier, AnUninitialisedObjectIsReported) {
  Load load;
  load.init = "";
  EXPECT_THAT(run(load).outcome, HasSubstr("no initialised mbarrier"));
}

TEST(AsyncMbarrier, InitialisingALiveObjectIsReported) {
  Load load;
  load.init += "\nmbarrier.init.shared.b64 [%r1], 1;";
  EXPECT_THAT(run(load).outcome, HasSubstr("mbarrier.inval must come first"));
}

TEST(AsyncMbarrier, AnInitialisationThatNoFencePublishedIsReported) {
  Load load;
  load.fences = "";
  EXPECT_THAT(run(load).outcome, HasSubstr("no fence.mbarrier_init"));
  load.fences = "fence.mbarrier_init.release.cluster;";
  EXPECT_EQ(run(load).outcome, "");
  load.fences = "fence.proxy.async;";
  EXPECT_EQ(run(load).outcome, "");
}

TEST(AsyncMbarrier, InvalidatingFirstIsFine) {
  Load load;
  load.init += "\nmbarrier.inval.shared.b64 [%r1];\nmbarrier.init.shared.b64 [%r1], 1;";
  EXPECT_EQ(run(load).outcome, "");
}

TEST(AsyncMbarrier, AnOrdinaryStoreToTheObjectIsReported) {
  Load load;
  load.init += "\nmov.u64 %rd8, 5;\nst.shared.u64 [%r1], %rd8;";
  EXPECT_THAT(run(load).outcome, HasSubstr("overwritten"));
}

TEST(AsyncMbarrier, MoreArrivalsThanExpectedOverrunThePhase) {
  // All 32 threads arrive at a barrier of 31.
  const std::string text = kernel_text("", R"(
  mov.u32 %r1, bar;
  mov.u32 %r3, %tid.x;
  setp.ne.u32 %p1, %r3, 0;
  @!%p1 mbarrier.init.shared.b64 [%r1], 31;
  bar.sync 0;
  mbarrier.arrive.shared.b64 %rd1, [%r1];
  bar.sync 0;
  @!%p1 mbarrier.arrive.shared.b64 %rd1, [%r1], 31;
  ret;
)",
                                       kShared);
  Runner runner(text);
  runner.grid(1, 32);
  EXPECT_THAT(runner.outcome(), HasSubstr("phase overrun"));
}

// Tokens, counts, drops and pending_count: thread 0 alone.
TEST(AsyncMbarrier, TokensAndCountsFollowThePhase) {
  const std::string text = kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd2, [k_param_0];
  mov.u32 %r1, bar;
  mbarrier.init.shared.b64 [%r1], 5;
  mbarrier.arrive.shared.b64 %rd3, [%r1], 2;
  mbarrier.pending_count.b64 %r2, %rd3;
  st.global.u32 [%rd2], %r2;
  mbarrier.test_wait.shared.b64 %p1, [%r1], %rd3;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+4], %r3;
  mbarrier.arrive_drop.shared.b64 %rd4, [%r1];
  mbarrier.arrive.noComplete.shared.b64 %rd5, [%r1], 1;
  mbarrier.arrive.shared.b64 %rd5, [%r1];
  mbarrier.test_wait.shared.b64 %p1, [%r1], %rd3;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+8], %r3;
  mbarrier.arrive.shared.b64 %rd6, [%r1], 4;
  mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 1;
  selp.u32 %r3, 1, 0, %p1;
  st.global.u32 [%rd2+12], %r3;
  ret;
)",
                                       kShared);
  std::vector<uint32_t> out(4);
  Runner runner(text);
  runner.grid(1, 1).buffer(out, false);
  EXPECT_EQ(runner.outcome(), "");
  EXPECT_EQ(out, (std::vector<uint32_t>{5, 0, 1, 1}));
}

TEST(AsyncMbarrier, NobodyArrivesIsADeadlock) {
  Load load;
  load.expect = "";
  EXPECT_THAT(run(load).outcome, HasSubstr("deadlock"));
}

// A try_wait that can only come true after the same thread goes on returns false in the end.
TEST(AsyncMbarrier, TryWaitTimesOutWhenItsOwnThreadMustGoOn) {
  const std::string text = kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd2, [k_param_0];
  mov.u32 %r1, bar;
  mbarrier.init.shared.b64 [%r1], 1;
  mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;
  selp.u32 %r3, 1, 0, %p1;
  mbarrier.arrive.shared.b64 %rd5, [%r1];
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra W;
  st.global.u32 [%rd2], %r3;
  ret;
)",
                                       kShared);
  std::vector<uint32_t> out(1, 7);
  Runner runner(text);
  runner.grid(1, 1).buffer(out, false);
  EXPECT_EQ(runner.outcome(), "");
  EXPECT_EQ(out[0], 0u);
}

// --- Stores
// ---------------------------------------------------------------------------------------

struct Store {
  std::string fence = "fence.proxy.async.shared::cta;";
  std::string reuse;
  std::string wait = "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;";

  std::string text() const {
    return kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r2, data;
  mov.u32 %r3, %tid.x;
  shl.b32 %r4, %r3, 2;
  add.u32 %r5, %r2, %r4;
  st.shared.u32 [%r5], %r3;
  )" + fence + R"(
  bar.sync 0;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra S;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 128;
  )" + reuse + "\n" + wait + R"(
S:
  ret;
)",
                       kShared);
  }
};

std::string run(const Store& store, std::vector<uint32_t>& out) {
  Runner runner(store.text());
  runner.grid(1, 32).buffer(out, false);
  return runner.outcome();
}

TEST(AsyncBulkStore, WritesWhatTheFencedStoresLeft) {
  std::vector<uint32_t> out(32), expected(32);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(run(Store{}, out), "");
  EXPECT_EQ(out, expected);
}

TEST(AsyncBulkStore, WithoutTheProxyFenceIsReported) {
  Store store;
  store.fence = "";
  std::vector<uint32_t> out(32);
  EXPECT_THAT(run(store, out), HasSubstr("proxy fence"));
}

TEST(AsyncBulkStore, OverwritingTheSourceBeforeItsReadIsReported) {
  Store store;
  store.reuse = "st.shared.u32 [%r2], %r3;";
  std::vector<uint32_t> out(32);
  EXPECT_THAT(run(store, out), HasSubstr("still uses"));
}

TEST(AsyncBulkStore, OverwritingAfterWaitGroupReadIsFine) {
  Store store;
  store.reuse =
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\nst.shared.u32 [%r2], %r3;";
  std::vector<uint32_t> out(32, 9);
  EXPECT_EQ(run(store, out), "");
  EXPECT_EQ(out[5], 5u);
}

TEST(AsyncBulkStore, EndingTheCtaBeforeTheSourceIsReadIsReported) {
  Store store;
  store.wait = "cp.async.bulk.commit_group;";
  std::vector<uint32_t> out(32);
  EXPECT_THAT(run(store, out), HasSubstr("thread block ended"));
}

TEST(AsyncBulkStore, ReductionsAddIntoGlobalMemory) {
  const std::string text = kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r2, data;
  mov.u32 %r3, %tid.x;
  shl.b32 %r4, %r3, 2;
  add.u32 %r5, %r2, %r4;
  cvt.rn.f32.u32 %f1, %r3;
  st.shared.f32 [%r5], %f1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra S;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r2], 128;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r2], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
S:
  ret;
)",
                                       kShared);
  std::vector<float> out(32, 0.5f);
  Runner runner(text);
  runner.grid(1, 32).buffer(out);
  EXPECT_EQ(runner.outcome(), "");
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[static_cast<size_t>(i)], 0.5f + 2.0f * static_cast<float>(i));
}

}  // namespace
}  // namespace jitgemm::sim::async_mbarrier_test
