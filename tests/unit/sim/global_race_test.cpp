// SPDX-License-Identifier: Apache-2.0
// Data races in global memory: between CTAs, between threads of a CTA, and with asynchronous
// copies. Each program that commits one is reported with both sides under every seed, and its
// repaired twin is silent.
#include "sim/global_races.h"
#include "sim/sync_locations.h"
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

namespace jitgemm::sim::global_race_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// CTA 0 runs `first`, CTA 1 `second`, each one warp; or warps 0 and 1 of one CTA. %rd1: 4096 bytes
// of zeros that may be read and written; %r2: the lane; %p3: lane 0.
std::string outcome(const std::string& first, const std::string& second, uint64_t seed,
                    bool one_cta = false, bool strict = true, bool races = true) {
  std::vector<uint32_t> memory(1024, 0);
  Runner runner(kernel_text(
      ".param .u64 k_param_0",
      "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r1, s;\nmov.u32 %r2, %laneid;\n"
      "mov.u32 %r9, %ctaid.x;\nmov.u32 %r10, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\n"
      "add.u64 %rd3, %rd1, %rd2;\nsetp.eq.u32 %p3, %r2, 0;\nsetp.ge.u32 %p1, %r10, 32;\n"
      "setp.ne.u32 %p2, %r9, 0;\nor.pred %p1, %p1, %p2;\n@%p1 bra SECOND;\n" +
          first + "\nret;\nSECOND:\n" + second + "\nret;",
      ".shared .align 128 .b8 s[1024];\n.shared .align 8 .b64 bar;\n"));
  runner.options.seed = seed;
  runner.options.strict = strict;
  runner.options.races = races;
  runner.grid(one_cta ? 1 : 2, one_cta ? 64 : 32).buffer(memory);
  return runner.outcome();
}

void expect_race(const std::string& first, const std::string& second, bool one_cta = false,
                 bool strict = true) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    EXPECT_THAT(outcome(first, second, seed, one_cta, strict), HasSubstr("data race"))
        << "seed " << seed << "\n"
        << first << "\n--\n"
        << second;
  }
}

void expect_silence(const std::string& first, const std::string& second, bool one_cta = false,
                    bool strict = true) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    EXPECT_EQ(outcome(first, second, seed, one_cta, strict), "") << "seed " << seed << "\n"
                                                                 << first << "\n--\n"
                                                                 << second;
  }
}

TEST(GlobalRaces, AWriteAndAReadOfTwoCtas) {
  expect_race("st.global.b32 [%rd3], 5;", "ld.global.b32 %r6, [%rd3];");
  expect_race("ld.global.b32 %r6, [%rd3];", "st.global.b32 [%rd3], 5;");
  expect_silence("ld.global.b32 %r6, [%rd3];", "ld.global.b32 %r6, [%rd3];");
  expect_silence("st.global.b32 [%rd3], 5;", "ld.global.b32 %r6, [%rd3+128];");
}

TEST(GlobalRaces, TwoWritesOfTwoCtas) {
  expect_race("st.global.b32 [%rd3], 5;", "st.global.b32 [%rd3], 5;");
  expect_race("st.global.b64 [%rd1], 5;", "st.global.b32 [%rd1+4], 6;");
  expect_silence("st.global.b8 [%rd1], 5;", "st.global.b8 [%rd1+1], 6;");
}

TEST(GlobalRaces, BothSidesAreNamed) {
  EXPECT_THAT(
      outcome("st.global.b32 [%rd3+4], 5;", "ld.global.b32 %r6, [%rd3];", 0),
      AllOf(HasSubstr("data race"), HasSubstr("kernel:   k"),
            HasSubstr("thread:   CTA (1, 0, 0), warp 0, lane 1"),
            HasSubstr("ld.global.b32 %r6, [%rd3];"),
            HasSubstr("the other side is a write by CTA (0, 0, 0), warp 0, lane 0, at line"),
            HasSubstr("st.global.b32 [%rd3+4], 5;"), HasSubstr("8.7.1")));
  EXPECT_EQ(
      outcome("st.global.b32 [%rd3], 5;", "ld.global.b32 %r6, [%rd3];", 0, false, true, false), "");
}

