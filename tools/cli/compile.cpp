// SPDX-License-Identifier: Apache-2.0
// jitgemm compile: one kernel, without a GPU; what the compiler made of it.
#include "cli.h"
#include "disassembler.h"
#include "json.h"
#include "support/filesystem.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

struct CompileFlags {
  ProblemFlags problem;
  TargetFlags target;
  bool cached = false;
  bool floor = false;
  std::string ptx;
  std::string cubin;
  std::string sass;
  int launch = 0;  // whose PTX, cubin and SASS are written; 0: the last
};

constexpr const char* kNoDisassembler =
    "no disassembler found: neither nvdisasm nor cuobjdump is on PATH or in a CUDA toolkit";

// The instructions of nvdisasm's or cuobjdump's text: lines that begin with an offset.
int64_t count_instructions(const std::string& sass) {
  int64_t count = 0;
  for (size_t at = 0; (at = sass.find("/*", at)) != std::string::npos; ++at) {
    const size_t end = sass.find("*/", at);
    // Encodings are /* 0x... */; offsets have hexadecimal digits alone, four or more.
    if (end != std::string::npos && end - at >= 6 && end - at <= 10 &&
        sass.find_first_not_of("0123456789abcdef", at + 2) == end) {
      ++count;
    }
  }
  return count;
}

struct Compiled {
  LaunchPlan plan;
  BuiltKernel built;
  std::optional<std::string> sass;
};

Result<std::vector<Compiled>> compile_all(const CompileFlags& flags, const OperationPlan& plan,
                                          const std::optional<Disassembler>& disassembler,
                                          Context& context) {
  std::vector<Compiled> all;
  for (const LaunchPlan& launch : plan.launches) {
    JITGEMM_ASSIGN(
        BuiltKernel built,
        context.builder().build(launch, flags.cached ? BuildMode::kCached : BuildMode::kCompile));
    std::optional<std::string> sass;
    if (disassembler) {
      JITGEMM_ASSIGN(sass, disassemble(*disassembler, built.image->cubin));
    }
    all.push_back({launch, std::move(built), std::move(sass)});
  }
  return all;
}

int32_t dynamic_shared_bytes(const LaunchPlan& plan) {
  const auto* product = std::get_if<GemmPlan>(&plan);
  return product != nullptr ? product->shared_bytes : 0;
}

void print_text(const Compiled& c, const std::string& cache_file,
                const std::optional<Disassembler>& disassembler) {
  const KernelImage& image = *c.built.image;
  fmt::print("{}", to_string(c.plan));
  fmt::print("compiler   {}, {:.0f} ms{}\n", image.compiler, image.compile_ms,
             c.built.from_cache ? " (from the cache)" : "");
  fmt::print("image      {} bytes of PTX, {} bytes of cubin\n", image.ptx.size(),
             image.cubin.size());
  fmt::print(
      "resources  {} registers, {} bytes spilled, {} bytes of stack, {} + {} bytes of shared "
      "memory\n",
      image.registers, image.spill_bytes, image.stack_bytes, image.static_shared_bytes,
      dynamic_shared_bytes(c.plan));
  if (c.sass) {
    fmt::print("sass       {} instructions, by {}\n", count_instructions(*c.sass),
               disassembler->path);
  } else {
    fmt::print("sass       {}\n", kNoDisassembler);
  }
  if (!image.warnings.empty()) fmt::print("warnings   {}", image.warnings);
  fmt::print("cached as  {}\n", cache_file.empty() ? "(memory only)" : cache_file);
}

Json compiled_json(const Compiled& c, const std::string& cache_file) {
  Json json;
  json["kernel"] = launch_name(c.plan);
  json["image"] = to_json(*c.built.image);
  json["image"]["shared_bytes"] = dynamic_shared_bytes(c.plan);
  if (c.sass) json["sass_instructions"] = count_instructions(*c.sass);
  json["from_cache"] = c.built.from_cache;
  json["key"] = c.built.key.hex();
  json["cache_file"] = cache_file;
  json["warnings"] = c.built.image->warnings;
  return json;
}

