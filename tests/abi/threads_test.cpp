// SPDX-License-Identifier: Apache-2.0
// Every function may be called by any number of threads at once: many prepare, find and launch the
// same and different problems on one context. What is looked for are races (under the tsan preset)
// and wrong results.
#include "abi_fixture.h"
#include "fake_driver/fake_cuda.h"

#include <atomic>
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

}  // namespace
}  // namespace jitgemm_abi
