// SPDX-License-Identifier: Apache-2.0
// jitgemm verify: a whole suite of shapes on one device, each compared with float64; the engine of
// tools/gpu_check.
#include "cli.h"
#include "json.h"
#include "problem/manifest.h"
#include "selftest/device_inputs.h"
#include "selftest/gemm_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>

namespace jitgemm::cli {
namespace {

struct VerifyFlags {
  std::string suite = "grid";
  std::string device = "cuda:0";
  std::string arch;
  std::vector<std::string> out_dtypes = {"BF16"};
  std::string manifest;  // empty: the one of 24 shapes that lies in the source
  std::string data;
  int64_t max_macs = 0;
  int repeat = 5;
  bool compile_only = false;
};

constexpr const char* kDefaultManifest = "cache/manifests/seed_block_scaled_mm.json";

struct Shape {
  int64_t m;
  int64_t n;
  int64_t k;
};

// The grid of vLLM's test of its block-scaled product, with its K = 3884 whose rows TMA may not
// touch.
std::vector<Shape> grid_shapes() {
  std::vector<Shape> shapes;
  for (const int64_t n : {128, 512, 576, 7168, 13824}) {
    for (const int64_t k : {256, 3884, 4096, 13824, 16384}) {
      for (const int64_t m : {1, 7, 8, 83, 4096}) shapes.push_back({m, n, k});
    }
  }
  return shapes;
}

Result<std::vector<Shape>> suite_shapes(const VerifyFlags& flags) {
  std::vector<Shape> shapes;
  if (flags.suite == "grid") {
    if (!flags.manifest.empty()) {
      return invalid_argument("--manifest: expected with --suite manifest, found with grid");
    }
    shapes = grid_shapes();
  } else if (flags.suite == "manifest") {
    JITGEMM_ASSIGN(const Manifest manifest,
                   read_manifest(flags.manifest.empty() ? kDefaultManifest : flags.manifest));
    for (const ManifestEntry& entry : manifest.entries) {
      shapes.push_back({entry.m_last, entry.problem.n, entry.problem.k});
    }
  } else {
    return invalid_argument(
        fmt::format("--suite: expected grid or manifest, found '{}'", flags.suite));
  }
  if (flags.max_macs > 0) {
    const auto macs = [](const Shape& s) { return s.m * s.n * s.k; };
    const int64_t least =
        macs(*std::min_element(shapes.begin(), shapes.end(),
                               [&](const Shape& a, const Shape& b) { return macs(a) < macs(b); }));
    if (least > flags.max_macs) {
      return invalid_argument(fmt::format(
          "--max-macs: expected at least the {} of the suite's smallest shape, found {}", least,
          flags.max_macs));
    }
    std::erase_if(shapes, [&](const Shape& s) { return macs(s) > flags.max_macs; });
  }
  return shapes;
}

Result<DType> out_dtype(const std::string& name) {
  if (const std::optional<DType> out = parse_dtype(name)) return *out;
  return invalid_argument(fmt::format("--out-dtype: expected F32, BF16 or F16, found '{}'", name));
}

// What the case needs, into the cache: for a machine without a compiler. The kernels that draw
// inputs on a GPU come along.
Status compile_case(Context& context, const Device& device, const GemmProblem& problem,
                    InputKind kind) {
  JITGEMM_ASSIGN(const OperationPlan plan,
                 plan_operation(problem, context.plan_request({}, &device)));
  for (const LaunchPlan& launch : plan.launches) {
    JITGEMM_ASSIGN(const BuiltKernel built, context.builder().build(launch, BuildMode::kCached));
  }
  return compile_drawing(context, problem, kind);
}

Status verify(const VerifyFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  std::optional<Arch> arch;
  if (!flags.arch.empty()) {
    JITGEMM_ASSIGN(arch, parse_arch(flags.arch));
  }
  JITGEMM_ASSIGN(const std::vector<Shape> shapes, suite_shapes(flags));
  JITGEMM_ASSIGN(Device* const device, context->device(flags.device, arch));
  const std::string data = !flags.data.empty()     ? flags.data
                           : flags.suite == "grid" ? "uniform"
                                                   : "seed";
  const std::optional<InputKind> kind = parse_input_kind(data);
  if (!kind)
    return invalid_argument(fmt::format(
        "--data: expected seed, amax, uniform, wide, integers or special, found '{}'", data));

  Json json = document("verify");
  json.update({
      {"suite",  flags.suite               },
      {"device", device->info().description},
      {"data",   data                      }
  });
  json["cases"] = Json::array();
  int ran = 0;
  int failed = 0;
  double worst = 0;
  for (const Shape& shape : shapes) {
    GemmProblem problem;
    problem.arch = device->info().arch;
    problem.m = shape.m;
    problem.n = shape.n;
    problem.k = shape.k;
    if (flags.compile_only) {
      for (const std::string& name : flags.out_dtypes) {
        JITGEMM_ASSIGN(problem.out_dtype, out_dtype(name));
        JITGEMM_TRY(compile_case(*context, *device, problem, *kind));
        ++ran;
      }
      continue;
    }
    JITGEMM_ASSIGN(const BlockScaledTensors tensors,
                   make_tensors_for(*context, *device, problem, *kind, 1));
    for (const std::string& name : flags.out_dtypes) {
      JITGEMM_ASSIGN(problem.out_dtype, out_dtype(name));
      GemmCaseOptions options;
      options.sampled_lines = 128;
      options.checksums = true;
      options.exact = *kind == InputKind::kSmallIntegers;
      options.timed_launches = flags.repeat;
      const Result<GemmCaseResult> result =
          run_gemm_case(*context, *device, problem, {}, tensors, options);
      const bool passed = result && result->verdict.passed;
      const std::string text = result ? result->verdict.text : result.error().to_string();
      ++ran;
      failed += passed ? 0 : 1;
      Json row = {
          {"m",         shape.m},
          {"n",         shape.n},
          {"k",         shape.k},
          {"out_dtype", name   },
          {"passed",    passed },
          {"text",      text   }
      };
      if (result) {
        worst = std::max(worst, result->errors.relative_l2);
        row["relative_l2"] = result->errors.relative_l2;
        row["mean_ratio"] = result->rounded_errors.mean_ratio;
        row["kernel"] = kernel_family_info(result->plan.family).name;
        if (result->kernel_us) row["kernel_us"] = *result->kernel_us;
        if (result->tflops) row["tflops"] = *result->tflops;
      }
      json["cases"].push_back(row);
      if (cli.flags.json) continue;
      fmt::print("{:>7} {:>6} {:>6} {:<5} {:<6} {:>10.3e} {:>10.3e} {:>10} us {:>8}  {}\n", shape.m,
                 shape.n, shape.k, name, passed ? "ok" : "FAILED",
                 result ? result->errors.relative_l2 : 0.0,
                 result ? result->rounded_errors.mean_ratio : 0.0,
                 result && result->kernel_us ? fmt::format("{:.2f}", *result->kernel_us) : "-",
                 result && result->tflops ? fmt::format("{:.1f}", *result->tflops) : "-",
                 passed ? "" : text);
      std::fflush(stdout);
    }
  }
  json.update({
      {"ran",               ran   },
      {"failed",            failed},
      {"worst_relative_l2", worst }
  });
  if (cli.flags.json) {
    print(json);
  } else {
    fmt::print("{} {}, {} failed\n", ran - failed, flags.compile_only ? "compiled" : "passed",
               failed);
  }
  if (failed > 0) cli.exit_code = kExitFailed;
  return ok_status();
}

}  // namespace

void add_verify_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "verify", "Run a suite of shapes on one device and verify each against float64");
  auto flags = std::make_shared<VerifyFlags>();
  command->add_option("--suite", flags->suite, "grid (vLLM's test grid), or manifest")
      ->capture_default_str();
  command->add_option(
      "--manifest", flags->manifest,
      fmt::format("The manifest of --suite manifest (default: {})", kDefaultManifest));
  command->add_option("--device", flags->device, "cuda:N or sim")->capture_default_str();
  command->add_option("--arch", flags->arch, "Arch to simulate: " + supported_arch_list());
  comma_list(command->add_option("--out-dtype", flags->out_dtypes, "Output dtypes"))
      ->capture_default_str();
  command->add_option("--data", flags->data,
                      "Drawn inputs (default: uniform for grid, seed for manifest)");
  command
      ->add_option("--max-macs", flags->max_macs, "Skip shapes with more multiply-adds than this")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
  command->add_flag("--compile-only", flags->compile_only,
                    "Only compile what the suite needs into the cache");
  command->add_option("--repeat", flags->repeat, "Timed launches on a GPU")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->callback([flags, &cli] {
    const Status status = verify(*flags, cli);
    if (!status.ok()) cli.finish(status);
  });
}

}  // namespace jitgemm::cli
