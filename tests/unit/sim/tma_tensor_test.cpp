// SPDX-License-Identifier: Apache-2.0
// Tensor copies through whole kernels: what was loaded with a swizzle and stored with the same one
// is the tensor again; edges fill and clip; multicast reaches every CTA; garbage maps are reported.
#include "sim/models_tensor_map.h"
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace jitgemm::sim::tma_tensor_test {
namespace {

using ::testing::HasSubstr;

const char* const kGlobals = ".shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b64 bar;\n";
const char* const kMapsAndOutput =
    ".param .align 64 .b8 k_param_0[128], .param .align 64 .b8 k_param_1[128], .param .u64 "
    "k_param_2";

struct alignas(64) MapBytes {
  EncodedMap bytes;
};

TensorMap matrix(const void* data, uint64_t columns, uint64_t rows, uint32_t box_columns,
                 uint32_t box_rows_count, SwizzleMode mode) {
  TensorMap map;
  map.element = TensorElement::kU16;
  map.rank = 2;
  map.address = reinterpret_cast<uint64_t>(data);
  map.dims = {columns, rows, 1, 1, 1};
  map.strides = {2 * columns, 0, 0, 0};
  map.box = {box_columns, box_rows_count, 1, 1, 1};
  map.swizzle = mode;
  return map;
}

// Loads a box at (x, y), copies the raw tile to the output, stores the box to the second map.
std::string load_and_store(int x, int y, const std::string& bytes, const std::string& fence = "") {
  return kernel_text(kMapsAndOutput,
                     R"(
  mov.b64 %rd1, k_param_0;
  mov.b64 %rd2, k_param_1;
  cvta.param.u64 %rd1, %rd1;
  cvta.param.u64 %rd2, %rd2;
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, %tid.x;
  mov.u32 %r6, )" + std::to_string(x) +
                         ";\nmov.u32 %r7, " + std::to_string(y) + R"(;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra S;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  prefetch.tensormap [%rd1];
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], )" +
                         bytes + R"(;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r6, %r7}], [%r1];
S:
  bar.sync 0;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra W;
  shl.b32 %r4, %r3, 2;
  add.u32 %r5, %r2, %r4;
  cvt.u64.u32 %rd4, %r4;
  add.u64 %rd5, %rd3, %rd4;
  mov.u32 %r8, 0;
L:
  ld.shared.u32 %r9, [%r5];
  st.global.u32 [%rd5], %r9;
  add.u32 %r5, %r5, 128;
  add.u64 %rd5, %rd5, 128;
  add.u32 %r8, %r8, 128;
  setp.lt.u32 %p3, %r8, )" +
                         bytes + R"(;
  @%p3 bra L;
  bar.sync 0;
  @%p1 bra E;
  )" + fence + R"(
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r6, %r7}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
E:
  ret;
)",
                     kGlobals);
}

struct Copied {
  std::string fault;
  std::vector<uint16_t> in, tile, out;
};

Copied run(SwizzleMode mode, int x, int y) {
  Copied c;
  c.in.resize(128 * 32);
  std::iota(c.in.begin(), c.in.end(), uint16_t{1});
  c.out.assign(c.in.size(), 0);
  const uint32_t columns = swizzle_width(mode) / 2;
  c.tile.assign(columns * 16, 0xdddd);
  const MapBytes from{encode_tensor_map(matrix(c.in.data(), 128, 32, columns, 16, mode))};
  const MapBytes to{encode_tensor_map(matrix(c.out.data(), 128, 32, columns, 16, mode))};
  Runner runner(load_and_store(x, y, std::to_string(columns * 32)));
  runner.grid(1, 32).value(from).value(to).buffer(c.tile, false);
  for (std::vector<uint16_t>* v : {&c.in, &c.out}) {
    runner.launch.memory.push_back({v->data(), v->size() * 2, true, true, true});
  }
  c.fault = runner.outcome();
  return c;
}

