// SPDX-License-Identifier: Apache-2.0
// The jitgemm command: one file a verb; this file only names them.
#include "cli.h"

#include <cstdio>
#include <exception>

namespace {

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
    return app.exit(error) == 0 ? jitgemm::cli::kExitOk : jitgemm::cli::kExitUsage;
  }
  return cli.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // memory, mostly: everything else has a status
    std::fprintf(stderr, "jitgemm: %s\n", error.what());
  } catch (...) {
    std::fputs("jitgemm: an unknown error\n", stderr);
  }
  return jitgemm::cli::kExitFailed;
}
