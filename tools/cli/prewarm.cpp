// SPDX-License-Identifier: Apache-2.0
// jitgemm prewarm: compiles every kernel that the shapes of a manifest need into the cache. No GPU.
#include "cli.h"
#include "json.h"
#include "problem/manifest.h"
#include "support/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>
#include <unistd.h>
#include <variant>

namespace jitgemm::cli {
namespace {

struct PrewarmFlags {
  std::vector<std::string> manifests;
  std::vector<std::string> archs;
  TargetFlags target;
  int jobs = 0;
  bool dry_run = false;
  bool quiet = false;
};

struct Work {
  std::string name;
  LaunchPlan plan;
};

// Every m whose plan may differ: the ends of classes under MPolicy::kClass, one for kAny, each m
// for kExact.
std::vector<int64_t> planned_ms(const ManifestEntry& entry) {
  std::vector<int64_t> ms;
  const Grouping& grouping = entry.problem.grouping;
  if (grouping.grouped()) {
    // Tiles follow the rows of a group; a kernel never holds m.
    if (grouping.expected_m != 0 || entry.problem.m_policy == MPolicy::kAny) return {entry.m_last};
    const int64_t each = grouping.separate_rows() ? 1 : grouping.groups;
    for (int64_t rows = (entry.m_first + each - 1) / each; rows * each <= entry.m_last;) {
      if (rows > 0) ms.push_back(rows * each);
      rows = rows < 256 ? rows + 1 : m_class_bound(rows) + 1;
    }
    if (ms.empty() || ms.back() != entry.m_last) ms.push_back(entry.m_last);
    return ms;
  }
  for (int64_t m = entry.m_first; m <= entry.m_last;) {
    ms.push_back(m);
    if (entry.problem.m_policy == MPolicy::kAny) break;
    m = entry.problem.m_policy == MPolicy::kClass ? m_class_bound(m) + 1 : m + 1;
  }
  return ms;
}

// The distinct kernels of all entries: plans that specialise to one translation unit are one.
Result<std::vector<Work>> collect(const PrewarmFlags& flags, Context& context) {
  KernelBuilder& builder = context.builder();
  PlanRequest request = context.plan_request({});
  flags.target.apply(request);
  std::vector<Arch> only;
  for (const std::string& name : flags.archs) {
    JITGEMM_ASSIGN(const Arch arch, parse_arch(name));
    only.push_back(arch);
  }
  std::vector<Work> work;
  std::set<Sha256Digest> seen;
  for (const std::string& path : flags.manifests) {
    JITGEMM_ASSIGN(const Manifest manifest, read_manifest(path));
    for (const ManifestEntry& entry : manifest.entries) {
      for (const Arch arch : only.empty() ? entry.archs : only) {
        GemmProblem problem = entry.problem;
        problem.arch = arch;
        for (const int64_t m : planned_ms(entry)) {
          problem.m = m;
          JITGEMM_ASSIGN(OperationPlan plan, plan_operation(problem, request));
          for (LaunchPlan& launch : plan.launches) {
            JITGEMM_ASSIGN(const KernelSource source, builder.source(launch));
            if (!seen.insert(sha256(source.target + source.text)).second) continue;
            // The reasons are for people, and thousands of kernels would keep them for nobody.
            if (auto* gemm = std::get_if<GemmPlan>(&launch)) gemm->reasons = {};
            work.push_back(
                {fmt::format("{} {}", entry.name, arch_info(arch).target), std::move(launch)});
          }
        }
      }
    }
  }
  return work;
}

class Progress {
 public:
  Progress(size_t total, bool quiet)
      : total_(total), visible_(!quiet && isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (visible_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(size_t done, const std::string& name) {
    if (!visible_) return;
    const std::scoped_lock lock(mutex_);
    constexpr size_t kWidth = 30;
    const size_t filled = total_ == 0 ? kWidth : done * kWidth / total_;
    fmt::print(stderr, "\r\033[K[{}{}] {}/{} {}", std::string(filled, '#'),
               std::string(kWidth - filled, '.'), done, total_, name);
    std::fflush(stderr);
  }

 private:
  size_t total_;
  bool visible_;
  std::mutex mutex_;
};

struct Outcome {
  std::atomic<size_t> done{0};
  std::atomic<size_t> hits{0};
  std::atomic<size_t> compiled{0};
  uint64_t not_stored = 0;  // of those compiled
  std::mutex mutex;
  std::vector<std::string> failures;
};

void build_all(const std::vector<Work>& work, KernelBuilder& builder, int jobs, bool quiet,
               Outcome& outcome) {
  Progress progress(work.size(), quiet);
  std::atomic<size_t> next{0};
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<size_t>(std::max(jobs, 0)));
  for (int i = 0; i < jobs; ++i) {
    threads.emplace_back([&] {
      for (size_t at = next++; at < work.size(); at = next++) {
        const Result<BuiltKernel> built = builder.build(work[at].plan, BuildMode::kCached);
        if (!built) {
          const std::scoped_lock lock(outcome.mutex);
          outcome.failures.push_back(built.error().with_context(work[at].name).to_string());
        } else {
          ++(built->from_cache ? outcome.hits : outcome.compiled);
        }
        progress.show(++outcome.done, work[at].name);
      }
    });
  }
}

Status prewarm(const PrewarmFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(cli.flags.context));
  JITGEMM_ASSIGN(const std::vector<Work> work, collect(flags, *context));
  Outcome outcome;
  if (!flags.dry_run) {
    if (context->cache().mode() != CacheMode::kReadWrite) {
      return invalid_argument(
          fmt::format("prewarm: expected a cache that kernels can be stored in, but {}",
                      context->cache().problem()));
    }
    JITGEMM_ASSIGN(const std::shared_ptr<Compiler> compiler, context->builder().compiler());
    const int jobs = flags.jobs > 0
                         ? flags.jobs
                         : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    build_all(work, context->builder(), jobs, flags.quiet, outcome);
    outcome.not_stored = context->cache().counters().publish_failures;
  }
  if (cli.flags.json) {
    Json json = document("prewarm");
    json["dry_run"] = flags.dry_run;
    // What only compiling tells, a dry run does not say.
    if (flags.dry_run) {
      json["requested"] = work.size();
      print(json);
      return ok_status();
    }
    json.update({
        {"requested",  work.size()            },
        {"hit",        outcome.hits.load()    },
        {"compiled",   outcome.compiled.load()},
        {"failed",     outcome.failures.size()},
        {"not_stored", outcome.not_stored     }
    });
    json["failures"] = outcome.failures;
    print(json);
  } else if (flags.dry_run) {
    fmt::print("{} kernels (dry run)\n", work.size());
  } else {
    fmt::print("{} kernels: {} in the cache, {} compiled, {} failed\n", work.size(),
               outcome.hits.load(), outcome.compiled.load(), outcome.failures.size());
    for (const std::string& failure : outcome.failures)
      fmt::print(stderr, "jitgemm: {}\n", failure);
  }
  if (outcome.not_stored > 0 && !cli.flags.json) {
    fmt::print(stderr, "jitgemm: {} kernels could not be stored in '{}'; --log warning says why\n",
               outcome.not_stored, context->cache().root());
  }
  if (const uint64_t missing = outcome.failures.size() + outcome.not_stored; missing > 0)
    cli.exit_code = missing >= work.size() ? kExitFailed : kExitPartial;
  return ok_status();
}

}  // namespace

void add_prewarm_command(CLI::App& app, Cli& cli) {
  CLI::App* command = app.add_subcommand(
      "prewarm", "Compile the kernels of a manifest into the cache; no GPU needed");
  auto flags = std::make_shared<PrewarmFlags>();
  command->add_option("manifests", flags->manifests, "Manifest files")
      ->required()
      ->check(CLI::ExistingFile);
  comma_list(command->add_option(
      "--arch", flags->archs,
      "Only these archs (default: those of each entry): " + supported_arch_list()));
  flags->target.add_to(*command);
  command->add_option("-j,--jobs", flags->jobs, "Compiles at once (default: one a core)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--dry-run", flags->dry_run, "Only count the distinct kernels");
  command->add_flag("-q,--quiet", flags->quiet, "No progress bar");
  command->callback([flags, &cli] {
    const Status status = prewarm(*flags, cli);
    if (!status.ok()) cli.finish(status);
  });
}

}  // namespace jitgemm::cli