// A word in memory tells CTA 1 that CTA 0 has written.
std::string told(const std::string& before, const std::string& flag) {
  return "@%p3 st.global.b32 [%rd1], 5;\n" + before + "\n@%p3 " + flag;
}
std::string asked(const std::string& flag, const std::string& after) {
  return "@!%p3 bra END;\nW:\n" + flag + "\nsetp.eq.u32 %p4, %r6, 0;\n@%p4 bra W;\n" + after +
         "\nld.global.b32 %r7, [%rd1];\nEND:";
}

TEST(GlobalRaces, AReleaseAndAnAcquireOrder) {
  const std::string release = "st.release.gpu.global.b32 [%rd1+64], 1;";
  const std::string acquire = "ld.acquire.gpu.global.b32 %r6, [%rd1+64];";
  expect_silence(told("", release), asked(acquire, ""));
  expect_race(told("", "st.relaxed.gpu.global.b32 [%rd1+64], 1;"), asked(acquire, ""));
  expect_race(told("", release), asked("ld.relaxed.gpu.global.b32 %r6, [%rd1+64];", ""));
}

TEST(GlobalRaces, FencesAroundRelaxedAccessesOrder) {
  const std::string store = "st.relaxed.gpu.global.b32 [%rd1+64], 1;";
  const std::string load = "ld.relaxed.gpu.global.b32 %r6, [%rd1+64];";
  const std::string fence = "fence.acq_rel.gpu;";
  expect_silence(told(fence, store), asked(load, fence));
  expect_silence(told("membar.gl;", store), asked(load, "membar.gl;"));
  expect_race(told(fence, store), asked(load, ""));
  expect_race(told("", store), asked(load, fence));
}

TEST(GlobalRaces, AScopeThatLeavesTheOtherSideOutOrdersNothing) {
  const std::string store = "st.relaxed.gpu.global.b32 [%rd1+64], 1;";
  const std::string load = "ld.relaxed.gpu.global.b32 %r6, [%rd1+64];";
  expect_race(told("fence.acq_rel.cta;", store), asked(load, "fence.acq_rel.gpu;"));
  expect_race(told("", "st.release.cta.global.b32 [%rd1+64], 1;"),
              asked("ld.acquire.gpu.global.b32 %r6, [%rd1+64];", ""));
  expect_race(told("", "st.release.gpu.global.b32 [%rd1+64], 1;"),
              asked("ld.acquire.cta.global.b32 %r6, [%rd1+64];", ""));
}

TEST(GlobalRaces, AnAtomicCounterOrdersWithFencesOnly) {
  const std::string count = "atom.global.add.u32 %r6, [%rd1+64], 1;";
  const std::string poll = "atom.global.add.u32 %r6, [%rd1+64], 0;";
  const std::string fence = "fence.acq_rel.gpu;";
  expect_silence(told(fence, count), asked(poll, fence));
  expect_silence(told("", "atom.release.gpu.global.add.u32 %r6, [%rd1+64], 1;"),
                 asked("atom.acquire.gpu.global.add.u32 %r6, [%rd1+64], 0;", ""));
  expect_silence(told("", "atom.acq_rel.gpu.global.add.u32 %r6, [%rd1+64], 1;"),
                 asked("atom.acq_rel.gpu.global.add.u32 %r6, [%rd1+64], 0;", ""));
  expect_race(told("", count), asked(poll, fence));
  expect_race(told(fence, count), asked(poll, ""));
  expect_silence(told("", count), asked(poll, ""), false, false);
}

