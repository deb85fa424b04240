// SPDX-License-Identifier: Apache-2.0
// Characters to tokens with positions (PTX ISA 4.1 - 4.5). First stage of the PTX front end; knows
// the spelling of words and numbers and nothing of what they mean.
#pragma once

#include "ptx/module.h"
#include "support/result.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace jitgemm::ptx {

enum class TokenKind : uint8_t {
  kIdentifier,   // add  %r1  $L__BB0_2  _
  kDotWord,      // .reg  .shared::cluster  .2d ; text without the dot
  kInteger,      // bits; is_unsigned for the U suffix or above the signed range
  kFloat,        // 1.5e3 ; bits are those of the double
  kHexFloat32,   // 0f3F800000
  kHexFloat64,   // 0d3FF0000000000000
  kString,       // text between the quotes
  kPunctuation,  // one character, or << >> <= >= == != && ||
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool is_unsigned = false;
  std::string_view text;
  uint64_t bits = 0;
  SourcePosition position;

  bool is(std::string_view punctuation) const {
    return kind == TokenKind::kPunctuation && text == punctuation;
  }
  bool is_dot(std::string_view word) const { return kind == TokenKind::kDotWord && text == word; }
};

// Tokens view into the text, which must outlive them. The last is always kEnd.
Result<std::vector<Token>> tokenize(std::string_view text);

}  // namespace jitgemm::ptx
