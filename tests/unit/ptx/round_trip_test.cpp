// SPDX-License-Identifier: Apache-2.0
// Real compiler output loads, prints and loads again as the same program.
#include "ptx/load.h"
#include "ptx/printer.h"
#include "unit/ptx/corpus.h"

#include <gtest/gtest.h>

namespace jitgemm::ptx {
namespace {

class RoundTrip : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(RoundTrip, PrintedModuleLoadsAsTheSameProgram) {
  const std::string text = read_text(GetParam());
  const auto module = load_module(text);
  ASSERT_TRUE(module) << module.error().message();
  size_t instructions = 0;
  for (const Function& function : module->functions) instructions += function.instructions.size();
  ASSERT_GT(instructions, 40u);
  const std::string printed = print_module(*module);
  const auto again = load_module(printed);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(equivalent(*module, *again));
  EXPECT_EQ(print_module(*again), printed);
}

TEST_P(RoundTrip, AChangedProgramIsNotEquivalent) {
  const auto module = load_module(read_text(GetParam()));
  ASSERT_TRUE(module);
  Module changed = *module;
  for (Function& function : changed.functions) {
    if (!function.instructions.empty()) function.instructions.pop_back();
  }
  EXPECT_FALSE(equivalent(*module, changed));
}

INSTANTIATE_TEST_SUITE_P(Corpus, RoundTrip, testing::ValuesIn(corpus_files()), corpus_case_name);

}  // namespace
}  // namespace jitgemm::ptx