TEST(GlobalRaces, AnotherLocationOrdersNothing) {
  const std::string acquire = "ld.acquire.gpu.global.b32 %r6, [%rd1+64];";
  // Both words are written at once; the one that is released is not the one that is acquired.
  expect_race(told("",
                   "st.release.gpu.global.b32 [%rd1+128], 1;\n@%p3 st.relaxed.gpu.global.b32 "
                   "[%rd1+64], 1;"),
              asked(acquire, ""));
}

TEST(GlobalRaces, VolatileFlagsOrderWithFencesUnderStrictRules) {
  const std::string store = "st.volatile.global.b32 [%rd1+64], 1;";
  const std::string load = "ld.volatile.global.b32 %r6, [%rd1+64];";
  expect_silence(told("membar.gl;", store), asked(load, "membar.gl;"));
  expect_race(told("", store), asked(load, ""));
  expect_silence(told("", store), asked(load, ""), false, false);
}

TEST(GlobalRaces, AtomicsDoNotRaceWithEachOtherButWithPlainAccesses) {
  expect_silence("red.global.add.u32 [%rd1], 1;", "atom.global.add.u32 %r6, [%rd1], 1;");
  expect_race("red.global.add.u32 [%rd1], 1;", "ld.global.b32 %r6, [%rd1];");
  expect_race("st.global.b32 [%rd1], 5;", "red.global.add.u32 [%rd1], 1;");
}

TEST(GlobalRaces, OfAWarpsThreadsThroughABarrier) {
  const std::string others = "@%p3 st.global.b32 [%rd1], 5;\n";
  expect_race(others, "ld.global.b32 %r6, [%rd1];", true);
  expect_silence(others + "bar.sync 0;", "bar.sync 0;\nld.global.b32 %r6, [%rd1];", true);
  expect_silence("ld.global.b32 %r6, [%rd1];\nbar.arrive 1, 64;",
                 "bar.sync 1, 64;\nst.global.b32 [%rd1], 5;", true);
}

TEST(GlobalRaces, OfLanesOfAWarp) {
  const std::string store = "st.global.b32 [%rd3], 5;\n";
  const std::string load =
      "xor.b32 %r6, %r2, 1;\nmul.wide.u32 %rd4, %r6, 4;\nadd.u64 %rd4, %rd1, "
      "%rd4;\nld.global.b32 %r7, [%rd4];";
  expect_race(store + load, "");
  expect_silence(store + "bar.warp.sync -1;\n" + load, "");
}

// What one thread has learned from another CTA is known to all after a barrier.
TEST(GlobalRaces, OrderIsHandedOn) {
  std::vector<uint32_t> memory(1024, 0);
  const auto text = [](const std::string& meet) {
    return kernel_text(
        ".param .u64 k_param_0",
        "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r9, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
        "setp.eq.u32 %p3, %r2, 0;\nmul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
        "setp.ne.u32 %p2, %r9, 0;\n@%p2 bra SECOND;\nst.global.b32 [%rd3], 5;\nbar.sync 0;\n"
        "@%p3 st.release.gpu.global.b32 [%rd1+1024], 1;\nret;\nSECOND:\n@!%p3 bra MEET;\n"
        "W:\nld.acquire.gpu.global.b32 %r6, [%rd1+1024];\nsetp.eq.u32 %p4, %r6, 0;\n@%p4 bra W;\n"
        "MEET:\n" +
            meet + "\nld.global.b32 %r7, [%rd3];\nret;");
  };
  for (const uint64_t seed : {0, 1, 2, 3}) {
    std::fill(memory.begin(), memory.end(), 0);
    Runner clean(text("bar.sync 0;"));
    clean.options.seed = seed;
    clean.options.threads = 2;
    EXPECT_EQ(clean.grid(2, 64).buffer(memory).outcome(), "") << seed;
    std::fill(memory.begin(), memory.end(), 0);
    Runner racing(text(""));
    racing.options.seed = seed;
    EXPECT_THAT(racing.grid(2, 64).buffer(memory).outcome(), HasSubstr("data race")) << seed;
  }
}

