// SPDX-License-Identifier: Apache-2.0
// tcgen05 through whole kernels: results, and for each rule of order, allocation and descriptors a
// kernel that breaks it and its twin.
#include "unit/sim/ptx_run.h"
#include "unit/sim/tensor_core_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm::sim::tcgen05_test {
namespace {

using ::testing::HasSubstr;

// D = A * B^T, 128 x 8, one CTA of 128 threads; every gap may be changed by a case.
struct Kernel {
  std::string alloc = "@%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32;";
  std::string relinquish = "@%p4 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;";
  // D f32, A and B e4m3, N = 8, M = 128.
  uint32_t idesc = 1u << 4 | 1u << 17 | 8u << 24;
  std::string before_mma;
  std::string mma = "tcgen05.mma.cta_group::1.kind::f8f6f4 [%r6], %rd10, %rd11, %r7, %p5;";
  std::string commit =
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r8];";
  std::string wait = "V: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0;\n@!%p2 bra V;";
  std::string after_fence = "tcgen05.fence::after_thread_sync;";
  std::string load =
      "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, "
      "[%r9];";
  std::string wait_ld = "tcgen05.wait::ld.sync.aligned;";
  std::string dealloc = "@%p4 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;";

  std::string text() const {
    return kernel_text(".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2",
                       R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, bar;
  mov.u32 %r2, tile_a;
  mov.u32 %r3, tile_b;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, base;
  mov.u32 %r8, done;
  shr.u32 %r20, %r4, 5;
  setp.eq.u32 %p4, %r20, 0;
  )" + alloc + "\n" + relinquish +
                           R"(
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra S;
  mbarrier.init.shared.b64 [%r1], 1;
  mbarrier.init.shared.b64 [%r8], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 4352;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 4096, [%r1];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 256, [%r1];
S:
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra W;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r6, [%r5];
  )" + descriptor("%rd10", "%r2", "%r10", "%rd12", kTcgen05High) +
                           descriptor("%rd11", "%r3", "%r10", "%rd12", kTcgen05High) +
                           "mov.u32 %r7, " + std::to_string(idesc) +
                           ";\nsetp.eq.u32 %p5, %r4, 1000;\n" + before_mma + R"(
  @%p1 bra T;
  )" + mma + "\n" + commit +
                           R"(
T:
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  )" + wait + "\n" + after_fence +
                           R"(
  shl.b32 %r9, %r20, 21;
  add.u32 %r9, %r9, %r6;
  )" + load + "\n" + wait_ld +
                           R"(
  shl.b32 %r11, %r4, 5;
  cvt.u64.u32 %rd13, %r11;
  add.u64 %rd14, %rd3, %rd13;
  st.global.v4.u32 [%rd14], {%r30, %r31, %r32, %r33};
  st.global.v4.u32 [%rd14+16], {%r34, %r35, %r36, %r37};
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  )" + dealloc + R"(
  ret;
)",
                       ".shared .align 1024 .b8 tile_a[4096];\n.shared .align 1024 .b8 "
                       "tile_b[256];\n.shared .align 8 .b64 bar;\n"
                       ".shared .align 8 .b64 done;\n.shared .align 4 .b32 base;\n");
  }
};

struct Outcome {
  std::string fault;
  std::vector<float> d;
  SmallMatrix a{128, 3}, b{8, 4};
};

Outcome run(const Kernel& kernel, Numerics numerics = Numerics::kExact, uint64_t seed = 0) {
  Outcome out;
  std::vector<uint8_t> a = out.a.packed(), b = out.b.packed();
  out.d.assign(1024, -1.0f);
  Runner runner(kernel.text());
  runner.options.numerics = numerics;
  runner.options.seed = seed;
  runner.grid(1, 128).buffer(a).buffer(b).buffer(out.d, false);
  out.fault = runner.outcome();
  return out;
}

