// SPDX-License-Identifier: Apache-2.0
// Order and divergence: lanes that wait for each other, warps, CTAs and clusters that wait for each
// other, seeds, host threads, and independence from the order of basic blocks and from names.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <regex>

namespace jitgemm::sim::scheduler_test {
namespace {

using ::testing::HasSubstr;

const char* const kIndex = R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r4, %r2, %r3, %r1;
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
)";

TEST(Scheduler, ALaneSpinningOnAnotherLaneOfItsWarpDoesNotStarveIt) {
  // Lane 0 waits for a flag that lane 1 sets in the other branch, whichever side the text puts
  // first.
  const char* body = R"(
  mov.u32 %r5, flag;
  st.shared.u32 [%r5], 0;
  bar.sync 0;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra $SPIN;
  st.volatile.shared.u32 [%r5], 41;
  bra $DONE;
$SPIN:
  ld.volatile.shared.u32 %r6, [%r5];
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra $SPIN;
$DONE:
  ld.volatile.shared.u32 %r6, [%r5];
  add.u32 %r6, %r6, %r1;
  st.global.u32 [%rd3], %r6;
  ret;)";
  std::vector<uint32_t> out(32);
  Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body,
                            ".shared .align 4 .b8 flag[4];"));
  runner.grid(1, 32).buffer(out, false);
  expect_clean(runner);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 41 + i);
}

TEST(Scheduler, ACtaWaitingForALaterCtaLetsItRunOnOneHostThread) {
  // CTA 0 spins on a word that CTA 63 writes.
  const char* body = R"(
  ld.param.u64 %rd4, [k_param_1];
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra $OTHERS;
$SPIN:
  ld.acquire.gpu.global.u32 %r6, [%rd4];
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra $SPIN;
  bra $DONE;
$OTHERS:
  setp.ne.u32 %p3, %r2, 63;
  @%p3 bra $DONE;
  st.release.gpu.global.u32 [%rd4], 5;
$DONE:
  st.global.u32 [%rd3], %r2;
  ret;)";
  for (uint32_t threads : {1u, 2u}) {
    std::vector<uint32_t> out(64 * 32), flag(1);
    Runner runner(
        kernel_text(".param .u64 k_param_0, .param .u64 k_param_1", std::string(kIndex) + body));
    runner.grid(64, 32).buffer(out, false).buffer(flag);
    runner.options.threads = threads;
    expect_clean(runner);
    EXPECT_EQ(out.back(), 63u);
  }
}

TEST(Scheduler, AtomicsOfAllCtasAddUpOnSeveralHostThreads) {
  const char* body = R"(
  atom.global.add.u32 %r5, [%rd1], 1;
  red.global.add.f32 [%rd1+4], 0f3F800000;
  atom.global.max.u32 %r6, [%rd1+8], %r4;
  ret;)";
  std::vector<uint32_t> words(3);
  Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body));
  runner.grid(64, 128).buffer(words);
  runner.options.threads = 4;
  expect_clean(runner);
  EXPECT_EQ(words[0], 64u * 128);
  EXPECT_EQ(std::bit_cast<float>(words[1]), 8192.0f);
  EXPECT_EQ(words[2], 64u * 128 - 1);
}

TEST(Scheduler, ClusterMembersExchangeThroughDistributedSharedMemory) {
  const char* body = R"(
  mov.u32 %r5, buffer;
  shl.b32 %r6, %r1, 2;
  add.u32 %r5, %r5, %r6;
  mov.u32 %r7, %cluster_ctarank;
  add.u32 %r8, %r7, 1;
  and.b32 %r8, %r8, 3;
  mapa.shared::cluster.u32 %r9, %r5, %r8;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  st.shared::cluster.u32 [%r9], %r4;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.u32 %r10, [%r5];
  st.global.u32 [%rd3], %r10;
  ret;)";
  for (uint64_t seed : {0u, 1u, 2u}) {
    std::vector<uint32_t> out(8 * 64);
    Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body,
                              ".shared .align 16 .b8 buffer[256];"));
    runner.grid(8, 64, 4).buffer(out, false);
    runner.options.seed = seed;
    expect_clean(runner);
    for (uint32_t cta = 0; cta < 8; ++cta) {
      const uint32_t writer = cta / 4 * 4 + (cta + 3) % 4;
      for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[cta * 64 + t], writer * 64 + t);
    }
  }
}

