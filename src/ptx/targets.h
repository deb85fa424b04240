// SPDX-License-Identifier: Apache-2.0
// Which targets have which instructions: a module that uses one which its .target lacks is refused
// when it is loaded. The rules are a table beside the table of instructions (targets.cpp), from the
// "Target ISA Notes" of each section. Knows nothing of what is simulated.
#pragma once

#include "ptx/module.h"

#include <optional>
#include <string>
#include <string_view>

namespace jitgemm::ptx {

// sm_90, sm_90a, sm_100f (PTX ISA 11.1.2): the suffix is 'a', 'f' or 0.
struct Target {
  int number = 0;
  char suffix = 0;
};
std::optional<Target> parse_target(std::string_view name);

// What the mnemonic, as it stands in the text, needs and the target lacks; empty if nothing.
std::string target_problem(Target target, Opcode opcode, std::string_view mnemonic);

}  // namespace jitgemm::ptx