void expect_product(const Outcome& out, int sign = 1) {
  ASSERT_EQ(out.fault, "");
  for (int i = 0; i < 128; ++i) {
    for (int j = 0; j < 8; ++j) {
      ASSERT_EQ(out.d[static_cast<size_t>(8 * i + j)], sign * dot(out.a, i, out.b, j))
          << i << "," << j;
    }
  }
}

TEST(Tcgen05, ComputesTheProductInEveryNumericsModeAndOrder) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kBlackwell}) {
    for (const uint64_t seed : {0, 1, 2}) expect_product(run({}, numerics, seed));
  }
}

TEST(Tcgen05, OperationsTakeEffectInOrderOfIssue) {
  Kernel kernel;
  kernel.idesc |= 1u << 13;  // negate A
  kernel.mma +=
      "\nsetp.ne.u32 %p5, %r4, 1000;\n" + kernel.mma + "\nxor.b32 %r7, %r7, 8192;\n" + kernel.mma;
  expect_product(run(kernel), -1);
}

// PTX ISA 9.7.16.12: a commit tracks all prior operations of the thread, also those that an earlier
// commit tracks. Kernels release a stage and hand over the accumulator with two commits in a row.
TEST(Tcgen05, SecondOfTwoCommitsTracksTheSameOperations) {
  Kernel kernel;
  kernel.commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];\n" +
                  kernel.commit;
  // The first one's arrival must find the CTA too.
  kernel.dealloc += "\nX: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 1;\n@!%p2 bra X;";
  for (uint64_t seed = 0; seed < 24; ++seed) expect_product(run(kernel, Numerics::kExact, seed));
}

// A second product into cells that other warps have loaded.
TEST(Tcgen05, OverwritingLoadedCellsNeedsBothFences) {
  const auto outcome = [](const std::string& before, const std::string& after) {
    Kernel kernel;
    kernel.dealloc =
        before + "\nbar.sync 0;\n" + after + "\n@%p1 bra U;\n" + kernel.mma + "\n" + kernel.commit +
        "\nU: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 1;\n@!%p2 bra U;\nbar.sync 0;\n" +
        kernel.dealloc;
    return run(kernel).fault;
  };
  EXPECT_EQ(outcome("tcgen05.fence::before_thread_sync;", "tcgen05.fence::after_thread_sync;"), "");
  EXPECT_THAT(outcome("", "tcgen05.fence::after_thread_sync;"), HasSubstr("before_thread_sync"));
  EXPECT_THAT(outcome("tcgen05.fence::before_thread_sync;", ""), HasSubstr("after_thread_sync"));
}

// The same accumulator, through shapes other than 32x32b.
TEST(Tcgen05, OtherShapesReadTheSameCells) {
  // 16x64b.x4: lane l holds rows l/4 + 8 * (l%2) and columns (l/2)%2 + 2r of the first 16 lanes.
  Kernel kernel;
  kernel.load =
      "tcgen05.ld.sync.aligned.16x64b.x4.b32 {%r30, %r31, %r32, %r33}, [%r9];\n"
      "add.u32 %r12, %r9, 0x100000;\n"
      "tcgen05.ld.sync.aligned.16x64b.x4.b32 {%r34, %r35, %r36, %r37}, [%r12];";
  const Outcome out = run(kernel);
  ASSERT_EQ(out.fault, "");
  for (int thread = 0; thread < 128; ++thread) {
    const int l = thread % 32;
    for (int r = 0; r < 8; ++r) {
      const int row = thread / 32 * 32 + r / 4 * 16 + l / 4 + 8 * (l % 2);
      const int column = l / 2 % 2 + 2 * (r % 4);
      ASSERT_EQ(out.d[static_cast<size_t>(8 * thread + r)], dot(out.a, row, out.b, column));
    }
  }
}

