// SPDX-License-Identifier: Apache-2.0
// Data races of accesses to shared memory, between warps and between lanes of one: reported with
// both sides whichever came first in the run; what synchronisation orders, and what is no race, is
// silent. Those of global memory are in global_race_test.cpp.
#include "sim/causality.h"
#include "sim/models_instruction_descriptor.h"
#include "sim/race_shadow.h"
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

namespace jitgemm::sim::race_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two warps (or two CTAs of a warp each) run `first` and `second`, after `both`.
std::string outcome(const std::string& first, const std::string& second, uint64_t seed,
                    bool sanitize = true, const std::string& both = "", uint32_t ctas = 1) {
  Runner runner(
      kernel_text("",
                  "mov.u32 %r1, s;\nmov.u32 %r2, %tid.x;\nmov.u32 %r9, %cluster_ctarank;\n"
                  "shl.b32 %r3, %r2, 2;\nadd.u32 %r4, %r1, 512;\n" +
                      both +
                      "\nsetp.ge.u32 %p1, %r2, 32;\nsetp.ne.u32 %p2, %r9, 0;\n"
                      "or.pred %p1, %p1, %p2;\n@%p1 bra second;\n" +
                      first + "\nbra done;\nsecond:\n" + second + "\ndone:\n" +
                      (ctas > 1 ? "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" : "") + "ret;",
                  ".shared .align 16 .b8 s[1024];\n"));
  runner.options.seed = seed;
  runner.options.sanitize = sanitize;
  runner.grid(ctas, ctas > 1 ? 32 : 64, ctas);
  return runner.outcome();
}

void expect_race(const std::string& first, const std::string& second,
                 const std::string& both = "") {
  for (const uint64_t seed : {0, 1, 2, 3, 4}) {
    EXPECT_THAT(outcome(first, second, seed, true, both), HasSubstr("data race"))
        << "seed " << seed << "\n"
        << first << "\n"
        << second;
  }
}

void expect_silence(const std::string& first, const std::string& second,
                    const std::string& both = "", uint32_t ctas = 1) {
  for (const uint64_t seed : {0, 1, 2, 3, 4}) {
    EXPECT_EQ(outcome(first, second, seed, true, both, ctas), "") << "seed " << seed << "\n"
                                                                  << first << "\n"
                                                                  << second;
  }
}

// Everything has been written and is known to all.
const char* const kWritten = "add.u32 %r5, %r1, %r3;\nst.shared.b32 [%r5], 0;\nbar.sync 0;";

TEST(Races, WriteAndReadThatNothingOrders) {
  expect_race("st.shared.b32 [%r1], 5;", "ld.shared.b32 %r6, [%r1];", kWritten);
  expect_silence("st.shared.b32 [%r1], 5;\nbar.sync 0;", "bar.sync 0;\nld.shared.b32 %r6, [%r1];",
                 kWritten);
}

TEST(Races, ReadAndOverwriteThatNothingOrders) {
  // The read is first in every order, but nothing says so.
  expect_race("ld.shared.b32 %r6, [%r1];\nbar.arrive 1, 64;\nld.shared.b32 %r6, [%r1];",
              "bar.sync 1, 64;\nst.shared.b32 [%r1], 5;", kWritten);
  expect_silence("ld.shared.b32 %r6, [%r1];\nbar.arrive 1, 64;",
                 "bar.sync 1, 64;\nst.shared.b32 [%r1], 5;", kWritten);
}

TEST(Races, TwoWrites) {
  expect_race("st.shared.b32 [%r1], 5;", "st.shared.b32 [%r1], 6;");
  expect_race("st.shared.b64 [%r1], 5;", "st.shared.b32 [%r1+4], 6;");
  expect_silence("st.shared.b32 [%r1], 5;", "st.shared.b32 [%r1+4], 6;");
}

TEST(Races, BytesOfAWordAreToldApart) {
  expect_silence("st.shared.b8 [%r1], 5;\nst.shared.b8 [%r1+2], 5;",
                 "st.shared.b8 [%r1+1], 6;\nst.shared.b8 [%r1+3], 6;");
  expect_race("st.shared.b16 [%r1], 5;", "st.shared.b8 [%r1+1], 6;");
}

