// SPDX-License-Identifier: Apache-2.0
// Resolved module to PTX text. Scopes are flattened, so names are made unique; loading the text
// again gives an equivalent module. Used for tests, transformed modules and messages.
#pragma once

#include "ptx/module.h"

#include <string>

namespace jitgemm::ptx {

std::string print_module(const Module& module);
// One instruction as print_module() writes it, without its line end: for fault reports.
std::string print_instruction(const Module& module, const Function& function,
                              const Instruction& instruction);

}  // namespace jitgemm::ptx
