// SPDX-License-Identifier: Apache-2.0
// Grouped products as the benchmark has them, at a size for the simulator: what is drawn, what is
// checked, and every form of ours, launched and judged as it is before it is timed.
#include "bench/grouped_check.h"
#include "bench/grouped_operands.h"
#include "bench/grouped_shapes.h"
#include "bench/jitgemm_contender.h"
#include "bench/plan_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace jitgemm::bench {
namespace {

// A device that is not timed.
class SimWorkbench final : public Workbench {
 public:
  static std::unique_ptr<SimWorkbench> create() {
    auto bench = std::make_unique<SimWorkbench>();
    bench->context_ = std::move(*Context::create({}));
    bench->device_ = *bench->context_->device("sim", Arch::kSm90a);
    auto kernels = GpuKernels::create(*bench->context_, *bench->device_);
    if (!kernels) return nullptr;
    bench->kernels_ = std::move(*kernels);
    return bench;
  }
  Context& context() override { return *context_; }
  Device& device() override { return *device_; }
  const GpuKernels& kernels() const override { return *kernels_; }
  CuStream stream() const override { return nullptr; }
  Status fill(uint64_t address, uint8_t byte, size_t bytes) override {
    const std::vector<uint8_t> values(bytes, byte);
    return bytes == 0 ? ok_status() : device_->copy_to_device(address, values.data(), bytes);
  }
  Status synchronize() override { return device_->synchronize(nullptr); }

 private:
  std::shared_ptr<Context> context_;
  Device* device_ = nullptr;
  std::unique_ptr<GpuKernels> kernels_;
};

class GroupedBench : public testing::Test {
 protected:
  void SetUp() override {
    bench_ = SimWorkbench::create();
    if (bench_ == nullptr) GTEST_SKIP() << "no compiler";
  }
  GroupedOperands draw(const GroupedShape& shape, int sets) {
    auto operands = GroupedOperands::draw(*bench_, shape, DType::kBF16, sets);
    EXPECT_TRUE(operands) << operands.error().to_string();
    return std::move(*operands);
  }
  std::vector<float> floats(uint64_t address, int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    EXPECT_TRUE(bench_->device().copy_to_host(values.data(), address, 4 * values.size()).ok());
    return values;
  }

  std::unique_ptr<SimWorkbench> bench_;
};

// Writes what a kernel of ours wrote, but for one element.
class Spoiled final : public Contender {
 public:
  Spoiled(Workbench& bench, Contender& right, uint64_t element)
      : bench_(bench), right_(right), element_(element) {}
  const ContenderInfo& info() const override { return right_.info(); }
  Status launch(size_t index, CuStream stream) override {
    JITGEMM_TRY(right_.launch(index, stream));
    return bench_.fill(element_, 0xff, 2);
  }

