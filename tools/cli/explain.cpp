// SPDX-License-Identifier: Apache-2.0
// jitgemm explain: the plan of a problem, where it comes from, and the candidates that it was
// chosen from, each with what the model expects of it.
#include "bench/plan_choice.h"
#include "cli.h"
#include "json.h"
#include "runtime/tuning.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

struct ExplainFlags {
  ProblemFlags problem;
  TargetFlags target;
  int top = 8;
};

const char* source_sentence(PlanSource source) {
  switch (source) {
    case PlanSource::kModel: return "the model's choice";
    case PlanSource::kDatabase: return "measured: from the tuning database";
    case PlanSource::kOverride: return "forced by the caller's overrides";
  }
  return "?";
}

Status explain(const ExplainFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const GemmProblem problem, flags.problem.problem(Arch::kSm90a));
  JITGEMM_ASSIGN(const TuningDatabase tuning, tuning_for(cli));
  PlanRequest request;
  JITGEMM_ASSIGN(request.overrides, flags.problem.overrides());
  request.tuning = &tuning;
  flags.target.apply(request);
  JITGEMM_ASSIGN(const OperationPlan chosen, plan_operation(problem, request));
  JITGEMM_ASSIGN(std::vector<OperationPlan> ranked, operation_candidates(problem, request));
  const size_t legal = ranked.size();
  const std::vector<OperationPlan> shown = bench::varied_candidates(std::move(ranked), flags.top);
  const GemmPlan& plan = chosen.product();
  const std::string identity = plan_identity(plan);
  if (cli.flags.json) {
    Json json = document("explain");
    json["problem"] = to_json(problem);
    json["plan"] = to_json(plan);
    json["legal_plans"] = legal;
    json["candidates"] = Json::array();
    for (const OperationPlan& candidate : shown) {
      const GemmPlan& product = candidate.product();
      json["candidates"].push_back({
          {"identity",    plan_identity(product)                  },
          {"overrides",   overrides_to_json(overrides_of(product))},
          {"estimate_us", product.estimate_us                     },
          {"chosen",      plan_identity(product) == identity      },
          {"reasons",     product.reasons                         }
      });
    }
    print(json);
    return ok_status();
  }
  fmt::print("problem    {}\nchosen     {}\n           {}\n", to_string(problem), identity,
             source_sentence(plan.source));
  if (plan.estimate_us > 0) fmt::print("estimate   {:.2f} us\n", plan.estimate_us);
  fmt::print("row bits   {}\n", row_bits_depend_on_m(plan)
                                    ? "may depend on m, unless the problem is batch invariant"
                                    : "do not depend on m");
  for (const std::string& reason : plan.reasons) fmt::print("because    {}\n", reason);
  fmt::print("\n{} legal plans; of each arrangement the two best widths, best estimate first:\n",
             legal);
  for (const OperationPlan& candidate : shown) {
    const GemmPlan& product = candidate.product();
    const std::string name = plan_identity(product);
    fmt::print("{} {:9.2f} us  {}\n", name == identity ? "->" : "  ", product.estimate_us, name);
    for (const std::string& reason : product.reasons) fmt::print("                 {}\n", reason);
  }
  return ok_status();
}

}  // namespace

void add_explain_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "explain", "Show the candidate plans of a problem, their estimates and reasons");
  auto flags = std::make_shared<ExplainFlags>();
  flags->problem.add_to(*command);
  flags->target.add_to(*command);
  command->add_option("--top", flags->top, "Candidates to show")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->callback([flags, &cli] { cli.finish(explain(*flags, cli)); });
}

}  // namespace jitgemm::cli
