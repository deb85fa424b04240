// SPDX-License-Identifier: Apache-2.0
// Look-ups over a resolved module.
#include "ptx/module.h"

namespace jitgemm::ptx {
namespace {

constexpr std::string_view kOpcodeNames[] = {
#define OPCODE(name, text) text,
#include "ptx/opcodes.def"
#undef OPCODE
};

}  // namespace

std::string_view opcode_name(Opcode opcode) {
  return kOpcodeNames[static_cast<size_t>(opcode)];
}

const Function* Module::find_entry(std::string_view name) const {
  for (const Function& function : functions) {
    if (function.is_entry && function.name == name) return &function;
  }
  return nullptr;
}

}  // namespace jitgemm::ptx