TEST(Races, BothSidesAreNamed) {
  const std::string found =
      outcome("st.shared.b32 [%r1], 5;", "ld.shared.b32 %r6, [%r1];", 0, true, kWritten);
  EXPECT_THAT(found, AllOf(HasSubstr("data race"), HasSubstr("ld.shared.b32 %r6, [%r1];"),
                           HasSubstr("the other side is a read by CTA (0, 0, 0), warp 1, lane 0"),
                           HasSubstr("st.shared.b32 [%r1], 5;"), HasSubstr("8.7.1")));
  EXPECT_EQ(outcome("st.shared.b32 [%r1], 5;", "ld.shared.b32 %r6, [%r1];", 0, false, kWritten),
            "");
}

TEST(Races, AnMbarrierOrders) {
  const std::string init = std::string(kWritten) +
                           "\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 bra I;\nmbarrier.init.shared.b64 "
                           "[%r4], 1;\nI:\nbar.sync 0;";
  const std::string write =
      "st.shared.b32 [%r1], 5;\nsetp.eq.u32 %p4, %r2, 0;\nbar.warp.sync -1;\n";
  const std::string wait = "W:\nmbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;\n@!%p4 bra W;\n";
  const std::string arrive = "@%p4 mbarrier.arrive.shared.b64 %rd5, [%r4];";
  expect_silence(write + arrive, wait + "ld.shared.b32 %r6, [%r1];", init);
  expect_race(write + arrive, "ld.shared.b32 %r6, [%r1];", init);
}

TEST(Races, StrongAccessesAndAtomicsAreNone) {
  expect_silence("st.volatile.shared.b32 [%r1], 5;", "ld.volatile.shared.b32 %r6, [%r1];",
                 kWritten);
  expect_silence("st.relaxed.cta.shared.b32 [%r1], 5;", "ld.acquire.cta.shared.b32 %r6, [%r1];",
                 kWritten);
  expect_silence("atom.shared.add.u32 %r6, [%r1], 1;", "red.shared.add.u32 [%r1], 1;", kWritten);
}

TEST(Races, AReleaseAndAnAcquireOrderWhatIsAroundThem) {
  expect_silence(
      "st.shared.b32 [%r1], 5;\nst.release.cta.shared.b32 [%r1+64], 1;",
      "W:\nld.acquire.cta.shared.b32 %r6, [%r1+64];\nsetp.eq.u32 %p3, %r6, 0;\n@%p3 bra W;\n"
      "ld.shared.b32 %r6, [%r1];",
      kWritten);
}

TEST(Races, DistributedSharedMemory) {
  const std::string init =
      "add.u32 %r5, %r1, %r3;\nst.shared.b32 [%r5], 0;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  const std::string write =
      "mapa.shared::cluster.u32 %r6, %r1, 1;\nst.shared::cluster.b32 [%r6], 5;";
  const std::string meet = "\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  expect_silence(write + meet, meet + "ld.shared.b32 %r6, [%r1];", init, 2);
  for (const uint64_t seed : {0, 1, 2}) {
    EXPECT_THAT(outcome(write, "ld.shared.b32 %r6, [%r1];", seed, true, init, 2),
                HasSubstr("data race"));
  }
}

TEST(Races, AnArrivalAtAnotherCtaHandsOverDataInClusterScopeOnly) {
  const std::string init =
      "setp.eq.u32 %p3, %r2, 0;\n@%p3 mbarrier.init.shared.b64 [%r4], 1;\n@%p3 st.shared.b32 "
      "[%r1], "
      "0;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n";
  // CTA 0 writes into CTA 1's memory and arrives there.
  const auto first = [](const std::string& arrive) {
    return "mapa.shared::cluster.u32 %r6, %r1, 1;\nmapa.shared::cluster.u32 %r7, %r4, 1;\n"
           "@!%p3 bra D;\nst.shared::cluster.b32 [%r6], 5;\n" +
           arrive + ".shared::cluster.b64 _, [%r7];\nD:";
  };
  const auto second = [](const std::string& wait) {
    return "W:\n" + wait +
           ".shared::cta.b64 %p4, [%r4], 0;\n@!%p4 bra W;\nld.shared.b32 %r6, [%r1];";
  };
  const std::string arrive = "mbarrier.arrive", wait = "mbarrier.try_wait.parity";
  const std::string release = ".release.cluster", acquire = ".acquire.cluster";
  expect_silence(first(arrive + release), second(wait + acquire), init, 2);
  for (const uint64_t seed : {0, 1, 2}) {
    EXPECT_THAT(outcome(first(arrive), second(wait + acquire), seed, true, init, 2),
                HasSubstr("data race"));
    EXPECT_THAT(outcome(first(arrive + release), second(wait), seed, true, init, 2),
                HasSubstr("data race"));
  }
}

