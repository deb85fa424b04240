// SPDX-License-Identifier: Apache-2.0
// Data races of plain accesses to shared memory: reported with both sides whichever came first in
// the run; what synchronisation orders, and what is no race, is silent.
#include "sim/models_instruction_descriptor.h"
#include "sim/race_shadow.h"
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

namespace jitgemm::sim {
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
                           HasSubstr("the other side is warp 1 of CTA rank 0, lane 31"),
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

TEST(RaceShadow, TheLastTwoReadersAreKept) {
  Agents agents;
  agents.warps = 4;
  WarpView views[4];
  for (uint32_t i = 0; i < 4; ++i) views[i].begin(agents, i, false);
  RaceShadow shadow;
  shadow.resize(64);
  const auto access = [&](uint16_t warp) {
    return RaceShadow::Access{views[warp].now(), warp, warp, 0, 0};
  };
  EXPECT_EQ(shadow.read(8, 4, access(0), views[0]), nullptr);
  EXPECT_EQ(shadow.read(8, 4, access(1), views[1]), nullptr);
  // Warp 2 knows of warp 0's reads only.
  Handover handover;
  views[0].release(handover, false);
  views[2].acquire(handover, false);
  const RaceShadow::Access* other = shadow.write(8, 4, access(2), views[2]);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->warp, 1);
  EXPECT_EQ(shadow.write(12, 4, access(2), views[2]), nullptr);
  shadow.clear(8, 4);
  EXPECT_EQ(shadow.write(8, 4, access(2), views[2]), nullptr);
}

TEST(InstructionDescriptor, ALongKIsToldFromWhatIsIllegal) {
  const uint32_t bits = 1u << 7 | 1u << 10 | 16u << 17 | 1u << 23 | 8u << 24;
  EXPECT_EQ(decode_instruction(Tcgen05Kind::kMxf4, bits, 1, 2).error, "");
  EXPECT_TRUE(decode_instruction(Tcgen05Kind::kMxf4, bits | 1u << 31, 1, 2).unsupported);
  EXPECT_FALSE(decode_instruction(Tcgen05Kind::kMxf4, bits | 1u << 2, 1, 2).unsupported);
  const uint32_t wide = 16u << 17 | 1u << 23 | 8u << 24;
  EXPECT_EQ(decode_instruction(Tcgen05Kind::kMxf8f6f4, wide, 1, 1).error, "");
  EXPECT_FALSE(decode_instruction(Tcgen05Kind::kMxf8f6f4, wide | 1u << 31, 1, 1).unsupported);
}

}  // namespace
}  // namespace jitgemm::sim
