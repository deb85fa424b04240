// SPDX-License-Identifier: Apache-2.0
// K = 96 of the 4-bit scaled kinds (sm_103a): rows of 48 bytes that go on in other 128-byte rows,
// and scale factors that run on into the next four columns. Operands are laid out here by formulas
// of their own; sums are of small integers and exact.
#include "sim/models_instruction_descriptor.h"
#include "sim/models_tmem_layout.h"
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm::sim::tcgen05_long_k_test {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 128, kColumns = 8, kDepth = 96;
constexpr int kGroupBytes = 16384 + 1024;  // 128 bytes of each row of A, then of B
constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

// An operand of e2m1 codes, scales as powers of two, and how they are stored.
struct Operand {
  int rows = 0;
  std::vector<uint8_t> codes, exponents;  // rows * 96, rows * blocks
  int blocks = 0;

  Operand(int row_count, int block_count, uint32_t seed) : rows(row_count), blocks(block_count) {
    uint32_t state = seed * 2654435761u + 1;
    const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 24; };
    for (int i = 0; i < rows * kDepth; ++i) codes.push_back(next() & 15);
    for (int i = 0; i < rows * blocks; ++i) exponents.push_back(next() % 3);
  }
  double value(int row, int k) const {
    const uint8_t code = codes[static_cast<size_t>(row * kDepth + k)];
    const double magnitude = kValues[code & 7];
    const int block = k / (kDepth / blocks);
    return (code & 8 ? -magnitude : magnitude) *
           (1 << exponents[static_cast<size_t>(row * blocks + block)]);
  }
  // Two codes a byte, from byte `first` of rows of 128 bytes on and from the start of other rows
  // when those are full; 16-byte chunks are exchanged as the 128-byte swizzle does.
  void store(std::vector<uint8_t>& image, int base, int first, int group_stride) const {
    for (int row = 0; row < rows; ++row) {
      for (int k = 0; k < kDepth; k += 2) {
        const int at = first + k / 2;
        const int in_row = at % 128, buffer = at / 128;
        const int chunk = in_row / 16 ^ row % 8;
        const size_t low = static_cast<size_t>(row * kDepth + k);
        image[static_cast<size_t>(base + buffer * group_stride + row * 128 + chunk * 16 +
                                  in_row % 16)] =
            static_cast<uint8_t>(codes[low] | codes[low + 1] << 4);
      }
    }
  }
  // Words of four ue8m0 factors from byte `id` on; the second word is for the next four columns.
  uint32_t scale_word(int row, int id, int group) const {
    uint32_t word = 0;
    for (int byte = 0; byte < 4; ++byte) {
      const int index = 4 * group + byte - id;
      const uint32_t factor = index >= 0 && index < blocks
                                  ? 127u + exponents[static_cast<size_t>(row * blocks + index)]
                                  : 0xeeu;
      word |= factor << (8 * byte);
    }
    return word;
  }
};

struct LongK {
  std::string target = "sm_103a";
  std::string words = "kind::mxf4.block_scale.block32";
  int blocks = 3, id = 0;
  int first = 96;  // byte of the 128 at which rows begin
  bool absolute = true;
  uint32_t idesc_flip = 0;