TEST(Races, ARelaxedArrivalOrdersMemoryOnlyWithoutStrictRules) {
  const std::string text =
      kernel_text("",
                  "mov.u32 %r1, s;\nmov.u32 %r2, %tid.x;\nsetp.lt.u32 %p1, %r2, 32;\n"
                  "@%p1 st.shared.b32 [%r1], 5;\nbarrier.cluster.arrive.relaxed;\n"
                  "barrier.cluster.wait;\nld.shared.b32 %r6, [%r1];\nret;",
                  ".shared .align 16 .b8 s[1024];\n");
  Runner strict(text);
  EXPECT_THAT(strict.grid(1, 64).outcome(), HasSubstr("data race"));
  Runner others(text);
  others.options.strict = false;
  EXPECT_EQ(others.grid(1, 64).outcome(), "");
}

// Each lane stores its number, then loads what its neighbour stored.
std::string neighbours(const std::string& meet) {
  return "add.u32 %r5, %r1, %r3;\nst.shared.b32 [%r5], %r2;\n" + meet +
         "\nxor.b32 %r6, %r3, 4;\nadd.u32 %r6, %r1, %r6;\nld.shared.b32 %r7, [%r6];";
}

TEST(LaneRaces, AStoreByOneLaneAndALoadByAnother) {
  for (const uint64_t seed : {0, 1, 2}) {
    const std::string found = outcome("", "", seed, true, neighbours(""));
    EXPECT_THAT(found, AllOf(HasSubstr("data race"), HasSubstr("lane 1, at line"),
                             HasSubstr("st.shared.b32 [%r5], %r2;"),
                             HasSubstr("ld.shared.b32 %r7, [%r6];")));
  }
  expect_silence("", "", neighbours("bar.warp.sync -1;"));
  expect_silence("", "", neighbours("bar.sync 0;"));
}

TEST(LaneRaces, AMeetingOrdersItsMembersAlone) {
  const std::string half =
      "and.b32 %r8, %r2, 1;\nsetp.eq.u32 %p5, %r8, 0;\n@%p5 bra EVEN;\n"
      "bar.warp.sync 0xaaaaaaaa;\nbra ON;\nEVEN:\nbar.warp.sync 0x55555555;\nON:\n";
  expect_race("", "", neighbours(half));
  expect_silence("", "", neighbours("bar.warp.sync 0xffffffff;"));
  // Four lanes that exchange are members of a meeting of their own.
  expect_silence("", "",
                 "and.b32 %r9, %r2, 28;\nmov.u32 %r8, 15;\nand.b32 %r9, %r9, 31;\n"
                 "shl.b32 %r8, %r8, %r9;\n" +
                     neighbours("bar.warp.sync %r8;"));
}

TEST(LaneRaces, AnOverwriteOfWhatAnotherLaneReads) {
  const std::string before = neighbours("bar.warp.sync -1;");
  expect_race("", "", before + "\nst.shared.b32 [%r5], 1;");
  expect_silence("", "", before + "\nbar.warp.sync -1;\nst.shared.b32 [%r5], 1;");
}

TEST(LaneRaces, AnExchangeOrdersMemoryOnlyWithoutStrictRules) {
  const std::string text =
      kernel_text("",
                  "mov.u32 %r1, s;\nmov.u32 %r2, %tid.x;\nshl.b32 %r3, %r2, 2;\n" +
                      neighbours("shfl.sync.bfly.b32 %r9, %r2, 1, 0x1f, -1;") + "\nret;",
                  ".shared .align 16 .b8 s[1024];\n");
  Runner strict(text);
  EXPECT_THAT(strict.grid(1, 32).outcome(), HasSubstr("data race"));
  Runner others(text);
  others.options.strict = false;
  EXPECT_EQ(others.grid(1, 32).outcome(), "");
}

