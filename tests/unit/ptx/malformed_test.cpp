// SPDX-License-Identifier: Apache-2.0
// Hostile and damaged text never crashes, hangs or exhausts memory: it is a status.
#include "ptx/load.h"
#include "ptx/printer.h"
#include "unit/ptx/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace jitgemm::ptx::malformed_test {
namespace {

const std::string kHead = ".version 9.0\n.target sm_90a\n.address_size 64\n";

// Loads; a module that loads must also print and load again.
void load_without_crash(const std::string& text) {
  const auto module = load_module(text);
  if (!module) {
    EXPECT_TRUE(module.error().code() == StatusCode::kInvalidArgument ||
                module.error().code() == StatusCode::kUnsupported);
    EXPECT_FALSE(module.error().message().empty());
    return;
  }
  const auto again = load_module(print_module(*module));
  EXPECT_TRUE(again) << again.error().message();
}

class Malformed : public testing::TestWithParam<std::filesystem::path> {};

// Each prefix is loaded whole, so the cost goes with the square of the text.
TEST_P(Malformed, TruncationIsAStatus) {
  const std::string text = read_text(GetParam());
  for (size_t size = 0; size < text.size(); size += std::max<size_t>(1, text.size() / 97))
    load_without_crash(text.substr(0, size));
}

// Every byte of the first kilobytes, then a prime step: run by tools/check --all.
TEST_P(Malformed, TruncationAtAnyByteIsAStatus) {
  const std::string text = read_text(GetParam());
  for (size_t size = 0; size < text.size(); size += size < 2048 ? 1 : 37)
    load_without_crash(text.substr(0, size));
}

TEST_P(Malformed, RandomDamageIsAStatus) {
  const std::string text = read_text(GetParam());
  std::mt19937 random(20260101);
  constexpr std::string_view kSpice = "{}[]()<>;,.:@!|+-*/%\"\\0189afxU_$\n \0\x80";
  for (int round = 0; round < 40; ++round) {
    std::string damaged = text;
    for (size_t i = 0; i <= random() % 4; ++i) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0: damaged[at] = static_cast<char>(random()); break;
        case 1: damaged[at] = kSpice[random() % kSpice.size()]; break;
        case 2: damaged.erase(at, random() % 9); break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
          break;
      }
    }
    load_without_crash(damaged);
  }
}

INSTANTIATE_TEST_SUITE_P(Corpus, Malformed, testing::ValuesIn(corpus_files()), corpus_case_name);

std::string repeat(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Hostile, DepthAndSizeHaveLimits) {
  const std::string open = kHead + ".entry k() ";
  const std::string cases[] = {
      open + repeat("{", 100000),
      open + "{ .reg .b32 %r<2>; mov.b32 %r0, " + repeat("(", 100000) + "1;}",
      open + "{ .reg .b32 %r<2>; mov.b32 %r0, " + repeat("-", 100000) + "1;}",
      open + "{" + repeat(".reg .b32 %a<1000000>; { ", 200) + "}",
      open + "{ ld" + repeat(".global", 100000) + " ; }",
      open + "{ mov.b32 {" + repeat("_,", 100000) + "_}, 1; }",
      kHead + ".global .b8 x[1000000000][1000000000];",
      kHead + ".global .b8 x[99999999999999999999];",
      kHead + ".global .b8 x" + repeat("[1]", 1000) + ";",
      kHead + ".global .b8 x[2] = " + repeat("{", 100000),
      kHead + ".global .align 3 .b8 x;",
      kHead + repeat(".global .b64 x = {", 3),
      kHead + ".section .debug_info " + repeat("{", 100000),
      ".version 99999999999.0",
      "",
      std::string(1, '\0'),
  };
  for (const std::string& text : cases) {
    const auto module = load_module(text);
    ASSERT_FALSE(module) << text.substr(0, 200);
    EXPECT_EQ(module.error().code(), StatusCode::kInvalidArgument)
        << module.error().message().substr(0, 200);
  }
}

TEST(Hostile, ManyUnknownInstructionsAreReportedInBoundedText) {
  const auto module = load_module(kHead + ".entry k() {" + repeat("frob;", 20000) + "}");
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().code(), StatusCode::kUnsupported);
  EXPECT_LT(module.error().message().size(), 20000u);
  EXPECT_NE(module.error().message().find("and 19800 more"), std::string::npos);
}

}  // namespace
}  // namespace jitgemm::ptx::malformed_test
