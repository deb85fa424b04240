// SPDX-License-Identifier: Apache-2.0
// jitgemm run: one product on one device, verified against float64.
#include "run.h"

#include "cli.h"
#include "json.h"
#include "selftest/device_inputs.h"
#include "selftest/gemm_case.h"
#include "verify/safetensors.h"

#include <fmt/format.h>

#include <cstdio>

namespace jitgemm::cli {
namespace {

// "auto": the first GPU if it is one of ours, else the simulator.
Result<Device*> choose_device(Context& context, const RunFlags& flags) {
  std::optional<Arch> arch;
  if (!flags.problem.arch.empty()) {
    JITGEMM_ASSIGN(arch, parse_arch(flags.problem.arch));
  }
  if (flags.device != "auto") return context.device(flags.device, arch);
  Result<Device*> gpu = context.device("cuda:0", arch);
  return gpu ? gpu : context.device("sim", arch);
}

// Takes what a file says of the problem; a flag that was given and contradicts it is an error.
// An a of F32, BF16 or F16 is the operation's to quantise, and has no scales.
Status apply_file(const CLI::App& command, BlockScaledTensors& tensors, GemmProblem& problem) {
  const auto take = [&](const char* flag, auto& field, int64_t value) -> Status {
    if (command.count(flag) > 0 && static_cast<int64_t>(field) != value) {
      return invalid_argument(fmt::format("{}: {} contradicts the input file, which says {}", flag,
                                          static_cast<int64_t>(field), value));
    }
    field = static_cast<std::remove_reference_t<decltype(field)>>(value);
    return ok_status();
  };
  const bool quantize = !tensors.a_source.bytes.empty();
  const HostTensor& a = quantize ? tensors.a_source : tensors.a;
  std::vector<const HostTensor*> given = {&a, &tensors.b, &tensors.b_scales};
  if (!quantize) given.push_back(&tensors.a_scales);
  for (const HostTensor* tensor : given) {
    if (tensor->shape.size() != 2) {
      return invalid_argument(
          fmt::format("{}: expected two dimensions, found {}", tensor->name, tensor->shape.size()));
    }
  }
  JITGEMM_TRY(take("--m", problem.m, a.shape[0]));
  JITGEMM_TRY(take("--k", problem.k, a.shape[1]));
  JITGEMM_TRY(take("--n", problem.n, tensors.b.shape[0]));
  JITGEMM_TRY(take("--a-dtype", problem.a_dtype, static_cast<int64_t>(a.dtype)));
  JITGEMM_TRY(take("--b-dtype", problem.b_dtype, static_cast<int64_t>(tensors.b.dtype)));
  JITGEMM_TRY(
      take("--scale-dtype", problem.scale_dtype, static_cast<int64_t>(tensors.b_scales.dtype)));
  JITGEMM_TRY(validate(problem));
  const auto expect = [](const HostTensor& tensor, int64_t rows, int64_t columns,
                         const char* meaning) -> Status {
    if (tensor.shape[0] == rows && tensor.shape[1] == columns) return ok_status();
    return invalid_argument(fmt::format("{}: expected [{}, {}] = {}, found [{}, {}]", tensor.name,
                                        rows, columns, meaning, tensor.shape[0], tensor.shape[1]));
  };
  JITGEMM_TRY(expect(tensors.b, problem.n, problem.k, "[n, k]"));
  JITGEMM_TRY(expect(tensors.b_scales, problem.n_blocks(), problem.k_blocks(),
                     "[ceil(n / group_n), ceil(k / group_k)]"));
  if (quantize) return quantize_source(problem, tensors);
  JITGEMM_TRY(expect(tensors.a_scales, problem.m, problem.k_blocks(), "[m, ceil(k / group_k)]"));
  if (tensors.a_scales.dtype != problem.scale_dtype) {
    return invalid_argument(fmt::format("a_scales: expected {} like b_scales, found {}",
                                        dtype_info(problem.scale_dtype).name,
                                        dtype_info(tensors.a_scales.dtype).name));
  }
  return ok_status();
}

Result<BlockScaledTensors> read_inputs(const std::string& path) {
  JITGEMM_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(path));
  BlockScaledTensors tensors;
  JITGEMM_ASSIGN(HostTensor a, file.load("a"));
  JITGEMM_ASSIGN(tensors.b, file.load("b"));
  JITGEMM_ASSIGN(tensors.b_scales, file.load("b_scales"));
  if (is_quantizable(a.dtype)) {
    tensors.a_source = std::move(a);
  } else {
    tensors.a = std::move(a);
    JITGEMM_ASSIGN(tensors.a_scales, file.load("a_scales"));
  }
  return tensors;
}

void report(const GemmCaseResult& result, const Cli& cli) {
  if (cli.flags.json) {
    Json json = document("run");
    json["device"] = result.device;
    json["plan"] = to_json(result.plan);
    json["operation"] = to_json(result.operation, result.sm_count);
    json["image"] = to_json(result.image);
    json["from_cache"] = result.from_cache;
    json["prepare_ms"] = result.prepare_ms;
    json["run_ms"] = result.run_ms;
    if (result.kernel_us) json["kernel_us"] = *result.kernel_us;
    if (result.tflops) json["tflops"] = *result.tflops;
    json["verified"] = result.verified;
    if (result.verified) {
      json["passed"] = result.verdict.passed;
      json["verdict"] = result.verdict.text;
      json["errors"] = to_json(result.errors);
      json["rounded_errors"] = to_json(result.rounded_errors);
    }
    print(json);
    return;
  }
  fmt::print("device     {}\n{}", result.device, to_string(result.operation, result.sm_count));
  fmt::print("image      {} registers, {} bytes spilled; {} in {:.1f} ms\n", result.image.registers,
             result.image.spill_bytes, result.from_cache ? "from the cache" : "compiled",
             result.prepare_ms);
  fmt::print("ran        {:.1f} ms\n", result.run_ms);
  if (result.kernel_us)
    fmt::print("kernel     {:.2f} us, {:.1f} TFLOP/s\n", *result.kernel_us, *result.tflops);
  if (!result.verified) {
    fmt::print("verified   {}\n", result.plan.problem.m == 0 ? "nothing: there are no rows" : "no");
    return;
  }
  const ErrorMetrics& e = result.errors;
  fmt::print("errors     max abs {:.3g}, relative L2 {:.3g}, 1-2xy/(xx+yy) {:.3g}\n", e.max_abs,
             e.relative_l2, e.dissimilarity);
  fmt::print("verified   {}: {}\n", result.verdict.passed ? "yes" : "NO", result.verdict.text);
}

Status run(const CLI::App& command, const RunFlags& flags, Cli& cli) {
  ContextOptions options = cli.flags.context;
  options.sim_numerics = flags.numerics;
  options.sim_seed = flags.sim_seed;
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  JITGEMM_ASSIGN(Device* const device, choose_device(*context, flags));
  JITGEMM_ASSIGN(GemmProblem problem, flags.problem.problem(device->info().arch));
  JITGEMM_ASSIGN(const PlanOverrides overrides, flags.problem.overrides());
  if (flags.problem.grouped())
    return run_grouped(*context, *device, problem, overrides, flags, cli);

  BlockScaledTensors tensors;
  if (flags.input.empty()) {
    const std::optional<InputKind> kind = parse_input_kind(flags.data);
    if (!kind)
      return invalid_argument(
          fmt::format("--data: expected seed, amax, uniform, wide, integers or special, found '{}'",
                      flags.data));
    JITGEMM_ASSIGN(tensors, make_tensors_for(*context, *device, problem, *kind, flags.seed));
  } else {
    JITGEMM_ASSIGN(tensors, read_inputs(flags.input));
    JITGEMM_TRY(apply_file(command, tensors, problem));
  }
  tensors.group_n = problem.group_n;
  tensors.group_k = problem.group_k;

  GemmCaseOptions case_options;
  case_options.verify = !flags.no_verify;
  case_options.checksums = flags.checksums;
  case_options.timed_launches = flags.repeat;
  case_options.exact =
      flags.input.empty() && parse_input_kind(flags.data) == InputKind::kSmallIntegers;
  // The whole result of a large problem would take the reference minutes.
  case_options.sampled_lines = problem.m * problem.n * problem.k > (int64_t{1} << 33) ? 256 : 0;
  JITGEMM_ASSIGN(const GemmCaseResult result,
                 run_gemm_case(*context, *device, problem, overrides, tensors, case_options));
  if (!flags.output.empty()) JITGEMM_TRY(write_safetensors(flags.output, {result.out}));
  report(result, cli);
  if (result.verified && !result.verdict.passed) cli.exit_code = kExitFailed;
  return ok_status();
}

}  // namespace

