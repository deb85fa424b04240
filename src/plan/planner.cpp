// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include "plan/tuning_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

namespace jitgemm {
namespace {

// The m that MPolicy::kAny plans for: large enough for full tiles.
constexpr int64_t kAnyPlannedM = 4096;
// The same for the rows of a group, if nothing is said of them.
constexpr int64_t kAnyPlannedGroupRows = 128;

// The rows of an average group.
int64_t mean_group_rows(const GemmProblem& problem) {
  const Grouping& g = problem.grouping;
  int64_t rows = g.expected_m;
  if (rows == 0 && problem.m_policy == MPolicy::kAny) return kAnyPlannedGroupRows;
  if (rows == 0) rows = g.separate_rows() ? problem.m : (problem.m + g.groups - 1) / g.groups;
  return std::max<int64_t>(rows, 1);
}

// The rows of a group that tiles are chosen for. Where counts vary freely, a group of the average
// size would often spill into a second window: room for one deviation of a random count.
int64_t planned_group_rows(const GemmProblem& problem) {
  const Grouping& g = problem.grouping;
  int64_t rows = mean_group_rows(problem);
  if (g.expected_m == 0 && problem.m_policy == MPolicy::kAny) return rows;
  if (g.layout != GroupLayout::kRowIndices && rows <= 256) {
    rows += static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(rows))));
  }
  // A hint, so that kernels stay few whatever the policy.
  return m_class_bound(rows);
}

// The feed of an operand of `groups` matrices, `stride` elements apart (0: dense). One tensor map
// spans all of them, so they must be whole rows apart, and the map has 32-bit coordinates.
Feed grouped_feed(const GemmProblem& p, int64_t ld, int64_t stride, int64_t groups, int64_t rows) {
  const Feed feed = feed_for(std::gcd(ld, stride) * p.operand_bytes(), p.alignment);
  if (feed != Feed::kTma || groups == 1) return feed;
  const int64_t group_rows = stride == 0 ? rows : stride / ld;
  const bool whole_rows = stride % ld == 0 && groups * group_rows <= INT32_MAX;
  return whole_rows ? Feed::kTma : Feed::kCpAsync;
}

bool is_sm90(const GemmProblem& problem) {
  return arch_info(problem.arch).compute_capability / 10 == 9;
}

Result<PlannerInput> planner_input(const GemmProblem& problem, const PlanRequest& request) {
  JITGEMM_TRY(validate(problem));
  if (problem.quantizes_a()) {
    return unsupported(
        fmt::format("a_dtype: a product takes codes, found {}", dtype_info(problem.a_dtype).name));
  }
  const ArchInfo& arch = arch_info(problem.arch);
  if (request.overrides.family) {
    const KernelFamilyInfo& family = kernel_family_info(*request.overrides.family);
    if (family.major != 0 && family.major != arch.compute_capability / 10) {
      return unsupported(fmt::format("kernel: '{}' is not for {}", family.name, arch.target));
    }
  }
  return PlannerInput{normalized(problem), planned_m(problem),
                      request.sm_count > 0 ? request.sm_count : arch.default_sm_count,
                      request.overrides};
}

// What was measured for this problem on the device, made into a plan again; nothing if there is no
// row, or if this build's planner no longer has the plan, which `no_row` then says.
std::optional<GemmPlan> tuned_plan(const PlannerInput& input, const PlanRequest& request,
                                   std::string& no_row) {
  if (request.tuning == nullptr || request.overrides.any()) return std::nullopt;
  const std::optional<TunedPlan> row =
      request.tuning->find(input.problem, request.device_name, input.sm_count);
  if (!row) return std::nullopt;
  Result<GemmPlan> plan = plan_gemm(input.problem, {input.sm_count, row->plan, nullptr, {}});
  if (!plan) {
    no_row = "the tuning database names a plan that this build does not have";
    return std::nullopt;
  }
  plan->source = PlanSource::kDatabase;
  plan->reasons.insert(
      plan->reasons.begin(),
      fmt::format(
          "from the tuning database: {:.2f} us (spread {:.1f} %) on {} on {}, the fastest of "
          "{} plans that were measured{}",
          row->time_us, 100 * row->spread, row->device, row->date.substr(0, 10), row->candidates,
          row->model_time_us > 0
              ? fmt::format("; the model's choice took {:.2f} us", row->model_time_us)
              : "; the model's choice, too"));
  return std::move(*plan);
}

