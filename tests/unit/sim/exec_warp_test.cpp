// SPDX-License-Identifier: Apache-2.0
// Instructions whose result depends on other lanes or on memory: shfl, vote, match, redux, elect,
// ldmatrix, stmatrix, vector loads and stores, atomics, cp.async, windows of generic addresses.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

#include <functional>
#include <numeric>

namespace jitgemm::sim {
namespace {

// Runs `body` with %r1 = lane and %r2 = in[lane]; it leaves its result in %r3.
std::vector<uint32_t> per_lane(const std::string& body,
                               const std::function<uint32_t(uint32_t)>& input,
                               const char* globals = "") {
  std::vector<uint32_t> in(32), out(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = input(i);
  Runner runner(kernel_text(
      ".param .u64 k_param_0, .param .u64 k_param_1",
      "ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1]; mov.u32 %r1, %laneid;\n"
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; "
      "ld.global.u32 %r2, [%rd4];\n" +
          body + "\nst.global.u32 [%rd5], %r3; ret;",
      globals));
  runner.grid(1, 32).buffer(in).buffer(out, false);
  EXPECT_EQ(runner.outcome(), "");
  return out;
}
uint32_t squares(uint32_t i) {
  return i * i;
}

void expect_lanes(const std::vector<uint32_t>& out,
                  const std::function<uint32_t(uint32_t)>& expected) {
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], expected(i)) << "lane " << i;
}

TEST(Shfl, MovesValuesAsEachModeSays) {
  expect_lanes(per_lane("shfl.sync.idx.b32 %r3, %r2, 5, 31, -1;", squares),
               [](uint32_t) { return 25u; });
  expect_lanes(per_lane("shfl.sync.up.b32 %r3, %r2, 1, 0, -1;", squares),
               [](uint32_t i) { return i == 0 ? 0 : squares(i - 1); });
  expect_lanes(per_lane("shfl.sync.down.b32 %r3, %r2, 2, 31, -1;", squares),
               [](uint32_t i) { return squares(i < 30 ? i + 2 : i); });
  expect_lanes(per_lane("shfl.sync.bfly.b32 %r3, %r2, 7, 31, -1;", squares),
               [](uint32_t i) { return squares(i ^ 7); });
  // Segments of eight lanes: c = (mask << 8) | clamp.
  expect_lanes(
      per_lane("shfl.sync.down.b32 %r3|%p1, %r2, 3, 0x1807, -1; selp.u32 %r3, %r3, 9999, %p1;",
               squares),
      [](uint32_t i) { return (i & 7) + 3 <= 7 ? squares(i + 3) : 9999; });
}

TEST(Shfl, SplitsOfAWarpMeetAtTheSameInstruction) {
  // Both halves come to one shfl through different paths that do not reconverge before it.
  expect_lanes(per_lane("setp.lt.u32 %p1, %r1, 16; @%p1 bra $A; add.u32 %r2, %r2, 0;\n$A: "
                        "shfl.sync.bfly.b32 %r3, %r2, 16, 31, -1;",
                        squares),
               [](uint32_t i) { return squares(i ^ 16); });
}

TEST(BarWarpSync, MeetsAcrossBranches) {
  expect_lanes(per_lane("mov.u32 %r5, s; setp.lt.u32 %p1, %r1, 16; @%p1 bra $A; bar.warp.sync -1; "
                        "ld.shared.u32 %r3, [%r5]; bra $B;\n"
                        "$A: st.shared.u32 [%r5], 77; bar.warp.sync -1; mov.u32 %r3, 1;\n$B: "
                        "add.u32 %r3, %r3, 0;",
                        squares, ".shared .align 4 .b8 s[4];"),
               [](uint32_t i) { return i < 16 ? 1u : 77u; });
}

TEST(Vote, CountsMembersOnly) {
  expect_lanes(per_lane("setp.gt.u32 %p1, %r2, 100; vote.sync.ballot.b32 %r3, %p1, -1;", squares),
               [](uint32_t) { return 0xfffff800u; });
  expect_lanes(per_lane("setp.lt.u32 %p1, %r1, 16; mov.u32 %r4, 0xffff0000; selp.b32 %r4, 0xffff, "
                        "%r4, %p1; setp.gt.u32 %p2, %r2, 100;"
                        "vote.sync.ballot.b32 %r3, %p2, %r4;",
                        squares),
               [](uint32_t i) { return i < 16 ? 0xf800u : 0xffff0000u; });
  expect_lanes(
      per_lane(
          "setp.lt.u32 %p1, %r1, 40; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r3, 1, 0, %p2;",
          squares),
      [](uint32_t) { return 1u; });
  expect_lanes(
      per_lane("setp.lt.u32 %p1, %r1, 4; vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r3, 1, 0, %p2;",
               squares),
      [](uint32_t) { return 0u; });
}

TEST(Match, FindsEqualLanes) {
  expect_lanes(per_lane("match.any.sync.b32 %r3, %r2, -1;", [](uint32_t i) { return i % 3; }),
               [](uint32_t i) {
                 uint32_t m = 0;
                 for (uint32_t j = i % 3; j < 32; j += 3) m |= 1u << j;
                 return m;
               });
  expect_lanes(per_lane("match.all.sync.b32 %r3|%p1, %r2, -1;", [](uint32_t) { return 4u; }),
               [](uint32_t) { return ~0u; });
}

TEST(Redux, CombinesAllMembers) {
  expect_lanes(per_lane("redux.sync.add.u32 %r3, %r2, -1;", squares),
               [](uint32_t) { return 10416u; });
  expect_lanes(per_lane("redux.sync.min.s32 %r3, %r2, -1;", [](uint32_t i) { return i - 5; }),
               [](uint32_t) { return 0xfffffffbu; });
  expect_lanes(per_lane("redux.sync.xor.b32 %r3, %r2, -1;", [](uint32_t i) { return 1u << i; }),
               [](uint32_t) { return ~0u; });
}

TEST(Elect, OneLaneLeads) {
  expect_lanes(per_lane("elect.sync %r4|%p1, -1; selp.u32 %r3, 1, 0, %p1;", squares),
               [](uint32_t i) { return i == 0 ? 1u : 0u; });
  expect_lanes(per_lane("mov.u32 %r3, 5; setp.gt.u32 %p2, %r1, 2; @!%p2 bra $E; elect.sync "
                        "%r3|%p1, 0xfffffff8;\n$E: add.u32 %r3, %r3, 0;",
                        squares),
               [](uint32_t i) { return i > 2 ? 3u : 5u; });
}

TEST(Matrix, LdmatrixGivesTheFragmentOfPtx) {
  // Eight rows of eight b16, element = 8 * row + column.
  const char* fill =
      "mov.u32 %r5, s; mul.lo.u32 %r6, %r1, 4; add.u32 %r7, %r5, %r6; mul.lo.u32 %r8, %r1, 2; "
      "add.u32 %r9, %r8, 1;"
      "shl.b32 %r9, %r9, 16; or.b32 %r8, %r8, %r9; st.shared.u32 [%r7], %r8; bar.warp.sync -1;"
      "and.b32 %r10, %r1, 7; shl.b32 %r10, %r10, 4; add.u32 %r10, %r5, %r10;\n";
  const char* globals = ".shared .align 16 .b8 s[128];";
  expect_lanes(
      per_lane(std::string(fill) + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3}, [%r10];",
               squares, globals),
      [](uint32_t i) { return (2 * i + 1) << 16 | 2 * i; });
  expect_lanes(
      per_lane(std::string(fill) + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r3}, [%r10];",
               squares, globals),
      [](uint32_t i) {
        const uint32_t column = i / 4, row = 2 * (i % 4);
        return (8 * (row + 1) + column) << 16 | (8 * row + column);
      });
  // stmatrix.trans puts back what ldmatrix read, transposed; a plain read sees the transpose.
  expect_lanes(
      per_lane(std::string(fill) +
                   "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r10]; bar.warp.sync -1;"
                   "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r10], {%r4}; bar.warp.sync "
                   "-1; ld.shared.u32 %r3, [%r7];",
               squares, globals),
      [](uint32_t i) {
        const uint32_t row = i / 4, column = 2 * (i % 4);
        return (8 * (column + 1) + row) << 16 | (8 * column + row);
      });
  expect_lanes(
      per_lane(std::string(fill) + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r10]; "
                                   "movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r4;",
               squares, globals),
      [](uint32_t i) {
        const uint32_t row = i / 4, column = 2 * (i % 4);
        return (8 * (column + 1) + row) << 16 | (8 * column + row);
      });
}

