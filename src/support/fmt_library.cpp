// SPDX-License-Identifier: Apache-2.0
// The out-of-line half of fmt, once in this library. Debian has fmt as headers and as a shared
// library that we do not want to need at run time; fmt's header-only mode would compile this half
// again in every file, half of the build. So this file alone is compiled in that mode, without
// inlining, and calls what the others need to be emitted.
#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace jitgemm {

std::string emit_fmt_library(float single, double real, long double extended,
                             unsigned long long whole, const void* address, const char* text) {
  const std::string copy(text);
  fmt::print("{}", text);
  fmt::print(stderr, "{}", text);
  return fmt::format("{} {} {} {:L} {:e} {:a} {} {:#x} {} {:?<9} {}", single, real, extended, whole,
                     real, real, copy, whole, address, text, fmt::join(copy, ", "));
}

}  // namespace jitgemm
