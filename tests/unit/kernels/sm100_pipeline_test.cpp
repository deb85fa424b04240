// SPDX-License-Identifier: Apache-2.0
// That the SM100 kernels wait for nothing that they need not. A role is held back for as long as
// anything else of its cluster can happen (sim::Options::last_warps), and at each of its steps the
// trace is asked how far the others have come without it:
//   epilogue held: products are all the accumulators ahead of promotion, loads all the stages ahead
//                  of products, over the ends of tiles;
//   products held: loads are all the stages ahead of the first product that reads a stage;
//   nothing held, effects as late as is legal: all stages are asked for before any has arrived.
// docs/sm100-budget.md says why that is the proof.
#include "device/sim_device.h"
#include "selftest/gemm_case.h"
#include "selftest/grouped_case.h"
#include "unit/kernels/kernel_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitgemm::sm100_pipeline_test {
namespace {

constexpr int kTmaWarp = 0;
constexpr int kMmaWarp = 1;
constexpr int kFirstEpilogueWarp = 4;
constexpr int kStepsPerStage = 4;

KernelCase product(std::string name, int64_t m, int64_t n, int64_t k) {
  return KernelCase(Arch::kSm100a, std::move(name), m, n, k).out(DType::kF32);
}
KernelCase of_16_bits(std::string name, int64_t m, int64_t n, int64_t k) {
  return KernelCase(Arch::kSm100a, std::move(name), m, n, k)
      .types(DType::kBF16, DType::kBF16)
      .out(DType::kBF16);
}

// What a line of the trace tells: "STEPS cta X,Y,Z warp W LANES LINE: TEXT[ -> results]".
struct Event {
  int cta = 0;
  int warp = 0;
  std::string_view text;
};

bool parse(std::string_view line, Event& event) {
  const size_t cta = line.find("cta ");
  const size_t warp = line.find(" warp ");
  if (cta == std::string_view::npos || warp == std::string_view::npos) return false;
  std::from_chars(line.data() + cta + 4, line.data() + line.size(), event.cta);
  std::from_chars(line.data() + warp + 6, line.data() + line.size(), event.warp);
  const size_t lanes = line.find_first_not_of(' ', line.find_first_of(' ', warp + 6));
  if (line.substr(lanes, 8) == "00000000") return false;  // predicated off
  const size_t text = line.find(": ", lanes);
  if (text == std::string_view::npos) return false;  // a wait
  event.text = line.substr(text + 2);
  return true;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

enum class Held { kNothing, kProducts, kEpilogue };

enum class Kind { kLoad, kProduct, kRead, kStore };

struct Issue {
  Kind kind;
  int cta;
  int warp;
  int columns;  // of kRead
};

// What the trace tells of loads, products, reads of tensor memory and stores, in their order.
std::vector<Issue> issues_of(const std::vector<std::string>& lines) {
  std::vector<Issue> issues;
  for (const std::string& line : lines) {
    Event e;
    if (!parse(line, e)) continue;
    const bool epilogue = e.warp >= kFirstEpilogueWarp;
    const bool tma = contains(e.text, "cp.async.bulk.tensor");
    if (e.warp == kTmaWarp && tma) {
      issues.push_back({Kind::kLoad, e.cta, e.warp, 0});
    } else if (e.warp == kMmaWarp && contains(e.text, "tcgen05.mma")) {
      issues.push_back({Kind::kProduct, e.cta, e.warp, 0});
    } else if (epilogue && contains(e.text, "tcgen05.ld.")) {
      issues.push_back({Kind::kRead, e.cta, e.warp, contains(e.text, ".x32.") ? 32 : 16});
    } else if (epilogue && (tma || contains(e.text, "st.global"))) {
      issues.push_back({Kind::kStore, e.cta, e.warp, 0});
    }
  }
  return issues;
}

// Judges each step of the role that was held by what the others had issued before it.
class Pipeline {
 public:
  Pipeline(const GemmPlan& plan, Held held) : held_(held) {
    const GemmProblem& p = plan.problem;
    std::map<std::string, int> fields;
    for (const auto& [name, value] : plan.extra_fields) fields[name] = static_cast<int>(value);
    stages_ = plan.stages;
    pair_ = fields["kPair"];
    accumulators_ = fields["kAccumulators"];
    const int columns = fields["kSwap"] != 0 ? plan.tile_m : plan.tile_n;
    if (fields.contains("kAccumulatorStride")) {
      overlap_ = std::max(0, columns - fields["kAccumulatorStride"]);
    }
    const auto steps = static_cast<int>(p.k_bytes() / 32 / plan.split_k);
    // What the tensor core sums in one buffer is a scale block or a tile.
    units_a_tile_ = plan.family == KernelFamily::kSm100 ? steps * 32 / p.group_k : 1;
    products_a_unit_ = steps / units_a_tile_;
    columns_a_unit_ = columns / (fields["kEpilogueWarps"] / 4);
  }

  void judge(const std::vector<Issue>& issues) {
    std::map<int, int> all_products;
    for (const Issue& issue : issues) {
      if (issue.kind == Kind::kProduct) ++all_products[issue.cta];
    }
    for (const Issue& issue : issues) {
      Cta& cta = ctas_[issue.cta];
      const int leader = issue.cta / pair_ * pair_;
      total_products_ = all_products[leader];
      Warp& warp = cta.warps[issue.warp];
      switch (issue.kind) {
        case Kind::kLoad: ++cta.loads; break;
        case Kind::kProduct:
          if (held_ == Held::kProducts ? cta.products % kStepsPerStage == 0
                                       : held_ == Held::kNothing && cta.products == 0) {
            expect_loads(cta, cta.products / kStepsPerStage, "before a stage's first product");
            ++products_judged;
            most_stages = std::max(most_stages, total_products_ / kStepsPerStage);
          }
          ++cta.products;
          break;
        case Kind::kRead:
          // Accumulators that overlap: once what they share is read.
          if (held_ == Held::kEpilogue && warp.columns % columns_a_unit_ == overlap_) {
            expect_ahead(ctas_[leader], warp.columns / columns_a_unit_, accumulators_,
                         "before a read");
            ++reads_judged;
            most_units = std::max(most_units, total_products_ / products_a_unit_);
          }
          warp.columns += issue.columns;
          warp.stored = false;
          break;
        case Kind::kStore:
          // The first store of a tile that is read to its end: its buffers are free by now.
          if (held_ == Held::kEpilogue && !warp.stored &&
              warp.columns % (columns_a_unit_ * units_a_tile_) == 0) {
            expect_ahead(ctas_[leader], warp.columns / columns_a_unit_,
                         overlap_ > 0 ? accumulators_ - 1 : accumulators_,
                         "before a tile is stored");
            ++stores_judged;
          }
          warp.stored = true;
          break;
      }
    }
  }

  int accumulators() const { return accumulators_; }
  int stages() const { return stages_; }
  int products_judged = 0, reads_judged = 0, stores_judged = 0;
  int most_units = 0, most_stages = 0;  // of a CTA

 private:
  struct Warp {
    int columns = 0;  // of tensor memory, read
    bool stored = false;
  };
  struct Cta {
    int loads = 0;
    int products = 0;
    std::map<int, Warp> warps;
  };

  // With so many buffers given back the tensor core has filled so many more.
  void expect_ahead(const Cta& leader, int released, int ahead, const char* when) {
    const int total = total_products_ / products_a_unit_;
    EXPECT_GE(leader.products, std::min(total, released + ahead) * products_a_unit_)
        << when << ": " << released << " of " << total << " sums are read, " << accumulators_
        << " accumulators";
    expect_loads(leader, leader.products / kStepsPerStage, when);
  }
  void expect_loads(const Cta& cta, int used, const char* when) {
    const int total = total_products_ / kStepsPerStage;
    EXPECT_GE(cta.loads, 2 * std::min(total, used + stages_))  // two operands
        << when << ": " << used << " of " << total << " stages are multiplied, " << stages_
        << " in the ring";
  }

  Held held_;
  int stages_ = 0, pair_ = 1, accumulators_ = 0, units_a_tile_ = 0;
  int products_a_unit_ = 0, columns_a_unit_ = 0, overlap_ = 0;
  int total_products_ = 0;  // of the CTA in question
  std::map<int, Cta> ctas_;
};

Status launch(Context& context, Device& device, const KernelCase& c) {
  if (!c.problem.grouping.grouped()) {
    JITGEMM_ASSIGN(const BlockScaledTensors tensors,
                   make_block_scaled_tensors(c.problem, InputKind::kSeed, 7));
    JITGEMM_ASSIGN(const GemmCaseResult result,
                   run_gemm_case(context, device, c.problem, c.overrides, tensors, {}));
    EXPECT_TRUE(result.verdict.passed) << result.verdict.text;
    return ok_status();
  }
  JITGEMM_ASSIGN(const GroupedTensors tensors,
                 make_grouped_tensors(c.problem, InputKind::kSeed, 7));
  const std::vector<int64_t> counts(c.problem.grouping.groups,
                                    c.problem.m / c.problem.grouping.groups);
  const GroupedRows rows = place_groups(c.problem, counts, 1);
  JITGEMM_ASSIGN(
      const GroupedCaseResult result,
      run_grouped_case(context, device, c.problem, c.overrides, tensors, rows.group_rows, {}));
  EXPECT_TRUE(result.verdict.passed) << result.verdict.text;
  return ok_status();
}

void run(const KernelCase& c, Held held) {
  Result<std::shared_ptr<Context>> context = Context::create({});
  ASSERT_TRUE(context) << context.error().to_string();
  PlanRequest request;
  request.overrides = c.overrides;
  const Result<GemmPlan> plan = plan_gemm(c.problem, request);
  ASSERT_TRUE(plan) << plan.error().to_string();
  SCOPED_TRACE(to_string(*plan));

  // Contents and races of these kernels are other tests' business.
  SimDeviceOptions options;
  options.sanitize = false;
  options.last_warps = held == Held::kEpilogue   ? 0xff0
                       : held == Held::kProducts ? 1 << kMmaWarp
                                                 : 0;
  std::vector<std::string> lines;
  options.trace = [&](std::string_view line) {
    if (contains(line, "tcgen05.") || contains(line, ".bulk.tensor") || contains(line, "st.global"))
      lines.emplace_back(line);
  };
  SimDevice device(c.problem.arch, options);
  const Status status = launch(**context, device, c);
  ASSERT_TRUE(status.ok()) << status.to_string();
  Pipeline pipeline(*plan, held);
  pipeline.judge(issues_of(lines));
  if (held == Held::kEpilogue) {
    EXPECT_GT(pipeline.reads_judged, 0);
    EXPECT_GT(pipeline.stores_judged, 0);
    EXPECT_GT(pipeline.most_units, pipeline.accumulators()) << "nothing had to be waited for";
  } else {
    EXPECT_GT(pipeline.products_judged, 0);
    EXPECT_GT(pipeline.most_stages, pipeline.stages()) << "nothing had to be waited for";
  }
}

std::vector<KernelCase> cases() {
  return {
      product("exact", 128, 192, 512).tile(128, 16).stages(3).alone(),
      product("exact_two_warps_a_lane_group", 128, 512, 640)
          .tile(128, 64)
          .stages(3)
          .alone()
          .out(DType::kBF16),
      product("exact_pair", 256, 192, 512).tile(128, 32).stages(3).pair(),
      product("exact_share", 256, 192, 512).tile(128, 16).stages(3).share(2),
      product("exact_split", 16, 384, 2048).tile(16, 128).stages(3).split(4),
      product("hardware", 128, 192, 512).pow2().tile(128, 16).stages(3).alone(),
      product("hardware_pair", 256, 192, 512).pow2().tile(128, 32).stages(3).pair(),
      of_16_bits("plain_grouped", 256, 128, 256).tile(128, 16).stages(3).alone().grouped(2),
  };
}

std::vector<KernelCase> more_cases() {
  return {
      product("exact_four_blocks_a_stage", 128, 192, 128)
          .tile(128, 16)
          .stages(2)
          .alone()
          .groups(128, 32),
      product("exact_swapped", 16, 1536, 512).tile(16, 128).stages(3).alone(),
      product("exact_swapped_pair", 32, 1536, 512).tile(32, 128).stages(3).pair(),
      product("exact_grouped", 256, 128, 512).tile(128, 16).stages(3).alone().grouped(2),
      product("hardware_share", 512, 96, 512).pow2().tile(128, 32).stages(3).share(4),
      product("hardware_wide", 256, 1536, 128).pow2().tile(128, 256).stages(2).alone(),
      product("hardware_wide_pair", 512, 768, 128)
          .pow2()
          .out(DType::kBF16)
          .tile(128, 256)
          .stages(2)
          .pair(),
      product("hardware_swapped", 16, 1536, 512).pow2().tile(16, 128).stages(3).alone(),
      product("hardware_split", 16, 384, 2048).pow2().tile(16, 128).stages(3).split(4),
      of_16_bits("plain_grouped_swapped", 32, 1024, 256).tile(16, 128).stages(3).alone().grouped(2),
  };
}

class Sm100Pipeline : public testing::TestWithParam<KernelCase> {};

TEST_P(Sm100Pipeline, ProductsAndLoadsRunAheadOfAHeldEpilogueOverTheEndsOfTiles) {
  run(GetParam(), Held::kEpilogue);
}

TEST_P(Sm100Pipeline, LoadsRunAllStagesAheadOfHeldProducts) {
  run(GetParam(), Held::kProducts);
}

TEST_P(Sm100Pipeline, AllStagesAreAskedForBeforeAnyHasArrived) {
  run(GetParam(), Held::kNothing);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Sm100Pipeline, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(MoreKernels, Sm100Pipeline, testing::ValuesIn(more_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace jitgemm::sm100_pipeline_test