TEST(Memory, VectorsAndNarrowTypesKeepTheirBytes) {
  expect_lanes(
      per_lane(
          "mov.u32 %r5, s; shl.b32 %r6, %r1, 4; add.u32 %r5, %r5, %r6; st.shared.v4.u32 [%r5], "
          "{%r1, %r2, 3, 4};"
          "ld.shared.v2.u64 {%rd6, %rd7}, [%r5]; shr.u64 %rd6, %rd6, 32; cvt.u32.u64 %r3, %rd6;",
          squares, ".shared .align 16 .b8 s[512];"),
      squares);
  expect_lanes(per_lane("ld.global.s8 %r3, [%rd4];", [](uint32_t i) { return i + 0x70; }),
               [](uint32_t i) { return i + 0x70 < 0x80 ? i + 0x70 : (i + 0x70) | 0xffffff00; });
  expect_lanes(per_lane("ld.global.u8 %r3, [%rd4+1];", [](uint32_t i) { return i << 8; }),
               [](uint32_t i) { return i; });
}

TEST(Memory, GenericAddressesOfAllWindowsWork) {
  expect_lanes(per_lane(".local .align 8 .b8 l[8]; mov.u64 %rd6, l; cvta.local.u64 %rd6, %rd6; "
                        "st.u32 [%rd6], %r2;"
                        "mov.u64 %rd7, s; cvta.shared.u64 %rd7, %rd7; add.s64 %rd7, %rd7, %rd3; "
                        "ld.u32 %r4, [%rd6]; st.u32 [%rd7], %r4;"
                        "cvta.to.shared.u64 %rd8, %rd7; ld.shared.u32 %r3, [%rd8];"
                        "isspacep.shared %p1, %rd7; isspacep.global %p2, %rd4; isspacep.local %p3, "
                        "%rd6; and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3;"
                        "isspacep.global %p2, %rd7; not.pred %p2, %p2; and.pred %p1, %p1, %p2; "
                        "selp.u32 %r3, %r3, 0, %p1;",
                        squares, ".shared .align 16 .b8 s[128];"),
               squares);
}

