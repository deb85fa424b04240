// SPDX-License-Identifier: Apache-2.0
// jitgemm plan: which kernel a problem gets, and why; for a range of m, which distinct kernels it
// needs.
#include "cli.h"
#include "json.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace jitgemm::cli {
namespace {

struct PlanFlags {
  ProblemFlags problem;
  std::string m_range;  // "A..B"
  int sm_count = 0;
};

struct Range {
  int64_t first = 0;
  int64_t last = 0;
};

Result<Range> parse_range(const std::string& text) {
  Range range;
  const size_t dots = text.find("..");
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto number = [](const char* from, const char* to, int64_t& value) {
    const auto [stop, error] = std::from_chars(from, to, value);
    return error == std::errc() && stop == to;
  };
  const bool good = dots != std::string::npos && number(begin, begin + dots, range.first) &&
                    number(begin + dots + 2, end, range.last) && range.first >= 1 &&
                    range.first <= range.last;
  if (!good)
    return invalid_argument(
        fmt::format("--m-range: expected A..B with 1 <= A <= B, found '{}'", text));
  return range;
}

// Plans that give the same translation unit are one kernel: compare what the specialiser would
// write.
std::string kernel_identity(const GemmPlan& plan) {
  const KernelSource source = *specialize(plan, TemplateStore());
  return source.text;
}

// What a plan under MPolicy::kClass depends on of m: of groups, the rows of one.
int64_t class_of(const GemmProblem& problem, int64_t m) {
  const Grouping& grouping = problem.grouping;
  if (!grouping.grouped()) return m_class_bound(m);
  if (grouping.expected_m != 0) return 0;
  return grouping.separate_rows() ? m : (m + grouping.groups - 1) / grouping.groups;
}

struct DistinctKernel {
  int64_t first_m = 0;
  int64_t last_m = 0;
  int64_t count_m = 0;
  GemmPlan plan;
};

Result<std::vector<DistinctKernel>> distinct_kernels(GemmProblem problem,
                                                     const PlanRequest& request,
                                                     const Range& range) {
  std::map<std::string, size_t> seen;
  std::vector<DistinctKernel> kernels;
  for (int64_t m = range.first; m <= range.last; ++m) {
    problem.m = m;
    // Between two class bounds nothing changes.
    if (problem.m_policy == MPolicy::kClass && m > range.first &&
        class_of(problem, m) == class_of(problem, m - 1)) {
      kernels.back().last_m = m;
      ++kernels.back().count_m;
      continue;
    }
    JITGEMM_ASSIGN(GemmPlan plan, plan_gemm(problem, request));
    const auto [entry, is_new] = seen.emplace(kernel_identity(plan), kernels.size());
    if (is_new) kernels.push_back({m, m, 0, std::move(plan)});
    kernels[entry->second].last_m = m;
    ++kernels[entry->second].count_m;
    if (problem.m_policy == MPolicy::kAny) {
      kernels[0].last_m = range.last;
      kernels[0].count_m = range.last - range.first + 1;
      break;
    }
  }
  return kernels;
}

Status plan_range(const PlanFlags& flags, GemmProblem problem, const PlanRequest& request,
                  const Cli& cli) {
  JITGEMM_ASSIGN(const Range range, parse_range(flags.m_range));
  Json json = document("plan");
  static constexpr const char* kNames[] = {"exact", "class", "any"};
  for (const MPolicy policy : {MPolicy::kExact, MPolicy::kClass, MPolicy::kAny}) {
    problem.m_policy = policy;
    const char* name = kNames[static_cast<int>(policy)];
    // Every m is its own kernel when m is a constant: no need to plan each of thousands to say so.
    if (policy == MPolicy::kExact && problem.grouping.grouped()) continue;  // the same as class
    if (policy == MPolicy::kExact) {
      const int64_t count = range.last - range.first + 1;
      json[name] = {
          {"kernels", count}
      };
      if (!cli.flags.json) fmt::print("exact: {} kernels; m is a constant of each\n", count);
      continue;
    }
    JITGEMM_ASSIGN(const std::vector<DistinctKernel> kernels,
                   distinct_kernels(problem, request, range));
    Json list = Json::array();
    if (!cli.flags.json) fmt::print("{}: {} kernels\n", name, kernels.size());
    for (const DistinctKernel& kernel : kernels) {
      list.push_back({
          {"first_m", kernel.first_m      },
          {"last_m",  kernel.last_m       },
          {"plan",    to_json(kernel.plan)}
      });
      if (!cli.flags.json) {
        fmt::print("  m {} to {}: {}, tile {} x {} x {}, {} stages, split-k {}; {}\n",
                   kernel.first_m, kernel.last_m, kernel_family_info(kernel.plan.family).name,
                   kernel.plan.tile_m, kernel.plan.tile_n, kernel.plan.tile_k, kernel.plan.stages,
                   kernel.plan.split_k,
                   kernel.plan.reasons.empty() ? "" : kernel.plan.reasons.front());
      }
    }
    json[name] = {
        {"kernels", kernels.size()},
        {"list",    list          }
    };
  }
  if (cli.flags.json) print(json);
  return ok_status();
}

Status plan(const PlanFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const GemmProblem problem, flags.problem.problem(Arch::kSm90a));
  JITGEMM_ASSIGN(const PlanOverrides overrides, flags.problem.overrides());
  const PlanRequest request{flags.sm_count, overrides};
  if (!flags.m_range.empty()) return plan_range(flags, problem, request, cli);
  JITGEMM_ASSIGN(const GemmPlan made, plan_gemm(problem, request));
  const int sm_count =
      flags.sm_count > 0 ? flags.sm_count : arch_info(problem.arch).default_sm_count;
  const LaunchGeometry geometry = launch_geometry(made, std::max<int64_t>(problem.m, 1), sm_count);
  if (cli.flags.json) {
    Json json = document("plan");
    json["plan"] = to_json(made);
    json["launches"] = {
        {{"kernel", kernel_family_info(made.family).name},
         {"grid", {geometry.grid.x, geometry.grid.y, geometry.grid.z}},
         {"block", {geometry.block.x, geometry.block.y, geometry.block.z}},
         {"cluster", {geometry.cluster.x, geometry.cluster.y, geometry.cluster.z}}}
    };
    print(json);
  } else {
    fmt::print("problem    {}\n{}", to_string(problem), to_string(made));
    fmt::print("launch 1   grid {} x {} x {}, block {}, on {} SMs\n", geometry.grid.x,
               geometry.grid.y, geometry.grid.z, geometry.block.x, sm_count);
  }
  return ok_status();
}

}  // namespace

void add_plan_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("plan", "Show which kernel a problem gets, and why");
  auto flags = std::make_shared<PlanFlags>();
  flags->problem.add_to(*command);
  command->add_option("--m-range", flags->m_range,
                      "A..B: the distinct kernels that a range of m needs");
  command->add_option("--sm-count", flags->sm_count,
                      "SMs to plan for (default: the arch's usual part)");
  command->callback([flags, &cli] { cli.finish(plan(*flags, cli)); });
}

}  // namespace jitgemm::cli
