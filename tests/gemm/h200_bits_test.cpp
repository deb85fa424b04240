// SPDX-License-Identifier: Apache-2.0
// Results that an H200 gave, as digests: the simulator in its hopper mode must give the same bits.
// Recorded by
//   jitgemm run block_scaled_mm --device cuda:0 --out-dtype F32 ... --output FILE
// on one NVIDIA H200 (driver 580.159.04, NVRTC 13.0.88), 2026-11-29. The digest is of the bytes of
// `out`. The seed of the inputs is 1. A record is tied to the data, not to a kernel: any split of
// the work that keeps the order of operations gives these bits; a plan that splits k would need a
// new record.
#include "selftest/gemm_case.h"
#include "support/sha256.h"

#include <gtest/gtest.h>

namespace jitgemm {
namespace {

struct Record {
  const char* about;
  int64_t m;
  int64_t n;
  int64_t k;
  InputKind data;
  int32_t group_n;
  int32_t group_k;
  DType a;
  const char* sha256;
};

constexpr Record kRecords[] = {
    {"256 x 256 x 512, uniform codes",                           256, 256, 512,  InputKind::kUniformCodes, 128, 128,
     DType::kF8E4M3,                                                                                                                 "b7726b7898fbe953d06d3d4aa19138860c6be824a97cde5035c76b2ff72564ae"},
    {"65 x 72 x 257, a scale for every row of b and 32 columns", 65,  72,  257,
     InputKind::kUniformCodes,                                                                             1,   32,  DType::kF8E4M3,
     "02f11302bce45f31350bba1d8a8090587338b818f3c6206f6d537fb0a151ed01"                                                                                                                                },
    {"7 x 576 x 1024, operands swapped",                         7,   576, 1024, InputKind::kUniformCodes, 128, 128,
     DType::kF8E4M3,                                                                                                                 "e0095e4ba8cb2c51d3892f11db99d7eab5e0a72b59c4ce06c701c29fa0b72346"},
    {"200 x 320 x 640, scales over 60 octaves",                  200, 320, 640,  InputKind::kWideScales,   128, 128,
     DType::kF8E4M3,                                                                                                                 "d3cfa303e3c4381cf0035805e592e88cd71df90999d02e94ca75ecf746aeb3a4"},
    {"128 x 384 x 2048, normal data",                            128, 384, 2048, InputKind::kSeed,         128, 128, DType::kF8E4M3,
     "c140a6013eb109ca76862ac54cbd67d24133b2c85c4d04536e246b3a4983bb78"                                                                                                                                },
    {"300 x 264 x 388, e5m2 by e4m3",                            300, 264, 388,  InputKind::kSeed,         128, 128, DType::kF8E5M2,
     "01f259b6e8d94cd03d59d8e2801897492b9b0caf92b4bd31ee34dac9cf4b16df"                                                                                                                                },
};

TEST(HopperNumerics, SimulatorGivesTheBitsOfAnH200) {
  const auto context = *Context::create({});
  Device* device = *context->device("sim", Arch::kSm90a);
  for (const Record& record : kRecords) {
    SCOPED_TRACE(record.about);
    GemmProblem problem;
    problem.m = record.m;
    problem.n = record.n;
    problem.k = record.k;
    problem.a_dtype = record.a;
    problem.out_dtype = DType::kF32;
    problem.group_n = record.group_n;
    problem.group_k = record.group_k;
    const BlockScaledTensors tensors = *make_block_scaled_tensors(problem, record.data, 1);
    PlanOverrides overrides;
    overrides.split_k = 1;
    const auto result = run_gemm_case(*context, *device, problem, overrides, tensors, {});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_TRUE(result->verdict.passed) << result->verdict.text;
    const std::string_view bytes(reinterpret_cast<const char*>(result->out.bytes.data()),
                                 result->out.bytes.size());
    EXPECT_EQ(to_hex(sha256(bytes)), record.sha256);
  }
}

}  // namespace
}  // namespace jitgemm
