// SPDX-License-Identifier: Apache-2.0
// One pass over the text; no look-back, no recursion, no table.
#include "ptx/lexer.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <string>

namespace jitgemm::ptx {
namespace {

// Far above what a compiler emits for one kernel; keeps positions within 32 bits.
constexpr size_t kMaxTextBytes = size_t{256} << 20;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}
int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Status run(std::vector<Token>& tokens) {
    if (text_.size() > kMaxTextBytes) {
      return invalid_argument(fmt::format("1:1: expected at most {} bytes of PTX, found {}",
                                          kMaxTextBytes, text_.size()));
    }
    tokens.reserve(text_.size() / 4 + 1);
    while (true) {
      JITGEMM_TRY(skip_blanks());
      Token token;
      token.position = here();
      if (at_ >= text_.size()) {
        tokens.push_back(token);
        return ok_status();
      }
      JITGEMM_TRY(next(token));
      tokens.push_back(token);
    }
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  SourcePosition here() const { return {line_, static_cast<uint32_t>(at_ - line_start_ + 1)}; }
  Status error(std::string_view what) const {
    return invalid_argument(fmt::format("{}:{}: {}", here().line, here().column, what));
  }
  void newline() {
    ++line_;
    line_start_ = at_ + 1;
  }

  Status skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        newline();
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        const Status unclosed = error("expected '*/' before the end of the text");
        for (at_ += 2; !(peek() == '*' && peek(1) == '/'); ++at_) {
          if (at_ >= text_.size()) return unclosed;
          if (text_[at_] == '\n') newline();
        }
        at_ += 2;
      } else if (c == '\0' && text_.find_first_not_of('\0', at_) == std::string_view::npos) {
        at_ = text_.size();  // NVRTC's size counts the terminating zero; callers may pass it on
      } else {
        return ok_status();
      }
    }
    return ok_status();
  }

  Status next(Token& token) {
    const char c = peek();
    const size_t start = at_;
    if (is_digit(c)) return number(token);
    if (is_letter(c) || c == '_' || c == '$' || (c == '%' && is_word(peek(1)))) {
      ++at_;
      while (is_word(peek())) ++at_;
      token.kind = TokenKind::kIdentifier;
      token.text = text_.substr(start, at_ - start);
      return ok_status();
    }
    if (c == '.' && is_word(peek(1))) {
      ++at_;
      while (is_word(peek()) || (peek() == ':' && peek(1) == ':' && is_word(peek(2)))) {
        at_ += peek() == ':' ? 2 : 1;
      }
      token.kind = TokenKind::kDotWord;
      token.text = text_.substr(start + 1, at_ - start - 1);
      return ok_status();
    }
    if (c == '"') return string(token);
    constexpr std::string_view kSingle = "{}[]()<>,;:@!|+-*/%=~&^?";
    if (kSingle.find(c) == std::string_view::npos || c == '\0') {
      const auto byte = static_cast<unsigned char>(c);
      return error(byte >= 0x20 && byte < 0x7f ? fmt::format("unexpected character '{}'", c)
                                               : fmt::format("unexpected byte 0x{:02x}", byte));
    }
    constexpr std::string_view kDouble[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    size_t length = 1;
    for (const std::string_view pair : kDouble) {
      if (text_.substr(at_, 2) == pair) length = 2;
    }
    token.kind = TokenKind::kPunctuation;
    token.text = text_.substr(at_, length);
    at_ += length;
    return ok_status();
  }

  Status string(Token& token) {
    const size_t start = ++at_;
    while (peek() != '"') {
      if (at_ >= text_.size() || text_[at_] == '\n')
        return error("expected '\"' before the line's end");
      at_ += peek() == '\\' && at_ + 1 < text_.size() && peek(1) != '\n' ? 2 : 1;
    }
    token.kind = TokenKind::kString;
    token.text = text_.substr(start, at_ - start);
    ++at_;
    return ok_status();
  }

  Status hex_float(Token& token, TokenKind kind, size_t digits) {
    at_ += 2;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int value = hex_value(peek());
      if (value < 0) return error(fmt::format("expected {} hexadecimal digits of a float", digits));
      token.bits = token.bits << 4 | static_cast<uint64_t>(value);
    }
    if (is_word(peek()))
      return error(fmt::format("expected {} hexadecimal digits of a float", digits));
    token.kind = kind;
    return ok_status();
  }

  Status number(Token& token) {
    const size_t start = at_;
    const char second = peek(1);
    if (peek() == '0' && (second == 'f' || second == 'F')) {
      JITGEMM_TRY(hex_float(token, TokenKind::kHexFloat32, 8));
    } else if (peek() == '0' && (second == 'd' || second == 'D')) {
      JITGEMM_TRY(hex_float(token, TokenKind::kHexFloat64, 16));
    } else if (is_decimal_float()) {
      JITGEMM_TRY(decimal_float(token));
    } else {
      JITGEMM_TRY(integer(token));
    }
    token.text = text_.substr(start, at_ - start);
    return ok_status();
  }

  bool is_decimal_float() const {
    size_t ahead = 0;
    while (is_digit(peek(ahead))) ++ahead;
    if (peek(ahead) == '.' && is_digit(peek(ahead + 1))) return true;
    if (peek(ahead) == '.' && !is_word(peek(ahead + 1))) return true;
    return (peek(ahead) == 'e' || peek(ahead) == 'E') &&
           (is_digit(peek(ahead + 1)) ||
            ((peek(ahead + 1) == '-' || peek(ahead + 1) == '+') && is_digit(peek(ahead + 2))));
  }

  Status decimal_float(Token& token) {
    double value = 0;
    const auto parsed = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc{})
      return error("expected a decimal number within the range of .f64");
    at_ = static_cast<size_t>(parsed.ptr - text_.data());
    if (is_word(peek())) return error("unexpected letter in a number");
    token.kind = TokenKind::kFloat;
    token.bits = std::bit_cast<uint64_t>(value);
    return ok_status();
  }

  Status integer(Token& token) {
    uint64_t base = 10;
    if (peek() == '0') {
      const char second = peek(1);
      if (second == 'x' || second == 'X')
        base = 16;
      else if (second == 'b' || second == 'B')
        base = 2;
      else
        base = 8;
      at_ += base == 8 ? 0 : 2;
    }
    size_t digits = 0;
    uint64_t value = 0;
    for (; hex_value(peek()) >= 0; ++at_, ++digits) {
      const auto digit = static_cast<uint64_t>(hex_value(peek()));
      if (digit >= base) return error(fmt::format("expected a digit of base {}", base));
      if (value > (UINT64_MAX - digit) / base) return error("expected an integer of 64 bits");
      value = value * base + digit;
    }
    if (digits == 0) return error("expected digits");
    if (peek() == 'U' || peek() == 'u') {
      token.is_unsigned = true;
      ++at_;
    }
    if (is_word(peek())) return error("unexpected letter in a number");
    token.is_unsigned = token.is_unsigned || value > static_cast<uint64_t>(INT64_MAX);
    token.kind = TokenKind::kInteger;
    token.bits = value;
    return ok_status();
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  JITGEMM_TRY(Lexer(text).run(tokens));
  return tokens;
}

}  // namespace jitgemm::ptx
