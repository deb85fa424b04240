// SPDX-License-Identifier: Apache-2.0
#include "bench/tuner.h"

#include <gtest/gtest.h>

namespace jitgemm::bench {
namespace {

// Contenders by their median; 0: not timed.
ShapeResult timed(const std::vector<double>& medians) {
  ShapeResult result;
  for (const double median : medians) {
    ContenderResult contender;
    if (median > 0) contender.rested_us = {median - 0.1, median, median + 0.1};
    result.contenders.push_back(contender);
  }
  return result;
}

TEST(Finalists, AreTheFastestAndTheModelsChoice) {
  EXPECT_EQ(finalists(timed({10, 8, 0, 7, 9}), 2), (std::vector<size_t>{3, 1, 0}));
  EXPECT_EQ(finalists(timed({10, 8, 0, 7, 9}), 9), (std::vector<size_t>{3, 1, 4, 0}));
}

TEST(Finalists, DoNotIncludeAModelsChoiceThatWasWrong) {
  EXPECT_EQ(finalists(timed({0, 8, 7}), 1), (std::vector<size_t>{2}));
  EXPECT_TRUE(finalists(timed({0, 0}), 4).empty());
}

TEST(Winner, ReplacesTheModelsChoiceOnlyWhereItIsClearlyFaster) {
  EXPECT_EQ(winner(timed({10, 9.95}), 0.01), 0u);
  EXPECT_EQ(winner(timed({10, 9.8, 9.5}), 0.01), 2u);
  EXPECT_EQ(winner(timed({10, 12}), 0.01), 0u);
  EXPECT_EQ(winner(timed({0, 12}), 0.01), 1u);
  EXPECT_FALSE(winner(timed({0}), 0.01));
}

}  // namespace
}  // namespace jitgemm::bench