TEST(Scheduler, ProducersAndConsumersMeetAtNamedBarriers) {
  // Warp 0 fills a buffer eight times, warp 1 sums it; bar.sync and bar.arrive on two barriers.
  const char* body = R"(
  mov.u32 %r5, buffer;
  shr.u32 %r6, %r1, 5;
  and.b32 %r7, %r1, 31;
  shl.b32 %r8, %r7, 2;
  add.u32 %r5, %r5, %r8;
  mov.u32 %r9, 0;
  mov.u32 %r10, 0;
  setp.eq.u32 %p1, %r6, 1;
  @%p1 bra $CONSUME;
$PRODUCE:
  bar.sync 1, 64;
  add.u32 %r11, %r10, %r7;
  st.shared.u32 [%r5], %r11;
  bar.arrive 2, 64;
  add.u32 %r10, %r10, 1;
  setp.lt.u32 %p2, %r10, 8;
  @%p2 bra $PRODUCE;
  ret;
$CONSUME:
  bar.arrive 1, 64;
  bar.sync 2, 64;
  ld.shared.u32 %r11, [%r5];
  add.u32 %r9, %r9, %r11;
  add.u32 %r10, %r10, 1;
  setp.lt.u32 %p2, %r10, 8;
  @%p2 bra $CONSUME;
  st.global.u32 [%rd3], %r9;
  ret;)";
  for (uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<uint32_t> out(64);
    Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body,
                              ".shared .align 16 .b8 buffer[128];"));
    runner.grid(1, 64).buffer(out, false);
    runner.options.seed = seed;
    expect_clean(runner);
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[32 + i], 28 + 8 * i);
  }
}

TEST(Scheduler, BarRedCombinesAllThreads) {
  const char* body = R"(
  setp.lt.u32 %p1, %r1, 37;
  bar.red.popc.u32 %r5, 0, %p1;
  bar.red.and.pred %p2, 0, %p1;
  bar.red.or.pred %p3, 0, %p1;
  selp.u32 %r6, 1000, 0, %p2;
  selp.u32 %r7, 500, 0, %p3;
  add.u32 %r5, %r5, %r6;
  add.u32 %r5, %r5, %r7;
  st.global.u32 [%rd3], %r5;
  ret;)";
  std::vector<uint32_t> out(96);
  Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body));
  runner.grid(1, 96).buffer(out, false);
  expect_clean(runner);
  EXPECT_THAT(out, ::testing::Each(537u));
}

TEST(Scheduler, CallsOfDivergentLanesReturnWhereTheyCameFrom) {
  const char* functions = R"(
.func (.param .b32 result) twice_or_square(.param .b32 x, .param .b32 limit)
{
  .reg .pred %p<3>;
  .reg .b32 %r<6>;
  ld.param.u32 %r1, [x];
  ld.param.u32 %r2, [limit];
  setp.lt.u32 %p1, %r1, %r2;
  @%p1 bra $SMALL;
  mul.lo.u32 %r3, %r1, %r1;
  st.param.u32 [result], %r3;
  ret;
$SMALL:
  add.u32 %r3, %r1, %r1;
  st.param.u32 [result], %r3;
  ret;
}
)";
  const char* body = R"(
  setp.eq.u32 %p1, %r1, 9;
  mov.u32 %r6, 1;
  @%p1 bra $SKIP;
  {
  .param .b32 a;
  .param .b32 b;
  .param .b32 r;
  st.param.u32 [a], %r1;
  st.param.u32 [b], 16;
  call.uni (r), twice_or_square, (a, b);
  ld.param.u32 %r6, [r];
  }
