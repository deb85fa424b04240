// SPDX-License-Identifier: Apache-2.0
// What the tests of the C ABI share: options that touch no cache folder, a problem, and arguments
// whose addresses are aligned. The tests see libjitgemm.so and its header, nothing behind it.
#pragma once

#include "jitgemm/jitgemm.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace jitgemm_abi {

inline jitgemm_context_options memory_options() {
  jitgemm_context_options options = JITGEMM_CONTEXT_OPTIONS_INIT;
  options.cache_mode = "memory";
  return options;
}

inline jitgemm_context_options fake_options() {
  jitgemm_context_options options = memory_options();
  options.driver_library = JITGEMM_FAKE_CUDA;
  return options;
}

inline jitgemm_gemm_problem small_problem(int64_t m) {
  jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
  problem.m = m;
  problem.n = 256;
  problem.k = 512;
  return problem;
}

// Addresses that no launch of the fake driver follows.
inline void* address(uint64_t value) {
  return reinterpret_cast<void*>(value);
}

inline jitgemm_gemm_arguments arguments_for(int64_t m) {
  jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
  arguments.a = address(0x10000000);
  arguments.b = address(0x20000000);
  arguments.a_scales = address(0x30000000);
  arguments.b_scales = address(0x40000000);
  arguments.out = address(0x50000000);
  arguments.m = m;
  return arguments;
}

#define JITGEMM_ASSERT_OK(call) ASSERT_EQ((call), JITGEMM_STATUS_OK) << jitgemm_last_error()

}  // namespace jitgemm_abi