// An empty kernel in a product's place: what this process, NVRTC and ptxas cost at least.
Status compile_floor(const CompileFlags& flags, Context& context, const Cli& cli) {
  JITGEMM_ASSIGN(const GemmProblem problem, flags.problem.problem(Arch::kSm90a));
  JITGEMM_ASSIGN(const BuiltKernel built,
                 context.builder().build("measure_floor.cu", problem.arch,
                                         {
                                             {"kThreads",    384},
                                             {"kParamWords", 72 }
  },
                                         BuildMode::kCompile));
  if (cli.flags.json) {
    Json json = document("compile");
    json.update(to_json(*built.image));
    print(json);
  } else {
    fmt::print("{}, {:.1f} ms\n", built.image->compiler, built.image->compile_ms);
  }
  return ok_status();
}

Status compile(const CompileFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  if (flags.floor) return compile_floor(flags, *context, cli);
  JITGEMM_ASSIGN(const GemmProblem problem, flags.problem.problem(Arch::kSm90a));
  JITGEMM_ASSIGN(const PlanOverrides overrides, flags.problem.overrides());
  PlanRequest request = context->plan_request(overrides);
  flags.target.apply(request);
  JITGEMM_ASSIGN(const OperationPlan plan, plan_operation(problem, request));
  JITGEMM_ASSIGN(const LaunchPlan* const chosen, choose_launch(plan, flags.launch));
  const std::optional<Disassembler> disassembler =
      find_disassembler(context->settings().value("nvrtc"));
  if (!disassembler && !flags.sass.empty()) return unsupported(kNoDisassembler);
  JITGEMM_ASSIGN(const std::vector<Compiled> all, compile_all(flags, plan, disassembler, *context));
  const Compiled& shown = all[static_cast<size_t>(chosen - plan.launches.data())];
  if (!flags.ptx.empty()) JITGEMM_TRY(write_file(flags.ptx, shown.built.image->ptx));
  if (!flags.cubin.empty()) JITGEMM_TRY(write_file(flags.cubin, shown.built.image->cubin));
  if (!flags.sass.empty()) JITGEMM_TRY(write_file(flags.sass, *shown.sass));
  const auto cache_file = [&](const Compiled& c) {
    return context->cache().entry_path(c.built.key);
  };
  if (cli.flags.json) {
    Json json = document("compile");
    json["plan"] = to_json(plan.product());
    json.update(compiled_json(all.back(), cache_file(all.back())));
    json["kernels"] = Json::array();
    for (const Compiled& c : all) json["kernels"].push_back(compiled_json(c, cache_file(c)));
    print(json);
    return ok_status();
  }
  fmt::print("problem    {}\n", to_string(problem));
  for (const Compiled& c : all) print_text(c, cache_file(c), disassembler);
  return ok_status();
}

}  // namespace

void add_compile_command(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("compile", "Compile the kernels of a problem; no GPU needed");
  auto flags = std::make_shared<CompileFlags>();
  flags->problem.add_to(*command);
  flags->target.add_to(*command);
  command->add_flag("--cached", flags->cached, "A cache hit will do");
  CLI::Option* const floor = command->add_flag(
      "--floor", flags->floor, "An empty kernel instead: what compiling costs at least");
  command->add_option("--ptx", flags->ptx, "Write the PTX to this file")->excludes(floor);
  command->add_option("--cubin", flags->cubin, "Write the cubin to this file")->excludes(floor);
  command
      ->add_option("--sass", flags->sass,
                   "Write the SASS to this file (needs nvdisasm or cuobjdump)")
      ->excludes(floor);
  add_launch_option(*command, flags->launch);
  command->callback([flags, &cli] { cli.finish(compile(*flags, cli)); });
}

}  // namespace jitgemm::cli
