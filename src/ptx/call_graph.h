// SPDX-License-Identifier: Apache-2.0
// Who may call whom: the targets of calls through a register, and the functions that may run again
// before they have returned. Passes over resolved functions, of the resolver and the interpreter.
#pragma once

#include "ptx/module.h"

#include <vector>

namespace jitgemm::ptx {

// True for a call whose target is in a register.
bool is_indirect_call(const Function& function, const Instruction& instruction);

// The functions that an indirect call may reach: its .calltargets, or every function whose address
// the module takes and whose parameters are those of its .callprototype.
std::vector<uint32_t> indirect_targets(const Module& module, const Function& function,
                                       const Instruction& instruction);

// Adds the targets of indirect calls to Function::callees; once all functions are resolved.
void add_indirect_callees(Module& module);

// By function: the number of the cycle of calls that it belongs to, kNoIndex for none.
std::vector<uint32_t> call_cycles(const Module& module);

}  // namespace jitgemm::ptx
