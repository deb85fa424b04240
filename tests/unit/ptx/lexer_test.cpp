// SPDX-License-Identifier: Apache-2.0
#include "ptx/lexer.h"

#include <gtest/gtest.h>

namespace jitgemm::ptx::lexer_test {
namespace {

std::string kinds_and_texts(std::string_view text) {
  const auto tokens = tokenize(text);
  if (!tokens) return tokens.error().message();
  std::string out;
  for (const Token& token : *tokens) {
    switch (token.kind) {
      case TokenKind::kIdentifier: out += "i"; break;
      case TokenKind::kDotWord: out += "d"; break;
      case TokenKind::kInteger: out += token.is_unsigned ? "u" : "n"; break;
      case TokenKind::kFloat: out += "f"; break;
      case TokenKind::kHexFloat32: out += "s"; break;
      case TokenKind::kHexFloat64: out += "D"; break;
      case TokenKind::kString: out += "q"; break;
      case TokenKind::kPunctuation: out += "p"; break;
      case TokenKind::kEnd: return out;
    }
    out += std::string(token.text) + " ";
  }
  return out;
}

struct Case {
  std::string_view text;
  std::string_view expected;
};

TEST(Lexer, SplitsWordsWhereTheManualDoes) {
  const Case cases[] = {
      {"mov.b32{a,b},%r1;",                              "imov db32 p{ ia p, ib p} p, i%r1 p; "        },
      {"elect.sync _|%p1, -1;",                          "ielect dsync i_ p| i%p1 p, p- n1 p; "        },
      {"@!%p bra $L__BB0_1;",                            "p@ p! i%p ibra i$L__BB0_1 p; "               },
      {"cp.async.bulk.tensor.2d.shared::cluster.global",
       "icp dasync dbulk dtensor d2d dshared::cluster dglobal "                                        },
      {"x.kind::mxf8f6f4.scale_vec::1X.128x256b",        "ix dkind::mxf8f6f4 dscale_vec::1X d128x256b "},
      {"%tid.x",                                         "i%tid dx "                                   },
      {"a:b",                                            "ia p: ib "                                   },
      {"%r<10>",                                         "i%r p< n10 p> "                              },
      {"1 << 2 /* c */ // d\n3",                         "n1 p<< n2 n3 "                               },
      {"\"a\\\"b\" .file",                               "qa\\\"b dfile "                              },
  };
  for (const Case& test : cases) EXPECT_EQ(kinds_and_texts(test.text), test.expected) << test.text;
}

TEST(Lexer, ReadsEveryFormOfNumber) {
  struct NumberCase {
    std::string_view text;
    TokenKind kind;
    uint64_t bits;
  };
  const NumberCase cases[] = {
      {"0",                    TokenKind::kInteger,    0                 },
      {"1234",                 TokenKind::kInteger,    1234              },
      {"0x1fU",                TokenKind::kInteger,    31                },
      {"017",                  TokenKind::kInteger,    15                },
      {"0b101",                TokenKind::kInteger,    5                 },
      {"18446744073709551615", TokenKind::kInteger,    UINT64_MAX        },
      {"0f3F800000",           TokenKind::kHexFloat32, 0x3f800000        },
      {"0d3FF0000000000000",   TokenKind::kHexFloat64, 0x3ff0000000000000},
      {"1.5",                  TokenKind::kFloat,      0x3ff8000000000000},
      {"2e-1",                 TokenKind::kFloat,      0x3fc999999999999a},
      {"1.",                   TokenKind::kFloat,      0x3ff0000000000000},
  };
  for (const NumberCase& test : cases) {
    const auto tokens = tokenize(test.text);
    ASSERT_TRUE(tokens) << test.text << ": " << tokens.error().message();
    ASSERT_EQ(tokens->size(), 2u) << test.text;
    EXPECT_EQ((*tokens)[0].kind, test.kind) << test.text;
    EXPECT_EQ((*tokens)[0].bits, test.bits) << test.text;
  }
}

TEST(Lexer, PositionsCountFromOneAndSurviveComments) {
  const auto tokens = tokenize("a\n  /* x\n */ b // c\n\td");
  ASSERT_TRUE(tokens);
  ASSERT_EQ(tokens->size(), 4u);
  EXPECT_EQ((*tokens)[1].position.line, 3u);
  EXPECT_EQ((*tokens)[1].position.column, 5u);
  EXPECT_EQ((*tokens)[2].position.line, 4u);
  EXPECT_EQ((*tokens)[2].position.column, 2u);
}

TEST(Lexer, ATerminatingZeroIsNoText) {
  EXPECT_EQ(kinds_and_texts(std::string_view("ret;\0\0", 6)), "iret p; ");
}

TEST(Lexer, RefusesWhatIsNoToken) {
  const Case cases[] = {
      {"a\n  #b",              "2:3: unexpected character '#'"                          },
      {"\x80",                 "1:1: unexpected byte 0x80"                              },
      {"/* x",                 "1:1: expected '*/' before the end of the text"          },
      {"\"x\ny\"",             "1:3: expected '\"' before the line's end"               },
      {"0f3F80",               "1:7: expected 8 hexadecimal digits of a float"          },
      {"0f3F80000012",         "1:11: expected 8 hexadecimal digits of a float"         },
      {"0x",                   "1:3: expected digits"                                   },
      {"089",                  "1:2: expected a digit of base 8"                        },
      {"18446744073709551616", "1:20: expected an integer of 64 bits"                   },
      {"1e999",                "1:1: expected a decimal number within the range of .f64"},
      {"12q",                  "1:3: unexpected letter in a number"                     },
  };
  for (const Case& test : cases) EXPECT_EQ(kinds_and_texts(test.text), test.expected) << test.text;
}

}  // namespace
}  // namespace jitgemm::ptx::lexer_test