TEST(TmaTensor, WhatIsLoadedAndStoredIsTheTensorAgain) {
  for (const SwizzleMode mode :
       {SwizzleMode::kNone, SwizzleMode::k32B, SwizzleMode::k64B, SwizzleMode::k128B,
        SwizzleMode::k128BAtom32B, SwizzleMode::k128BAtom32BFlip8B, SwizzleMode::k128BAtom64B}) {
    for (const auto& [x, y] : {
             std::pair{0,   0 },
             {32,  10},
             {-8,  -3},
             {120, 25},
             {200, 0 }
    }) {
      const Copied c = run(mode, x, y);
      ASSERT_EQ(c.fault, "") << swizzle_name(mode);
      const int columns = static_cast<int>(swizzle_width(mode)) / 2;
      for (int row = 0; row < 32; ++row) {
        for (int column = 0; column < 128; ++column) {
          const bool inside = column >= x && column < x + columns && row >= y && row < y + 16;
          const size_t i = static_cast<size_t>(row * 128 + column);
          ASSERT_EQ(c.out[i], inside ? c.in[i] : 0)
              << swizzle_name(mode) << " " << row << "," << column;
        }
      }
      // In the tile: every element at its swizzled place, zero outside of the tensor.
      for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < columns; ++column) {
          const int gx = x + column, gy = y + row;
          const bool inside = gx >= 0 && gx < 128 && gy >= 0 && gy < 32;
          const uint64_t at =
              swizzle_address(mode, static_cast<uint64_t>(row * columns + column) * 2) / 2;
          ASSERT_EQ(c.tile[at], inside ? c.in[static_cast<size_t>(gy * 128 + gx)] : 0);
        }
      }
    }
  }
}

// An H200 traps.
TEST(TmaTensor, ABoxBeginsAtSixteenBytes) {
  EXPECT_THAT(run(SwizzleMode::kNone, 4, 0).fault, HasSubstr("multiples of 16 bytes"));
  EXPECT_THAT(run(SwizzleMode::k128B, -1, 0).fault, HasSubstr("multiples of 16 bytes"));
}

TEST(TmaTensor, GarbageAndMismatchedMapsAreReported) {
  std::vector<uint16_t> data(4096), tile(1024);
  const auto fault = [&](const MapBytes& from) {
    Runner runner(load_and_store(0, 0, "2048"));
    runner.grid(1, 32).value(from).value(from).buffer(tile, false);
    runner.launch.memory.push_back({data.data(), data.size() * 2, true, true, true});
    return runner.outcome();
  };
  MapBytes good{encode_tensor_map(matrix(data.data(), 128, 32, 64, 16, SwizzleMode::k128B))};
  EXPECT_EQ(fault(good), "");
  MapBytes bad = good;
  bad.bytes[9] ^= std::byte{4};
  EXPECT_THAT(fault(bad), HasSubstr("no tensor map"));
  TensorMap map = matrix(data.data(), 128, 32, 64, 16, SwizzleMode::k128B);
  map.rank = 3;
  map.strides[1] = 256 * 32;
  EXPECT_THAT(fault({encode_tensor_map(map)}), HasSubstr("3-dimensional"));
  map = matrix(data.data(), 128, 32, 128, 8, SwizzleMode::k128B);
  EXPECT_THAT(fault({encode_tensor_map(map)}), HasSubstr("exceeds"));
}

// Stores a box of two rows of 16 bytes of which the tensor has the first and nobody has written the
// second. What is done to the first before is `fill`.
std::string store_with_a_hole(const std::string& fill) {
  std::vector<uint16_t> in(8, 7), out(8);
  const MapBytes to{encode_tensor_map(matrix(out.data(), 8, 1, 8, 2, SwizzleMode::kNone))};
  Runner runner(kernel_text(kMapsAndOutput, R"(
  mov.b64 %rd1, k_param_0;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, 0;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 16;
)" + fill + R"(
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r3, %r3}], [%r2];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;
)",
                            kGlobals));
  runner.options.strict = false;
  runner.grid(1, 1).value(to).value(to).buffer(in);
  runner.launch.memory.push_back({out.data(), out.size() * 2, true, true, true});
  return runner.outcome();
}

TEST(TmaTensor, WhatLeavesASourceWithAHoleIsThere) {
  const std::string write = "st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};\n";
  const std::string fence = "fence.proxy.async.shared::cta;\n";
  const std::string copy =
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd3], 16, "
      "[%r1];\n";
  const std::string wait = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;\n@!%p2 bra W;\n";
  EXPECT_EQ(store_with_a_hole(write + fence), "");
  EXPECT_EQ(store_with_a_hole(write + fence + copy + wait), "");
  EXPECT_THAT(store_with_a_hole(""), HasSubstr("was never written"));
  EXPECT_THAT(store_with_a_hole(write), HasSubstr("no fence.proxy.async lies between"));
  EXPECT_THAT(store_with_a_hole(write + fence + copy), HasSubstr("is still being written"));
}