bool has_constants(const GemmPlan& plan, const PlanOverrides& overrides) {
  return std::all_of(
      overrides.constants.begin(), overrides.constants.end(), [&](const SpecField& wanted) {
        return std::find(plan.extra_fields.begin(), plan.extra_fields.end(), wanted) !=
               plan.extra_fields.end();
      });
}

}  // namespace

int64_t planned_m(const GemmProblem& problem) {
  if (problem.grouping.grouped()) return planned_group_rows(problem);
  switch (problem.m_policy) {
    case MPolicy::kExact: return std::max<int64_t>(problem.m, 1);
    case MPolicy::kClass: return m_class_bound(std::max<int64_t>(problem.m, 1));
    case MPolicy::kAny: return kAnyPlannedM;
  }
  return problem.m;
}

Feed feed_for(int64_t row_bytes, int32_t alignment) {
  if (row_bytes % 16 == 0 && alignment >= 16) return Feed::kTma;
  if (row_bytes % 4 == 0 && alignment >= 4) return Feed::kCpAsync;
  return Feed::kPlain;
}

Feed feed_a_for(const GemmProblem& p) {
  return grouped_feed(p, p.lda_or_dense(), p.grouping.a_stride,
                      p.grouping.separate_rows() ? p.grouping.groups : 1, p.m);
}

Feed feed_b_for(const GemmProblem& p) {
  return grouped_feed(p, p.ldb_or_dense(), p.grouping.b_stride,
                      p.grouping.grouped() ? p.grouping.groups : 1, p.n);
}

bool aligned_output_rows(const GemmProblem& p) {
  const int64_t bytes = dtype_info(p.out_dtype).bytes;
  return p.ldo_or_dense() * bytes % 16 == 0 && p.grouping.out_stride * bytes % 16 == 0 &&
         p.alignment >= 16;
}

Store store_for(const GemmProblem& p) {
  const Grouping& g = p.grouping;
  const int64_t group_rows = g.out_stride == 0 ? p.m : g.out_stride / p.ldo_or_dense();
  const bool one_map = !g.separate_rows() ||
                       (g.out_stride % p.ldo_or_dense() == 0 && g.groups * group_rows <= INT32_MAX);
  return aligned_output_rows(p) && one_map ? Store::kTma : Store::kDirect;
}

GroupLoad group_load(const PlannerInput& input) {
  const GemmProblem& p = input.problem;
  const Grouping& g = p.grouping;
  if (!g.grouped()) return {1, input.planned_m};
  int64_t rows = g.separate_rows() ? g.groups * p.m : p.m;
  if (g.expected_m != 0) {
    rows = g.groups * g.expected_m;
  } else if (p.m_policy == MPolicy::kAny) {
    rows = g.groups * input.planned_m;
  }
  return {std::clamp<int64_t>(rows, 1, g.groups), rows};
}

int64_t planned_windows(const PlannerInput& input, int tile_m) {
  const int64_t whole = (input.planned_m + tile_m - 1) / tile_m;
  const Grouping& g = input.problem.grouping;
  const int64_t groups = group_load(input).groups;
  if (g.layout != GroupLayout::kRowIndices) return groups * whole;
  // Windows are fixed: where groups may begin inside of one, most touch one more.
  const int64_t alignment = g.row_alignment == 0 ? kUsualRowAlignment : g.row_alignment;
  const int64_t shared = tile_m - std::gcd<int64_t>(alignment, tile_m);
  return groups * whole + groups * shared / tile_m;
}

