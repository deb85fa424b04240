// SPDX-License-Identifier: Apache-2.0
// Larger grouped products on the GPU named in JITGEMM_TEST_DEVICE: numbers of groups, routings,
// alignments, layouts and shapes that meet in practice, sampled against float64. One kernel for
// each number of groups and n, so that compiling stays short.
#include "selftest/grouped_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace jitgemm {
namespace {

struct GridCase {
  int64_t groups;
  int64_t n;
  int64_t k;
  GroupLayout layout;
  Routing routing;
  int64_t alignment;
  int64_t rows;
};

void PrintTo(const GridCase& c, std::ostream* out) {
  *out << fmt::format("{} groups, n {}, k {}", c.groups, c.n, c.k);
}

std::string grid_name(const testing::TestParamInfo<GridCase>& info) {
  const GridCase& c = info.param;
  return fmt::format("{}_groups_{}_n_{}_k_{}_{}_aligned_{}", c.groups, group_layout_name(c.layout),
                     c.n, c.k, routing_name(c.routing), c.alignment);
}

std::vector<GridCase> grid_cases() {
  constexpr std::array<int64_t, 7> kGroups = {1, 2, 7, 8, 32, 128, 256};
  constexpr std::array<int64_t, 5> kN = {128, 576, 2048, 4096, 7168};
  constexpr std::array<int64_t, 4> kK = {128, 512, 2048, 7168};
  constexpr std::array<GroupLayout, 4> kLayouts = {GroupLayout::kRowIndices, GroupLayout::kMasked,
                                                   GroupLayout::kEndOffsets,
                                                   GroupLayout::kRowPointers};
  constexpr std::array<Routing, 3> kRoutings = {Routing::kSkewed, Routing::kOneGroup,
                                                Routing::kEven};
  constexpr std::array<int64_t, 6> kAlignments = {1, 8, 16, 32, 64, 128};
  constexpr std::array<int64_t, 4> kRows = {1024, 60, 300, 2048};
  // Host memory and the time to fill it: weights of all groups together.
  constexpr int64_t kMostWeights = int64_t{1} << 27;
  std::vector<GridCase> cases;
  for (size_t g = 0; g < kGroups.size(); ++g) {
    for (size_t n = 0; n < kN.size(); ++n) {
      size_t k = (g + n) % kK.size();
      while (k > 0 && kGroups[g] * kN[n] * kK[k] > kMostWeights) --k;
      const size_t i = cases.size();
      cases.push_back({kGroups[g], kN[n], kK[k], kLayouts[i % kLayouts.size()],
                       kRoutings[i % kRoutings.size()], kAlignments[i % kAlignments.size()],
                       kRows[(g + i / 2) % kRows.size()]});
    }
  }
  return cases;
}

struct PlacedProblem {
  GemmProblem problem;
  GroupedRows rows;
};

PlacedProblem problem_of(const GridCase& c, Arch arch) {
  GemmProblem problem;
  problem.arch = arch;
  problem.n = c.n;
  problem.k = c.k;
  problem.m_policy = MPolicy::kClass;
  problem.grouping.layout = c.layout;
  problem.grouping.groups = c.groups;
  problem.grouping.expected_m = (c.rows + c.groups - 1) / c.groups;
  const bool masked = problem.grouping.separate_rows();
  if (masked) problem.m = std::min<int64_t>(c.rows, 4 * problem.grouping.expected_m);
  if (c.layout == GroupLayout::kEndOffsets || c.layout == GroupLayout::kRowIndices)
    problem.grouping.row_alignment = static_cast<int32_t>(c.alignment);
  const std::vector<int64_t> counts = draw_group_counts(c.groups, c.rows, c.routing, 5);
  GroupedRows rows = place_groups(problem, counts, c.alignment);
  problem.m = rows.m;
  return {problem, std::move(rows)};
}

class GroupedGrid : public testing::TestWithParam<GridCase> {};

// For machines with a GPU and no compiler: the kernels are in the cache that this fills.
TEST_P(GroupedGrid, CompilesWithoutAGpu) {
  const Result<std::shared_ptr<Context>> context = Context::create({});
  ASSERT_TRUE(context) << context.error().to_string();
  const Result<GemmPlan> plan = plan_gemm(problem_of(GetParam(), Arch::kSm90a).problem);
  ASSERT_TRUE(plan) << plan.error().to_string();
  const Result<BuiltKernel> built = (*context)->builder().build(*plan, BuildMode::kCached);
  ASSERT_TRUE(built) << built.error().to_string();
  EXPECT_EQ(built->image->spill_bytes, 0);
  EXPECT_EQ(built->image->stack_bytes, 0);
}

TEST_P(GroupedGrid, MatchesFloat64AndTouchesNothingElse) {
  const char* gpu = std::getenv("JITGEMM_TEST_DEVICE");
  if (gpu == nullptr) GTEST_SKIP() << "needs a GPU: JITGEMM_TEST_DEVICE is not set";
  const GridCase& c = GetParam();
  const Result<std::shared_ptr<Context>> context = Context::create({});
  ASSERT_TRUE(context) << context.error().to_string();
  const Result<Device*> device = (*context)->device(gpu, std::nullopt);
  ASSERT_TRUE(device) << device.error().to_string();

  const auto [problem, rows] = problem_of(c, (*device)->info().arch);
  const Result<GroupedTensors> tensors = make_grouped_tensors(problem, InputKind::kUniformCodes, 3);
  ASSERT_TRUE(tensors) << tensors.error().to_string();
  GroupedCaseOptions options;
  options.sampled_lines = 12;
  const Result<GroupedCaseResult> result =
      run_grouped_case(**context, **device, problem, {}, *tensors, rows.group_rows, options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_TRUE(result->verdict.passed) << result->verdict.text << "\n" << to_string(result->plan);
}

INSTANTIATE_TEST_SUITE_P(Cases, GroupedGrid, testing::ValuesIn(grid_cases()), grid_name);

}  // namespace
}  // namespace jitgemm
