// SPDX-License-Identifier: Apache-2.0
// jitgemm tune: measures the candidate plans of problems on the GPU that is there and keeps the
// winners in the tuning database; merges, exports and lists databases.
#include "bench/plan_choice.h"
#include "bench/tuner.h"
#include "cli.h"
#include "json.h"
#include "runtime/tuning.h"
#include "shape_flags.h"
#include "support/filesystem.h"

#include <fmt/format.h>

#include <optional>
#include <set>

namespace jitgemm::cli {
namespace {

struct TuneFlags {
  ShapeFlags shapes;
  std::string device = "cuda:0";
  std::string arch;
  std::string database;
  std::vector<std::string> merge;
  std::string export_file;
  int candidates = 12;
  bool list = false;
  bool again = false;
  bool compile_only = false;
};

struct TuneWork {
  GemmProblem problem;
  std::optional<bench::GroupedShape> groups;
  std::vector<OperationPlan> candidates;
};

// The problems of the shapes, each key of the database once.
Result<std::vector<TuneWork>> tune_work(const TuneFlags& flags, Arch arch, int sm_count) {
  std::vector<TuneWork> work;
  std::set<std::string> seen;
  const auto add = [&](const GemmProblem& problem,
                       const std::optional<bench::GroupedShape>& groups) -> Status {
    if (!seen.insert(tuning_key(problem)).second) return ok_status();
    PlanRequest request;
    request.sm_count = sm_count;
    JITGEMM_ASSIGN(std::vector<OperationPlan> ranked, operation_candidates(problem, request));
    work.push_back(
        {problem, groups, bench::varied_candidates(std::move(ranked), flags.candidates)});
    return ok_status();
  };
  const ShapeFlags& shapes = flags.shapes;
  for (const std::string& out_dtype : shapes.out_dtypes) {
    for (const auto& [policy, major] : shapes.variants()) {
      if (shapes.grouped()) {
        JITGEMM_ASSIGN(const std::vector<bench::GroupedShape> listed, shapes.grouped_shapes());
        for (const bench::GroupedShape& shape : listed) {
          JITGEMM_ASSIGN(const std::vector<GemmProblem> problems,
                         shapes.problems(shape, out_dtype, policy, major, arch));
          for (const GemmProblem& problem : problems) JITGEMM_TRY(add(problem, shape));
        }
        continue;
      }
      JITGEMM_ASSIGN(const std::vector<bench::Shape> listed, shapes.shapes());
      for (const bench::Shape& shape : listed) {
        JITGEMM_ASSIGN(const GemmProblem problem,
                       shapes.problem(shape, out_dtype, policy, major, arch));
        JITGEMM_TRY(add(problem, std::nullopt));
      }
    }
  }
  return work;
}

Result<TuningDatabase> read_database(const std::string& path) {
  JITGEMM_ASSIGN(const std::string text, read_file(path));
  Result<TuningDatabase> database = TuningDatabase::parse(text);
  if (!database) return database.error().with_context(path);
  return database;
}

Status merge_files(const TuneFlags& flags, const std::string& path, const Cli& cli) {
  TuningDatabase rows;
  for (const std::string& file : flags.merge) {
    JITGEMM_ASSIGN(const TuningDatabase one, read_database(file));
    rows.merge(one);
  }
  JITGEMM_TRY(add_to_tuning_file(path, rows));
  if (cli.flags.json) {
    Json json = document("tune");
    json["merged"] = rows.size();
    json["database"] = path;
    print(json);
  } else {
    fmt::print("{} rows merged into {}\n", rows.size(), path);
  }
  return ok_status();
}

void print_rows_json(const TuningDatabase& database) {
  Json json = document("tune");
  json["rows"] = Json::parse(database.to_json()).at("rows");
  print(json);
}

void print_rows(const TuningDatabase& database) {
  for (const TunedPlan* row : database.rows()) {
    fmt::print("{}\n  {}, {} SMs, {}: {:.2f} us (spread {:.1f} %){}\n  {}\n", row->problem,
               row->device, row->sm_count, row->date, row->time_us, 100 * row->spread,
               row->model_time_us > 0
                   ? fmt::format(", the model's choice {:.2f} us", row->model_time_us)
                   : ", the model's choice",
               overrides_to_json(row->plan).dump());
  }
  fmt::print("{} rows\n", database.size());
}

Status measure(const TuneFlags& flags, Context& context, const std::string& path, Cli& cli) {
  JITGEMM_TRY(flags.shapes.check());
  std::optional<Arch> arch;
  if (!flags.arch.empty()) {
    JITGEMM_ASSIGN(arch, parse_arch(flags.arch));
  }
  if (flags.compile_only) {
    const Arch target = arch.value_or(Arch::kSm90a);
    JITGEMM_ASSIGN(const std::vector<TuneWork> work,
                   tune_work(flags, target, arch_info(target).default_sm_count));
    JITGEMM_TRY(bench::GpuKernels::compile(context, target));
    size_t kernels = 0;
    for (const TuneWork& item : work) {
      for (const OperationPlan& plan : item.candidates) {
        JITGEMM_ASSIGN(const BuiltKernel kernel,
                       context.builder().build(plan.launches.back(), BuildMode::kCached));
        ++kernels;
      }
    }
    if (cli.flags.json) {
      Json json = document("tune");
      json["kernels"] = kernels;
      json["problems"] = work.size();
      print(json);
    } else {
      fmt::print("{} kernels of {} problems are in the cache\n", kernels, work.size());
    }
    return ok_status();
  }
  JITGEMM_ASSIGN(Device* const device, context.device(flags.device, arch));
  const DeviceInfo& info = device->info();
  JITGEMM_ASSIGN(const std::vector<TuneWork> work, tune_work(flags, info.arch, info.plan_sm_count));
  JITGEMM_ASSIGN(const std::unique_ptr<bench::GpuSession> session,
                 bench::GpuSession::create(context, *device));
  TuningDatabase measured;
  int failed = 0;
  for (const TuneWork& item : work) {
    const std::optional<TunedPlan> known =
        context.tuning().find(item.problem, info.description, info.plan_sm_count);
    if (known && !flags.again) {
      if (!cli.flags.json) fmt::print("{}\n  known: {:.2f} us\n", known->problem, known->time_us);
      continue;
    }
    Result<bench::TuneOutcome> outcome = bench::tune_shape(*session, item.groups, item.candidates,
                                                           {}, JITGEMM_VERSION_STRING, utc_now());
    if (!outcome && outcome.error().code() != StatusCode::kVerificationFailed) {
      return outcome.error();
    }
    if (!outcome) {
      ++failed;
      fmt::print(stderr, "jitgemm: {}\n",
                 outcome.error().with_context(to_string(item.problem)).to_string());
      continue;
    }
    const TunedPlan& row = outcome->row;
    TuningDatabase one;
    one.put(row);
    // A run may be cut short: what is measured is kept.
    JITGEMM_TRY(add_to_tuning_file(path, one));
    measured.merge(one);
    if (!cli.flags.json) {
      fmt::print("{}\n  {:.2f} us (spread {:.1f} %) of {} candidates{}\n  {}\n", row.problem,
                 row.time_us, 100 * row.spread, row.candidates,
                 row.model_time_us > 0
                     ? fmt::format("; the model's choice took {:.2f} us", row.model_time_us)
                     : "; the model's choice",
                 overrides_to_json(row.plan).dump());
      std::fflush(stdout);
    }
  }
  if (cli.flags.json) print_rows_json(measured);
  if (failed > 0)
    cli.exit_code = failed == static_cast<int>(work.size()) ? kExitFailed : kExitPartial;
  return ok_status();
}

Status tune(const TuneFlags& flags, Cli& cli) {
  ContextOptions options = cli.flags.context;
  if (!flags.database.empty()) options.tuning_database = flags.database;
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  const std::string path = tuning_path(context->settings());
  if (path.empty()) {
    return invalid_argument(
        "--database: expected a file, since there is no cache folder to put one in");
  }
  if (!flags.merge.empty()) return merge_files(flags, path, cli);
  if (!flags.export_file.empty() || flags.list) {
    JITGEMM_ASSIGN(const TuningDatabase all, load_tuning(context->settings(), context->log()));
    if (!flags.export_file.empty()) {
      JITGEMM_TRY(write_file(flags.export_file, all.to_json()));
      if (cli.flags.json) {
        Json json = document("tune");
        json["exported"] = all.size();
        json["file"] = flags.export_file;
        print(json);
      } else {
        fmt::print("{} rows in {}\n", all.size(), flags.export_file);
      }
    } else if (cli.flags.json) {
      print_rows_json(all);
    } else {
      print_rows(all);
    }
    return ok_status();
  }
  return measure(flags, *context, path, cli);
}

}  // namespace

void add_tune_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "tune", "Measure candidate plans on a GPU and keep the fastest in the tuning database");
  auto flags = std::make_shared<TuneFlags>();
  flags->shapes.add_to(*command);
  command->add_option("--device", flags->device, "cuda:N")->capture_default_str();
  command->add_option("--arch", flags->arch, "With --compile-only: " + supported_arch_list());
  command->add_option("--database", flags->database,
                      "The file (JITGEMM_TUNING_DB; default: tuning.json in the cache folder)");
  command->add_option("--candidates", flags->candidates, "Plans that are measured for each problem")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--again", flags->again, "Measure problems that the database has, too");
  CLI::Option* const compile_only =
      command->add_flag("--compile-only", flags->compile_only,
                        "Put every candidate into the cache, without a device");
  CLI::Option* const merge =
      command->add_option("--merge", flags->merge, "Put the rows of these files into the database");
  CLI::Option* const export_file =
      command->add_option("--export", flags->export_file,
                          "Write all rows, those that the library ships included, to this file");
  CLI::Option* const list = command->add_flag("--list", flags->list, "Print all rows");
  merge->excludes(compile_only, export_file, list);
  export_file->excludes(compile_only, list);
  list->excludes(compile_only);
  command->callback([flags, &cli] {
    const Status status = tune(*flags, cli);
    if (!status.ok()) cli.finish(status);
  });
}

}  // namespace jitgemm::cli