  std::string text() const {
    const uint32_t idesc = (1u << 7 | 1u << 10 | 1u << 17 | 1u << 23 | 8u << 24 | 1u << 31 |
                            static_cast<uint32_t>(id) << 4 | static_cast<uint32_t>(id) << 29) ^
                           idesc_flip;
    // Stride 1024, version, swizzle of 128 bytes; the address of the other rows from bit 16 on.
    const uint64_t fixed = uint64_t{1024 >> 4} << 32 | uint64_t{1} << 46 | uint64_t{2} << 61 |
                           (absolute ? uint64_t{1} << 52 : 0);
    std::string body = fmt::format(R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, base;
  mov.u32 %r8, done;
  mov.u32 %r2, tiles;
  shr.u32 %r20, %r4, 5;
  setp.eq.u32 %p4, %r20, 0;
  setp.ne.u32 %p1, %r4, 0;
  @%p4 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 32;
  @%p4 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @!%p1 mbarrier.init.shared.b64 [%r8], 1;
  @!%p1 fence.mbarrier_init.release.cluster;
  mad.lo.u32 %r9, %r4, {0}, %r2;
  mul.wide.u32 %rd4, %r4, {0};
  add.u64 %rd4, %rd4, %rd1;
  mov.u32 %r10, 0;
F:
  ld.global.v4.u32 {{%r30, %r31, %r32, %r33}}, [%rd4];
  st.shared.v4.u32 [%r9], {{%r30, %r31, %r32, %r33}};
  add.u32 %r9, %r9, 16;
  add.u64 %rd4, %rd4, 16;
  add.u32 %r10, %r10, 16;
  setp.lt.u32 %p2, %r10, {0};
  @%p2 bra F;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  ld.shared.u32 %r6, [%r5];
  shl.b32 %r21, %r20, 21;
  add.u32 %r21, %r21, %r6;
  // Scale factors: 16 words a lane, in columns 8 to 23.
  mul.wide.u32 %rd5, %r4, 64;
  add.u64 %rd5, %rd5, %rd2;
)",
                                   2 * kGroupBytes / 128);
    for (int i = 0; i < 4; ++i)
      body += fmt::format("ld.global.v4.u32 {{%r{}, %r{}, %r{}, %r{}}}, [%rd5+{}];\n", 30 + 4 * i,
                          31 + 4 * i, 32 + 4 * i, 33 + 4 * i, 16 * i);
    body += "add.u32 %r22, %r21, 8;\ntcgen05.st.sync.aligned.32x32b.x16.b32 [%r22], {";
    for (int i = 0; i < 16; ++i) body += fmt::format("{}%r{}", i == 0 ? "" : ", ", 30 + i);
    body += fmt::format(R"(}};
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  cvt.u64.u32 %rd6, %r2;
  add.u64 %rd7, %rd6, {2};
  shr.u64 %rd8, %rd7, 4;
  add.u64 %rd9, %rd6, {3};
  shl.b64 %rd9, %rd9, 12;
  or.b64 %rd10, %rd8, %rd9;
  add.u64 %rd7, %rd7, 16384;
  shr.u64 %rd8, %rd7, 4;
  add.u64 %rd9, %rd6, {4};
  shl.b64 %rd9, %rd9, 12;
  or.b64 %rd11, %rd8, %rd9;
  or.b64 %rd10, %rd10, {1};
  or.b64 %rd11, %rd11, {1};
  mov.u32 %r7, {0};
  add.u32 %r28, %r6, 8;
  add.u32 %r29, %r6, 16;
  setp.ne.u32 %p5, %r4, %r4;
  @%p1 bra T;
  tcgen05.mma.cta_group::1.{5} [%r6], %rd10, %rd11, %r7, [%r28], [%r29], %p5;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r8];
T:
V: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0;
  @!%p2 bra V;
  tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {{%r30, %r31, %r32, %r33, %r34, %r35, %r36, %r37}}, [%r21];
  tcgen05.wait::ld.sync.aligned;
  mul.wide.u32 %rd5, %r4, 32;
  add.u64 %rd5, %rd5, %rd3;
  st.global.v4.u32 [%rd5], {{%r30, %r31, %r32, %r33}};
  st.global.v4.u32 [%rd5+16], {{%r34, %r35, %r36, %r37}};
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%p4 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 32;
  ret;
)",
                        idesc, fixed, first, absolute ? kGroupBytes : 0,
                        absolute ? kGroupBytes + 16384 : 0, words);
    std::string text = kernel_text(
        ".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2", body,
        fmt::format(".shared .align 1024 .b8 tiles[{}];\n.shared .align 8 .b64 done;\n.shared "
                    ".align 4 .b32 base;\n",
                    2 * kGroupBytes));
    text.replace(text.find("sm_100a"), 7, target);
    text.replace(text.find("8.6"), 3, "8.8");
    return text;
  }
};

struct Outcome {
  std::string fault;
  int wrong = 0;
};

Outcome run(const LongK& kernel, Numerics numerics = Numerics::kExact) {
  const Operand a(kRows, kernel.blocks, 5), b(kColumns, kernel.blocks, 6);
  std::vector<uint8_t> image(2 * kGroupBytes, 0xff);
  a.store(image, 0, kernel.first, kGroupBytes);
  b.store(image, 16384, kernel.first, kGroupBytes);
  // Columns 0-3 and 4-7: factors of the rows of A; 8 and 12: those of the columns of B.
  std::vector<uint32_t> scales(128 * 16, 0xeeeeeeee);
  for (int lane = 0; lane < 128; ++lane) {
    for (int group = 0; group < 2; ++group) {
      uint32_t* words = scales.data() + lane * 16;
      for (int quarter = 0; quarter < 4; ++quarter)
        words[4 * group + quarter] = a.scale_word(32 * quarter + lane % 32, kernel.id, group);
      if (lane % 32 < kColumns) words[8 + 4 * group] = b.scale_word(lane % 32, kernel.id, group);
    }
  }
  std::vector<float> d(kRows * kColumns, -1.0f);
  Runner runner(kernel.text());
  runner.options.numerics = numerics;
  runner.grid(1, 128).buffer(image).buffer(scales).buffer(d, false);
  Outcome out;
  out.fault = runner.outcome();
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      double sum = 0;
      for (int k = 0; k < kDepth; ++k) sum += a.value(row, k) * b.value(column, k);
      out.wrong += d[static_cast<size_t>(row * kColumns + column)] != sum ? 1 : 0;
    }
  }
  return out;
}

