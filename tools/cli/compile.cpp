// SPDX-License-Identifier: Apache-2.0
// jitgemm compile: one kernel, without a GPU; what the compiler made of it.
#include "cli.h"
#include "json.h"
#include "support/filesystem.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

struct CompileFlags {
  ProblemFlags problem;
  bool cached = false;
  std::string ptx;
  std::string cubin;
};

Status compile(const CompileFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const GemmProblem problem, flags.problem.problem(Arch::kSm90a));
  JITGEMM_ASSIGN(const PlanOverrides overrides, flags.problem.overrides());
  JITGEMM_ASSIGN(const GemmPlan plan, plan_gemm(problem, {0, overrides}));
  JITGEMM_ASSIGN(
      const BuiltKernel built,
      context->builder().build(plan, flags.cached ? BuildMode::kCached : BuildMode::kCompile));
  const KernelImage& image = *built.image;
  if (!flags.ptx.empty()) JITGEMM_TRY(write_file(flags.ptx, image.ptx));
  if (!flags.cubin.empty()) JITGEMM_TRY(write_file(flags.cubin, image.cubin));
  const std::string path = context->cache().entry_path(built.key);
  if (cli.flags.json) {
    Json json = document("compile");
    json["plan"] = to_json(plan);
    json["image"] = to_json(image);
    json["from_cache"] = built.from_cache;
    json["key"] = built.key.hex();
    json["cache_file"] = path;
    json["warnings"] = image.warnings;
    print(json);
    return ok_status();
  }
  fmt::print("problem    {}\n{}", to_string(problem), to_string(plan));
  fmt::print("compiler   {}, {:.0f} ms{}\n", image.compiler, image.compile_ms,
             built.from_cache ? " (from the cache)" : "");
  fmt::print("image      {} bytes of PTX, {} bytes of cubin\n", image.ptx.size(),
             image.cubin.size());
  fmt::print(
      "resources  {} registers, {} bytes spilled, {} bytes of stack, {} + {} bytes of shared "
      "memory\n",
      image.registers, image.spill_bytes, image.stack_bytes, image.static_shared_bytes,
      plan.shared_bytes);
  if (!image.warnings.empty()) fmt::print("warnings   {}", image.warnings);
  fmt::print("cached as  {}\n", path.empty() ? "(memory only)" : path);
  return ok_status();
}

}  // namespace

void add_compile_command(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("compile", "Compile the kernel of a problem; no GPU needed");
  auto flags = std::make_shared<CompileFlags>();
  flags->problem.add_to(*command);
  command->add_flag("--cached", flags->cached, "A cache hit will do");
  command->add_option("--ptx", flags->ptx, "Write the PTX to this file");
  command->add_option("--cubin", flags->cubin, "Write the cubin to this file");
  command->callback([flags, &cli] { cli.finish(compile(*flags, cli)); });
}

}  // namespace jitgemm::cli
