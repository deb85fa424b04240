// SPDX-License-Identifier: Apache-2.0
// libFuzzer target of the cache entry parser:  cache_entry_fuzz tests/fuzz/corpus/cache_entry
#include "fuzz/cache_entry_checks.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  jitgemm::check_cache_entry({reinterpret_cast<const char*>(data), size});
  return 0;
}