$SKIP:
  bar.sync 0;
  st.global.u32 [%rd3], %r6;
  ret;)";
  std::vector<uint32_t> out(32);
  Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body, functions));
  runner.grid(1, 32).buffer(out, false);
  expect_clean(runner);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i == 9 ? 1 : i < 16 ? 2 * i : i * i) << i;
}

TEST(Scheduler, EarlyReturnsInNestedBranchesDoNotBlockAnAlignedBarrier) {
  const char* body = R"(
  setp.lt.u32 %p1, %r1, 16;
  mov.u32 %r5, 0;
  @!%p1 bra $JOIN;
  setp.lt.u32 %p2, %r1, 4;
  @%p2 bra $END;
  mov.u32 %r5, 7;
$JOIN:
  bar.sync 0;
  vote.sync.ballot.b32 %r6, 1, 0xfffffff0;
  add.u32 %r5, %r5, %r6;
  st.global.u32 [%rd3], %r5;
$END:
  ret;)";
  std::vector<uint32_t> out(32, 1);
  Runner runner(kernel_text(".param .u64 k_param_0", std::string(kIndex) + body));
  runner.grid(1, 32).buffer(out);
  expect_clean(runner);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], i < 4 ? 1 : 0xfffffff0u + (i < 16 ? 7 : 0)) << i;
}

// --- No favours: names and the order of blocks do not matter
// ----------------------------------------

// A kernel of labelled blocks, each ended by a branch or ret, so that any order of the blocks after
// the first is the same program.
const char* const kBlocks[] = {
    R"(  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
  bra $HEAD;
)",
    R"($HEAD:
  setp.gt.u32 %p1, %r3, %r1;
  @%p1 bra $EXIT;
  bra $BODY;
)",
    R"($BODY:
  and.b32 %r4, %r3, 1;
  xor.b32 %r4, %r4, %r1;
  and.b32 %r4, %r4, 1;
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra $EVEN;
  bra $ODD;
)",
    R"($EVEN:
  mad.lo.u32 %r2, %r2, 3, %r3;
  bra $NEXT;
)",
    R"($ODD:
  add.u32 %r2, %r2, 5;
  activemask.b32 %r5;
  popc.b32 %r5, %r5;
  add.u32 %r2, %r2, %r5;
  bra $NEXT;
)",
    R"($NEXT:
  shfl.sync.idx.b32 %r6, %r2, %r1, 31, -1;
  add.u32 %r3, %r3, 1;
  bra $CHECK;
)",
    R"($CHECK:
  setp.lt.u32 %p3, %r3, 40;
  @%p3 bra $HEAD;
  bra $EXIT;
)",
    R"($EXIT:
  bar.sync 0;
  st.global.u32 [%rd3], %r2;
  ret;
)"};

std::vector<uint32_t> run_blocks(const std::vector<std::string>& blocks, uint64_t seed = 0) {
  std::string body;
  for (const std::string& b : blocks) body += b;
  std::vector<uint32_t> out(32);
  Runner runner(kernel_text(".param .u64 k_param_0", body));
  runner.grid(1, 32).buffer(out, false);
  runner.options.seed = seed;
  expect_clean(runner);
  return out;
}

// The lanes leave the loop one after the other; a shfl with a full mask would wait for lanes that
// are gone, so it is taken out here.
std::vector<std::string> blocks_without_shfl() {
  std::vector<std::string> blocks(std::begin(kBlocks), std::end(kBlocks));
  for (std::string& b : blocks) b = std::regex_replace(b, std::regex("  shfl[^\n]*\n"), "");
  return blocks;
}

TEST(NoFavours, ReorderingBasicBlocksLeavesResultsIdentical) {
  const std::vector<std::string> blocks = blocks_without_shfl();
  const std::vector<uint32_t> expected = run_blocks(blocks);
  std::mt19937 random(1);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::string> shuffled = blocks;
    std::shuffle(shuffled.begin() + 1, shuffled.end(), random);
    EXPECT_EQ(run_blocks(shuffled), expected) << "round " << round;
  }
}