TEST(Tcgen05, StoresReadBackThroughAnotherShape) {
  Kernel kernel;
  kernel.load = R"(
  mad.lo.u32 %r40, %r4, 8, 0;
  cvt.rn.f32.u32 %f1, %r40;
  mov.b32 %r41, %f1;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r9], {%r41};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, [%r9];)";
  const Outcome out = run(kernel);
  ASSERT_EQ(out.fault, "");
  for (int i = 0; i < 128; ++i) {
    EXPECT_EQ(out.d[static_cast<size_t>(8 * i)], 8.0f * static_cast<float>(i));
    EXPECT_EQ(out.d[static_cast<size_t>(8 * i + 1)], dot(out.a, i, out.b, 1));
  }
}

struct BadCase {
  const char* name;
  void (*change)(Kernel&);
  const char* report;
};

class Tcgen05Faults : public ::testing::TestWithParam<BadCase> {};

TEST_P(Tcgen05Faults, AreReported) {
  Kernel kernel;
  GetParam().change(kernel);
  EXPECT_THAT(run(kernel).fault, HasSubstr(GetParam().report));
}

INSTANTIATE_TEST_SUITE_P(
    Tcgen05, Tcgen05Faults,
    ::testing::Values(
        BadCase{"no_wait_ld", [](Kernel& k) { k.wait_ld = ""; }, "asynchronous operation"},
        BadCase{"no_wait_for_commit", [](Kernel& k) { k.wait = ""; }, "has not completed"},
        BadCase{"no_commit", [](Kernel& k) { k.commit = ""; }, "deadlock"},
        BadCase{"no_fence_after_wait", [](Kernel& k) { k.after_fence = ""; }, "after_thread_sync"},
        BadCase{"no_dealloc", [](Kernel& k) { k.dealloc = ""; }, "not freed"},
        BadCase{"double_dealloc", [](Kernel& k) { k.dealloc += "\n" + k.dealloc; },
                "no allocation begins"},
        BadCase{"wrong_dealloc_size",
                [](Kernel& k) {
                  k.dealloc = "@%p4 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;";
                },
                "of an allocation of 32"},
        BadCase{"alloc_after_relinquish", [](Kernel& k) { k.relinquish += "\n" + k.alloc; },
                "after relinquish"},
        BadCase{"growing_allocation",
                [](Kernel& k) {
                  k.alloc +=
                      "\n@%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 64;";
                },
                "may not grow"},
        BadCase{"illegal_columns",
                [](Kernel& k) {
                  k.alloc =
                      "@%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 48;";
                },
                "32, 64, 128, 256 or 512"},
        BadCase{"no_room_is_a_deadlock",
                [](Kernel& k) {
                  k.alloc =
                      "@%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 512;\n" +
                      k.alloc;
                },
                "deadlock"},
        BadCase{"outside_allocation", [](Kernel& k) { k.before_mma = "add.u32 %r6, %r6, 64;"; },
                "not allocated"},
        BadCase{"wrong_lanes", [](Kernel& k) { k.load = "xor.b32 %r9, %r9, 0x200000;\n" + k.load; },
                "begin at lane"},
        BadCase{"illegal_shape_in_idesc",
                [](Kernel& k) { k.idesc = 1u << 4 | 1u << 17 | 16u << 24; }, "M = 256"},
        BadCase{"illegal_type_in_idesc", [](Kernel& k) { k.idesc |= 2u << 7; }, "bits 7-9"},
        BadCase{"illegal_descriptor",
                [](Kernel& k) { k.before_mma = "xor.b64 %rd10, %rd10, 0x400000000000;"; }, "46-48"},
        BadCase{"accumulates_into_nothing",
                [](Kernel& k) { k.before_mma = "setp.ne.u32 %p5, %r4, 1000;"; }, "never written"},
        BadCase{"overwrites_operands_in_use",
                [](Kernel& k) { k.commit = "st.shared.u32 [%r2], %r4;\n" + k.commit; },
                "still uses"},
        BadCase{"mixed_cta_groups",
                [](Kernel& k) {
                  k.before_mma = "@%p4 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;";
                },
                "use one"}),
    [](const auto& test) { return std::string(test.param.name); });