TEST(Tcgen05LongK, RowsGoOnAtTheAbsoluteAddressAndFactorsInTheNextColumns) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kBlackwell}) {
    for (const int id : {0, 1, 2, 3}) {
      LongK kernel;
      kernel.id = id;
      const Outcome out = run(kernel, numerics);
      EXPECT_EQ(out.fault, "");
      EXPECT_EQ(out.wrong, 0) << "three factors, id " << id;
    }
    for (const int id : {0, 2}) {
      LongK kernel;
      kernel.words = "kind::mxf4nvf4.block_scale.block16";
      kernel.blocks = 6;
      kernel.id = id;
      kernel.first = 112;
      const Outcome out = run(kernel, numerics);
      EXPECT_EQ(out.fault, "");
      EXPECT_EQ(out.wrong, 0) << "six factors, id " << id;
    }
  }
}

TEST(Tcgen05LongK, RowsThatFitNeedNoOtherAddress) {
  LongK kernel;
  kernel.first = 48;
  kernel.absolute = false;
  const Outcome out = run(kernel);
  EXPECT_EQ(out.fault, "");
  EXPECT_EQ(out.wrong, 0);
}

TEST(Tcgen05LongK, WhatIsIllegalIsAFault) {
  LongK other;
  other.target = "sm_100a";
  EXPECT_THAT(run(other).fault, HasSubstr("K = 96) is legal for sm_103a only"));
  LongK beyond;
  beyond.absolute = false;
  EXPECT_THAT(run(beyond).fault, HasSubstr("48 bytes of a row from byte 96"));
  LongK odd;
  odd.words = "kind::mxf4nvf4.block_scale.block16";
  odd.blocks = 6;
  odd.id = 1;
  EXPECT_THAT(run(odd).fault, HasSubstr("factor id 1 is not legal with 6"));
  LongK short_k;  // K = 64 of the same target may use the absolute address too
  short_k.idesc_flip = 1u << 31;
  EXPECT_EQ(run(short_k).fault, "");
  LongK elsewhere;
  elsewhere.idesc_flip = 1u << 31;
  elsewhere.target = "sm_100a";
  EXPECT_THAT(run(elsewhere).fault, HasSubstr("bit 52"));
}

TEST(Tcgen05LongK, ThePairTakesAllOfItsRows) {
  const auto decode = [](uint32_t m, int cta_group) {
    const uint32_t bits = 1u << 7 | 1u << 10 | 32u << 17 | 1u << 23 | (m / 16) << 24 | 1u << 31;
    return decode_instruction(Tcgen05Kind::kMxf4nvf4, bits, cta_group, 4);
  };
  EXPECT_EQ(decode(256, 2).error, "");
  EXPECT_EQ(decode(256, 2).descriptor.k, 96);
  EXPECT_EQ(decode(256, 2).descriptor.scales_per_row, 6);
  EXPECT_THAT(decode(128, 2).error, HasSubstr("K = 96"));
  const uint32_t wide = 16u << 17 | 1u << 23 | 8u << 24 | 1u << 31;
  EXPECT_THAT(decode_instruction(Tcgen05Kind::kMxf8f6f4, wide, 1, 1).error, HasSubstr("bit 31"));
}

// The strides between groups as CUTLASS lays scale factors out: columns of B rounded up to 128.
TEST(Tcgen05LongK, GroupsOfFactorsFollowThePublishedStrides) {
  for (int n = 16; n <= 256; n += 16)
    EXPECT_EQ(scale_b_group_columns(256, n, 2), static_cast<uint32_t>((n + 127) / 128 * 128 / 32));
  EXPECT_EQ(scale_a_group_columns(), 4u);
}

}  // namespace
}  // namespace jitgemm::sim::tcgen05_long_k_test
