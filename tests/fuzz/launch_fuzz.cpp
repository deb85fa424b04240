// SPDX-License-Identifier: Apache-2.0
// libFuzzer target of launch descriptions and small programs:
//   launch_fuzz -dict=tests/fuzz/ptx.dict tests/fuzz/corpus/launch
#include "fuzz/launch_checks.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  jitgemm::check_launch({reinterpret_cast<const char*>(data), size});
  return 0;
}