// --- Block scaling
// --------------------------------------------------------------------------------

// Scales of A come from 512 bytes copied by tcgen05.cp in order before the mma, those of B
// likewise.
TEST(Tcgen05, BlockScaledProductUsesTheCopiedScales) {
  Kernel kernel;
  kernel.alloc = "@%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 64;";
  kernel.dealloc = "@%p4 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;";
  kernel.idesc = 1u << 17 | 1u << 23 | 8u << 24;
  // Row r of A gets the scale 2^(r/32), byte 0 of its word; column n of B gets 2^-1.
  kernel.before_mma = R"(
  mov.u32 %r21, scales;
  and.b32 %r22, %r4, 31;
  shl.b32 %r23, %r22, 4;
  shl.b32 %r24, %r20, 2;
  add.u32 %r23, %r23, %r24;
  add.u32 %r23, %r23, %r21;
  add.u32 %r25, %r20, 127;
  st.shared.u32 [%r23], %r25;
  mov.u32 %r26, 126;
  st.shared.u32 [%r23+512], %r26;
  fence.proxy.async;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
)" + descriptor("%rd20", "%r21", "%r10", "%rd12", 128 >> 4 | 1 << 14) +
                      "add.u32 %r27, %r21, 512;\n" +
                      descriptor("%rd21", "%r27", "%r10", "%rd12", 128 >> 4 | 1 << 14) +
                      "add.u32 %r28, %r6, 32;\nadd.u32 %r29, %r6, 36;\n";
  kernel.mma =
      "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r28], %rd20;\n"
      "tcgen05.cp.cta_group::1.32x128b.warpx4 [%r29], %rd21;\n"
      "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%r6], %rd10, %rd11, %r7, "
      "[%r28], [%r29], %p5;";
  std::string text = kernel.text();
  text.insert(text.find(".shared .align 8 .b64 bar;"), ".shared .align 1024 .b8 scales[1024];\n");
  Outcome out;
  std::vector<uint8_t> a = out.a.packed(), b = out.b.packed();
  for (const Numerics numerics : {Numerics::kExact, Numerics::kBlackwell}) {
    out.d.assign(1024, -1.0f);
    Runner runner(text);
    runner.options.numerics = numerics;
    runner.grid(1, 128).buffer(a).buffer(b).buffer(out.d, false);
    ASSERT_EQ(runner.outcome(), "");
    for (int i = 0; i < 128; ++i) {
      for (int j = 0; j < 8; ++j) {
        ASSERT_EQ(out.d[static_cast<size_t>(8 * i + j)],
                  static_cast<float>(dot(out.a, i, out.b, j) * (1 << (i / 32))) / 2)
            << i;
      }
    }
  }
}

// --- A pair of CTAs
// -------------------------------------------------------------------------------

// M = 256 and M = 128 over two CTAs: each holds half of A and half of B (N = 16), the even one
// issues.
std::string pair_text(int m) {
  const bool full = m == 256;
  // Each CTA: A has m / 2 rows of 32 bytes, B 8 rows.
  const std::string a_bytes = std::to_string(m / 2 * 32);
  const std::string total = std::to_string(m / 2 * 32 + 256);
  const uint32_t idesc = 1u << 4 | 2u << 17 | static_cast<uint32_t>(m / 16) << 24;
  return kernel_text(".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2",
                     R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, bar;
  mov.u32 %r2, tile_a;
  mov.u32 %r3, tile_b;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, base;
  mov.u32 %r8, done;
  mov.u32 %r21, %cluster_ctarank;
  shr.u32 %r20, %r4, 5;
  setp.eq.u32 %p4, %r20, 0;
  @%p4 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r5], 32;
  setp.ne.u32 %p1, %r4, 0;
  mad.wide.u32 %rd1, %r21, )" +
                         a_bytes + R"(, %rd1;
  mad.wide.u32 %rd2, %r21, 256, %rd2;
  @%p1 bra S;
  mbarrier.init.shared.b64 [%r1], 1;
  mbarrier.init.shared.b64 [%r8], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], )" +
                         total + R"(;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], )" +
                         a_bytes + R"(, [%r1];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd2], 256, [%r1];
