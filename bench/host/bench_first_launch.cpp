// SPDX-License-Identifier: Apache-2.0
// How long after the start of a process the first launch of a product has ended, through the C
// interface, with the moments in between. Whether the kernel is compiled or comes from disk is the
// caller's business: the cache and the compiler are those of the environment.
// Usage: bench_first_launch START_NS M N K exact|class|any [DRIVER_LIBRARY]; START_NS: the moment
// at which the caller began to start this process, of CLOCK_MONOTONIC.
#include "jitgemm/jitgemm.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

int64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class FirstLaunch {
 public:
  FirstLaunch() = default;
  FirstLaunch(const FirstLaunch&) = delete;
  FirstLaunch& operator=(const FirstLaunch&) = delete;
  ~FirstLaunch() {
    for (jitgemm_buffer* buffer : buffers_) jitgemm_buffer_release(buffer);
    jitgemm_operation_release(operation_);
    jitgemm_device_release(device_);
    jitgemm_context_release(context_);
  }

  bool run(int64_t start_ns, const jitgemm_gemm_problem& problem, const char* driver) {
    const int64_t main_ns = monotonic_ns();
    jitgemm_context_options options = JITGEMM_CONTEXT_OPTIONS_INIT;
    options.driver_library = driver;
    if (!ok(jitgemm_context_create(&options, &context_))) return false;
    if (!ok(jitgemm_device_open(context_, "cuda:0", 0, &device_))) return false;
    const int64_t opened_ns = monotonic_ns();
    if (!ok(jitgemm_gemm_prepare(device_, &problem, &operation_))) return false;
    const int64_t prepared_ns = monotonic_ns();
    const auto bytes = [](int64_t rows, int64_t columns) {
      return static_cast<size_t>(rows * columns);
    };
    const int64_t blocks = (problem.k + 127) / 128;
    jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
    arguments.a = memory(0, bytes(problem.m, problem.k));
    arguments.b = memory(1, bytes(problem.n, problem.k));
    arguments.a_scales = memory(2, 4 * bytes(problem.m, blocks));
    arguments.b_scales = memory(3, 4 * bytes((problem.n + 127) / 128, blocks));
    arguments.out = memory(4, 2 * bytes(problem.m, problem.n));
    arguments.m = problem.m;
    const int64_t allocated_ns = monotonic_ns();
    if (!ok(jitgemm_gemm_launch(operation_, &arguments, nullptr))) return false;
    if (!ok(jitgemm_device_synchronize(device_, nullptr))) return false;
    const int64_t launched_ns = monotonic_ns();
    const auto ms = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
    std::printf(
        "{\"started_ms\": %.3f, \"opened_ms\": %.3f, \"prepared_ms\": %.3f, "
        "\"allocated_ms\": %.3f, \"launched_ms\": %.3f}\n",
        ms(main_ns - start_ns), ms(opened_ns - main_ns), ms(prepared_ns - opened_ns),
        ms(allocated_ns - prepared_ns), ms(launched_ns - allocated_ns));
    return true;
  }

 private:
  static bool ok(jitgemm_status status) {
    if (status == JITGEMM_STATUS_OK) return true;
    std::fprintf(stderr, "bench_first_launch: %s\n", jitgemm_last_error());
    return false;
  }
  void* memory(int slot, size_t size) {
    return ok(jitgemm_buffer_create(device_, size, &buffers_[slot]))
               ? jitgemm_buffer_address(buffers_[slot])
               : nullptr;
  }

  jitgemm_context* context_ = nullptr;
  jitgemm_device* device_ = nullptr;
  jitgemm_operation* operation_ = nullptr;
  jitgemm_buffer* buffers_[5] = {};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: bench_first_launch START_NS M N K exact|class|any [DRIVER]\n");
    return 2;
  }
  jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
  problem.m = std::strtoll(argv[2], nullptr, 10);
  problem.n = std::strtoll(argv[3], nullptr, 10);
  problem.k = std::strtoll(argv[4], nullptr, 10);
  problem.out_dtype = JITGEMM_BF16;
  problem.m_policy = std::strcmp(argv[5], "exact") == 0   ? JITGEMM_M_EXACT
                     : std::strcmp(argv[5], "class") == 0 ? JITGEMM_M_CLASS
                                                          : JITGEMM_M_ANY;
  FirstLaunch first;
  return first.run(std::strtoll(argv[1], nullptr, 10), problem, argc > 6 ? argv[6] : nullptr) ? 0
                                                                                              : 1;
}