// The last of many CTAs adds up what all have left, as split reductions do. `release` and
// `acquire`: around the atomic of the thread that counts for its CTA.
std::string last_of_many(const std::string& before, const std::string& release,
                         const std::string& acquire) {
  return kernel_text(
      ".param .u64 k_param_0",
      "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r9, %ctaid.x;\nmov.u32 %r2, %tid.x;\n"
      "shl.b32 %r3, %r9, 6;\nadd.u32 %r3, %r3, %r2;\nmul.wide.u32 %rd2, %r3, 4;\n"
      "add.u64 %rd3, %rd1, %rd2;\nst.global.b32 [%rd3], %r3;\nmov.u32 %r4, bytes;\n"
      "setp.ne.u32 %p1, %r2, 0;\n" +
          before + "\nbar.sync 0;\n@%p1 bra WAIT;\n" + release +
          "\natom.global.add.u32 %r5, [%rd1+3072], 1;\n" + acquire +
          "\nst.shared.b32 [%r4], %r5;\nWAIT:\nbar.sync 0;\nld.shared.b32 %r5, [%r4];\n"
          "setp.ne.u32 %p2, %r5, 9;\n@%p2 bra END;\nmul.wide.u32 %rd4, %r2, 4;\n"
          "add.u64 %rd4, %rd1, %rd4;\nadd.u64 %rd5, %rd4, 3328;\nmov.u32 %r6, 0;\nmov.u32 %r7, 0;\n"
          "L:\nld.global.b32 %r8, [%rd4];\nadd.u32 %r7, %r7, %r8;\nadd.u64 %rd4, %rd4, 256;\n"
          "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 10;\n@%p3 bra L;\n"
          "st.global.b32 [%rd5], %r7;\nEND:\nret;",
      ".shared .align 16 .b8 bytes[16];\n");
}

TEST(GlobalRaces, TheLastOfManyCtasKnowsOfAllOthers) {
  std::vector<uint32_t> memory(1024, 0);
  const auto run = [&](const std::string& text, uint64_t seed, uint32_t threads, bool strict) {
    std::fill(memory.begin(), memory.end(), 0);
    Runner runner(text);
    runner.options.seed = seed;
    runner.options.threads = threads;
    runner.options.strict = strict;
    return runner.grid(10, 64).buffer(memory).outcome();
  };
  const std::string fence = "fence.acq_rel.gpu;";
  for (const uint64_t seed : {0, 1, 2, 3}) {
    for (const uint32_t threads : {1U, 2U}) {
      EXPECT_EQ(run(last_of_many("", fence, fence), seed, threads, true), "") << seed;
      EXPECT_EQ(memory[832], 10u * 9 / 2 * 64);
      EXPECT_THAT(run(last_of_many("", "", fence), seed, threads, true), HasSubstr("data race"));
      EXPECT_THAT(run(last_of_many("", fence, ""), seed, threads, true), HasSubstr("data race"));
      // Fences of the threads that have written come before the barrier: the release is of another
      // thread.
      EXPECT_THAT(run(last_of_many(fence, "", fence), seed, threads, true), HasSubstr("data race"));
      // Without strict rules an atomic releases and acquires.
      EXPECT_EQ(run(last_of_many(fence, "", ""), seed, threads, false), "") << seed;
    }
  }
}

// --- asynchronous copies
// ------------------------------------------------------------------------

const std::string kFill =
    "mul.lo.u32 %r4, %r2, 4;\nadd.u32 %r4, %r4, %r1;\nst.shared.b32 [%r4], "
    "%r2;\nfence.proxy.async;\nbar.warp.sync -1;\n@!%p3 bra COPIED;\n";
const std::string kStore =
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], "
    "128;\ncp.async.bulk.commit_group;\n";

