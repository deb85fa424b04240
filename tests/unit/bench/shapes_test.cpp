// SPDX-License-Identifier: Apache-2.0
#include "bench/shapes.h"

#include <gtest/gtest.h>

namespace jitgemm::bench {
namespace {

TEST(Shapes, TheSuitesHaveTheirShapes) {
  EXPECT_EQ(suite_shapes("seed")->size(), 24u);
  EXPECT_EQ(suite_shapes("decode")->size(), 30u);
  EXPECT_FALSE(suite_shapes("odd")->empty());
}

TEST(Shapes, AnUnknownSuiteIsRefusedByName) {
  const auto shapes = suite_shapes("large");
  ASSERT_FALSE(shapes);
  EXPECT_EQ(shapes.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(shapes.error().message().find("large"), std::string::npos);
}

TEST(Shapes, EveryMGoesWithEveryPairOfNAndK) {
  const auto shapes = listed_shapes({1, 2}, {10, 20}, {30, 40});
  ASSERT_TRUE(shapes);
  const std::vector<Shape> wanted = {
      {1, 10, 30},
      {2, 10, 30},
      {1, 20, 40},
      {2, 20, 40}
  };
  EXPECT_EQ(*shapes, wanted);
}

TEST(Shapes, OneKServesAListOfN) {
  const auto shapes = listed_shapes({1}, {10, 20}, {30});
  ASSERT_TRUE(shapes);
  EXPECT_EQ((*shapes)[1], (Shape{1, 20, 30}));
}

TEST(Shapes, ListsOfDifferentLengthsAndEmptyOnesAreRefused) {
  EXPECT_FALSE(listed_shapes({1}, {10, 20}, {30, 40, 50}));
  EXPECT_FALSE(listed_shapes({}, {10}, {30}));
  EXPECT_FALSE(listed_shapes({0}, {10}, {30}));
}

TEST(Shapes, BytesAreThoseOfTheRealShape) {
  // 1 x 256 and 128 x 256 codes, 2 scales of a row, 2 of b, 128 bf16 results.
  EXPECT_EQ(fewest_bytes(Shape{1, 128, 256}, 2), 256 + 128 * 256 + 4 * 2 + 4 * 2 + 256);
  EXPECT_EQ((Shape{3, 5, 7}).flops(), 210);
}

}  // namespace
}  // namespace jitgemm::bench