// 5.5.4.1: the more dimensions, the fewer bits of an offset.
TEST(TmaTensor, Im2colOffsetsHaveTheRangeOfTheMapsRank) {
  const auto fault = [](uint32_t rank, int offset) {
    std::vector<uint16_t> data(512 * 8), out(8);
    TensorMap map;
    map.element = TensorElement::kU16;
    map.rank = rank;
    map.address = reinterpret_cast<uint64_t>(data.data());
    map.dims = {8, 512, 1, 1, 1};
    map.strides = {16, 16 * 512, 16 * 512, 16 * 512};
    map.im2col = true;
    map.box = {8, 2, 1, 1, 1};
    const MapBytes from{encode_tensor_map(map)};
    std::string coordinates = "%r3", offsets = "%h1";
    for (uint32_t i = 1; i < rank; ++i) coordinates += ", %r3";
    for (uint32_t i = 3; i < rank; ++i) offsets += ", %h2";
    Runner runner(kernel_text(kMapsAndOutput,
                              fmt::format(R"(
  mov.b64 %rd1, k_param_0;
  cvta.param.u64 %rd1, %rd1;
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, 0;
  mov.u16 %h1, {3};
  mov.u16 %h2, 0;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 32;
  cp.async.bulk.tensor.{0}d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r2], [%rd1, {{{1}}}], [%r1], {{{2}}};
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra W;
  ret;
)",
                                          rank, coordinates, offsets, offset),
                              kGlobals));
    runner.grid(1, 1).value(from).value(from).buffer(out);
    runner.launch.memory.push_back({data.data(), data.size() * 2, true, true, true});
    return runner.outcome();
  };
  EXPECT_EQ(fault(3, 65535), "");
  EXPECT_EQ(fault(4, 255), "");
  EXPECT_THAT(fault(4, 256), HasSubstr("im2col offset 256 of dimension 1: 0..255"));
  EXPECT_EQ(fault(5, 31), "");
  EXPECT_THAT(fault(5, 32), HasSubstr("im2col offset 32 of dimension 1: 0..31"));
}

TEST(TmaTensor, MulticastReachesEveryCtaAndItsBarrier) {
  const std::string text = kernel_text(kMapsAndOutput, R"(
  mov.b64 %rd1, k_param_0;
  cvta.param.u64 %rd1, %rd1;
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, bar;
  mov.u32 %r2, tile;
  mov.u32 %r3, %tid.x;
  mov.u32 %r10, %cluster_ctarank;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra S;
  mbarrier.init.shared.b64 [%r1], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 %rd9, [%r1], 2048;
S:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  or.b32 %r11, %r10, %r3;
  setp.ne.u32 %p4, %r11, 0;
  @%p4 bra W;
  mov.u16 %h1, 3;
  mov.u32 %r6, 0;
  mov.u32 %r7, 4;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd1, {%r6, %r7}], [%r1], %h1;
W: mbarrier.try_wait.parity.shared.b64 %p2, [%r1], 0;
  @!%p2 bra W;
  shl.b32 %r4, %r3, 2;
  add.u32 %r5, %r2, %r4;
  ld.shared.u32 %r9, [%r5];
  mad.lo.u32 %r12, %r10, 128, %r4;
  cvt.u64.u32 %rd4, %r12;
  add.u64 %rd5, %rd3, %rd4;
  st.global.u32 [%rd5], %r9;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ret;
)",
                                       kGlobals);
  std::vector<uint16_t> data(128 * 32), out(128);
  std::iota(data.begin(), data.end(), uint16_t{0});
  const MapBytes map{encode_tensor_map(matrix(data.data(), 128, 32, 64, 16, SwizzleMode::kNone))};
  Runner runner(text);
  runner.grid(2, 32, 2).value(map).value(map).buffer(out, false);
  runner.launch.memory.push_back({data.data(), data.size() * 2, true, true, true});
  // Without swizzle the row of the box is 128 bytes all the same.
  ASSERT_EQ(runner.outcome(), "");
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(out[i], data[4 * 128 + i]);
    EXPECT_EQ(out[64 + i], data[4 * 128 + i]);
  }
}

}  // namespace
}  // namespace jitgemm::sim::tma_tensor_test
