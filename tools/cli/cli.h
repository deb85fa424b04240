// SPDX-License-Identifier: Apache-2.0
// What every verb of the jitgemm command shares: the global flags, the exit codes, the ways to
// print. A verb is one file with one add_<verb>_command function, named in main.cpp.
#pragma once

#include "problem/gemm_problem.h"
#include "runtime/context.h"
#include "runtime/tuning.h"
#include "support/result.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace jitgemm::cli {

// Documented in docs/cli.md and stable.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // the work failed, or a result did not verify
  kExitUsage = 2,        // the command line or an input is wrong, or asks for what is unsupported
  kExitPartial = 3,      // some of several pieces of work failed
  kExitCorrupt = 4,      // a file is not what its format promises
  kExitEnvironment = 5,  // the compiler or the driver could not be opened
};

struct GlobalFlags {
  ContextOptions context;
  bool json = false;
};

// One parse of a command line: flags that verbs read, and the code that the process returns.
struct Cli {
  GlobalFlags flags;
  int exit_code = kExitOk;

  // Runs a verb's body; a Status that is not OK is printed to standard error (or as JSON to
  // standard output) and becomes the exit code.
  void finish(const Status& status);
};

int exit_code_for(StatusCode code);
// What --json promises of an error: one document on standard output.
void print_error_json(std::string_view status, std::string_view message);

void add_run_command(CLI::App& app, Cli& cli);
void add_plan_command(CLI::App& app, Cli& cli);
void add_source_command(CLI::App& app, Cli& cli);
void add_compile_command(CLI::App& app, Cli& cli);
void add_prewarm_command(CLI::App& app, Cli& cli);
void add_quantize_command(CLI::App& app, Cli& cli);
void add_cache_command(CLI::App& app, Cli& cli);
void add_doctor_command(CLI::App& app, Cli& cli);
void add_verify_command(CLI::App& app, Cli& cli);
void add_selftest_command(CLI::App& app, Cli& cli);
void add_sim_command(CLI::App& app, Cli& cli);
void add_bench_command(CLI::App& app, Cli& cli);
void add_tune_command(CLI::App& app, Cli& cli);
void add_explain_command(CLI::App& app, Cli& cli);

// The measured plans that the settings name, for verbs without a context.
Result<TuningDatabase> tuning_for(const Cli& cli);

// A list with commas. The flag takes one argument, so that a file behind it is not one of its
// values.
CLI::Option* comma_list(CLI::Option* option);
// Whole numbers of 64 bits from `least` on; CLI11's own would take what is too large for the
// largest, and what is negative for something large.
CLI::Validator integer_from(uint64_t least);

// The device that kernels are planned for where none is opened.
struct TargetFlags {
  int sm_count = 0;         // 0: the arch's usual part
  std::string device_name;  // empty: measured plans of any device with that SM count

  void add_to(CLI::App& command);
  void apply(PlanRequest& request) const;
  int sm_count_of(Arch arch) const {
    return sm_count > 0 ? sm_count : arch_info(arch).default_sm_count;
  }
};

struct MRange {
  int64_t first = 0;
  int64_t last = 0;
};

// The flags that describe one problem, shared by run, plan, source and compile.
struct ProblemFlags {
  std::string operation = "block_scaled_mm";
  std::string arch;       // empty: the device's, else sm_90a
  std::string m = "256";  // or A..B
  int64_t n = 256;
  int64_t k = 512;
  std::string a_dtype = "F8_E4M3";
  std::string a_code_dtype = "F8_E4M3";
  std::string b_dtype = "F8_E4M3";
  std::string scale_dtype = "F32";
  std::string out_dtype = "BF16";
  int32_t group_n = 128;
  int32_t group_k = 128;
  std::string a_scale_major = "row";
  std::string b_scale_major = "row";
  std::string scale_values = "any";
  std::string m_policy = "exact";
  std::string kernel;  // a forced kernel family
  bool batch_invariant = false;
  int32_t tile_m = 0;  // 0: the planner's
  int32_t tile_n = 0;
  int32_t stages = 0;
  int32_t split_k = 0;
  std::string align_rows;
  int32_t cluster = 0;
  // Of group_gemm_fp8_nt_groupwise.
  std::string layout = "row_indices";
  int64_t groups = 4;
  int64_t expected_m = 0;
  int32_t row_alignment = 0;
  bool zero_ungrouped = false;
  bool count_invalid = false;

  bool grouped() const { return operation == "group_gemm_fp8_nt_groupwise"; }
  bool takes_m_range = false;  // plan's alone

  void add_to(CLI::App& command, const char* m_help = "Rows of a and of the output");
  // A flag of groups of rows: given for another operation, problem() refuses it.
  CLI::Option* of_groups(CLI::Option* option);
  Result<GemmProblem> problem(Arch default_arch) const;
  // What --m says; a single m is a range of one, and the problem's m is the last.
  Result<MRange> m_range() const;
  Result<PlanOverrides> overrides() const;

 private:
  Status refuse_group_flags() const;
  Status fill_grouping(Grouping& grouping) const;

  std::vector<const CLI::Option*> group_options_;
};

// --launch N, for verbs that show one kernel of an operation.
void add_launch_option(CLI::App& command, int& launch);
// 0 is the last launch, the product.
Result<const LaunchPlan*> choose_launch(const OperationPlan& plan, int launch);

}  // namespace jitgemm::cli
