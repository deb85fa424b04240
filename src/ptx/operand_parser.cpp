// SPDX-License-Identifier: Apache-2.0
// Vectors hold scalars, addresses hold scalars and vectors: two levels, so nothing recurses.
#include "ptx/operand_parser.h"

namespace jitgemm::ptx {
namespace {

constexpr size_t kMaxOperands = 32;
constexpr size_t kMaxElements = 1024;

Result<SyntaxScalar> parse_scalar(TokenCursor& cursor) {
  SyntaxScalar scalar;
  scalar.position = cursor.peek().position;
  if (cursor.take_if("!")) scalar.negated = true;
  if (cursor.at_constant()) {
    if (scalar.negated) return cursor.expected("a predicate after '!'");
    JITGEMM_ASSIGN(scalar.literal, cursor.constant());
    return scalar;
  }
  scalar.is_name = true;
  JITGEMM_ASSIGN(scalar.name, cursor.expect_identifier("an operand"));
  if (cursor.peek().kind == TokenKind::kDotWord) scalar.component = cursor.take().text;
  uint64_t offset = 0;
  while (cursor.peek().is("+") || cursor.peek().is("-")) {
    const bool minus = cursor.take().is("-");
    const Status wrong = cursor.expected("an integer offset");
    JITGEMM_ASSIGN(const SyntaxLiteral literal, cursor.constant_term());
    if (type_kind(literal.type) == TypeKind::kFloat) return wrong;
    offset += minus ? 0 - literal.bits : literal.bits;
    scalar.offset = offset;
  }
  return scalar;
}

Status parse_elements(TokenCursor& cursor, std::string_view close, std::vector<SyntaxScalar>& out) {
  cursor.take();
  if (cursor.take_if(close)) return ok_status();
  do {
    if (out.size() == kMaxElements) return cursor.expected("a shorter list");
    JITGEMM_ASSIGN(out.emplace_back(), parse_scalar(cursor));
  } while (cursor.take_if(","));
  return cursor.expect(close);
}

// A scalar or a vector: what may stand inside brackets.
Status parse_part(TokenCursor& cursor, SyntaxOperand& operand) {
  operand.position = cursor.peek().position;
  if (cursor.peek().is("{")) {
    operand.shape = SyntaxShape::kVector;
    return parse_elements(cursor, "}", operand.elements);
  }
  JITGEMM_ASSIGN(operand.elements.emplace_back(), parse_scalar(cursor));
  return ok_status();
}

Status parse_operand(TokenCursor& cursor, SyntaxOperand& operand) {
  operand.position = cursor.peek().position;
  if (cursor.take_if("[")) {
    operand.shape = SyntaxShape::kAddress;
    do {
      if (operand.parts.size() == kMaxOperands) return cursor.expected("']'");
      JITGEMM_TRY(parse_part(cursor, operand.parts.emplace_back()));
    } while (cursor.take_if(","));
    return cursor.expect("]");
  }
  // '(' opens a call list unless it opens an expression: (1+2)*3.
  if (cursor.peek().is("(") &&
      (cursor.peek(1).kind == TokenKind::kIdentifier || cursor.peek(1).is(")"))) {
    operand.shape = SyntaxShape::kCallList;
    return parse_elements(cursor, ")", operand.elements);
  }
  JITGEMM_TRY(parse_part(cursor, operand));
  if (operand.shape == SyntaxShape::kScalar && cursor.take_if("|")) {
    JITGEMM_ASSIGN(operand.after_bar, parse_scalar(cursor));
  }
  return ok_status();
}

}  // namespace

Status parse_operands(TokenCursor& cursor, std::vector<SyntaxOperand>& out) {
  if (cursor.take_if(";")) return ok_status();
  do {
    if (out.size() == kMaxOperands) return cursor.expected("';'");
    JITGEMM_TRY(parse_operand(cursor, out.emplace_back()));
  } while (cursor.take_if(","));
  return cursor.expect(";");
}

}  // namespace jitgemm::ptx
