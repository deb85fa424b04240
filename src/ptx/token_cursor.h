// SPDX-License-Identifier: Apache-2.0
// A position in a token list with the few motions that a parser needs, and constant expressions
// (PTX ISA 4.5.6), which occur wherever a number does. Shared by the parser's parts.
#pragma once

#include "ptx/lexer.h"
#include "ptx/syntax.h"
#include "support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::ptx {

class TokenCursor {
 public:
  explicit TokenCursor(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  const Token& take() {
    const Token& token = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool take_if(std::string_view punctuation) {
    if (!peek().is(punctuation)) return false;
    take();
    return true;
  }
  Status expect(std::string_view punctuation);
  Result<std::string_view> expect_identifier(std::string_view what);
  Result<uint32_t> expect_u32(std::string_view what);
  // "line:column: expected <what>, found <token>" at the current token.
  Status expected(std::string_view what) const;
  void skip_line(uint32_t line) {
    while (!at_end() && peek().position.line == line) take();
  }

  // True at a token that can start a number or an expression of numbers.
  bool at_constant() const;
  Result<SyntaxLiteral> constant() { return binary(0, 0); }
  // A term without binary operators: 4, -4, (1+2).
  Result<SyntaxLiteral> constant_term() { return unary(0); }

 private:
  Result<SyntaxLiteral> binary(int precedence, int depth);
  Result<SyntaxLiteral> unary(int depth);
  int binary_precedence() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace jitgemm::ptx
