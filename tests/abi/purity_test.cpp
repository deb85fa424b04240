// SPDX-License-Identifier: Apache-2.0
// The promise of the launch path: no allocation, no lock, no file, no environment, no system call;
// and what reaches the driver is right. The fake driver stands in for a GPU's.
#include "abi_fixture.h"
#include "call_counter.h"
#include "fake_driver/fake_cuda.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

namespace jitgemm_abi {
namespace {

constexpr int kLaunches = 1000000;

std::string calls_made() {
  std::string text;
  for (int i = 0; i < COUNTED_TOTAL; ++i) {
    if (counted_calls[i] != 0)
      text += std::string(counted_names[i]) + " " + std::to_string(counted_calls[i]) + "; ";
  }
  return text;
}

// What a launch passes to its kernel, written out here once more
// (kernels/templates/device/params.cuh).
struct Parameters {
  fake_cuda_tensor_map a_map;
  char pad_a[16];
  fake_cuda_tensor_map b_map;
  char pad_b[16];
  fake_cuda_tensor_map out_map;
  char pad_out[16];
  fake_cuda_tensor_map a_scale_map;
  char pad_a_scale[16];
  fake_cuda_tensor_map b_scale_map;
  char pad_b_scale[16];
  uint64_t a, b, a_scales, b_scales, out, workspace;
  int64_t lda, ldb, ldo;
  int64_t a_scale_stride_m, a_scale_stride_k, b_scale_stride_n, b_scale_stride_k;
  int32_t m, reserved;
  char pad_end[16];
};
static_assert(sizeof(fake_cuda_tensor_map) == 112 && sizeof(Parameters) == 768);

class Purity : public testing::Test {
 protected:
  void SetUp() override {
    const jitgemm_context_options options = fake_options();
    JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context_));
    JITGEMM_ASSERT_OK(jitgemm_device_open(context_, "cuda:0", 0, &device_));
  }
  void TearDown() override {
    jitgemm_device_release(device_);
    jitgemm_context_release(context_);
  }

  jitgemm_context* context_ = nullptr;
  jitgemm_device* device_ = nullptr;
  uint64_t alignment_ = 0;
};

TEST_F(Purity, TheCounterSeesWhatPreparationDoes) {
  counting_start();
  jitgemm_context* context = nullptr;
  jitgemm_context_options options = fake_options();
  options.cache_mode = "rw";
  options.cache_folder = "/dev/null/none";  // cannot be made: the attempt is seen
  const jitgemm_status status = jitgemm_context_create(&options, &context);
  jitgemm_context_release(context);
  counting_stop();
  JITGEMM_ASSERT_OK(status);
  EXPECT_GT(counted_calls[COUNTED_malloc], 0U) << calls_made();
  EXPECT_GT(counted_calls[COUNTED_free], 0U) << calls_made();
  EXPECT_GT(counted_calls[COUNTED_getenv], 0U) << calls_made();

  counting_start();
  jitgemm_operation* operation = nullptr;
  const jitgemm_gemm_problem problem = small_problem(8);
  const jitgemm_status prepared = jitgemm_gemm_prepare(device_, &problem, &operation);
  counting_stop();
  JITGEMM_ASSERT_OK(prepared);
  jitgemm_operation_release(operation);
  EXPECT_GT(counted_calls[COUNTED_pthread_mutex_lock], 0U) << calls_made();
  EXPECT_GT(counted_calls[COUNTED_open] + counted_calls[COUNTED_open64] +
                counted_calls[COUNTED_openat] + counted_calls[COUNTED_dlopen],
            0U)
      << calls_made();
}

