// SPDX-License-Identifier: Apache-2.0
// mma.sync through whole kernels: fragments are filled from plain matrices by the manual's layout.
#include "sim/models_number_formats.h"
#include "unit/sim/ptx_run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm::sim {
namespace {

// A 16 x 16 and B 8 x 16 (k fastest) in f16; lane l holds rows l/4 and l/4 + 8, columns 2 (l%4) and
// + 8.
TEST(MmaSync, HalfProductOfSmallIntegersIsExactInEveryMode) {
  const std::string text =
      kernel_text(".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2", R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 2;
  and.b32 %r3, %r1, 3;
  shl.b32 %r4, %r2, 5;
  shl.b32 %r5, %r3, 2;
  add.u32 %r6, %r4, %r5;
  cvt.u64.u32 %rd4, %r6;
  add.u64 %rd5, %rd1, %rd4;
  add.u64 %rd6, %rd2, %rd4;
  ld.global.u32 %r10, [%rd5];
  ld.global.u32 %r11, [%rd5+256];
  ld.global.u32 %r12, [%rd5+16];
  ld.global.u32 %r13, [%rd5+272];
  ld.global.u32 %r14, [%rd6];
  ld.global.u32 %r15, [%rd6+16];
  mov.f32 %f1, 0f3F800000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f1, %f1, %f1, %f1};
  shl.b32 %r7, %r2, 5;
  shl.b32 %r8, %r3, 3;
  add.u32 %r7, %r7, %r8;
  cvt.u64.u32 %rd7, %r7;
  add.u64 %rd8, %rd3, %rd7;
  st.global.f32 [%rd8], %f2;
  st.global.f32 [%rd8+4], %f3;
  st.global.f32 [%rd8+256], %f4;
  st.global.f32 [%rd8+260], %f5;
  ret;
)");
  std::vector<uint16_t> a(256), b(128);
  std::vector<int> av(256), bv(128);
  for (size_t i = 0; i < 256; ++i) av[i] = static_cast<int>(i * 7 % 11) - 5;
  for (size_t i = 0; i < 128; ++i) bv[i] = static_cast<int>(i * 5 % 9) - 4;
  for (size_t i = 0; i < 256; ++i) a[i] = f16_from_double(av[i]);
  for (size_t i = 0; i < 128; ++i) b[i] = f16_from_double(bv[i]);
  for (const Numerics numerics : {Numerics::kExact, Numerics::kHopper, Numerics::kBlackwell}) {
    std::vector<float> d(128, -1.0f);
    Runner runner(text);
    runner.options.numerics = numerics;
    runner.grid(1, 32).buffer(a).buffer(b).buffer(d, false);
    ASSERT_EQ(runner.outcome(), "");
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 8; ++j) {
        int sum = 1;
        for (size_t k = 0; k < 16; ++k) sum += av[i * 16 + k] * bv[j * 16 + k];
        ASSERT_EQ(d[i * 8 + j], sum) << i << "," << j;
      }
    }
  }
}

TEST(MmaSync, AnUninitialisedFragmentIsReported) {
  Runner runner(kernel_text("", R"(
  mov.b32 %r10, 0;
  mov.f32 %f1, 0f00000000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r11, %r10, %r10}, {%r10, %r10}, {%f1, %f1, %f1, %f1};
  ret;
)"));
  runner.grid(1, 32);
  EXPECT_NE(runner.outcome().find("never written"), std::string::npos);
}

}  // namespace
}  // namespace jitgemm::sim
