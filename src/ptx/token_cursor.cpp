// SPDX-License-Identifier: Apache-2.0
// Motions over tokens and the arithmetic of constant expressions.
#include "ptx/token_cursor.h"

#include <fmt/format.h>

#include <bit>

namespace jitgemm::ptx {
namespace {

constexpr int kMaxExpressionDepth = 64;

bool is_float(const SyntaxLiteral& value) {
  return type_kind(value.type) == TypeKind::kFloat;
}

SyntaxLiteral integer(uint64_t bits, bool is_unsigned) {
  return {is_unsigned ? Type::kU64 : Type::kS64, bits};
}

}  // namespace

Status TokenCursor::expected(std::string_view what) const {
  const Token& token = peek();
  const std::string found =
      token.kind == TokenKind::kEnd       ? "the end of the text"
      : token.kind == TokenKind::kDotWord ? fmt::format("'.{}'", token.text.substr(0, 80))
      : token.kind == TokenKind::kString  ? "a string"
                                          : fmt::format("'{}'", token.text.substr(0, 80));
  return invalid_argument(fmt::format("{}:{}: expected {}, found {}", token.position.line,
                                      token.position.column, what, found));
}

Status TokenCursor::expect(std::string_view punctuation) {
  if (take_if(punctuation)) return ok_status();
  return expected(fmt::format("'{}'", punctuation));
}

Result<std::string_view> TokenCursor::expect_identifier(std::string_view what) {
  if (peek().kind != TokenKind::kIdentifier) return expected(what);
  return take().text;
}

Result<uint32_t> TokenCursor::expect_u32(std::string_view what) {
  const Token& token = peek();
  if (token.kind != TokenKind::kInteger || token.bits > UINT32_MAX) return expected(what);
  take();
  return static_cast<uint32_t>(token.bits);
}

bool TokenCursor::at_constant() const {
  switch (peek().kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kHexFloat32:
    case TokenKind::kHexFloat64: return true;
    case TokenKind::kPunctuation:
      return peek().is("-") || peek().is("+") || peek().is("~") || peek().is("(");
    case TokenKind::kIdentifier: return peek().text == "WARP_SZ";
    case TokenKind::kDotWord:
    case TokenKind::kString:
    case TokenKind::kEnd: return false;
  }
  return false;
}

int TokenCursor::binary_precedence() const {
  constexpr std::pair<std::string_view, int> kOperators[] = {
      {"|",  1},
      {"^",  2},
      {"&",  3},
      {"<<", 4},
      {">>", 4},
      {"+",  5},
      {"-",  5},
      {"*",  6},
      {"/",  6},
      {"%",  6}
  };
  for (const auto& [text, precedence] : kOperators) {
    if (peek().is(text)) return precedence;
  }
  return 0;
}

Result<SyntaxLiteral> TokenCursor::unary(int depth) {
  if (depth > kMaxExpressionDepth) return expected("a less deeply nested expression");
  if (take_if("+")) return unary(depth + 1);
  if (take_if("-")) {
    JITGEMM_ASSIGN(const SyntaxLiteral value, unary(depth + 1));
    if (value.type == Type::kF32) return SyntaxLiteral{value.type, value.bits ^ 0x80000000U};
    if (value.type == Type::kF64)
      return SyntaxLiteral{value.type, value.bits ^ (uint64_t{1} << 63)};
    return integer(0 - value.bits, false);
  }
  if (take_if("~")) {
    JITGEMM_ASSIGN(const SyntaxLiteral value, unary(depth + 1));
    if (is_float(value)) return expected("an integer after '~'");
    return integer(~value.bits, value.type == Type::kU64);
  }
  if (take_if("(")) {
    // Casts (.s64) and (.u64) only state a type (PTX ISA 4.5.6).
    if (peek().is_dot("s64") || peek().is_dot("u64")) {
      const bool is_unsigned = take().text == "u64";
      JITGEMM_TRY(expect(")"));
      JITGEMM_ASSIGN(const SyntaxLiteral value, unary(depth + 1));
      if (is_float(value)) return expected("an integer after a cast");
      return integer(value.bits, is_unsigned);
    }
    JITGEMM_ASSIGN(const SyntaxLiteral value, binary(0, depth + 1));
    JITGEMM_TRY(expect(")"));
    return value;
  }
  if (!at_constant()) return expected("a number");
  const Token& token = take();
  switch (token.kind) {
    case TokenKind::kInteger: return integer(token.bits, token.is_unsigned);
    case TokenKind::kHexFloat32: return SyntaxLiteral{Type::kF32, token.bits};
    case TokenKind::kFloat:
    case TokenKind::kHexFloat64: return SyntaxLiteral{Type::kF64, token.bits};
    case TokenKind::kIdentifier: return integer(32, false);  // WARP_SZ
    case TokenKind::kDotWord:
    case TokenKind::kString:
    case TokenKind::kPunctuation:
    case TokenKind::kEnd: break;
  }
  return expected("a number");
}

Result<SyntaxLiteral> TokenCursor::binary(int precedence, int depth) {
  if (depth > kMaxExpressionDepth) return expected("a less deeply nested expression");
  JITGEMM_ASSIGN(SyntaxLiteral left, unary(depth + 1));
  while (binary_precedence() > precedence) {
    const int operator_precedence = binary_precedence();
    const std::string_view op = take().text;
    JITGEMM_ASSIGN(const SyntaxLiteral right, binary(operator_precedence, depth + 1));
    if (is_float(left) || is_float(right)) return expected("integers around an operator");
    const bool is_unsigned = left.type == Type::kU64 || right.type == Type::kU64;
    const uint64_t a = left.bits;
    const uint64_t b = right.bits;
    const auto sa = static_cast<int64_t>(a);
    const auto sb = static_cast<int64_t>(b);
    uint64_t value = 0;
    if (op == "|")
      value = a | b;
    else if (op == "^")
      value = a ^ b;
    else if (op == "&")
      value = a & b;
    else if (op == "<<")
      value = b < 64 ? a << b : 0;
    else if (op == ">>")
      value = b > 63        ? (!is_unsigned && sa < 0 ? ~uint64_t{0} : 0)
              : is_unsigned ? a >> b
                            : static_cast<uint64_t>(sa >> b);
    else if (op == "+")
      value = a + b;
    else if (op == "-")
      value = a - b;
    else if (op == "*")
      value = a * b;
    else if (b == 0 || (!is_unsigned && sb == -1 && sa == INT64_MIN))
      return expected("a divisor that is not zero");
    else if (op == "/")
      value = is_unsigned ? a / b : static_cast<uint64_t>(sa / sb);
    else
      value = is_unsigned ? a % b : static_cast<uint64_t>(sa % sb);
    left = integer(value, is_unsigned);
  }
  return left;
}

}  // namespace jitgemm::ptx
