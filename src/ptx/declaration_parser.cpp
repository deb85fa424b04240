// SPDX-License-Identifier: Apache-2.0
// Attributes, declarators and initialisers. Sizes are bounded here so that no later stage can be
// made to allocate without limit by a short text.
#include "ptx/declaration_parser.h"

#include <fmt/format.h>

#include <bit>

namespace jitgemm::ptx {
namespace {

constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 30;
constexpr uint32_t kMaxRegisterRange = 1U << 20;
constexpr uint32_t kMaxAlign = 1U << 16;
constexpr size_t kMaxDimensions = 16;

Status parse_align(TokenCursor& cursor, uint32_t& align) {
  const Status wrong = cursor.expected("an alignment that is a power of two");
  JITGEMM_ASSIGN(align, cursor.expect_u32("an alignment"));
  return std::has_single_bit(align) && align <= kMaxAlign ? ok_status() : wrong;
}

// .attribute(.managed), .attribute(.unified(1, 2)): says where memory lives, not what it holds.
Status skip_attribute(TokenCursor& cursor) {
  JITGEMM_TRY(cursor.expect("("));
  for (int depth = 1; depth > 0;) {
    if (cursor.at_end()) return cursor.expected("')'");
    if (cursor.peek().is("(")) ++depth;
    if (cursor.peek().is(")")) --depth;
    cursor.take();
  }
  return ok_status();
}

// Everything between the state space and the name.
Status parse_attributes(TokenCursor& cursor, SyntaxVariable& variable) {
  bool pointer = false;
  while (cursor.peek().kind == TokenKind::kDotWord) {
    const Status unknown = cursor.expected("a type, .align, .v2, .v4, .v8 or .ptr");
    const std::string_view word = cursor.take().text;
    if (word == "align") {
      uint32_t align = 0;
      JITGEMM_TRY(parse_align(cursor, align));
      if (!pointer) variable.align = align;  // after .ptr it is the pointee's
    } else if (word == "attribute") {
      JITGEMM_TRY(skip_attribute(cursor));
    } else if (word == "v2" || word == "v4" || word == "v8") {
      variable.vector = static_cast<uint32_t>(word[1] - '0');
    } else if (word == "ptr") {
      pointer = true;
    } else if (pointer && declared_space(word) != Space::kNone) {
      continue;
    } else if (const Type type = find_type(word);
               type != Type::kNone && variable.type == Type::kNone) {
      variable.type = type;
    } else {
      return unknown;
    }
  }
  return variable.type == Type::kNone ? cursor.expected("a type") : ok_status();
}

Status parse_dimensions(TokenCursor& cursor, SyntaxVariable& variable,
                        std::vector<uint64_t>& dimensions) {
  while (cursor.take_if("[")) {
    if (dimensions.size() == kMaxDimensions) return cursor.expected("fewer dimensions");
    if (cursor.take_if("]")) {
      if (!dimensions.empty()) return cursor.expected("a size in every dimension but the first");
      variable.incomplete_array = true;
      dimensions.push_back(0);
      continue;
    }
    const Status wrong = cursor.expected("an array size");
    JITGEMM_ASSIGN(const SyntaxLiteral size, cursor.constant());
    if (type_kind(size.type) == TypeKind::kFloat || size.bits > kMaxVariableBytes) return wrong;
    dimensions.push_back(size.bits);
    JITGEMM_TRY(cursor.expect("]"));
  }
  for (const uint64_t size : dimensions) {
    if (size == 0) continue;  // incomplete; .b8 x[0] is not written by any compiler
    if (variable.elements > kMaxVariableBytes / size) return cursor.expected("a smaller array");
    variable.elements *= size;
  }
  return ok_status();
}

// One value: 4, 0f3F800000, name, name+8, generic(name)+8.
Status parse_initial_value(TokenCursor& cursor, SyntaxInitialiser& value) {
  value.position = cursor.peek().position;
  if (cursor.at_constant()) {
    JITGEMM_ASSIGN(value.literal, cursor.constant());
    return ok_status();
  }
  JITGEMM_ASSIGN(value.symbol, cursor.expect_identifier("an initial value"));
  if (value.symbol == "generic" && cursor.take_if("(")) {
    value.generic = true;
    JITGEMM_ASSIGN(value.symbol, cursor.expect_identifier("a symbol"));
    JITGEMM_TRY(cursor.expect(")"));
  }
  if (cursor.peek().is("+") || cursor.peek().is("-")) {
    JITGEMM_ASSIGN(const SyntaxLiteral addend, cursor.constant());
    value.addend = static_cast<int64_t>(addend.bits);
  }
  return ok_status();
}

// Values in nested braces: a closing brace moves on to the next row of its dimension.
Status parse_initialisers(TokenCursor& cursor, SyntaxVariable& variable,
                          const std::vector<uint64_t>& dimensions) {
  if (!cursor.peek().is("{")) {
    JITGEMM_TRY(parse_initial_value(cursor, variable.initialisers.emplace_back()));
    return ok_status();
  }
  std::vector<uint64_t> strides;  // elements that one entry of a dimension holds
  uint64_t stride = variable.vector;
  for (size_t i = dimensions.size(); i-- > 0;) {
    strides.insert(strides.begin(), stride);
    stride *= dimensions[i] == 0 ? 1 : dimensions[i];
  }
  if (variable.vector > 1 || strides.empty()) strides.push_back(1);
  std::vector<uint64_t> starts;
  uint64_t index = 0;
  const uint64_t limit =
      variable.incomplete_array ? kMaxVariableBytes : variable.elements * variable.vector;
  do {
    while (cursor.take_if("{")) {
      if (starts.size() == strides.size()) return cursor.expected("an initial value");
      starts.push_back(index);
    }
    if (!cursor.peek().is("}")) {
      if (index >= limit) return cursor.expected("no more initial values than elements");
      JITGEMM_TRY(parse_initial_value(cursor, variable.initialisers.emplace_back()));
      variable.initialisers.back().index = index++;
    }
    while (!starts.empty() && cursor.take_if("}")) {
      const uint64_t start = starts.back();
      starts.pop_back();
      if (!starts.empty()) index = start + strides[starts.size() - 1];
    }
  } while (!starts.empty() && cursor.take_if(","));
  if (!starts.empty()) return cursor.expected("',' or '}'");
  if (variable.incomplete_array) {
    variable.elements = (index + variable.vector - 1) / variable.vector;
    variable.incomplete_array = false;
  }
  return ok_status();
}

Status parse_declarator(TokenCursor& cursor, SyntaxVariable& variable) {
  variable.position = cursor.peek().position;
  JITGEMM_ASSIGN(variable.name, cursor.expect_identifier("a name"));
  if (cursor.take_if("<")) {
    const Status wrong =
        cursor.expected(fmt::format("a number of registers up to {}", kMaxRegisterRange));
    JITGEMM_ASSIGN(variable.range, cursor.expect_u32("a number of registers"));
    if (variable.range == 0 || variable.range > kMaxRegisterRange) return wrong;
    JITGEMM_TRY(cursor.expect(">"));
  }
  std::vector<uint64_t> dimensions;
  JITGEMM_TRY(parse_dimensions(cursor, variable, dimensions));
  if (cursor.take_if("=")) JITGEMM_TRY(parse_initialisers(cursor, variable, dimensions));
  const uint64_t bits = static_cast<uint64_t>(type_bits(variable.type)) * variable.vector;
  if (variable.elements * bits / 8 > kMaxVariableBytes)
    return cursor.expected("a smaller variable");
  return ok_status();
}

}  // namespace

Space declared_space(std::string_view word) {
  if (word == "global") return Space::kGlobal;
  if (word == "shared") return Space::kShared;
  if (word == "local") return Space::kLocal;
  if (word == "param") return Space::kParam;
  if (word == "const") return Space::kConst;
  return Space::kNone;
}

Status parse_declaration(TokenCursor& cursor, Linkage linkage, Space space,
                         std::vector<SyntaxVariable>& out) {
  SyntaxVariable common;
  common.linkage = linkage;
  common.space = space;
  JITGEMM_TRY(parse_attributes(cursor, common));
  do {
    SyntaxVariable variable = common;
    JITGEMM_TRY(parse_declarator(cursor, variable));
    out.push_back(std::move(variable));
  } while (cursor.take_if(","));
  return cursor.expect(";");
}

Status parse_parameter_list(TokenCursor& cursor, std::vector<SyntaxVariable>& out) {
  JITGEMM_TRY(cursor.expect("("));
  if (cursor.take_if(")")) return ok_status();
  do {
    SyntaxVariable parameter;
    if (cursor.peek().is_dot("param")) {
      parameter.space = Space::kParam;
    } else if (!cursor.peek().is_dot("reg")) {
      return cursor.expected(".param or .reg");
    }
    cursor.take();
    JITGEMM_TRY(parse_attributes(cursor, parameter));
    if (!cursor.peek().is(",") && !cursor.peek().is(")")) {
      JITGEMM_TRY(parse_declarator(cursor, parameter));
    }
    out.push_back(std::move(parameter));
  } while (cursor.take_if(","));
  return cursor.expect(")");
}

}  // namespace jitgemm::ptx