TEST_F(Purity, GroupedLaunchesMakeNoCall) {
  jitgemm_grouped_gemm_problem problem = JITGEMM_GROUPED_GEMM_PROBLEM_INIT;
  problem.m = 64;
  problem.n = 256;
  problem.k = 512;
  problem.groups = 8;
  problem.layout = JITGEMM_GROUPS_MASKED;
  problem.m_policy = JITGEMM_M_ANY;
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_prepare(device_, &problem, &operation));
  jitgemm_grouped_gemm_arguments arguments = JITGEMM_GROUPED_GEMM_ARGUMENTS_INIT;
  arguments.a = address(0x10000000);
  arguments.b = address(0x20000000);
  arguments.a_scales = address(0x30000000);
  arguments.b_scales = address(0x40000000);
  arguments.out = address(0x50000000);
  arguments.group_rows = static_cast<const int32_t*>(address(0x60000000));
  jitgemm_status worst = JITGEMM_STATUS_OK;
  counting_start();
  for (int i = 0; i < 1000; ++i) {
    arguments.m = 1 + i % 100;
    const jitgemm_status status = jitgemm_grouped_gemm_launch(operation, &arguments, nullptr);
    if (status != JITGEMM_STATUS_OK) worst = status;
    jitgemm_operation* found = nullptr;
    const jitgemm_status looked = jitgemm_grouped_gemm_find(device_, &problem, nullptr, &found);
    if (looked != JITGEMM_STATUS_OK || found != operation) worst = JITGEMM_STATUS_INTERNAL;
    jitgemm_operation_release(found);
  }
  counting_stop();
  JITGEMM_ASSERT_OK(worst);
  EXPECT_EQ(calls_made(), "");
  jitgemm_operation_release(operation);
}

TEST_F(Purity, AMillionLaunchesMakeNoCallAndPassWhatWasAsked) {
  jitgemm_gemm_problem problem = small_problem(100);
  problem.m_policy = JITGEMM_M_ANY;
  problem.lda = 544;
  problem.ldo = 264;
  problem.a_scale_major = JITGEMM_SCALE_MAJOR_COLUMN;
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(device_, &problem, &operation));
  jitgemm_gemm_arguments arguments = arguments_for(0);
  void* const stream = address(0x7000);
  const uint64_t first = jitgemm_fake_cuda_launches();

  jitgemm_status worst = JITGEMM_STATUS_OK;
  counting_start();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) {
    arguments.m = 1 + i % 100;
    arguments.a = address(0x10000000 + uint64_t{16} * static_cast<uint64_t>(i));
    arguments.flags = i % 2 == 0 ? 0 : JITGEMM_LAUNCH_PROGRAMMATIC_DEPENDENCE;
    const jitgemm_status status =
        jitgemm_gemm_launch(operation, &arguments, i % 3 == 0 ? nullptr : stream);
    if (status != JITGEMM_STATUS_OK) worst = status;
  }
  const auto stop = std::chrono::steady_clock::now();
  counting_stop();
  JITGEMM_ASSERT_OK(worst);
  EXPECT_EQ(calls_made(), "");
  std::printf("%.0f ns a launch\n",
              std::chrono::duration<double, std::nano>(stop - start).count() / kLaunches);
  ASSERT_EQ(jitgemm_fake_cuda_launches(), first + kLaunches);

  for (int i = kLaunches - FAKE_CUDA_RING; i < kLaunches; ++i) {
    SCOPED_TRACE(i);
    fake_cuda_launch launch;
    ASSERT_TRUE(jitgemm_fake_cuda_launch(first + static_cast<uint64_t>(i), &launch));
    const int m = 1 + i % 100;
    EXPECT_EQ(launch.stream, i % 3 == 0 ? nullptr : stream);
    // The default stream, and encoding a tensor map, need the device's context to be current.
    EXPECT_NE(launch.context, nullptr);
    EXPECT_EQ(launch.programmatic_serialization, i % 2 == 0 ? 0U : 1U);
    EXPECT_GT(launch.grid[0], 0U);
    EXPECT_LE(launch.grid[0], 132U);
    EXPECT_EQ(launch.grid[1], 1U);
    EXPECT_GE(launch.block[0], 128U);
    EXPECT_EQ(launch.block[0] % 128, 0U);
    EXPECT_EQ(launch.block[1], 1U);
    EXPECT_GT(launch.shared_bytes, 0U);
    Parameters p;
    std::memcpy(&p, launch.parameters, sizeof(p));
    EXPECT_EQ(p.a, 0x10000000 + uint64_t{16} * static_cast<uint64_t>(i));
    EXPECT_EQ(p.b, 0x20000000U);
    EXPECT_EQ(p.a_scales, 0x30000000U);
    EXPECT_EQ(p.b_scales, 0x40000000U);
    EXPECT_EQ(p.out, 0x50000000U);
    EXPECT_EQ(p.lda, 544);
    EXPECT_EQ(p.ldb, 512);
    EXPECT_EQ(p.ldo, 264);
    EXPECT_EQ(p.a_scale_stride_m, 1);
    EXPECT_EQ(p.a_scale_stride_k, m);  // dense: as many rows as there are
    EXPECT_EQ(p.b_scale_stride_n, 4);
    EXPECT_EQ(p.b_scale_stride_k, 1);
    EXPECT_EQ(p.m, m);
    EXPECT_EQ(p.reserved, 0);
    ASSERT_EQ(p.a_map.magic, FAKE_CUDA_TENSOR_MAP_MAGIC);
    EXPECT_EQ(p.a_map.address, p.a);
    EXPECT_EQ(p.a_map.rank, 2);
    EXPECT_EQ(p.a_map.type, 0);  // UINT8
    EXPECT_EQ(p.a_map.swizzle, 3);
    EXPECT_EQ(p.a_map.extents[0], 512U);
    EXPECT_EQ(p.a_map.extents[1], static_cast<uint64_t>(m));
    EXPECT_EQ(p.a_map.strides[0], 544U);
    ASSERT_EQ(p.b_map.magic, FAKE_CUDA_TENSOR_MAP_MAGIC);
    EXPECT_EQ(p.b_map.address, p.b);
    EXPECT_EQ(p.b_map.extents[0], 512U);
    EXPECT_EQ(p.b_map.extents[1], 256U);
    EXPECT_EQ(p.b_map.strides[0], 512U);
    if (p.out_map.magic == 0) continue;  // stored directly
    EXPECT_EQ(p.out_map.address, p.out);
    EXPECT_EQ(p.out_map.type, 9);  // BFLOAT16
    EXPECT_EQ(p.out_map.extents[0], 256U);
    EXPECT_EQ(p.out_map.extents[1], static_cast<uint64_t>(m));
    EXPECT_EQ(p.out_map.strides[0], 528U);
  }
  jitgemm_operation_release(operation);
}

TEST_F(Purity, TwoLaunchesOverAWorkspaceMakeNoCall) {
  jitgemm_gemm_problem problem = small_problem(100);
  problem.m_policy = JITGEMM_M_ANY;
  problem.a_dtype = JITGEMM_BF16;
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(device_, &problem, &operation));
  jitgemm_gemm_arguments arguments = arguments_for(0);
  arguments.a_scales = nullptr;
  arguments.workspace = address(0x60000000);
  JITGEMM_ASSERT_OK(
      jitgemm_operation_workspace(operation, &arguments.workspace_bytes, &alignment_));
  const uint64_t first = jitgemm_fake_cuda_launches();
  constexpr int kPairs = 100000;
  jitgemm_status worst = JITGEMM_STATUS_OK;
  counting_start();
  for (int i = 0; i < kPairs; ++i) {
    arguments.m = 1 + i % 100;
    arguments.flags = i % 2 == 0 ? 0 : JITGEMM_LAUNCH_PROGRAMMATIC_DEPENDENCE;
    const jitgemm_status status = jitgemm_gemm_launch(operation, &arguments, address(0x7000));
    if (status != JITGEMM_STATUS_OK) worst = status;
  }
  counting_stop();
  JITGEMM_ASSERT_OK(worst);
  EXPECT_EQ(calls_made(), "");
  ASSERT_EQ(jitgemm_fake_cuda_launches(), first + 2 * kPairs);
  // The last pair: 100 rows of 512 codes, then scales, and a product that reads both.
  struct {
    uint64_t source, codes, scales;
    int64_t source_ld, code_ld, scale_ld;
    int32_t m, reserved;
  } q;
  fake_cuda_launch launch;
  ASSERT_TRUE(jitgemm_fake_cuda_launch(first + 2 * kPairs - 2, &launch));
  EXPECT_EQ(launch.programmatic_serialization, 1U);
  std::memcpy(&q, launch.parameters, sizeof(q));
  EXPECT_EQ(q.source, 0x10000000U);
  EXPECT_EQ(q.codes, 0x60000000U);
  EXPECT_EQ(q.scales, 0x60000000U + 51200U);
  EXPECT_EQ(q.source_ld, 512);
  EXPECT_EQ(q.m, 100);
  ASSERT_TRUE(jitgemm_fake_cuda_launch(first + 2 * kPairs - 1, &launch));
  EXPECT_EQ(launch.programmatic_serialization, 1U) << "it waits in the kernel, not in the stream";
  Parameters p;
  std::memcpy(&p, launch.parameters, sizeof(p));
  EXPECT_EQ(p.a, q.codes);
  EXPECT_EQ(p.a_scales, q.scales);
  EXPECT_EQ(p.m, 100);
  jitgemm_operation_release(operation);
}

TEST_F(Purity, FindingAPreparedOperationMakesNoCall) {
  constexpr int kOperations = 100;
  jitgemm_operation* prepared[kOperations] = {};
  jitgemm_gemm_problem problem = small_problem(1);
  problem.m_policy = JITGEMM_M_ANY;  // one kernel, as many operations as typical ms
  for (int i = 0; i < kOperations; ++i) {
    problem.m = 1 + i;
    JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(device_, &problem, &prepared[i]));
  }
  bool same = true;
  counting_start();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) {
    problem.m = 1 + i % kOperations;
    jitgemm_operation* found = nullptr;
    const jitgemm_status status = jitgemm_gemm_find(device_, &problem, address(0x7000), &found);
    same = same && status == JITGEMM_STATUS_OK && found == prepared[i % kOperations];
    jitgemm_operation_release(found);
  }
  const auto stop = std::chrono::steady_clock::now();
  counting_stop();
  EXPECT_TRUE(same);
  EXPECT_EQ(calls_made(), "");
  std::printf("%.0f ns to find and release\n",
              std::chrono::duration<double, std::nano>(stop - start).count() / kLaunches);
  for (jitgemm_operation* operation : prepared) jitgemm_operation_release(operation);
}

TEST(Lifetimes, TheLastHandleTakesTheContextWithIt) {
  const int64_t contexts = jitgemm_fake_cuda_contexts();
  const int64_t allocations = jitgemm_fake_cuda_allocations();
  const jitgemm_context_options options = fake_options();
  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;
  jitgemm_buffer* buffer = nullptr;
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
  JITGEMM_ASSERT_OK(jitgemm_device_open(context, "cuda:0", 0, &device));
  jitgemm_context_release(context);
  JITGEMM_ASSERT_OK(jitgemm_buffer_create(device, 64, &buffer));
  const jitgemm_gemm_problem problem = small_problem(8);
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(device, &problem, &operation));
  jitgemm_device_release(device);
  EXPECT_EQ(jitgemm_fake_cuda_allocations(), allocations + 1);
  jitgemm_buffer_release(buffer);
  EXPECT_EQ(jitgemm_fake_cuda_allocations(), allocations);
  EXPECT_EQ(jitgemm_fake_cuda_contexts(), contexts + 1);
  const jitgemm_gemm_arguments arguments = arguments_for(8);
  EXPECT_EQ(jitgemm_gemm_launch(operation, &arguments, nullptr), JITGEMM_STATUS_OK);
  jitgemm_operation_release(operation);
  EXPECT_EQ(jitgemm_fake_cuda_contexts(), contexts);
}

}  // namespace
}  // namespace jitgemm_abi