double average_turns(const PlannerInput& input, int tile_m, int64_t units_n, int64_t resident,
                     double short_window) {
  const Grouping& g = input.problem.grouping;
  const auto turns = [&](double windows) {
    return std::ceil(windows * static_cast<double>(units_n) / static_cast<double>(resident));
  };
  // Counts that are known: all rows that there are, or runs of rows of a known number in all.
  if (!g.grouped() || g.layout == GroupLayout::kRowIndices || g.expected_m == 0) {
    return turns(static_cast<double>(planned_windows(input, tile_m)));
  }
  // Each group's count is drawn between 0.7 and 1.3 of the mean, say: five counts stand for them.
  // That all groups together have more or less than the mean is the likelier the fewer they are.
  constexpr std::array<double, 5> kShares = {0.76, 0.88, 1.0, 1.12, 1.24};
  const GroupLoad load = group_load(input);
  const double common = std::sqrt(1 / static_cast<double>(load.groups));
  const double own = std::sqrt(1 - common * common);
  const double mean = static_cast<double>(mean_group_rows(input.problem)) / tile_m;
  double sum = 0;
  for (const double of_all : kShares) {
    double windows = 0;
    for (const double of_group : kShares) {
      const double share = 1 + common * (of_all - 1) + own * (of_group - 1);
      const double whole = std::floor(mean * share);
      const double rest = mean * share - whole;
      windows += whole + (rest < 1e-9 ? 0 : rest <= 0.5 ? short_window : 1);
    }
    sum += turns(static_cast<double>(load.groups) * windows / kShares.size());
  }
  return sum / kShares.size();
}

std::string group_reason(const PlannerInput& input, int tile_m) {
  const Grouping& g = input.problem.grouping;
  if (!g.grouped()) return {};
  std::string text = fmt::format(
      "groups: {} of about {} rows ({}), in windows of {} rows", g.groups, input.planned_m,
      g.expected_m != 0                         ? "from expected_m"
      : input.problem.m_policy == MPolicy::kAny ? "for any m, since expected_m is not given"
      : g.separate_rows() ? "all that there is room for, since expected_m is not given"
                          : "from m / groups, since expected_m is not given",
      tile_m);
  if (g.layout == GroupLayout::kRowIndices) {
    text += fmt::format("; runs that begin at multiples of {} are whole windows", tile_m);
  } else {
    text += "; windows begin at each group's first row, and groups without rows have none";
  }
  return text;
}

Result<std::vector<GemmPlan>> plan_candidates(const GemmProblem& problem,
                                              const PlanRequest& request) {
  JITGEMM_ASSIGN(const PlannerInput input, planner_input(problem, request));
  std::vector<GemmPlan> plans;
  if (request.overrides.family == KernelFamily::kReference) {
    JITGEMM_ASSIGN(GemmPlan plan, plan_reference(input));
    plans.push_back(std::move(plan));
  } else {
    plans = is_sm90(problem) ? sm90_candidates(input) : sm100_candidates(input);
  }
  std::erase_if(plans,
                [&](const GemmPlan& plan) { return !has_constants(plan, request.overrides); });
  std::stable_sort(plans.begin(), plans.end(), [](const GemmPlan& x, const GemmPlan& y) {
    return x.estimate_us < y.estimate_us;
  });
  if (request.overrides.any()) {
    for (GemmPlan& plan : plans) plan.source = PlanSource::kOverride;
  }
  return plans;
}

Result<GemmPlan> plan_gemm(const GemmProblem& problem, const PlanRequest& request) {
  if (!request.overrides.constants.empty()) {
    JITGEMM_ASSIGN(std::vector<GemmPlan> plans, plan_candidates(problem, request));
    if (plans.empty()) return unsupported("overrides: no kernel has that combination");
    return std::move(plans.front());
  }
  JITGEMM_ASSIGN(const PlannerInput input, planner_input(problem, request));
  std::string no_row;
  if (std::optional<GemmPlan> tuned = tuned_plan(input, request, no_row)) return std::move(*tuned);
  Result<GemmPlan> plan = request.overrides.family == KernelFamily::kReference
                              ? plan_reference(input)
                          : is_sm90(problem) ? plan_sm90(input)
                                             : plan_sm100(input);
  if (!plan) return plan.error().with_context("planning " + to_string(problem));
  if (request.overrides.any()) {
    plan->source = PlanSource::kOverride;
  } else {
    plan->reasons.push_back("chosen by the model: its estimate is the least of all legal plans");
  }
  if (!no_row.empty()) plan->reasons.push_back(no_row);
  return plan;
}

}  // namespace jitgemm