 private:
  Workbench& bench_;
  Contender& right_;
  uint64_t element_;
};

std::unique_ptr<Contender> ours(Workbench& bench, const GroupedOperands& operands,
                                const GemmProblem& problem) {
  const auto plan = plan_operation(problem, {4, {}});
  EXPECT_TRUE(plan) << plan.error().to_string();
  auto contender = make_jitgemm_contender(bench, *plan, launch_sets(problem, operands),
                                          form_of(operands.shape(), problem));
  EXPECT_TRUE(contender) << contender.error().to_string();
  return std::move(*contender);
}

TEST_F(GroupedBench, EveryFormOfOursIsRightInEverySet) {
  const GroupedShape contiguous{3, 9, 0, 64, 256};
  const GroupedShape masked{3, 12, 5, 64, 256};
  GemmProblem base;
  base.m = 1, base.n = 1, base.k = 1;
  for (const GroupedShape& shape : {contiguous, masked}) {
    const GroupedOperands operands = draw(shape, 2);
    auto check = GroupedCheck::create(*bench_, DType::kBF16, operands);
    ASSERT_TRUE(check) << check.error().to_string();
    for (const ScaleMajor major : {ScaleMajor::kRow, ScaleMajor::kColumn}) {
      base.a_scale_major = major;
      for (const GemmProblem& problem : grouped_problems(shape, base)) {
        const auto contender = ours(*bench_, operands, problem);
        const auto result = check->run(*contender);
        ASSERT_TRUE(result) << result.error().to_string();
        EXPECT_TRUE(result->passed) << to_string(problem) << ": " << result->text;
        EXPECT_GT(result->checked, 0);
        EXPECT_TRUE(contender->launch(1, nullptr).ok());
      }
    }
  }
}

TEST_F(GroupedBench, OneElementThatIsNotWrittenIsFound) {
  const GroupedShape shape{3, 9, 0, 64, 256};
  const GroupedOperands operands = draw(shape, 1);
  GemmProblem base;
  base.m = 1, base.n = 1, base.k = 1;
  const GemmProblem problem = grouped_problems(shape, base).back();
  ASSERT_EQ(form_of(shape, problem), GroupedForm::kPadded);
  const auto right = ours(*bench_, operands, problem);
  auto check = GroupedCheck::create(*bench_, DType::kBF16, operands);
  ASSERT_TRUE(check);
  const uint64_t out = operands.form(GroupedForm::kPadded).sets[0].out;
  // Of the last row of group 1, and of a row of no group.
  Spoiled spoiled(*bench_, *right, out + 2 * ((128 + 8) * 64 + 63));
  EXPECT_EQ(check->run(spoiled)->not_finite, 1);
  Spoiled elsewhere(*bench_, *right, out + 2 * ((128 + 9) * 64));
  EXPECT_TRUE(check->run(elsewhere)->passed);
}

TEST_F(GroupedBench, AllOrdersOfScalesHoldTheSame) {
  const GroupedShape shape{2, 10, 6, 256, 384};
  const GroupedOperands operands = draw(shape, 1);
  const GroupedForms& form = operands.form(GroupedForm::kMasked);
  const auto by_row = floats(form.sets[0].a_scales, 2 * 10 * 3);
  const auto by_column = floats(form.sets[0].a_scales_column_major, int64_t{2} * 3 * 12);
  for (size_t group = 0; group < 2; ++group) {
    const auto count = static_cast<size_t>(operands.counts()[group]);
    ASSERT_GT(count, 0u);
    const size_t padded = (count + 3) / 4 * 4;
    const auto own =
        floats(operands.weights()[0].a_scales_of_group[group], static_cast<int64_t>(3 * padded));
    for (size_t row = 0; row < 10; ++row) {
      for (size_t block = 0; block < 3; ++block) {
        const float value = by_row[(group * 10 + row) * 3 + block];
        EXPECT_EQ(value, by_column[(group * 3 + block) * 12 + row]);
        if (row < count) {
          EXPECT_EQ(value, own[block * padded + row]);
          EXPECT_GE(value, kLowestScale);
        } else {
          EXPECT_EQ(value, 0);
        }
      }
    }
  }
}

TEST(GroupedShapes, TheSuitesHaveTheirShapes) {
  EXPECT_EQ(grouped_suite_shapes("contiguous")->size(), 11u);
  EXPECT_EQ(grouped_suite_shapes("masked")->size(), 38u);
  EXPECT_EQ(grouped_suite_shapes("grouped")->size(), 49u);
  const auto unknown = grouped_suite_shapes("seed");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message().find("seed"), std::string::npos);
}

TEST(GroupedShapes, RowsInUseLieAroundTheMeanAndFit) {
  const auto shapes = grouped_suite_shapes("grouped");
  ASSERT_TRUE(shapes);
  for (const GroupedShape& shape : *shapes) {
    const std::vector<int64_t> counts = group_counts(shape);
    ASSERT_EQ(static_cast<int64_t>(counts.size()), shape.groups);
    const int64_t wanted = shape.masked() ? shape.mean : shape.rows;
    for (const int64_t count : counts) {
      EXPECT_GE(count, 1);
      EXPECT_LE(count, shape.rows);
      EXPECT_GE(10 * count, 7 * wanted - 10);
      EXPECT_LE(10 * count, 13 * wanted + 10);
    }
    EXPECT_EQ(product_of(shape).m, std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  }
}

TEST(GroupedShapes, PaddedGroupsBeginAtMultiplesOf128AndRowsBetweenAreNoGroups) {
  const GroupedShape shape{3, 130, 0, 128, 128};
  const FormLayout padded = form_layout(shape, GroupedForm::kPadded);
  EXPECT_EQ(padded.begins, (std::vector<int64_t>{0, 256, 512}));
  EXPECT_EQ(padded.rows, 768);
  EXPECT_EQ(padded.group_rows[129], 0);
  EXPECT_EQ(padded.group_rows[130], -1);
  EXPECT_EQ(padded.group_rows[256], 1);
  EXPECT_EQ(padded.group_rows[767], -1);
  const FormLayout tight = form_layout(shape, GroupedForm::kTight);
  EXPECT_EQ(tight.rows, 390);
  EXPECT_EQ(tight.row_pointers, (std::vector<int32_t>{0, 130, 260, 390}));
  EXPECT_EQ(std::count(tight.group_rows.begin(), tight.group_rows.end(), -1), 0);
}

TEST(GroupedShapes, ListsAreRefusedByName) {
  EXPECT_FALSE(listed_grouped_shapes({}, {8}, {}, {128}, {128}));
  EXPECT_FALSE(listed_grouped_shapes({2}, {8}, {9}, {128}, {128}));
  EXPECT_FALSE(listed_grouped_shapes({0}, {8}, {}, {128}, {128}));
  const auto shapes = listed_grouped_shapes({2, 4}, {8}, {}, {128, 256}, {512});
  ASSERT_TRUE(shapes);
  EXPECT_EQ(shapes->size(), 4u);
  EXPECT_EQ(shapes->back(), (GroupedShape{4, 8, 0, 256, 512}));
}

}  // namespace
}  // namespace jitgemm::bench
