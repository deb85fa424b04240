// SPDX-License-Identifier: Apache-2.0
// What one compile yields: the PTX that the simulator runs and the cubin that a GPU loads, from the
// same program, with what the compiler said of it.
#pragma once

#include <cstdint>
#include <string>

namespace jitgemm {

struct KernelImage {
  std::string entry;
  std::string target;
  std::string ptx;
  std::string cubin;
  std::string compiler;     // "nvrtc 13.0"
  std::string warnings;     // the compiler's words, resource lines left out; empty is the rule
  int32_t registers = 0;    // a thread
  int32_t spill_bytes = 0;  // stores and loads together
  int32_t stack_bytes = 0;
  int32_t static_shared_bytes = 0;
  double compile_ms = 0;  // of the compile that made it, also when it came from the cache
};

}  // namespace jitgemm
