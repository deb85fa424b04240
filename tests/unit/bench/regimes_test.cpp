// SPDX-License-Identifier: Apache-2.0
#include "bench/regimes.h"

#include <gtest/gtest.h>

namespace jitgemm::bench {
namespace {

// A device whose units take what the test says.
class FakeStage final : public Stage {
 public:
  explicit FakeStage(std::vector<double> unit_us) : unit_us_(std::move(unit_us)) {}

  void rest(double milliseconds) override { rests.push_back(milliseconds); }
  Result<double> time_one(size_t contender) override {
    order.push_back(contender);
    if (static_cast<int>(order.size()) == fail_at) return Status(StatusCode::kDeviceError, "lost");
    return unit_us_[contender];
  }
  Result<double> time_many(size_t contender, int64_t units, DeviceState* state) override {
    windows.push_back(units);
    if (state != nullptr) *state = {1500, 690};
    return unit_us_[contender] * static_cast<double>(units);
  }

  std::vector<double> rests;
  std::vector<size_t> order;
  std::vector<int64_t> windows;
  int fail_at = 0;

 private:
  std::vector<double> unit_us_;
};

TEST(Rested, ContendersTakeTurnsAndTheOrderTurns) {
  FakeStage stage({100, 200, 300});
  const auto samples = measure_rested(stage, 3, {.rounds = 4});
  ASSERT_TRUE(samples);
  const std::vector<size_t> timed(stage.order.begin() + 6, stage.order.end());
  EXPECT_EQ(timed, (std::vector<size_t>{0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2}));
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ((*samples)[i].size(), 4u);
}

TEST(Rested, EverySampleFollowsAPauseThatGrowsWithItsUnit) {
  FakeStage stage({100, 3000, 50000});
  ASSERT_TRUE(measure_rested(stage, 3, {.rounds = 1}));
  // Four times 100 us, 3 ms and 50 ms, between 4 and 30 ms.
  EXPECT_EQ(stage.rests, (std::vector<double>{4, 12, 30}));
}

TEST(Rested, ABudgetLeavesOutRoundsButNeverBelowThree) {
  const RestedSchedule plenty{.budget_s = 60};
  EXPECT_EQ(plenty.affordable_rounds({100, 100}), 9);
  const RestedSchedule some{.budget_s = 0.05};  // about 9.4 ms a round
  EXPECT_EQ(some.affordable_rounds({100, 100}), 5);
  const RestedSchedule little{.budget_s = 0.001};
  EXPECT_EQ(little.affordable_rounds({100, 100}), 3);
}

TEST(Rested, AnErrorOfTheDeviceEndsTheMeasurement) {
  FakeStage stage({100, 100});
  stage.fail_at = 7;
  const auto samples = measure_rested(stage, 2, {});
  ASSERT_FALSE(samples);
  EXPECT_EQ(samples.error().code(), StatusCode::kDeviceError);
}

TEST(Sustained, TheWindowsHoldAsManyUnitsAsFillTheirTime) {
  FakeStage stage({1000});
  const auto figure = measure_sustained(stage, 0, {.warm_s = 0.2, .window_s = 0.1});
  ASSERT_TRUE(figure);
  EXPECT_EQ(stage.windows, (std::vector<int64_t>{1, 200, 100}));
  EXPECT_DOUBLE_EQ(figure->unit_us, 1000);
  EXPECT_EQ(figure->state.power_w, 690);
}

TEST(OperandSets, SmallProductsRotateUntilL2IsFarBehind) {
  EXPECT_EQ(operand_sets(1e9, 100 * 1048576.0), 3);
  EXPECT_EQ(operand_sets(1e9, 1e6), 20);
  EXPECT_EQ(operand_sets(1e9, 1e12), 1);
  EXPECT_EQ(operand_sets(150e9, 1e6), 1);
}

}  // namespace
}  // namespace jitgemm::bench
