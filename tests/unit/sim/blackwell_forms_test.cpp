// SPDX-License-Identifier: Apache-2.0
// Rules of forms whose results the cases of tests/ptx show: what each of them forbids, beside a
// twin that is legal.
#include "sim/models_sparse.h"
#include "sim/models_zero_columns.h"
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm::sim::blackwell_forms_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- clusterlaunchcontrol -----------------------------------------------------------------------

// Every CTA adds 1 at its index, then at that of each cluster whose place it takes.
std::string persistent(const std::string& after_refusal = "") {
  return kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, bar;
  mov.u32 %r2, response;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, 0;
  mbarrier.init.shared.b64 [%r1], 1;
N:
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd2, %rd2, %rd1;
  red.global.add.u32 [%rd2], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r1], 16;
  clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r2], [%r1];
W: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r4;
  @!%p1 bra W;
  xor.b32 %r4, %r4, 1;
  ld.shared.b128 %q0, [%r2];
  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q0;
  @!%p2 bra E;
  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r3, _, _, _}, %q0;
  bra N;
E:
)" + after_refusal + "\nret;",
                     ".shared .align 8 .b64 bar;\n.shared .align 16 .b8 response[16];\n");
}

std::string with_wide_registers(std::string text) {
  text.insert(text.find(".reg .b16"), ".reg .b128 %q<2>;\n");
  return text;
}

TEST(ClusterLaunchControl, EveryClusterRunsOnceWhoeverTakesItsPlace) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    for (const uint32_t threads : {1u, 3u}) {
      std::vector<uint32_t> done(40, 0);
      Runner runner(with_wide_registers(persistent()));
      runner.options.seed = seed;
      runner.options.threads = threads;
      runner.grid(40, 1).buffer(done);
      ASSERT_EQ(runner.outcome(), "");
      EXPECT_THAT(done, testing::Each(1u)) << seed << " " << threads;
    }
  }
}

TEST(ClusterLaunchControl, ARefusalHasNoCoordinates) {
  std::vector<uint32_t> done(2, 0);
  Runner runner(with_wide_registers(
      persistent("clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r5, %q0;\n"
                 "st.global.u32 [%rd1], %r5;")));
  runner.grid(2, 1).buffer(done);
  EXPECT_THAT(runner.outcome(), HasSubstr("never written"));
}

// --- st.async -----------------------------------------------------------------------------------

std::string async_store(const std::string& before_load, const std::string& address = "%r5") {
  return kernel_text(".param .u64 k_param_0",
                     R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, bar;
  mov.u32 %r2, word;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd3, [%r1], 4;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mov.u32 %r3, %cluster_ctarank;
  xor.b32 %r4, %r3, 1;
  mapa.shared::cluster.u32 %r5, %r2, %r4;
  mapa.shared::cluster.u32 %r6, %r1, %r4;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [)" +
                         address + R"(], %r3, [%r6];
)" + before_load + R"(
  ld.shared.u32 %r7, [%r2];
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd2, %rd2, %rd1;
  st.global.u32 [%rd2], %r7;
V: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [%r1], 0;
  @!%p1 bra V;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  ret;
)",
                     ".shared .align 8 .b64 bar;\n.shared .align 16 .b32 word;\n");
}

const std::string kWait =
    "W: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [%r1], 0;\n@!%p1 bra W;";

std::string store_outcome(const std::string& text, uint32_t cluster = 2) {
  std::vector<uint32_t> out(2, 7);
  Runner runner(text);
  runner.grid(2, 1, cluster).buffer(out);
  const std::string outcome = runner.outcome();
  if (outcome.empty()) {
    EXPECT_THAT(out, ElementsAre(1u, 0u));
  }
  return outcome;
}

TEST(AsyncStore, IsSeenByWhoWaitsOnTheMbarrierAndByNobodyElse) {
  EXPECT_EQ(store_outcome(async_store(kWait)), "");
  EXPECT_NE(store_outcome(async_store("")), "");
}

