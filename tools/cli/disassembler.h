// SPDX-License-Identifier: Apache-2.0
// The disassembler of a CUDA toolkit, if this machine has one: looked for on PATH, then in the
// usual toolkit folders and beside the NVRTC library. The library itself never needs it.
#pragma once

#include "support/result.h"

#include <optional>
#include <string>

namespace jitgemm::cli {

struct Disassembler {
  std::string path;
  bool is_nvdisasm = false;  // else cuobjdump
};

// `nvrtc`: the path of an NVRTC library, "" if unknown.
std::optional<Disassembler> find_disassembler(const std::string& nvrtc);
// The SASS of a cubin.
Result<std::string> disassemble(const Disassembler& disassembler, const std::string& cubin);

}  // namespace jitgemm::cli
