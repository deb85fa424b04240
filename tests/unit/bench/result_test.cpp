// SPDX-License-Identifier: Apache-2.0
#include "bench/result.h"

#include "bench/operands.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace jitgemm::bench {
namespace {

TEST(ResultFile, HoldsEverySampleWithRatesOfTheRealShape) {
  BenchResult result;
  result.device = "GPU";
  ShapeResult shape;
  shape.shape = {1000, 1000, 1000};
  shape.out_dtype = "BF16";
  ContenderResult ours;
  ours.info = {"jitgemm", "plan", "model", Product::kBlockScaled, 1e-2, {}, ""};
  ours.rested_us = {11, 10, 9};
  ours.check = CheckResult{true, 1e-3, 0, 64, ""};
  ours.sustained = SustainedResult{
      20, 100, {1500, 690}
  };
  ContenderResult peer;
  peer.info = {"peer", "", "peer", Product::kTensorwise, 0, {}, ""};
  peer.not_timed = "UNSUPPORTED: no algorithm";
  shape.contenders = {ours, peer};
  result.shapes = {shape};

  const auto json = nlohmann::json::parse(to_json(result));
  EXPECT_EQ(json["schema"], 1);
  const auto& found = json["shapes"][0]["contenders"];
  EXPECT_EQ(found[0]["rested"]["samples_us"], (std::vector<double>{11, 10, 9}));
  EXPECT_DOUBLE_EQ(found[0]["rested"]["median_us"], 10);
  EXPECT_DOUBLE_EQ(found[0]["rested"]["tflops"], 200);
  EXPECT_DOUBLE_EQ(found[0]["sustained"]["tflops"], 100);
  EXPECT_EQ(found[0]["sustained"]["power_w"], 690);
  EXPECT_EQ(found[0]["check"]["relative_l2"], 1e-3);
  EXPECT_EQ(found[1]["not_timed"], "UNSUPPORTED: no algorithm");
  EXPECT_FALSE(found[1].contains("rested"));
}

TEST(ResultFile, SaysHowRowsAreGrouped) {
  BenchResult result;
  ShapeResult shape;
  shape.groups = GroupedShape{6, 1024, 128, 4096, 7168};
  shape.shape = product_of(*shape.groups);
  shape.fewest_bytes = 7e6;
  ContenderResult ours;
  ours.info = {"jitgemm", "plan", "model", Product::kBlockScaled, 1e-2, GroupedForm::kMasked,
               "masked"};
  shape.contenders = {ours};
  result.shapes = {shape};
  const auto found = nlohmann::json::parse(to_json(result))["shapes"][0];
  EXPECT_EQ(found["m"], shape.shape.m);
  EXPECT_EQ(found["fewest_bytes"], 7e6);
  EXPECT_EQ(found["groups"]["kind"], "masked");
  EXPECT_EQ(found["groups"]["count"], 6);
  EXPECT_EQ(found["groups"]["rows"], 1024);
  EXPECT_EQ(found["groups"]["mean"], 128);
  EXPECT_EQ(found["contenders"][0]["form"], "masked");
  EXPECT_EQ(found["contenders"][0]["layout"], "masked");
}

TEST(SampleLines, HasBothEndsAndNoLineTwice) {
  const std::vector<int64_t> lines = sample_lines(100000, 32, 1);
  EXPECT_EQ(lines.size(), 32u);
  EXPECT_EQ(lines.front(), 0);
  EXPECT_EQ(lines.back(), 99999);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end());
}

TEST(SampleLines, OfASmallExtentAreAllLines) {
  EXPECT_EQ(sample_lines(3, 32, 1), (std::vector<int64_t>{0, 1, 2}));
}

TEST(OperandLayout, RowsAndScaleRowsArePaddedToFour) {
  const OperandLayout layout = operand_layout({237, 4096, 3884});
  EXPECT_EQ(layout.padded_m, 240);
  EXPECT_EQ(layout.k_blocks, 31);
  EXPECT_EQ(layout.padded_k_blocks, 32);
}

}  // namespace
}  // namespace jitgemm::bench
