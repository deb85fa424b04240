// SPDX-License-Identifier: Apache-2.0
#include "compile/resource_log.h"

#include <cstdlib>

namespace jitgemm {
namespace {

// The integer that stands before the given words, as in "216 registers"; 0 if they are not there.
int32_t number_before(std::string_view line, std::string_view words) {
  const size_t at = line.find(words);
  if (at == std::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  if (begin == at) return 0;
  return static_cast<int32_t>(
      std::strtol(std::string(line.substr(begin, at - begin)).c_str(), nullptr, 10));
}

}  // namespace

void read_resource_log(std::string_view log, KernelImage& image) {
  while (!log.empty()) {
    const size_t end = log.find('\n');
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end == std::string_view::npos ? log.size() : end + 1);
    while (!line.empty() && (line.back() == '\0' || line.back() == '\r' || line.back() == ' '))
      line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.find("bytes stack frame") != std::string_view::npos) {
      image.stack_bytes += number_before(line, " bytes stack frame");
      image.spill_bytes +=
          number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string_view::npos &&
               line.find(" registers") != std::string_view::npos) {
      image.registers = number_before(line, " registers");
      image.static_shared_bytes = number_before(line, " bytes smem");
    } else if (line.starts_with("ptxas info")) {
      continue;
    } else {
      image.warnings += std::string(line) + "\n";
    }
  }
}

}  // namespace jitgemm
