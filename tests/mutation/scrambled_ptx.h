// SPDX-License-Identifier: Apache-2.0
// Another text of the same program, as NVRTC writes them: registers numbered backwards, every
// label, parameter, variable and the entry itself under other names, and the basic blocks of the
// body in another order. Works on text alone; whoever executes it must not notice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace jitgemm {

struct ScrambledPtx {
  std::string text;
  std::string entry;
  int moved_blocks = 0;
};
ScrambledPtx scramble_ptx(std::string_view ptx, std::string_view entry, uint64_t seed);

}  // namespace jitgemm
