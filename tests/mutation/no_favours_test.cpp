// SPDX-License-Identifier: Apache-2.0
// The simulator favours no kernel: with registers renumbered, everything renamed and basic blocks
// in another order our kernels give the same bits, the sanitizer on. Every kernel of a run is
// scrambled, those before the product too. The cases are some of tests/gemm and tests/grouped, so
// that their kernels are compiled once.
#include "gemm/gemm_cases.h"
#include "grouped/grouped_cases.h"
#include "mutating_device.h"
#include "runtime/context.h"
#include "scrambled_ptx.h"
#include "selftest/gemm_case.h"
#include "selftest/grouped_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <variant>
#include <vector>

namespace jitgemm {
namespace {

struct Favoured {
  std::string name;
  Arch arch;
  std::variant<GemmCase, GroupedCase> product;
};

void PrintTo(const Favoured& favoured, std::ostream* out) {
  *out << favoured.name;
}

template <typename Case>
void add(std::vector<Favoured>& all, const std::vector<Case>& cases,
         std::initializer_list<const char*> names) {
  for (const Case& c : cases) {
    if (std::find(names.begin(), names.end(), c.name) == names.end()) continue;
    for (const Arch arch : {Arch::kSm90a, Arch::kSm100a})
      all.push_back({fmt::format("{}_{}", arch_info(arch).target, c.name), arch, c});
  }
}

std::vector<Favoured> favoured() {
  std::vector<Favoured> all;
  add(all, gemm_cases(),
      {"integers_tails_everywhere", "rows_7", "rows_of_4_bytes", "aligned_rows_of_odd_bytes",
       "e8m0_scales", "special_values"});
  add(all, quantizing_cases(), {"quantize_normal_bf16"});
  add(all, grouped_cases(),
      {"indices_any_start", "masked_zeroed_of_few", "wide_powers_of_two", "offsets_aligned_32"});
  return all;
}

Result<std::vector<std::byte>> run(const Favoured& f, Device& device) {
  const auto context = *Context::create({});
  if (const auto* c = std::get_if<GemmCase>(&f.product)) {
    const GemmProblem problem = c->problem(f.arch);
    JITGEMM_ASSIGN(const BlockScaledTensors tensors,
                   make_block_scaled_tensors(problem, c->data, 1));
    PlanOverrides overrides;
    overrides.align_rows = c->align_rows;
    JITGEMM_ASSIGN(GemmCaseResult result,
                   run_gemm_case(*context, device, problem, overrides, tensors, {}));
    return std::move(result.out.bytes);
  }
  const auto& g = std::get<GroupedCase>(f.product);
  const GemmProblem problem = g.problem(f.arch);
  JITGEMM_ASSIGN(const GroupedTensors tensors, make_grouped_tensors(problem, g.data, 1));
  JITGEMM_ASSIGN(GroupedCaseResult result,
                 run_grouped_case(*context, device, problem, g.overrides(f.arch), tensors,
                                  g.group_rows(), {}));
  return std::move(result.out);
}

// A name that no case has would leave a product out in silence.
TEST(NoFavoursCases, AreAllThere) {
  EXPECT_EQ(favoured().size(), 2u * 11);
}

class NoFavours : public testing::TestWithParam<Favoured> {};

TEST_P(NoFavours, ScrambledTextGivesTheSameBits) {
  MutatingDevice plain(GetParam().arch, {});
  const auto expected = run(GetParam(), plain);
  ASSERT_TRUE(expected) << expected.error().to_string();

  MutatingDevice scrambled(GetParam().arch, {});
  int kernels = 0;
  scrambled.set_rewriter([&](KernelImage& image) {
    const ScrambledPtx other = scramble_ptx(image.ptx, image.entry, 5);
    EXPECT_NE(other.text, image.ptx);
    EXPECT_GT(other.moved_blocks, 2);
    image.ptx = other.text;
    image.entry = other.entry;
    ++kernels;
  });
  const auto found = run(GetParam(), scrambled);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_GE(kernels, 1);
  EXPECT_EQ(*found, *expected);
}

INSTANTIATE_TEST_SUITE_P(Kernels, NoFavours, testing::ValuesIn(favoured()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm
