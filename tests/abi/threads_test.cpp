// SPDX-License-Identifier: Apache-2.0
// Every function may be called by any number of threads at once: many prepare, find and launch the
// same and different problems on one context. What is looked for are races (under the tsan preset)
// and wrong results.
#include "abi_fixture.h"
#include "fake_driver/fake_cuda.h"

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace jitgemm_abi {
namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 200;
constexpr int kProblems = 100;  // more than the table of prepared operations holds at first

jitgemm_gemm_problem problem_of(int i) {
  jitgemm_gemm_problem problem = small_problem(1 + i);
  problem.m_policy = JITGEMM_M_ANY;  // they share a kernel: one compile
  return problem;
}

TEST(Threads, ShareOneContextOfADriver) {
  const jitgemm_context_options options = fake_options();
  jitgemm_context* context = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
  const uint64_t before = jitgemm_fake_cuda_launches();
  std::atomic<int> failures{0};
  std::atomic<int> launches{0};
  std::atomic<jitgemm_operation*> first[kProblems] = {};
  const auto work = [&](int thread) {
    jitgemm_device* device = nullptr;
    if (jitgemm_device_open(context, "cuda:0", 0, &device) != JITGEMM_STATUS_OK) {
      ++failures;
      return;
    }
    for (int round = 0; round < kRounds; ++round) {
      const int i = (thread * 7 + round) % kProblems;
      const jitgemm_gemm_problem problem = problem_of(i);
      jitgemm_operation* operation = nullptr;
      jitgemm_status status = jitgemm_gemm_find(device, &problem, nullptr, &operation);
      if (status == JITGEMM_STATUS_NOT_READY)
        status = jitgemm_gemm_prepare(device, &problem, &operation);
      if (status != JITGEMM_STATUS_OK) {
        ++failures;
        continue;
      }
      // All threads get one operation for one problem.
      jitgemm_operation* expected = nullptr;
      if (!first[i].compare_exchange_strong(expected, operation) && expected != operation)
        ++failures;
      const jitgemm_gemm_arguments arguments = arguments_for(1 + i);
      if (jitgemm_gemm_launch(operation, &arguments, address(0x70)) == JITGEMM_STATUS_OK)
        ++launches;
      jitgemm_operation_release(operation);
    }
    jitgemm_device_release(device);
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  jitgemm_context_release(context);
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(launches, kThreads * kRounds);
  EXPECT_EQ(jitgemm_fake_cuda_launches() - before, uint64_t{kThreads} * kRounds);
  EXPECT_EQ(jitgemm_fake_cuda_contexts(), 0);
}

TEST(Threads, CompileOneKernelOnceForAll) {
  jitgemm_context_options options = memory_options();
  static std::atomic<int> compiles{0};
  options.log_level = "info";
  options.log = [](int32_t, const char* message, void*) {
    if (std::string(message).find("compiled ") != std::string::npos) ++compiles;
  };
  jitgemm_context* context = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
  jitgemm_device* device = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_device_open(context, "sim", 0, &device));
  jitgemm_operation* operations[kThreads] = {};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const jitgemm_gemm_problem problem = problem_of(3);
      jitgemm_gemm_prepare(device, &problem, &operations[thread]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (jitgemm_operation* operation : operations) {
    EXPECT_NE(operation, nullptr);
    EXPECT_EQ(operation, operations[0]);
    jitgemm_operation_release(operation);
  }
  EXPECT_EQ(compiles, 1);
  jitgemm_device_release(device);
  jitgemm_context_release(context);
}

// out[i, j] = k * (i + 1) for a row i of (i + 1)s and ones in b; small integers, so exact.
TEST(Threads, LaunchOnOneSimulator) {
  constexpr int kN = 64;
  constexpr int kK = 128;
  const jitgemm_context_options options = memory_options();
  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
  JITGEMM_ASSERT_OK(jitgemm_device_open(context, "sim", JITGEMM_ARCH_SM_100A, &device));
  std::atomic<int> wrong{0};
  const auto work = [&](int thread) {
    const int m = 1 + thread % 2 * 3;  // two problems, each for half of the threads
    jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
    problem.m = m;
    problem.n = kN;
    problem.k = kK;
    problem.out_dtype = JITGEMM_F32;
    alignas(16) unsigned char a[4][kK];
    alignas(16) unsigned char b[kN][kK];
    alignas(16) float out[4][kN] = {};
    const float scales[4] = {1, 1, 1, 1};
    const unsigned char small_integers[4] = {0x38, 0x40, 0x44, 0x48};  // 1, 2, 3, 4 as F8_E4M3
    for (int i = 0; i < 4; ++i) std::memset(a[i], small_integers[i], kK);
    std::memset(b, small_integers[0], sizeof(b));
    jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
    arguments.a = a;
    arguments.b = b;
    arguments.a_scales = scales;
    arguments.b_scales = scales;
    arguments.out = out;
    arguments.m = m;
    jitgemm_operation* operation = nullptr;
    if (jitgemm_gemm_prepare(device, &problem, &operation) != JITGEMM_STATUS_OK ||
        jitgemm_gemm_launch(operation, &arguments, nullptr) != JITGEMM_STATUS_OK)
      ++wrong;
    jitgemm_operation_release(operation);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < kN; ++j) wrong += out[i][j] == static_cast<float>(kK * (i + 1)) ? 0 : 1;
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  jitgemm_device_release(device);
  jitgemm_context_release(context);
}

}  // namespace
}  // namespace jitgemm_abi
