// SPDX-License-Identifier: Apache-2.0
// One product, one plan, many schedules: the same bits. Partial sums are added in the order of the
// splits and never in that of arrival, so what runs first may not show. Of a GPU,
//   jitgemm bench block_scaled_mm --plans arrangements --repeats 1000 ...
// does the same in time.
#include "device/sim_device.h"
#include "gemm_cases.h"
#include "selftest/gemm_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm {
namespace {

struct Repeated {
  std::string name;
  GemmCase product;
  PlanOverrides overrides;
  // Few schedules look at the bits alone; many are also run with the sanitizer.
  uint64_t schedules = 4;
};

void PrintTo(const Repeated& r, std::ostream* out) {
  *out << r.name;
}

Repeated repeated(std::string name, int64_t m, int64_t n, int64_t k, int32_t tile_m, int32_t tile_n,
                  int32_t cluster, int32_t split) {
  Repeated r;
  r.name = std::move(name);
  r.product.m = m;
  r.product.n = n;
  r.product.k = k;
  r.product.data = InputKind::kSeed;
  r.overrides.tile_m = tile_m;
  r.overrides.tile_n = tile_n;
  r.overrides.cluster = cluster;
  r.overrides.split_k = split;
  // Which clusters of SM100 these are: pairs, or CTAs that share an operand.
  if (cluster > 1 && split == 1) {
    r.overrides.constants = {
        {cluster == 2 ? "kPair" : "kShare", cluster}
    };
  }
  return r;
}

class RepeatedRuns : public testing::TestWithParam<std::tuple<Arch, Repeated>> {};

TEST_P(RepeatedRuns, GiveTheSameBitsUnderEverySchedule) {
  const auto& [arch, r] = GetParam();
  const auto context = *Context::create({});
  const GemmProblem problem = r.product.problem(arch);
  const auto tensors = make_block_scaled_tensors(problem, r.product.data, 5);
  ASSERT_TRUE(tensors);
  std::vector<std::byte> first;
  for (uint64_t seed = 0; seed < r.schedules; ++seed) {
    SimDeviceOptions options;
    options.seed = seed;
    options.sanitize = r.schedules > 4;
    // Seeds permute the CTAs of a cluster and all effects; every fourth schedule also holds a warp
    // back until nothing else can go on.
    options.last_warps = seed % 4 == 3 ? uint64_t{1} << (seed / 4 % 9) : 0;
    SimDevice device(arch, options);
    const auto result = run_gemm_case(*context, device, problem, r.overrides, *tensors, {});
    ASSERT_TRUE(result) << result.error().to_string();
    EXPECT_TRUE(result->verdict.passed) << result->verdict.text << to_string(result->plan);
    if (seed == 0) first = result->out.bytes;
    EXPECT_TRUE(result->out.bytes == first) << "schedule " << seed << to_string(result->plan);
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Arch, Repeated>>& info) {
  const auto& [arch, r] = info.param;
  return fmt::format("{}_{}", arch_info(arch).target, r.name);
}

INSTANTIATE_TEST_SUITE_P(
    Hopper, RepeatedRuns,
    testing::Combine(testing::Values(Arch::kSm90a),
                     testing::Values(repeated("swapped_split_2", 16, 128, 1024, 16, 64, 2, 2),
                                     repeated("swapped_split_3", 16, 128, 1152, 16, 64, 3, 3),
                                     repeated("swapped_split_4", 8, 128, 1024, 8, 64, 4, 4),
                                     repeated("split_2", 64, 64, 1024, 64, 32, 2, 2),
                                     repeated("many_tiles", 150, 100, 128, 64, 32, 1, 1))),
    name_of);
INSTANTIATE_TEST_SUITE_P(
    Blackwell, RepeatedRuns,
    testing::Combine(testing::Values(Arch::kSm100a),
                     testing::Values(repeated("split_2", 16, 128, 1024, 16, 128, 2, 2),
                                     repeated("split_4", 16, 128, 1024, 16, 128, 4, 4),
                                     repeated("split_8", 16, 128, 1024, 16, 128, 8, 8),
                                     repeated("share_four", 600, 64, 128, 128, 32, 4, 1),
                                     repeated("pair_many_tiles", 600, 64, 256, 128, 32, 2, 1))),
    name_of);

// Many schedules, for a person with time: tools/check --all.
std::vector<Repeated> under_many_schedules() {
  std::vector<Repeated> list = {
      repeated("one_cta", 200, 72, 256, 128, 16, 1, 1),
      repeated("pair", 300, 64, 256, 128, 32, 2, 1),
      repeated("share_four", 600, 64, 128, 128, 32, 4, 1),
      repeated("swapped", 20, 300, 256, 32, 128, 1, 1),
      repeated("split_2", 16, 200, 512, 16, 128, 2, 2),
      repeated("split_8", 16, 128, 1024, 16, 128, 8, 8),
  };
  const size_t exact = list.size();
  for (size_t i = 0; i < exact; ++i) {
    list.push_back(list[i]);
    list.back().name = "hardware_" + list[i].name;
    list.back().product.values = ScaleValues::kPowerOfTwo;
  }
  list.push_back(repeated("hardware_wide", 600, 500, 128, 128, 256, 1, 1));
  list.back().product.values = ScaleValues::kPowerOfTwo;
  for (Repeated& r : list) r.schedules = 24;
  return list;
}
INSTANTIATE_TEST_SUITE_P(ManySchedules, RepeatedRuns,
                         testing::Combine(testing::Values(Arch::kSm100a),
                                          testing::ValuesIn(under_many_schedules())),
                         name_of);

}  // namespace
}  // namespace jitgemm
