// SPDX-License-Identifier: Apache-2.0
// Variable declarations (PTX ISA 5.4): module scope, function scope, parameters and registers are
// one grammar, "[.align n] [.vN] .type name[dims] [= values]". A part of the parser.
#pragma once

#include "ptx/syntax.h"
#include "ptx/token_cursor.h"
#include "support/result.h"

#include <vector>

namespace jitgemm::ptx {

// The state space that a declaration's first word names; kNone for .reg and for anything else.
Space declared_space(std::string_view word);

// At the word after the state space. Appends one variable for each name up to ';', which is taken.
Status parse_declaration(TokenCursor& cursor, Linkage linkage, Space space,
                         std::vector<SyntaxVariable>& out);

// "(.param .b32 a, .reg .b64 b)", taken whole; names are optional in prototypes.
Status parse_parameter_list(TokenCursor& cursor, std::vector<SyntaxVariable>& out);

}  // namespace jitgemm::ptx