TEST(GlobalRaces, ABulkStoreIsWrittenAfterItsWaitOnly) {
  const std::string flag = "st.release.gpu.global.b32 [%rd1+1024], 1;\n";
  const std::string wait = "cp.async.bulk.wait_group 0;\n",
                    read = "cp.async.bulk.wait_group.read 0;\n";
  const std::string ask =
      "@!%p3 bra END;\nW:\nld.acquire.gpu.global.b32 %r6, [%rd1+1024];\nsetp.eq.u32 %p4, %r6, "
      "0;\n@%p4 bra W;\nld.global.b32 %r7, [%rd1+4];\nEND:";
  expect_silence(kFill + kStore + wait + flag + "COPIED:", ask);
  // Only the source has been read.
  expect_race(kFill + kStore + read + flag + wait + "COPIED:", ask);
  expect_race(kFill + kStore + flag + wait + "COPIED:", ask);
}

// Every lane fences what it has written, and has still to meet the one that copies.
TEST(GlobalRaces, TheSourceOfABulkStoreIsWrittenBeforeItIsIssued) {
  const std::string wait = "cp.async.bulk.wait_group 0;\nCOPIED:";
  std::string unmet = kFill;
  const std::string meeting = "bar.warp.sync -1;\n";
  unmet.erase(unmet.find(meeting), meeting.size());
  expect_silence(kFill + kStore + wait, "");
  expect_race(unmet + kStore + wait, "");
}

TEST(GlobalRaces, BulkStoresOfTwoCtas) {
  const std::string all = kFill + kStore + "cp.async.bulk.wait_group 0;\nCOPIED:";
  const std::string other =
      "mul.lo.u32 %r4, %r2, 4;\nadd.u32 %r4, %r4, %r1;\nst.shared.b32 [%r4], "
      "%r2;\nfence.proxy.async;\nbar.warp.sync -1;\n@!%p3 bra STORED;\n";
  expect_race(all, "st.global.b32 [%rd3], 1;");
  expect_silence(all, "st.global.b32 [%rd3+128], 1;");
  // Reductions are atomic.
  const std::string reduce =
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], "
      "[%r1], 128;\ncp.async.bulk.commit_group;\n";
  const std::string wait = "cp.async.bulk.wait_group 0;\n";
  expect_silence(kFill + reduce + wait + "COPIED:", other + reduce + wait + "STORED:");
  expect_race(kFill + reduce + wait + "COPIED:", other + kStore + wait + "STORED:");
}

TEST(GlobalRaces, ABulkLoadReadsUntilItsMbarrierHasBeenWaitedFor) {
  const auto load = [](const std::string& wait) {
    return "mov.u32 %r5, bar;\n@!%p3 bra LOADED;\nmbarrier.init.shared.b64 [%r5], 1;\n"
           "fence.mbarrier_init.release.cluster;\nmbarrier.arrive.expect_tx.shared.b64 %rd5, "
           "[%r5], 128;\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
           "[%rd1], 128, [%r5];\n" +
           wait +
           "st.global.b32 [%rd1+4], 1;\nV:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r5], 0;\n"
           "@!%p5 bra V;\nLOADED:";
  };
  expect_race(load(""), "");
  expect_silence(load("W:\nmbarrier.try_wait.parity.shared.b64 %p4, [%r5], 0;\n@!%p4 bra W;\n"),
                 "");
  // Another CTA writes what is loaded.
  expect_race("st.global.b32 [%rd3], 1;",
              load("W:\nmbarrier.try_wait.parity.shared.b64 %p4, [%r5], 0;\n@!%p4 bra W;\n"));
}