TEST(LaneRaces, LanesThatWriteOneWordByOneInstructionDoNotRace) {
  expect_silence("st.shared.b32 [%r1], 5;", "");
  expect_race("st.shared.b32 [%r1], 5;\n@%p7 st.shared.b32 [%r1], 6;", "",
              "setp.eq.u32 %p7, %r2, 3;");
}

TEST(LaneRaces, AnArrivalByOneLanePublishesWhatItHasMet) {
  const std::string init = std::string(kWritten) +
                           "\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 bra I;\nmbarrier.init.shared.b64 "
                           "[%r4], 1;\nI:\nbar.sync 0;\nadd.u32 %r10, %r1, %r3;";
  const std::string arrive =
      "setp.eq.u32 %p4, %r2, 0;\n@%p4 mbarrier.arrive.shared.b64 %rd5, [%r4];";
  const std::string wait =
      "W:\nmbarrier.try_wait.parity.shared.b64 %p4, [%r4], 0;\n@!%p4 bra W;\n"
      "ld.shared.b32 %r6, [%r10+-128];";
  expect_race("st.shared.b32 [%r10], 5;\n" + arrive, wait, init);
  expect_silence("st.shared.b32 [%r10], 5;\nbar.warp.sync -1;\n" + arrive, wait, init);
}

TEST(LaneRaces, AWaitByOneLaneIsNoWaitOfTheOthers) {
  const std::string init = std::string(kWritten) +
                           "\nsetp.ne.u32 %p3, %r2, 0;\n@%p3 bra I;\nmbarrier.init.shared.b64 "
                           "[%r4], 32;\nI:\nbar.sync 0;\nadd.u32 %r10, %r1, %r3;\n";
  const std::string write = "st.shared.b32 [%r10], 5;\nmbarrier.arrive.shared.b64 %rd5, [%r4];";
  const auto wait = [](const std::string& meet) {
    return "setp.ne.u32 %p4, %r2, 32;\n@%p4 bra M;\n"
           "W:\nmbarrier.try_wait.parity.shared.b64 %p5, [%r4], 0;\n@!%p5 bra W;\nM:\n" +
           meet + "\nld.shared.b32 %r6, [%r10+-128];";
  };
  expect_silence(write, wait("bar.warp.sync -1;"), init);
  expect_race(write, wait(""), init);
}

// The read of a bulk store's source is over for whoever has met the lane that waited for it.
std::string overwritten_source(const std::string& meeting, const std::string& wait,
                               uint32_t writer) {
  std::vector<uint32_t> out(8);
  Runner runner(kernel_text(".param .u64 k_param_0",
                            fmt::format(R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, s;
  mov.u32 %r2, %tid.x;
  setp.eq.u32 %p1, %r2, 0;
  setp.eq.u32 %p2, %r2, {2};
  @%p1 st.shared.v4.u32 [%r1], {{%r2, %r2, %r2, %r2}};
  @%p1 fence.proxy.async.shared::cta;
  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;
  @%p1 cp.async.bulk.commit_group;
  @%p1 {1};
  {0}
  @%p2 st.shared.u32 [%r1+4], 5;
  bar.sync 0;
  @%p1 cp.async.bulk.wait_group 0;
  ret;
)",
                                        meeting, wait, writer),
                            ".shared .align 16 .b8 s[16];\n"));
  runner.grid(1, 64).buffer(out);
  return runner.outcome();
}

TEST(Races, TheSourceOfABulkStoreIsReadUntilItsOwnThreadHasWaited) {
  for (const char* wait : {"cp.async.bulk.wait_group.read 0", "cp.async.bulk.wait_group 0"}) {
    EXPECT_EQ(overwritten_source("", wait, 0), "");
    EXPECT_THAT(overwritten_source("", wait, 1), HasSubstr("data race"));
    EXPECT_EQ(overwritten_source("bar.warp.sync -1;", wait, 1), "");
    EXPECT_THAT(overwritten_source("bar.warp.sync -1;", wait, 40), HasSubstr("data race"));
    EXPECT_EQ(overwritten_source("bar.sync 0;", wait, 40), "");
  }
}