TEST(NoFavours, RenamingRegistersLabelsAndParametersLeavesResultsIdentical) {
  const std::vector<std::string> blocks = blocks_without_shfl();
  const std::vector<uint32_t> expected = run_blocks(blocks);
  std::string text;
  for (const std::string& b : blocks) text += b;
  text = kernel_text(".param .u64 k_param_0", text);
  // Registers are renumbered backwards, labels and the parameter get other names.
  std::string renamed;
  const std::regex names(R"(%(r|rd|p)(\d+)|\$(\w+)|k_param_0)");
  auto at = std::sregex_iterator(text.begin(), text.end(), names);
  size_t last = 0;
  for (; at != std::sregex_iterator(); ++at) {
    const std::smatch& m = *at;
    renamed += text.substr(last, static_cast<size_t>(m.position()) - last);
    if (m[1].matched) {
      renamed += "%" + m[1].str() +
                 std::to_string((m[1] == "p"   ? 19
                                 : m[1] == "r" ? 59
                                               : 39) -
                                std::stoi(m[2].str()));
    } else if (m[3].matched) {
      renamed += "other_" + std::to_string(m[3].str().size()) + m[3].str();
    } else {
      renamed += "where_to";
    }
    last = static_cast<size_t>(m.position() + m.length());
  }
  renamed += text.substr(last);
  std::vector<uint32_t> out(32);
  Runner runner(renamed);
  runner.grid(1, 32).buffer(out, false);
  expect_clean(runner);
  EXPECT_EQ(out, expected);
}

TEST(NoFavours, ASeedRepeatsItselfAndRaceFreeResultsDoNotDependOnIt) {
  const std::vector<std::string> blocks = blocks_without_shfl();
  const std::vector<uint32_t> expected = run_blocks(blocks);
  for (uint64_t seed : {1u, 7u, 99u}) EXPECT_EQ(run_blocks(blocks, seed), expected);
}

TEST(Scheduler, AMemberMaskOfLanesThatLeftTheLoopIsADeadlockNotAHang) {
  std::vector<std::string> blocks(std::begin(kBlocks), std::end(kBlocks));
  std::string body;
  for (const std::string& b : blocks) body += b;
  std::vector<uint32_t> out(32);
  Runner runner(kernel_text(".param .u64 k_param_0", body));
  runner.grid(1, 32).buffer(out, false);
  EXPECT_THAT(runner.outcome(), ::testing::AnyOf(HasSubstr("deadlock"), HasSubstr("divergence")));
}

TEST(Scheduler, WarpsThatRunLastRunWhenNothingElseCan) {
  // Each warp takes a ticket. Warp 2 first polls for the ticket of warp 0, which runs last: it gets
  // its turn all the same.
  const char* body = R"(
  ld.param.u64 %rd4, [k_param_1];
  setp.lt.u32 %p1, %r1, 64;
  @%p1 bra $TICKET;
$SPIN:
  ld.acquire.gpu.global.u32 %r6, [%rd4];
  setp.lt.u32 %p2, %r6, 64;
  @%p2 bra $SPIN;
$TICKET:
  atom.add.acq_rel.gpu.global.u32 %r7, [%rd4], 1;
  st.global.u32 [%rd3], %r7;
  ret;)";
  for (const uint64_t seed : {0, 5}) {
    std::vector<uint32_t> out(96), tickets(1);
    Runner runner(
        kernel_text(".param .u64 k_param_0, .param .u64 k_param_1", std::string(kIndex) + body));
    runner.grid(1, 96).buffer(out, false).buffer(tickets);
    runner.options.seed = seed;
    runner.options.last_warps = 1;
    expect_clean(runner);
    EXPECT_GE(*std::min_element(out.begin(), out.begin() + 32), 32u) << "behind all of warp 1";
    EXPECT_GE(*std::min_element(out.begin() + 64, out.end()), 64u) << "behind both";
  }
}

}  // namespace
}  // namespace jitgemm::sim::scheduler_test
