// SPDX-License-Identifier: Apache-2.0
// The operands of an instruction as written: scalars, {vectors}, [addresses], (call lists), p|q. A
// part of the parser; which shapes an instruction takes is for the instruction table to say.
#pragma once

#include "ptx/syntax.h"
#include "ptx/token_cursor.h"
#include "support/result.h"

#include <vector>

namespace jitgemm::ptx {

// From the first operand to ';', which is taken.
Status parse_operands(TokenCursor& cursor, std::vector<SyntaxOperand>& out);

}  // namespace jitgemm::ptx