TEST(GlobalRaces, StateIsBoundedAndWhatIsNotJudgedIsCounted) {
  std::vector<uint32_t> memory(1 << 20, 0);
  const auto run = [&](uint64_t limit) {
    Runner runner(kernel_text(
        ".param .u64 k_param_0",
        "ld.param.u64 %rd1, [k_param_0];\nmov.u32 %r9, %ctaid.x;\nmul.wide.u32 %rd2, %r9, 4096;\n"
        "add.u64 %rd1, %rd1, %rd2;\nst.global.b32 [%rd1], 5;\nret;"));
    runner.options.memory_limit = limit;
    runner.grid(1024, 1).buffer(memory);
    const Result<Report> report = runner.run();
    EXPECT_TRUE(report.has_value()) << (report ? "" : report.error().to_string());
    return report ? *report : Report{};
  };
  const Report whole = run(uint64_t{1} << 30);
  EXPECT_EQ(whole.unjudged_accesses, 0u);
  EXPECT_LT(whole.race_state_bytes, uint64_t{1024} * 3 * 4096);
  const Report bounded = run(1 << 22);
  EXPECT_GT(bounded.unjudged_accesses, 0u);
  EXPECT_LE(bounded.race_state_bytes, uint64_t{1} << 20);
  EXPECT_THAT(bounded.to_string(), HasSubstr("not judged for data races"));
}

TEST(SyncLocations, TellLocationsAndScopesApart) {
  SyncLocations locations;
  auto clock = std::make_shared<ForeignClock>();
  clock->known.push_back({7, kAllLanes, 3});
  locations.release(64, SyncScope::kCluster, {4, 2}, clock);
  EXPECT_EQ(locations.acquire(64, SyncScope::kGpu, {9, 2}), clock);
  EXPECT_EQ(locations.acquire(64, SyncScope::kGpu, {9, 3}), nullptr);
  EXPECT_EQ(locations.acquire(64, SyncScope::kCta, {9, 2}), nullptr);
  EXPECT_EQ(locations.acquire(68, SyncScope::kGpu, {9, 2}), nullptr);
}

TEST(ForeignClock, JoinsWithoutCopyingWhatIsHeldAlready) {
  const auto clock = [](std::vector<KnownEvents> known) {
    auto c = std::make_shared<ForeignClock>();
    c->known = std::move(known);
    return ForeignPointer(c);
  };
  const ForeignPointer a = clock({
      {1, kAllLanes, 5},
      {3, 0x1,       9}
  });
  EXPECT_EQ(join_foreign(a, clock({
                                {1, kAllLanes, 4}
  })),
            a);
  EXPECT_EQ(join_foreign(nullptr, a), a);
  const ForeignPointer both = join_foreign(a, clock({
                                                  {2, kAllLanes, 1},
                                                  {3, 0x2,       9}
  }));
  EXPECT_EQ(both->missing(3, 0x3, 9), 0u);
  EXPECT_EQ(both->missing(3, 0x7, 9), 0x4u);
  EXPECT_EQ(both->missing(2, 0x1, 2), 0x1u);
  EXPECT_EQ(both->missing(1, 0x1, 5), 0u);
}

TEST(ThreadClock, PartsOfAWarpAddUpAndNeverPassTheirBound) {
  ThreadClock clock;
  clock.add(0, 0x0000ffff, 7);
  EXPECT_EQ(clock.missing(0, 0x3, 7), 0u);
  EXPECT_EQ(clock.missing(0, 0x10001, 7), 0x10000u);
  clock.add(0, 0xffff0000, 5);
  EXPECT_EQ(clock.missing(0, kAllLanes, 5), 0u);
  EXPECT_EQ(clock.missing(0, kAllLanes, 7), 0xffff0000u);
  for (uint32_t i = 0; i < 20; ++i) clock.add(1, LaneMask{1} << i, 30 - i);
  // Past the bound, what is known of a few lanes counts for all.
  EXPECT_EQ(clock.missing(1, 0x1, 30), 0u);
  EXPECT_EQ(clock.missing(1, 0x80000000, 11), 0u);
}

}  // namespace
}  // namespace jitgemm::sim::global_race_test
