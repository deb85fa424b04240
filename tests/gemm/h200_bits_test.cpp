// SPDX-License-Identifier: Apache-2.0
// Results that an H200 gave, as digests of the bytes of `out`: the simulator in its hopper mode
// must give the same bits. A record is tied to the data (seed 1), not to a kernel: any split of the
// work that keeps the order of operations gives these bits; the number of splits of k is fixed for
// that.
//
// The GPU named in JITGEMM_TEST_DEVICE is held to the same digests and prints them, which is how
// they are recorded: tools/gpu_check runs
//   gemm_tests --gtest_filter='*_gpu_*'
// Records: one NVIDIA H200 (driver 580.159.04, NVRTC 13.0.88), the first six of 2026-11-29, the
// others of 2026-11-30.
#include "gemm/gemm_cases.h"
#include "grouped/grouped_cases.h"
#include "selftest/gemm_case.h"
#include "selftest/grouped_case.h"
#include "support/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace jitgemm {
namespace {

struct Product {
  const char* name;
  std::variant<GemmCase, GroupedCase> product;
  int32_t split_k;
  const char* sha256;
};

void PrintTo(const Product& product, std::ostream* out) {
  *out << product.name;
}

std::vector<Product> products() {
  using Dense = GemmCase;
  constexpr InputKind kSeed = InputKind::kSeed;
  const auto grouped = [](auto change) {
    GroupedCase c;
    c.data = InputKind::kUniformCodes;
    change(c);
    return c;
  };
  return {
      {"uniform_codes",                      Dense{.name = "", .m = 256, .n = 256, .k = 512},                     1,
       "b7726b7898fbe953d06d3d4aa19138860c6be824a97cde5035c76b2ff72564ae"                                                                                                              },
      {"scales_of_every_row_and_32_columns",
       Dense{.name = "", .m = 65, .n = 72, .k = 257, .group_n = 1, .group_k = 32},                                1,
       "02f11302bce45f31350bba1d8a8090587338b818f3c6206f6d537fb0a151ed01"                                                                                                              },
      {"few_rows",                           Dense{.name = "", .m = 7, .n = 576, .k = 1024},                      1,
       "e0095e4ba8cb2c51d3892f11db99d7eab5e0a72b59c4ce06c701c29fa0b72346"                                                                                                              },
      {"scales_over_60_octaves",
       Dense{.name = "", .m = 200, .n = 320, .k = 640, .data = InputKind::kWideScales},                           1,
       "d3cfa303e3c4381cf0035805e592e88cd71df90999d02e94ca75ecf746aeb3a4"                                                                                                              },
      {"normal_data",                        Dense{.name = "", .m = 128, .n = 384, .k = 2048, .data = kSeed},     1,
       "c140a6013eb109ca76862ac54cbd67d24133b2c85c4d04536e246b3a4983bb78"                                                                                                              },
      {"e5m2_by_e4m3",
       Dense{.name = "", .m = 300, .n = 264, .k = 388, .data = kSeed, .a = DType::kF8E5M2},                       1,
       "01f259b6e8d94cd03d59d8e2801897492b9b0caf92b4bd31ee34dac9cf4b16df"                                                                                                              },
      {"odd_rows",                           Dense{.name = "", .m = 72, .n = 136, .k = 390, .align_rows = false}, 1,
       "f4fafaf8eb3bc20f9f89eed5128541da075456cb98b6932afbe72831fe65fc5e"                                                                                                              },
      {"odd_rows_made_regular",              Dense{.name = "", .m = 72, .n = 136, .k = 390, .align_rows = true},
       1,                                                                                                            "f4fafaf8eb3bc20f9f89eed5128541da075456cb98b6932afbe72831fe65fc5e"},
      {"few_rows_split_in_four",             Dense{.name = "", .m = 8, .n = 128, .k = 2048},                      4,
       "d9bff59ddd080bd7bab8e262e4e57e8ec2c1dd1b20291bb747d26b0a8d494515"                                                                                                              },
      {"quantized",
       Dense{.name = "", .m = 24, .n = 128, .k = 384, .data = kSeed, .a = DType::kBF16},                          1,
       "c8448733acbd854d087de1646fa3edbebaaec9914d4cf54bf1f288fd4e4de67d"                                                                                                              },
      {"grouped_row_indices",                grouped([](GroupedCase& c) {
         c.counts = {70, 0, 20, 33}, c.k = 384, c.sides = GroupedCase::Sides::kRows;
       }),
       1,                                                                                                            "2257c677eab77360b559a82567639e800c989017414f6f9e699e6cd304820f49"},
      {"grouped_masked_few_rows",            grouped([](GroupedCase& c) {
         c.layout = GroupLayout::kMasked, c.m = 12, c.counts = {5, 0, 9}, c.k = 512;
         c.sides = GroupedCase::Sides::kSwapped;
       }),
       1,                                                                                                            "e0b3f833dc178040a044ec8f9c3cfe9492153b9ac945deac0af27384ba10c93f"},
      {"grouped_odd_rows",                   grouped([](GroupedCase& c) {
         c.layout = GroupLayout::kRowPointers, c.counts = {40, 3, 0, 30}, c.k = 131;
       }),
       1,                                                                                                            "e885f340a39b12ae5a04ece25e349f4fb426de6f99e74ce76a23408b3a9a7073"},
      {"grouped_bf16",                       grouped([](GroupedCase& c) {
         c.layout = GroupLayout::kEndOffsets, c.counts = {40, 0, 30}, c.a = c.b = DType::kBF16;
         c.data = kSeed;
       }),
       1,                                                                                                            "8ff2d5664aba9b41b87758331ee5f70e9f4360a7213532f32ac19ac27a7341fc"},
  };
}

std::string digest(std::span<const std::byte> bytes) {
  return to_hex(sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

class HopperNumerics : public testing::TestWithParam<std::tuple<std::string, Product>> {};

TEST_P(HopperNumerics, GivesTheBitsOfAnH200) {
  const auto& [device_name, product] = GetParam();
  const auto context = *Context::create({});
  const Result<Device*> device = context->device(device_name, Arch::kSm90a);
  ASSERT_TRUE(device) << device.error().to_string();
  std::string found;
  Verdict verdict;
  if (const auto* c = std::get_if<GemmCase>(&product.product)) {
    const GemmProblem problem = c->problem(Arch::kSm90a);
    const auto tensors = make_block_scaled_tensors(problem, c->data, 1);
    ASSERT_TRUE(tensors) << tensors.error().to_string();
    PlanOverrides overrides;
    overrides.split_k = product.split_k;
    overrides.align_rows = c->align_rows;
    const auto result = run_gemm_case(*context, **device, problem, overrides, *tensors, {});
    ASSERT_TRUE(result) << result.error().to_string();
    verdict = result->verdict;
    found = digest(result->out.bytes);
  } else {
    const auto& g = std::get<GroupedCase>(product.product);
    const GemmProblem problem = g.problem(Arch::kSm90a);
    const auto tensors = make_grouped_tensors(problem, g.data, 1);
    ASSERT_TRUE(tensors) << tensors.error().to_string();
    const auto result = run_grouped_case(*context, **device, problem, g.overrides(Arch::kSm90a),
                                         *tensors, g.group_rows(), {});
    ASSERT_TRUE(result) << result.error().to_string();
    verdict = result->verdict;
    found = digest(result->out);
  }
  EXPECT_TRUE(verdict.passed) << verdict.text;
  if (device_name != "sim") fmt::print("h200 bits of {}: {}\n", product.name, found);
  EXPECT_EQ(found, product.sha256);
}

std::vector<std::string> devices() {
  std::vector<std::string> names = {"sim"};
  if (const char* gpu = std::getenv("JITGEMM_TEST_DEVICE")) names.emplace_back(gpu);
  return names;
}

// Named as the cases of gemm_test.cpp are, so that what runs those on a GPU runs these.
std::string product_name(const testing::TestParamInfo<std::tuple<std::string, Product>>& info) {
  const auto& [device, product] = info.param;
  return fmt::format("sm_90a_{}_{}", device == "sim" ? "sim_seed_0" : "gpu", product.name);
}

INSTANTIATE_TEST_SUITE_P(Products, HopperNumerics,
                         testing::Combine(testing::ValuesIn(devices()),
                                          testing::ValuesIn(products())),
                         product_name);

}  // namespace
}  // namespace jitgemm
