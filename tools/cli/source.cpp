// SPDX-License-Identifier: Apache-2.0
// jitgemm source: the translation unit that a problem is compiled from.
#include "cli.h"
#include "json.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

struct SourceFlags {
  ProblemFlags problem;
  TargetFlags target;
  bool whole = false;
  int launch = 0;  // 0: the last
};

Status source(const SourceFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const GemmProblem problem, flags.problem.problem(Arch::kSm90a));
  JITGEMM_ASSIGN(const PlanOverrides overrides, flags.problem.overrides());
  PlanRequest request = context->plan_request(overrides);
  flags.target.apply(request);
  JITGEMM_ASSIGN(const OperationPlan plan, plan_operation(problem, request));
  JITGEMM_ASSIGN(const LaunchPlan* const launch, choose_launch(plan, flags.launch));
  JITGEMM_ASSIGN(const KernelSource made, context->builder().source(*launch));
  if (cli.flags.json) {
    Json json = document("source");
    json["target"] = made.target;
    json["entry"] = made.entry;
    json["options"] = compile_options(made.target);
    json["text"] = made.text;
    json["files"] = Json::array();
    json["files"].push_back({
        {"name", made.files.root.name},
        {"text", made.files.root.text}
    });
    for (const SourceFile& file : made.files.headers)
      json["files"].push_back({
          {"name", file.name},
          {"text", file.text}
      });
    print(json);
    return ok_status();
  }
  fmt::print("{}", made.text);
  if (!flags.whole) return ok_status();
  fmt::print("\n// ---- {}\n{}", made.files.root.name, made.files.root.text);
  for (const SourceFile& file : made.files.headers)
    fmt::print("\n// ---- {}\n{}", file.name, file.text);
  return ok_status();
}

}  // namespace

void add_source_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("source", "Show the specialised source of a problem");
  auto flags = std::make_shared<SourceFlags>();
  flags->problem.add_to(*command);
  flags->target.add_to(*command);
  add_launch_option(*command, flags->launch);
  command->add_flag("--whole", flags->whole, "Append the template and its headers");
  command->callback([flags, &cli] { cli.finish(source(*flags, cli)); });
}

}  // namespace jitgemm::cli