TEST(Memory, ModuleVariablesHaveTheirInitialValues) {
  expect_lanes(per_lane("mov.u64 %rd6, table; and.b32 %r4, %r1, 3; mul.wide.u32 %rd7, %r4, 4; "
                        "add.s64 %rd6, %rd6, %rd7; ld.const.u32 %r3, [%rd6];",
                        squares, ".const .align 4 .u32 table[4] = {10, 20, 30, 40};"),
               [](uint32_t i) { return 10 * (i % 4 + 1); });
  expect_lanes(per_lane("atom.global.add.u32 %r4, [counter], 1; bar.warp.sync -1; "
                        "ld.volatile.global.u32 %r3, [counter];",
                        squares, ".global .align 4 .u32 counter = 5;"),
               [](uint32_t) { return 37u; });
}

TEST(Atomics, ReturnTheOldValueInLaneOrder) {
  const char* globals = ".shared .align 8 .b8 s[8];";
  const std::string clear = "mov.u32 %r5, s; st.shared.u64 [%r5], 0; bar.warp.sync -1;\n";
  expect_lanes(per_lane(clear + "atom.shared.add.u32 %r3, [%r5], 2;", squares, globals),
               [](uint32_t i) { return 2 * i; });
  expect_lanes(per_lane(clear + "atom.shared.inc.u32 %r3, [%r5], 4;", squares, globals),
               [](uint32_t i) { return i % 5; });
  expect_lanes(per_lane(clear + "atom.shared.exch.b32 %r3, [%r5], %r1;", squares, globals),
               [](uint32_t i) { return i == 0 ? 0 : i - 1; });
  expect_lanes(per_lane(clear + "atom.shared.cas.b32 %r3, [%r5], %r1, 7;", squares, globals),
               [](uint32_t i) { return i == 0  ? 0u
                                       : i > 7 ? 8u - 1
                                               : 7u; });
  expect_lanes(
      per_lane(clear + "red.shared.max.s32 [%r5], %r2; bar.warp.sync -1; ld.shared.u32 %r3, [%r5];",
               squares, globals),
      [](uint32_t) { return 961u; });
  expect_lanes(per_lane(clear + "red.shared.add.noftz.f16x2 [%r5], 0x3c004000; bar.warp.sync -1; "
                                "ld.shared.u32 %r3, [%r5];",
                        squares, globals),
               [](uint32_t) { return 0x50005400u; });
}

TEST(CpAsync, CopiesAndFillsWithZeros) {
  expect_lanes(per_lane(
                   "mov.u32 %r5, s; cvt.u32.u64 %r6, %rd3; add.u32 %r5, %r5, %r6; and.b32 %r7, "
                   "%r1, 1; shl.b32 %r7, %r7, 2;"
                   "cp.async.ca.shared.global [%r5], [%rd4], 4, %r7; cp.async.commit_group; "
                   "cp.async.wait_group 0; ld.shared.u32 %r3, [%r5];",
                   [](uint32_t i) { return i + 100; }, ".shared .align 16 .b8 s[128];"),
               [](uint32_t i) { return i % 2 == 1 ? i + 100 : 0; });
}

}  // namespace
}  // namespace jitgemm::sim
