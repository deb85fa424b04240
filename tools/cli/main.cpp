// SPDX-License-Identifier: Apache-2.0
// The jitgemm command: one file a verb; this file only names them.
#include "cli.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace {

// Before or in spite of parsing: an error of the command line is to be JSON, too.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc,
                     [](const char* a) { return std::strcmp(a, "--json") == 0; });
}

void print_error(bool json, const char* status, const char* message) {
  if (json) {
    jitgemm::cli::print_error_json(status, message);
  } else {
    std::fprintf(stderr, "jitgemm: %s\n", message);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"jitgemm: run-time specialised GEMM kernels for NVIDIA GPUs"};
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "jitgemm " JITGEMM_VERSION_STRING);

  jitgemm::cli::Cli cli;
  app.add_flag("--json", cli.flags.json, "Print one JSON document to standard output");
  app.add_option("--cache-dir", cli.flags.context.cache_folder,
                 "Folder of compiled kernels (JITGEMM_CACHE_DIR)");
  app.add_option("--cache-mode", cli.flags.context.cache_mode, "rw, ro or memory (JITGEMM_CACHE)");
  app.add_option("--nvrtc", cli.flags.context.nvrtc, "File of the NVRTC library (JITGEMM_NVRTC)");
  app.add_option("--templates", cli.flags.context.template_folder,
                 "Read kernel templates from this folder (JITGEMM_TEMPLATES)");
  app.add_option("--tuning-db", cli.flags.context.tuning_database,
                 "File of measured plans, or off (JITGEMM_TUNING_DB)");
  app.add_option("--log", cli.flags.context.log_level,
                 "off, error, warning, info or debug (JITGEMM_LOG)");

  jitgemm::cli::add_run_command(app, cli);
  jitgemm::cli::add_plan_command(app, cli);
  jitgemm::cli::add_source_command(app, cli);
  jitgemm::cli::add_compile_command(app, cli);
  jitgemm::cli::add_prewarm_command(app, cli);
  jitgemm::cli::add_quantize_command(app, cli);
  jitgemm::cli::add_cache_command(app, cli);
  jitgemm::cli::add_doctor_command(app, cli);
  jitgemm::cli::add_verify_command(app, cli);
  jitgemm::cli::add_selftest_command(app, cli);
  jitgemm::cli::add_sim_command(app, cli);
  jitgemm::cli::add_bench_command(app, cli);
  jitgemm::cli::add_tune_command(app, cli);
  jitgemm::cli::add_explain_command(app, cli);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are successes; everything else is a wrong command line.
    if (error.get_exit_code() != 0 && asks_for_json(argc, argv)) {
      print_error(true, "INVALID_ARGUMENT", error.what());
      return jitgemm::cli::kExitUsage;
    }
    return app.exit(error) == 0 ? jitgemm::cli::kExitOk : jitgemm::cli::kExitUsage;
  }
  return cli.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 0 && asks_for_json(argc, argv);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    print_error(json, "OUT_OF_MEMORY", "the host's memory is used up");
  } catch (const std::exception& error) {  // everything foreseen has a status
    print_error(json, "INTERNAL", error.what());
  } catch (...) {
    print_error(json, "INTERNAL", "an unknown error");
  }
  return jitgemm::cli::kExitFailed;
}
