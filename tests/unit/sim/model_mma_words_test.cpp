// SPDX-License-Identifier: Apache-2.0
// The window models against result words computed by an independent package: see
// tests/data/mma_words/README.md. Agreement is asserted word for word.
#include "sim/models_mma.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace jitgemm::sim::model_mma_words_test {
namespace {

struct Case {
  std::string kind;
  std::string types;
  MmaProblem problem;
  std::vector<uint32_t> a, b, c, d, scale_a, scale_b;
};

NumberFormat parse_format(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(NumberFormat::kU8); ++i) {
    const auto format = static_cast<NumberFormat>(i);
    if (format_name(format) == name) return format;
  }
  ADD_FAILURE() << "unknown format " << name;
  return NumberFormat::kF32;
}

std::vector<uint32_t> parse_words(const std::string& text) {
  std::vector<uint32_t> words;
  std::stringstream in(text);
  for (std::string word; std::getline(in, word, ',');) {
    words.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
  }
  return words;
}

std::vector<Case> read_cases(const char* file) {
  std::vector<Case> cases;
  std::ifstream in(std::string(JITGEMM_SOURCE_DIR) + "/tests/data/mma_words/" + file);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields;
    for (size_t from = 0; from != std::string::npos;) {
      const size_t to = line.find(" | ", from);
      fields.push_back(line.substr(from, to == std::string::npos ? to : to - from));
      from = to == std::string::npos ? to : to + 3;
    }
    Case c;
    std::string d, a, b, s;
    std::stringstream head(fields[0]);
    head >> c.kind >> c.problem.m >> c.problem.n >> c.problem.k >> d >> a >> b >> s >>
        c.problem.scale_block;
    c.types = d + "." + a + "." + b + "." + s;
    c.problem.result = d == "f16" ? MmaResult::kF16 : MmaResult::kF32;
    c.problem.a_format = parse_format(a);
    c.problem.b_format = parse_format(b);
    c.a = parse_words(fields[1]);
    c.b = parse_words(fields[2]);
    c.c = parse_words(fields[3]);
    c.d = parse_words(fields[4]);
    if (s != "-") {
      c.problem.scale_format = parse_format(s);
      c.scale_a = parse_words(fields[5]);
      c.scale_b = parse_words(fields[6]);
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

// Words of `c` that the model computes as the file says.
size_t agreeing_words(Case& c, MmaNumerics numerics, MmaFamily family) {
  MmaProblem p = c.problem;
  std::vector<uint32_t> d = c.c;
  p.a = c.a;
  p.b = c.b;
  p.scale_a = c.scale_a;
  p.scale_b = c.scale_b;
  p.d = d;
  mma_accumulate(p, numerics, family);
  size_t same = 0;
  for (size_t i = 0; i < d.size(); ++i) same += d[i] == c.d[i] ? 1 : 0;
  return same;
}

void expect_all_agree(const char* file, size_t case_count, MmaNumerics numerics, MmaFamily family) {
  std::vector<Case> cases = read_cases(file);
  ASSERT_EQ(cases.size(), case_count);
  size_t total = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    Case& c = cases[i];
    ASSERT_EQ(c.d.size(), static_cast<size_t>(c.problem.m * c.problem.n));
    total += c.d.size();
    EXPECT_EQ(agreeing_words(c, numerics, family), c.d.size())
        << "line " << i + 1 << ": " << c.kind << " " << c.types;
  }
  EXPECT_EQ(total, case_count * 64);
}

// 30 cases, 1920 words: 100 % agreement.
TEST(ModelMmaWords, HopperModeAgreesWithEveryWgmmaWord) {
  expect_all_agree("wgmma.txt", 30, MmaNumerics::kHopper, MmaFamily::kWgmma);
}

// 51 cases, 3264 words: 100 % agreement.
TEST(ModelMmaWords, BlackwellModeAgreesWithEveryTcgen05Word) {
  expect_all_agree("tcgen05.txt", 51, MmaNumerics::kBlackwell, MmaFamily::kTcgen05);
}

// 36 cases, 2304 words: 100 % agreement.
TEST(ModelMmaWords, BlackwellModeAgreesWithEveryWordOfMmaSyncOfSm120) {
  expect_all_agree("mma_sync.txt", 36, MmaNumerics::kBlackwell, MmaFamily::kMmaSync);
}

// The data can tell the models apart: the test above cannot pass by accident of easy data.
TEST(ModelMmaWords, ExactModeDisagreesWithManyFp8WgmmaWords) {
  size_t same = 0;
  size_t total = 0;
  for (Case& c : read_cases("wgmma.txt")) {
    if (format_bits(c.problem.a_format) != 8 || c.problem.result != MmaResult::kF32) continue;
    same += agreeing_words(c, MmaNumerics::kExact, MmaFamily::kWgmma);
    total += c.d.size();
  }
  EXPECT_EQ(total, 9u * 64);
  EXPECT_LT(same, total / 2);
}

// Exact mode is judged by arithmetic done in another order and type: at most one unit of f32 away.
TEST(ModelMmaWords, ExactModeIsWithinOneUnitOfALongDoubleSum) {
  for (const char* file : {"wgmma.txt", "tcgen05.txt"}) {
    for (Case& c : read_cases(file)) {
      if (c.problem.result != MmaResult::kF32) continue;
      MmaProblem p = c.problem;
      std::vector<uint32_t> d = c.c;
      p.a = c.a;
      p.b = c.b;
      p.scale_a = c.scale_a;
      p.scale_b = c.scale_b;
      p.d = d;
      mma_accumulate(p, MmaNumerics::kExact, MmaFamily::kTcgen05);
      for (int i = 0; i < p.m * p.n; ++i) {
        long double sum = 0;
        for (int k = p.k - 1; k >= 0; --k) {
          long double term = to_double(p.a_format, c.a[(i / p.n) * p.k + k]);
          term *= to_double(p.b_format, c.b[(i % p.n) * p.k + k]);
          if (p.scale_block != 0) {
            const int blocks = p.k / p.scale_block;
            term *= to_double(p.scale_format, c.scale_a[(i / p.n) * blocks + k / p.scale_block]);
            term *= to_double(p.scale_format, c.scale_b[(i % p.n) * blocks + k / p.scale_block]);
          }
          sum += term;
        }
        sum += to_double(NumberFormat::kF32, c.c[i]);
        EXPECT_FLOAT_EQ(static_cast<float>(to_double(NumberFormat::kF32, d[i])),
                        static_cast<float>(sum));
      }
    }
  }
}

}  // namespace
}  // namespace jitgemm::sim::model_mma_words_test
