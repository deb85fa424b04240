// SPDX-License-Identifier: Apache-2.0
// jitgemm plan: which kernel a problem gets, and why; for a range of m, which distinct kernels it
// needs.
#include "cli.h"
#include "json.h"

#include <fmt/format.h>

#include <map>

namespace jitgemm::cli {
namespace {

struct PlanFlags {
  ProblemFlags problem;
  TargetFlags target;
};

// Plans that give the same translation unit are one kernel: compare what the specialiser would
// write. All launches together: a quantising launch does not depend on m, so the product decides.
std::string kernel_identity(const OperationPlan& plan) {
  return (*specialize(plan.product(), TemplateStore())).text;
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
  OperationPlan plan;
};

Result<std::vector<DistinctKernel>> distinct_kernels(GemmProblem problem,
                                                     const PlanRequest& request,
                                                     const MRange& range) {
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
    JITGEMM_ASSIGN(OperationPlan plan, plan_operation(problem, request));
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
  JITGEMM_ASSIGN(const MRange range, flags.problem.m_range());
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
      const GemmPlan& product = kernel.plan.product();
      list.push_back({
          {"first_m", kernel.first_m  },
          {"last_m",  kernel.last_m   },
          {"plan",    to_json(product)}
      });
      if (!cli.flags.json) {
        fmt::print("  m {} to {}: {}, tile {} x {} x {}, {} stages, split-k {}; {}\n",
                   kernel.first_m, kernel.last_m, kernel_family_info(product.family).name,
                   product.tile_m, product.tile_n, product.tile_k, product.stages, product.split_k,
                   product.reasons.empty() ? "" : product.reasons.front());
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
  JITGEMM_ASSIGN(const TuningDatabase tuning, tuning_for(cli));
  PlanRequest request;
  request.overrides = overrides;
  request.tuning = &tuning;
  flags.target.apply(request);
  if (flags.problem.m.find("..") != std::string::npos) {
    return plan_range(flags, problem, request, cli);
  }
  JITGEMM_ASSIGN(const OperationPlan made, plan_operation(problem, request));
  const int sm_count = flags.target.sm_count_of(problem.arch);
  if (cli.flags.json) {
    Json json = document("plan");
    json["plan"] = to_json(made.product());
    json.update(to_json(made, sm_count));
    print(json);
  } else {
    fmt::print("{}", to_string(made, sm_count));
  }
  return ok_status();
}

}  // namespace

void add_plan_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("plan", "Show which kernel a problem gets, and why");
  auto flags = std::make_shared<PlanFlags>();
  flags->problem.takes_m_range = true;
  flags->problem.add_to(*command,
                        "Rows of a and of the output; A..B: the distinct kernels of a range");
  flags->target.add_to(*command);
  command->callback([flags, &cli] { cli.finish(plan(*flags, cli)); });
}

}  // namespace jitgemm::cli
