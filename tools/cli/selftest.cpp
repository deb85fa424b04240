// SPDX-License-Identifier: Apache-2.0
// jitgemm selftest: a handful of small products on every device at hand, each verified, as a table.
#include "cli.h"
#include "json.h"
#include "selftest/device_inputs.h"
#include "selftest/gemm_case.h"

#include <fmt/format.h>

#include <cstdio>
#include <unistd.h>

namespace jitgemm::cli {
namespace {

struct SelftestFlags {
  std::string device = "all";
  std::vector<std::string> archs;  // empty: sm_90a and sm_100a
};

struct Case {
  int64_t m;
  int64_t n;
  int64_t k;
  DType out;
  int32_t group_n;
  int32_t group_k;
  InputKind data;
  const char* about;
};

// Small enough for the simulator, wide enough to meet tails, every output type and every feed.
constexpr Case kCases[] = {
    {128, 128, 512, DType::kBF16, 128, 128, InputKind::kSeed,          "one tile"              },
    {128, 128, 512, DType::kF32,  128, 128, InputKind::kSmallIntegers,
     "exact integers, bit for bit"                                                             },
    {200, 320, 640, DType::kF32,  128, 128, InputKind::kWideScales,    "scales over 60 octaves"},
    {7,   576, 256, DType::kBF16, 128, 128, InputKind::kUniformCodes,  "few rows"              },
    {83,  136, 404, DType::kF16,  64,  128, InputKind::kUniformCodes,
     "rows of 4 bytes, tails everywhere"                                                       },
    {65,  72,  257, DType::kF32,  1,   32,  InputKind::kUniformCodes,
     "odd rows, a scale for every row of b"                                                    },
};

struct Target {
  Device* device;
  std::string name;
};

Result<std::vector<Target>> choose_targets(Context& context, const SelftestFlags& flags) {
  std::vector<Target> targets;
  if (flags.device != "all" && flags.device != "sim" && !flags.archs.empty()) {
    return invalid_argument(
        fmt::format("--arch: expected with the simulator, found with --device {}", flags.device));
  }
  if (flags.device == "all" || flags.device == "sim") {
    const std::vector<std::string> usual = {"sm_90a", "sm_100a"};
    for (const std::string& name : flags.archs.empty() ? usual : flags.archs) {
      JITGEMM_ASSIGN(const Arch arch, parse_arch(name));
      JITGEMM_ASSIGN(Device* const device, context.device("sim", arch));
      targets.push_back({device, "sim"});
    }
  }
  if (flags.device != "sim") {
    const std::string name = flags.device == "all" ? "cuda:0" : flags.device;
    const Result<Device*> device = context.device(name, std::nullopt);
    if (device) {
      targets.push_back({*device, name});
    } else if (flags.device != "all") {
      return device.error();
    }
  }
  return targets;
}

Status selftest(const SelftestFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const std::vector<Target> targets, choose_targets(*context, flags));
  Json json = document("selftest");
  json["cases"] = Json::array();
  int failed = 0;
  int compiled = 0;
  int ran = 0;
  if (!cli.flags.json) {
    fmt::print("{:<8} {:<8} {:>5} {:>5} {:>5} {:<5} {:<9} {:>11} {:>9}  {}\n", "arch", "device",
               "m", "n", "k", "out", "kernel", "relative L2", "ms", "result");
  }
  for (const Target& target : targets) {
    for (const Case& c : kCases) {
      GemmProblem problem;
      problem.arch = target.device->info().arch;
      problem.m = c.m;
      problem.n = c.n;
      problem.k = c.k;
      problem.out_dtype = c.out;
      problem.group_n = c.group_n;
      problem.group_k = c.group_k;
      JITGEMM_ASSIGN(const BlockScaledTensors tensors,
                     make_tensors_for(*context, *target.device, problem, c.data, 1));
      GemmCaseOptions options;
      options.exact = c.data == InputKind::kSmallIntegers;
      const Result<GemmCaseResult> result =
          run_gemm_case(*context, *target.device, problem, {}, tensors, options);
      const bool passed = result && result->verdict.passed;
      ++ran;
      failed += passed ? 0 : 1;
      compiled += result && !result->from_cache ? 1 : 0;
      const std::string text = !result  ? result.error().to_string()
                               : passed ? std::string("ok: ") + c.about
                                        : result->verdict.text;
      const std::string kernel(result ? kernel_family_info(result->plan.family).name : "-");
      const double error = result ? result->errors.relative_l2 : 0;
      json["cases"].push_back({
          {"problem",     to_json(problem)},
          {"device",      target.name     },
          {"kernel",      kernel          },
          {"passed",      passed          },
          {"relative_l2", error           },
          {"text",        text            }
      });
      if (cli.flags.json) continue;
      fmt::print("{:<8} {:<8} {:>5} {:>5} {:>5} {:<5} {:<9} {:>11.2e} {:>9.1f}  {}\n",
                 arch_info(problem.arch).target, target.name, c.m, c.n, c.k,
                 dtype_info(c.out).short_name, kernel, error, result ? result->run_ms : 0.0, text);
      std::fflush(stdout);
    }
  }
  if (cli.flags.json) {
    json.update({
        {"ran",      ran     },
        {"failed",   failed  },
        {"compiled", compiled}
    });
    print(json);
  } else {
    fmt::print("\n{} products, {} verified, {} failed; {}\n", ran, ran - failed, failed,
               compiled == 0
                   ? "nothing was compiled"
                   : fmt::format("{} kernels compiled, the rest from the cache", compiled));
  }
  if (failed > 0) cli.exit_code = kExitFailed;
  return ok_status();
}

}  // namespace

void add_selftest_command(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("selftest", "Run small products on every device at hand and verify them");
  auto flags = std::make_shared<SelftestFlags>();
  command->add_option("--device", flags->device, "sim, cuda:N, or all (a GPU too, if there is one)")
      ->capture_default_str();
  comma_list(
      command->add_option("--arch", flags->archs,
                          "Archs to simulate (default: sm_90a,sm_100a): " + supported_arch_list()));
  command->callback([flags, &cli] {
    const Status status = selftest(*flags, cli);
    if (!status.ok()) cli.finish(status);
  });
}

}  // namespace jitgemm::cli