void add_run_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand("run", "Run one product and verify it against float64");
  auto flags = std::make_shared<RunFlags>();
  flags->problem.add_to(*command);
  command->add_option("--device", flags->device, "sim, cuda:N, or auto (a GPU if there is one)")
      ->capture_default_str();
  command->add_option("--numerics", flags->numerics,
                      "Simulator arithmetic: exact, hopper or blackwell (default by arch)");
  command->add_option("--sim-seed", flags->sim_seed,
                      "Simulator schedule: 0 is the latest legal one");
  command->add_option("--seed", flags->seed, "Seed of the drawn inputs")
      ->check(integer_from(0))
      ->capture_default_str();
  command
      ->add_option("--data", flags->data,
                   "Drawn inputs: seed, amax, uniform, wide, integers or special")
      ->capture_default_str();
  flags->problem
      .of_groups(command->add_option("--routing", flags->routing,
                                     "Rows of groups: even, skewed or one_group"))
      ->capture_default_str();
  command->add_option("--input", flags->input,
                      "Read a, b, a_scales (unless a is to be quantised) and b_scales from this "
                      "safetensors file");
  command->add_option("--output", flags->output, "Write out to this safetensors file");
  CLI::Option* const no_verify =
      command->add_flag("--no-verify", flags->no_verify, "Skip the comparison with float64");
  command
      ->add_flag("--checksums", flags->checksums,
                 "Also check weighted sums along every row and column (block_scaled_mm)")
      ->excludes(no_verify);
  command->add_option("--repeat", flags->repeat, "Timed launches on a GPU")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->callback([command, flags, &cli] {
    const Status status = run(*command, *flags, cli);
    if (!status.ok()) cli.finish(status);
  });
}

}  // namespace jitgemm::cli
