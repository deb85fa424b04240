// SPDX-License-Identifier: Apache-2.0
#include "support/status.h"

#include "support/result.h"

#include <gtest/gtest.h>

namespace jitgemm {
namespace {

TEST(Status, PrintsItsNameAndMessage) {
  EXPECT_EQ(ok_status().to_string(), "OK");
  EXPECT_EQ(invalid_argument("k: expected >= 1, found 0").to_string(),
            "INVALID_ARGUMENT: k: expected >= 1, found 0");
}

TEST(Status, ContextGoesBeforeTheMessageAndKeepsTheCode) {
  const Status status = unsupported("sm_80").with_context("planning");
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_EQ(status.message(), "planning: sm_80");
  EXPECT_TRUE(ok_status().with_context("planning").ok());
}

Result<int> half(int value) {
  if (value % 2 != 0) return invalid_argument("odd");
  return value / 2;
}
Result<int> quarter(int value) {
  JITGEMM_ASSIGN(const int first, half(value));
  return half(first);
}

TEST(Result, PropagatesTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message(), "odd");
  EXPECT_FALSE(quarter(7).has_value());
}

}  // namespace
}  // namespace jitgemm
