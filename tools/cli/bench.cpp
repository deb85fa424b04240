// SPDX-License-Identifier: Apache-2.0
// jitgemm bench: products timed against peers on a GPU, each checked first. The method is in
// docs/performance.md.
#include "bench/ceilings.h"
#include "bench/plan_choice.h"
#include "bench/quantize_rates.h"
#include "bench/shape_run.h"
#include "cli.h"
#include "json.h"
#include "shape_flags.h"
#include "support/filesystem.h"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

namespace jitgemm::cli {
namespace {

struct BenchFlags {
  ShapeFlags shapes;
  std::string device = "cuda:0";
  std::string arch;
  std::string plans = "auto";
  std::string regime = "rested";
  std::string cublaslt;
  std::vector<std::string> modules;
  std::string python_library;
  std::string output;
  std::string commit = "unknown";
  std::string label;
  std::string pdl = "off";
  double sustained_seconds = 0.2;
  int rounds = 9;
  int repeats = 0;
  double seconds_per_shape = 0;
  bool ceilings = false;
  bool no_peers = false;
  bool compile_only = false;
};

bool ceilings_alone(const BenchFlags& flags) {
  return flags.ceilings && !flags.shapes.any();
}

Result<std::string> plans_text(const std::string& flag) {
  if (!flag.starts_with('@')) return flag;
  std::ifstream file(flag.substr(1), std::ios::binary);
  if (!file) return io_error("--plans: " + flag.substr(1) + " could not be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct ShapeWork {
  std::optional<bench::GroupedShape> groups;
  std::vector<OperationPlan> plans;
};

class Planner {
 public:
  Planner(const BenchFlags& flags, Arch arch, const PlanRequest& request, std::string choice)
      : flags_(flags), arch_(arch), request_(request), choice_(std::move(choice)) {}

  // The plans of every shape and output type.
  Result<std::vector<ShapeWork>> plan_all() const {
    if (ceilings_alone(flags_)) return std::vector<ShapeWork>();
    return flags_.shapes.grouped() ? plan_groups() : plan_products();
  }

 private:
  Result<std::vector<ShapeWork>> plan_products() const {
    JITGEMM_ASSIGN(const std::vector<bench::Shape> shapes, flags_.shapes.shapes());
    std::vector<ShapeWork> work;
    for (const std::string& out_dtype : flags_.shapes.out_dtypes) {
      for (const bench::Shape& shape : shapes) {
        ShapeWork item;
        for (const auto& [policy, major] : flags_.shapes.variants()) {
          JITGEMM_ASSIGN(const GemmProblem problem,
                         flags_.shapes.problem(shape, out_dtype, policy, major, arch_));
          JITGEMM_TRY(add(problem, item));
        }
        work.push_back(std::move(item));
      }
    }
    return work;
  }

  Result<std::vector<ShapeWork>> plan_groups() const {
    JITGEMM_ASSIGN(const std::vector<bench::GroupedShape> shapes, flags_.shapes.grouped_shapes());
    std::vector<ShapeWork> work;
    for (const std::string& out_dtype : flags_.shapes.out_dtypes) {
      for (const bench::GroupedShape& shape : shapes) {
        ShapeWork item;
        item.groups = shape;
        for (const auto& [policy, major] : flags_.shapes.variants()) {
          JITGEMM_ASSIGN(const std::vector<GemmProblem> problems,
                         flags_.shapes.problems(shape, out_dtype, policy, major, arch_));
          for (const GemmProblem& problem : problems) JITGEMM_TRY(add(problem, item));
        }
        work.push_back(std::move(item));
      }
    }
    return work;
  }

  Status add(const GemmProblem& problem, ShapeWork& item) const {
    JITGEMM_ASSIGN(std::vector<OperationPlan> plans,
                   bench::choose_plans(problem, request_, choice_));
    for (OperationPlan& plan : plans) item.plans.push_back(std::move(plan));
    return ok_status();
  }

  const BenchFlags& flags_;
  Arch arch_;
  PlanRequest request_;
  std::string choice_;
};

Status compile_all(Context& context, Arch arch, const std::vector<ShapeWork>& work,
                   const Cli& cli) {
  JITGEMM_TRY(bench::GpuKernels::compile(context, arch));
  JITGEMM_TRY(bench::compile_quantizing(context, arch));
  size_t kernels = 0;
  for (const ShapeWork& item : work) {
    for (const OperationPlan& plan : item.plans) {
      for (const LaunchPlan& launch : plan.launches) {
        JITGEMM_ASSIGN(const BuiltKernel kernel,
                       context.builder().build(launch, BuildMode::kCached));
        ++kernels;
      }
    }
  }
  if (cli.flags.json) {
    Json json = document("bench");
    json["kernels"] = kernels;
    json["shapes"] = work.size();
    print(json);
  } else {
    fmt::print("{} kernels of {} shapes are in the cache\n", kernels, work.size());
  }
  return ok_status();
}

void print_shape(const bench::ShapeResult& shape) {
  std::string groups;
  if (shape.groups) {
    groups = fmt::format(
        "{} groups of {}{}, ", shape.groups->groups, shape.groups->rows,
        shape.groups->masked() ? fmt::format(" (about {} in use)", shape.groups->mean) : "");
  }
  fmt::print("{}m={} n={} k={} {} ({}, set-up {:.2f} s)\n", groups, shape.shape.m, shape.shape.n,
             shape.shape.k, shape.out_dtype,
             shape.single_call ? "single calls" : fmt::format("graph of {} calls", shape.sets),
             shape.setup_s);
  for (const bench::ContenderResult& c : shape.contenders) {
    std::string times;
    if (!c.rested_us.empty()) {
      const bench::Summary s = bench::summarize(c.rested_us);
      times += fmt::format(" {:9.2f} us {:6.0f} TFLOP/s (spread {:.1f} %)", s.median,
                           shape.shape.flops() / (s.median * 1e6), 100 * s.spread());
    }
    if (c.sustained) {
      times += fmt::format("  sustained {:9.2f} us, {:.0f} MHz, {:.0f} W", c.sustained->call_us,
                           c.sustained->state.sm_clock_mhz, c.sustained->state.power_w);
    }
    if (c.repeats) {
      times += fmt::format(" {} of {} runs with other bits", c.repeats->differing, c.repeats->runs);
    }
    if (!c.not_timed.empty()) times += " not timed: " + c.not_timed;
    if (c.check) times += fmt::format("  error {:.3g}", c.check->relative_l2);
    std::string form;
    if (shape.groups)
      form = fmt::format("{} {} ", bench::grouped_form_name(c.info.form), c.info.layout);
    fmt::print("  {:<20}{}  {}{}{}\n", c.info.name, times, form, c.info.variant,
               c.info.programmatic ? " pdl" : "");
  }
  std::fflush(stdout);
}

bool any_wrong(const bench::BenchResult& result) {
  for (const bench::ShapeResult& shape : result.shapes) {
    for (const bench::ContenderResult& c : shape.contenders) {
      if (c.check && !c.check->passed) return true;
      if (c.repeats && c.repeats->differing > 0) return true;
    }
  }
  return false;
}

Status run_bench(const BenchFlags& flags, Cli& cli) {
  if (flags.regime != "rested" && flags.regime != "sustained" && flags.regime != "both") {
    return invalid_argument(
        fmt::format("--regime: expected rested, sustained or both, found '{}'", flags.regime));
  }
  if (flags.pdl != "off" && flags.pdl != "on" && flags.pdl != "both") {
    return invalid_argument(fmt::format("--pdl: expected off, on or both, found '{}'", flags.pdl));
  }
  if (flags.repeats > 0 && flags.shapes.grouped()) {
    return unsupported("--repeats: of single products only");
  }
  if (!ceilings_alone(flags)) JITGEMM_TRY(flags.shapes.check());
  JITGEMM_ASSIGN(const std::string choice, plans_text(flags.plans));
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  std::optional<Arch> arch;
  if (!flags.arch.empty()) {
    JITGEMM_ASSIGN(arch, parse_arch(flags.arch));
  }
  if (flags.compile_only) {
    const Arch target = arch.value_or(Arch::kSm90a);
    JITGEMM_ASSIGN(const std::vector<ShapeWork> work,
                   Planner(flags, target, context->plan_request({}), choice).plan_all());
    return compile_all(*context, target, work, cli);
  }
  JITGEMM_ASSIGN(Device* const device, context->device(flags.device, arch));
  const DeviceInfo& info = device->info();
  JITGEMM_ASSIGN(const std::vector<ShapeWork> work,
                 Planner(flags, info.arch, context->plan_request({}, device), choice).plan_all());
  JITGEMM_ASSIGN(const std::unique_ptr<bench::GpuSession> session,
                 bench::GpuSession::create(*context, *device));

  bench::BenchResult result;
  result.date = utc_now();
  result.commit = flags.commit;
  result.label = flags.label;
  result.version = JITGEMM_VERSION_STRING;
  result.device = info.description;
  result.sm_count = info.sm_count;
  result.driver_version = info.driver_version;
  result.power_limit_w = session->power_limit_w();
  result.rounds = flags.rounds;
  std::unique_ptr<bench::CublasLt> peers;
  if (!flags.no_peers) {
    Result<std::unique_ptr<bench::CublasLt>> opened =
        bench::CublasLt::create(*session, flags.cublaslt);
    if (opened) {
      peers = std::move(*opened);
      result.cublaslt = peers->version();
    } else if (!flags.cublaslt.empty()) {
      return opened.error();
    } else {
      result.cublaslt = opened.error().to_string();
    }
  }
  std::vector<std::unique_ptr<bench::PeerModule>> modules;
  for (const std::string& path : flags.modules) {
    JITGEMM_ASSIGN(std::unique_ptr<bench::PeerModule> module,
                   bench::PeerModule::load(path, flags.python_library));
    modules.push_back(std::move(module));
  }
  const auto save = [&]() -> Status {
    if (flags.output.empty()) return ok_status();
    return write_file(flags.output, bench::to_json(result));
  };
  const bool quiet = cli.flags.json;
  if (!quiet) {
    fmt::print("{}, {} SMs, driver {}, cuBLASLt {}\n", result.device, result.sm_count,
               result.driver_version, result.cublaslt.empty() ? "left out" : result.cublaslt);
  }
  if (flags.ceilings) {
    JITGEMM_ASSIGN(result.ceilings, bench::measure_ceilings(*session, peers.get()));
    JITGEMM_ASSIGN(const std::vector<bench::Ceiling> rates, bench::measure_quantizing(*session));
    result.ceilings.insert(result.ceilings.end(), rates.begin(), rates.end());
    for (const bench::Ceiling& c : result.ceilings) {
      if (quiet) continue;
      fmt::print("ceiling {:<20} {:8.0f} {} rested, {:8.0f} sustained\n", c.name, c.rested, c.unit,
                 c.sustained);
    }
    JITGEMM_TRY(save());
  }
  bench::ShapeRunOptions options;
  options.timing.rested = flags.regime != "sustained";
  options.timing.sustained = flags.regime != "rested";
  options.timing.rested_schedule.rounds = flags.rounds;
  options.timing.rested_schedule.budget_s = flags.seconds_per_shape;
  options.timing.sustained_schedule = {flags.sustained_seconds, flags.sustained_seconds};
  options.repeats = flags.repeats;
  options.pdl = flags.pdl == "off"  ? bench::PdlEdges::kOff
                : flags.pdl == "on" ? bench::PdlEdges::kOn
                                    : bench::PdlEdges::kBoth;
  for (const auto& module : modules) options.modules.push_back(module.get());
  for (const ShapeWork& item : work) {
    JITGEMM_ASSIGN(bench::ShapeResult shape,
                   item.groups ? bench::run_grouped_shape(*session, *item.groups, item.plans,
                                                          peers.get(), options)
                               : bench::run_shape(*session, item.plans, peers.get(), options));
    if (!quiet) print_shape(shape);
    result.shapes.push_back(std::move(shape));
    // A run may be cut short: what is measured is kept.
    JITGEMM_TRY(save());
  }
  if (quiet) fmt::print("{}", bench::to_json(result));
  if (any_wrong(result) && quiet) {
    cli.exit_code = kExitFailed;  // the document says which
  } else if (any_wrong(result)) {
    return Status(StatusCode::kVerificationFailed, "a contender's result was wrong; see above");
  }
  return ok_status();
}

}  // namespace

void add_bench_command(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("bench", "Time products against peers on a GPU, each checked first");
  auto flags = std::make_shared<BenchFlags>();
  flags->shapes.add_to(*command);
  command->add_option("--device", flags->device, "cuda:N")->capture_default_str();
  command->add_option("--arch", flags->arch, "With --compile-only: " + supported_arch_list());
  command
      ->add_option("--plans", flags->plans,
                   "auto (the planner's), model:N (N candidates), arrangements (the best of each "
                   "kernel, split and cluster), a JSON array of overrides, or "
                   "@FILE of one")
      ->capture_default_str();
  command->add_option("--regime", flags->regime, "rested, sustained or both")
      ->capture_default_str();
  command->add_option("--rounds", flags->rounds, "Rested samples of each contender")
      ->check(CLI::Range(1, 1001))
      ->capture_default_str();
  command
      ->add_option("--repeats", flags->repeats,
                   "Time nothing: repeat each launch so often and compare the bits of its results")
      ->check(CLI::Range(0, 1000000));
  command
      ->add_option("--seconds-per-shape", flags->seconds_per_shape,
                   "Leave out rounds to stay below this (0: no limit)")
      ->check(CLI::Range(0.0, 1e6));
  command
      ->add_option("--pdl", flags->pdl,
                   "Programmatic dependence between the calls of a graph: off, on (of ours and of "
                   "peers that can), or both side by side")
      ->capture_default_str();
  command
      ->add_option("--sustained-seconds", flags->sustained_seconds,
                   "Of the unmeasured and of the measured part of a sustained figure")
      ->check(CLI::Range(0.01, 60.0))
      ->capture_default_str();
  command->add_option("--cublaslt", flags->cublaslt, "File of the cuBLASLt library");
  command
      ->add_option("--peer", flags->modules,
                   "Another peer: a shared library or a Python file (bench/README.md)")
      ->allow_extra_args(false);
  command->add_option("--python-library", flags->python_library,
                      "The interpreter's library for Python peers, e.g. libpython3.12.so.1.0");
  command->add_flag("--no-peers", flags->no_peers, "Without cuBLASLt");
  command->add_flag("--ceilings", flags->ceilings,
                    "Also memory and matrix rates, and the quantiser's");
  command->add_option("--output", flags->output,
                      "Write the results to this JSON file, after each shape");
  command->add_option("--label", flags->label, "Which table of its own the result file is for");
  command->add_option("--commit", flags->commit, "What the result file calls this build");
  command->add_flag("--compile-only", flags->compile_only,
                    "Put every kernel into the cache, without a device");
  command->callback([flags, &cli] {
    const Status status = run_bench(*flags, cli);
    if (!status.ok()) cli.finish(status);
  });
}

}  // namespace jitgemm::cli