S:
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra W;
  tcgen05.fence::after_thread_sync;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ld.shared.u32 %r6, [%r5];
)" + descriptor("%rd10", "%r2", "%r10", "%rd12", kTcgen05High) +
                         descriptor("%rd11", "%r3", "%r10", "%rd12", kTcgen05High) +
                         "mov.u32 %r7, " + std::to_string(idesc) + R"(;
  setp.eq.u32 %p5, %r4, 1000;
  or.b32 %r22, %r4, %r21;
  setp.ne.u32 %p6, %r22, 0;
  @%p6 bra T;
  tcgen05.mma.cta_group::2.kind::f8f6f4 [%r6], %rd10, %rd11, %r7, %p5;
  mov.u16 %h1, 3;
  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r8], %h1;
T:
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
V: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0;
  @!%p2 bra V;
  tcgen05.fence::after_thread_sync;
  shl.b32 %r9, %r20, 21;
  add.u32 %r9, %r9, %r6;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}, [%r9];
)" +
                         (full ? "add.u32 %r9, %r9, 8;\ntcgen05.ld.sync.aligned.32x32b.x8.b32 "
                                 "{%r40, %r41, %r42, %r43, %r44, %r45, %r46, %r47}, [%r9];"
                               : "") +
                         R"(
  tcgen05.wait::ld.sync.aligned;
  mad.lo.u32 %r11, %r21, 128, %r4;
  shl.b32 %r11, %r11, 6;
  cvt.u64.u32 %rd13, %r11;
  add.u64 %rd14, %rd3, %rd13;
  st.global.v4.u32 [%rd14], {%r30, %r31, %r32, %r33};
  st.global.v4.u32 [%rd14+16], {%r34, %r35, %r36, %r37};
)" +
                         (full ? "st.global.v4.u32 [%rd14+32], {%r40, %r41, %r42, "
                                 "%r43};\nst.global.v4.u32 [%rd14+48], {%r44, %r45, %r46, %r47};"
                               : "") +
                         R"(
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p4 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r6, 32;
  ret;
)",
                     ".shared .align 1024 .b8 tile_a[4096];\n.shared .align 1024 .b8 "
                     "tile_b[256];\n.shared .align 8 .b64 bar;\n"
                     ".shared .align 8 .b64 done;\n.shared .align 4 .b32 base;\n");
}

TEST(Tcgen05, PairsOfCtasShareOneProduct) {
  for (const int m : {256, 128}) {
    for (const uint64_t seed : {0, 3}) {
      const SmallMatrix a(m, 5), b(16, 6);
      std::vector<uint8_t> a_bytes = a.packed(), b_bytes = b.packed();
      std::vector<float> d(256 * 16, -1.0f);
      Runner runner(pair_text(m));
      runner.options.seed = seed;
      runner.grid(2, 128, 2).buffer(a_bytes).buffer(b_bytes).buffer(d, false);
      ASSERT_EQ(runner.outcome(), "");
      for (int cta = 0; cta < 2; ++cta) {
        for (int lane = 0; lane < 128; ++lane) {
          for (int c = 0; c < (m == 256 ? 16 : 8); ++c) {
            // M = 128: lanes 64-127 hold the second half of the columns of the same 64 rows.
            const int row = m == 256 ? cta * 128 + lane : cta * 64 + lane % 64;
            const int column = m == 256 ? c : c + 8 * (lane / 64);
            ASSERT_EQ(d[static_cast<size_t>((cta * 128 + lane) * 16 + c)], dot(a, row, b, column))
                << m << " " << lane << " " << c;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace jitgemm::sim::tcgen05_test