TEST(AsyncStore, DestinationAndMbarrierAreInOneCtaOfACluster) {
  EXPECT_THAT(store_outcome(async_store(kWait, "%r2")), HasSubstr("same CTA"));
}

// --- Sparse A -----------------------------------------------------------------------------------

TEST(Sparse, MetadataSayWhereElementsStand) {
  const std::vector<uint8_t> two = {0b0100, 0b1110, 0b1001};
  EXPECT_THAT(sparse_places(Sparsity::kTwoOfFour, two), ElementsAre(0, 1, 6, 7, 9, 10));
  const std::vector<uint8_t> one = {0b1110, 0b0100};
  EXPECT_THAT(sparse_places(Sparsity::kOneOfTwo, one), ElementsAre(1, 2));
  for (const uint8_t same : {0b0000, 0b0101, 0b1010, 0b1111}) {
    EXPECT_TRUE(sparse_places(Sparsity::kTwoOfFour, std::vector<uint8_t>{same}).empty());
    EXPECT_TRUE(sparse_places(Sparsity::kOneOfTwo, std::vector<uint8_t>{same}).empty());
  }
}

TEST(Sparse, RowsAreExpandedInPlace) {
  std::vector<uint32_t> codes = {8, 9, 6, 0, 5, 7, 3, 4};
  const std::vector<uint32_t> places = {1, 2, 0, kNowhere, 3, kNowhere, kNowhere, kNowhere};
  EXPECT_THAT(expand_sparse_rows(codes, places, 4), ElementsAre(2, 3));
  EXPECT_THAT(codes, ElementsAre(0, 8, 9, 0, 6, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0));
}

// --- The zero-column mask: the four examples of 9.7.16.4.3
// ----------------------------------------

uint64_t mask_bits(std::vector<uint64_t> starts, std::vector<uint64_t> firsts, uint64_t skip,
                   uint64_t use, uint64_t shift) {
  uint64_t bits = uint64_t{1} << 39 | skip << 40 | use << 48 | shift << 56;
  for (size_t i = 0; i < starts.size(); ++i) bits |= starts[i] << (8 * i) | firsts[i] << (32 + i);
  return bits;
}

std::string mask_text(uint64_t bits, uint32_t m, uint32_t n, uint32_t part) {
  const ZeroColumns zero = decode_zero_columns(bits, m, n, 32);
  EXPECT_EQ(zero.error, "");
  std::string text;  // the lowest column last, as the manual writes it
  const uint32_t width = n * m / 128;
  for (uint32_t c = 0; c < 14; ++c) text.insert(0, zero.zero[part * width + c] ? "1" : "0");
  return text;
}

TEST(ZeroColumnMask, IsThatOfTheExamples) {
  EXPECT_EQ(mask_text(uint64_t{4} << 40 | uint64_t{3} << 48, 128, 64, 0), "00000000000000");
  EXPECT_EQ(mask_text(mask_bits({0}, {0}, 2, 3, 0), 128, 64, 0), "11100001110000");
  const uint64_t third = mask_bits({0, 0}, {1, 0}, 2, 3, 0);
  EXPECT_EQ(mask_text(third, 64, 64, 0), "00001110000111");
  EXPECT_EQ(mask_text(third, 64, 64, 1), "11100001110000");
  const uint64_t fourth = mask_bits({0, 1, 2, 1}, {1, 1, 0, 0}, 2, 3, 2);
  EXPECT_EQ(mask_text(fourth, 32, 64, 0), "00001110000111");
  EXPECT_EQ(mask_text(fourth, 32, 64, 1), "10000111000011");
  EXPECT_EQ(mask_text(fourth, 32, 64, 2), "00111000011100");
  EXPECT_EQ(mask_text(fourth, 32, 64, 3), "01110000111000");
  EXPECT_EQ(decode_zero_columns(fourth, 32, 64, 8).shift, 2u);
  EXPECT_NE(decode_zero_columns(fourth, 32, 64, 0).error, "");
}

}  // namespace
}  // namespace jitgemm::sim::blackwell_forms_test
