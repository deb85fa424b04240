// SPDX-License-Identifier: Apache-2.0
// jitgemm sim: any PTX on the simulator. `run` executes launches that a JSON file describes,
// `entries` lists what a module has to launch.
#include "cli.h"
#include "json.h"
#include "sim/program.h"
#include "simrun/kernel_run.h"
#include "simrun/launch_json.h"
#include "simrun/named_file.h"
#include "simrun/report_json.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <vector>

namespace jitgemm::cli {
namespace {

struct SimFlags {
  std::string ptx;
  std::string launch;
  std::string trace;
  std::string numerics;
  std::string sanitize;
  std::string races;
  std::optional<uint64_t> seed;
  std::optional<uint64_t> step_limit;
  std::optional<uint64_t> time_limit;
  std::optional<uint64_t> memory_limit;
  std::optional<uint32_t> threads;
  std::vector<uint32_t> last_warps;
  bool statistics = false;
  bool strict = false;
};

// A flag that was given wins over the description's options.
Status apply(const SimFlags& flags, simrun::RunOptions& options) {
  sim::Options& simulator = options.simulator;
  simulator.seed = flags.seed.value_or(simulator.seed);
  simulator.step_limit = flags.step_limit.value_or(simulator.step_limit);
  if (flags.time_limit) simulator.time_limit_ms = *flags.time_limit * 1000;
  simulator.threads = flags.threads.value_or(simulator.threads);
  if (!flags.last_warps.empty()) simulator.last_warps = 0;
  for (const uint32_t warp : flags.last_warps) simulator.last_warps |= uint64_t{1} << warp;
  options.memory_limit = flags.memory_limit.value_or(options.memory_limit);
  simulator.statistics = simulator.statistics || flags.statistics;
  simulator.strict = simulator.strict || flags.strict;
  if (!flags.sanitize.empty()) simulator.sanitize = flags.sanitize == "on";
  if (!flags.races.empty()) simulator.races = flags.races == "on";
  if (!flags.trace.empty()) {
    // The command line's files are not relative to the description's folder.
    std::error_code code;
    options.trace_file = std::filesystem::absolute(flags.trace, code).string();
  }
  if (!flags.numerics.empty()) {
    options.numerics = simrun::parse_numerics(flags.numerics);
    if (!options.numerics) {
      return invalid_argument(fmt::format(
          "--numerics: expected exact, hopper or blackwell, found '{}'", flags.numerics));
    }
  }
  return ok_status();
}

Status run_launches(const SimFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::string ptx, simrun::read_text(flags.ptx));
  JITGEMM_ASSIGN(const std::string json, simrun::read_text(flags.launch));
  auto description = simrun::parse_launch_json(json);
  if (!description) return description.error().with_context(flags.launch);
  JITGEMM_TRY(apply(flags, description->options));
  const bool statistics = description->options.simulator.statistics;
  if (!cli.flags.json) {
    description->options.print = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
    };
  }
  const std::string folder = std::filesystem::path(flags.launch).parent_path().string();
  JITGEMM_ASSIGN(simrun::KernelRun run,
                 simrun::KernelRun::create(ptx, std::move(*description), folder));
  JITGEMM_ASSIGN(const simrun::RunReport report, run.run());
  fmt::print("{}{}",
             cli.flags.json ? simrun::to_json_text(report) : simrun::to_text(report, statistics),
             cli.flags.json ? "\n" : "");
  if (report.mismatches.empty()) return ok_status();
  // The report has been printed; as JSON it holds the mismatches.
  if (!cli.flags.json) {
    for (const std::string& line : report.mismatches) fmt::print(stderr, "jitgemm: {}\n", line);
  }
  cli.exit_code = kExitFailed;
  return ok_status();
}

Status list_entries(const SimFlags& flags, const Cli& cli) {
  JITGEMM_ASSIGN(const std::string ptx, simrun::read_text(flags.ptx));
  const auto loaded = sim::Program::load(ptx);
  if (!loaded) return loaded.error().with_context("PTX");
  const sim::Program& program = *loaded;
  const ptx::Module& module = program.decoded().module;
  Json json = document("sim entries");
  json["target"] = module.target;
  json["entries"] = Json::array();
  if (!cli.flags.json) fmt::print("target {}\n", module.target);
  for (const ptx::Function& f : module.functions) {
    if (!f.is_entry) continue;
    Json row = {
        {"name",          f.name       },
        {"static_shared", f.shared_size},
        {"parameters",    Json::array()}
    };
    if (!cli.flags.json)
      fmt::print("{}: {} bytes of static shared memory\n", f.name, f.shared_size);
    for (const ptx::Parameter& p : f.parameters) {
      const ptx::Symbol& symbol = module.symbols[p.index];
      row["parameters"].push_back({
          {"name",   symbol.name  },
          {"bytes",  symbol.size  },
          {"align",  symbol.align },
          {"offset", symbol.offset}
      });
      if (!cli.flags.json) {
        fmt::print("  {} bytes, aligned to {}: {}\n", symbol.size, symbol.align, symbol.name);
      }
    }
    json["entries"].push_back(std::move(row));
  }
  if (cli.flags.json) print(json);
  return ok_status();
}

}  // namespace

void add_sim_command(CLI::App& app, Cli& cli) {
  CLI::App* sim = app.add_subcommand("sim", "Run any PTX on the simulator");
  sim->require_subcommand(1);
  sim->fallthrough();
  auto flags = std::make_shared<SimFlags>();

  CLI::App* run = sim->add_subcommand("run", "Run launches that a JSON file describes");
  run->fallthrough();
  run->add_option("ptx", flags->ptx, "File of PTX")->required();
  run->add_option("--launch", flags->launch, "File that describes the launches")->required();
  run->add_option("--trace", flags->trace, "Write each warp instruction and wait to this file");
  run->add_flag("--stats", flags->statistics,
                "Instructions, bytes by space, bank conflicts, waits of each warp");
  run->add_option("--seed", flags->seed,
                  "Schedule; 0 finishes asynchronous work as late as is legal")
      ->check(integer_from(0));
  run->add_option("--last-warps", flags->last_warps,
                  "Warps of each CTA that run only when nothing else can, e.g. 4,5")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 63));
  run->add_option("--numerics", flags->numerics, "exact, hopper or blackwell");
  run->add_option("--sanitize", flags->sanitize, "on or off")->check(CLI::IsMember({"on", "off"}));
  run->add_option("--races", flags->races, "Data races, a part of --sanitize on: on or off")
      ->check(CLI::IsMember({"on", "off"}));
  run->add_flag("--strict", flags->strict,
                "Also rules that today's GPUs do not enforce (docs/simulator.md)");
  run->add_option("--threads", flags->threads, "Host threads")->check(CLI::Range(1, 1024));
  run->add_option("--step-limit", flags->step_limit, "Warp instructions of a launch")
      ->check(integer_from(1));
  run->add_option("--time-limit", flags->time_limit, "Seconds of a launch")
      ->check(CLI::Range(0, 1000000));
  run->add_option("--memory-limit", flags->memory_limit,
                  "Bytes of the buffers, and of the simulator's state")
      ->check(integer_from(1));
  run->callback([flags, &cli] {
    const Status status = run_launches(*flags, cli);
    if (!status.ok()) cli.finish(status);
  });

  CLI::App* entries =
      sim->add_subcommand("entries", "List a module's entries and their parameters");
  entries->fallthrough();
  entries->add_option("ptx", flags->ptx, "File of PTX")->required();
  entries->callback([flags, &cli] { cli.finish(list_entries(*flags, cli)); });
}

}  // namespace jitgemm::cli
