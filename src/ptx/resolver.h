// SPDX-License-Identifier: Apache-2.0
// Syntax tree to Module: names to ids, labels to indices, mnemonics to forms, variables to layouts.
#pragma once

#include "ptx/module.h"
#include "ptx/syntax.h"
#include "support/result.h"

#include <vector>

namespace jitgemm::ptx {

// kInvalidArgument for names that are not declared or declared twice. What is well-formed but has
// no row in the instruction table is appended to unsupported, and resolving goes on.
Result<Module> resolve(const SyntaxModule& syntax, std::vector<UnsupportedPlace>& unsupported);

}  // namespace jitgemm::ptx
