// SPDX-License-Identifier: Apache-2.0
// Tokens to syntax tree. Knows directives, declarations and the shape of operands; knows no
// instruction and resolves no name. Nothing recurses deeper than a fixed bound.
#pragma once

#include "ptx/syntax.h"
#include "support/result.h"

#include <string_view>

namespace jitgemm::ptx {

// kInvalidArgument "line:column: expected ..., found ..." on malformed text. What is well-formed
// but unknown (textures, vector registers) goes to SyntaxModule::unsupported.
Result<SyntaxModule> parse(std::string_view text);

}  // namespace jitgemm::ptx
