// SPDX-License-Identifier: Apache-2.0
// libFuzzer target of the PTX loader:  ptx_fuzz -dict=tests/fuzz/ptx.dict tests/fuzz/corpus/ptx
#include "fuzz/ptx_checks.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  jitgemm::check_ptx({reinterpret_cast<const char*>(data), size});
  return 0;
}