// Lane 1 waits first, when the copy of lane 0 may have taken effect, too, and be forgotten.
TEST(Races, AWaitIsForAllOfTheThreadsGroupsHoweverEarlyTheyTookEffect) {
  const std::string text = kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, s;
  mov.u32 %r2, %tid.x;
  setp.lt.u32 %p1, %r2, 2;
  setp.eq.u32 %p2, %r2, 1;
  setp.eq.u32 %p3, %r2, 0;
  setp.eq.u32 %p4, %r2, 2;
  mad.lo.u32 %r3, %r2, 16, %r1;
  mul.wide.u32 %rd2, %r2, 16;
  add.u64 %rd2, %rd2, %rd1;
  @%p1 st.shared.v4.u32 [%r3], {%r2, %r2, %r2, %r2};
  @%p1 fence.proxy.async.shared::cta;
  @%p3 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 16;
  @%p3 cp.async.bulk.commit_group;
  bar.sync 0;
  @%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 16;
  @%p2 cp.async.bulk.commit_group;
  @%p2 cp.async.bulk.wait_group.read 0;
  @%p3 cp.async.bulk.wait_group.read 0;
  @%p4 st.shared.u32 [%r1+4], 5;
  bar.sync 0;
  @%p1 cp.async.bulk.wait_group 0;
  ret;
)",
                                       ".shared .align 16 .b8 s[32];\n");
  for (uint64_t seed = 0; seed < 64; ++seed) {
    std::vector<uint32_t> out(8);
    Runner runner(text);
    runner.options.seed = seed;
    EXPECT_THAT(runner.grid(1, 64).buffer(out).outcome(), HasSubstr("data race")) << seed;
  }
}

TEST(Races, AnMbarrierIsUsedAfterItsInitialisation) {
  // Warp 1 arrives at an object that warp 0 has initialised, as a word in memory tells it.
  const std::string init = "setp.eq.u32 %p3, %r2, 0;\n@%p3 st.shared.b32 [%r1+64], 0;\nbar.sync 0;";
  const auto first = [](const std::string& fence) {
    return "@%p3 mbarrier.init.shared.b64 [%r4], 32;\nbar.warp.sync -1;\n" + fence +
           "\nst.relaxed.cta.shared.b32 [%r1+64], 1;";
  };
  const auto second = [](const std::string& fence) {
    return "W:\nld.relaxed.cta.shared.b32 %r6, [%r1+64];\nsetp.eq.u32 %p6, %r6, 0;\n@%p6 bra W;\n" +
           fence + "\nmbarrier.arrive.shared.b64 %rd5, [%r4];";
  };
  const std::string fence = "fence.acq_rel.cta;";
  expect_race(first(""), second(""), init);
  expect_race(first(fence), second(""), init);
  expect_race(first(""), second(fence), init);
  expect_silence(first(fence), second(fence), init);
}

TEST(RaceShadow, AllReadersThatNothingOrdersAreKept) {
  Agents agents;
  agents.warps = 8;
  WarpView views[8];
  for (uint32_t i = 0; i < 8; ++i) views[i].begin(agents, i, false);
  RaceShadow shadow;
  shadow.resize(64);
  const auto touch = [&](uint16_t warp, uint64_t offset, bool write) {
    RaceShadow::Access access;
    access.epoch = views[warp].now();
    access.lanes = 1;
    access.op = access.warp = warp;
    access.write = write;
    return shadow.access(offset, 4, access, 0, views[warp].threads());
  };
  for (uint16_t warp = 0; warp < 7; ++warp) EXPECT_EQ(touch(warp, 8, false), nullptr);
  // Warp 7 knows of all readers but one.
  for (uint32_t warp = 0; warp < 7; ++warp) {
    if (warp == 2) continue;
    Handover handover;
    views[warp].release(handover, false);
    views[7].acquire(handover, false);
  }
  const RaceShadow::Access* other = touch(7, 8, true);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->warp, 2);
  EXPECT_EQ(touch(7, 12, true), nullptr);
  shadow.clear(8, 4);
  EXPECT_EQ(touch(7, 8, true), nullptr);
}

}  // namespace
}  // namespace jitgemm::sim::race_test
