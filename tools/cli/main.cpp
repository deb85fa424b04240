// SPDX-License-Identifier: Apache-2.0
// The jitgemm command: one file a verb; this file only names them.
#include "cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>

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
    std::fprintf(stderr, "jitgemm: %s: %s\n", status, message);
  }
}

// "The verb is missing", with what there is.
std::string verb_message(const CLI::App& app, const std::vector<const CLI::App*>& verbs) {
  std::string list;
  for (const CLI::App* verb : verbs)
    list += fmt::format("{}{}", list.empty() ? "" : ", ", verb->get_name());
  const std::vector<std::string> found = app.remaining(true);
  return fmt::format("verb: expected one of {}; found {}", list,
                     found.empty() ? "none" : fmt::format("'{}'", found.front()));
}

// What is wrong with the command line, with what was expected where CLI11 leaves that out.
std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* last = &app;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().back();
  const std::vector<const CLI::App*> verbs =
      last->get_subcommands([](const CLI::App*) { return true; });
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !verbs.empty()) {
    return verb_message(app, verbs);
  }
  const std::string message = error.what();
  constexpr std::string_view kConversion = "Could not convert: ";
  if (const size_t equals = message.find(" = ");
      message.starts_with(kConversion) && equals != message.npos) {
    return fmt::format("{}: expected a number in its range, found '{}'",
                       message.substr(kConversion.size(), equals - kConversion.size()),
                       message.substr(equals + 3));
  }
  return message;
}

// What no verb may leave unread of the options that all have.
jitgemm::Status check_settings(const CLI::App& app, const jitgemm::ContextOptions& options) {
  JITGEMM_TRY(jitgemm::Context::check(jitgemm::resolve_settings(options)));
  const std::string& file = options.tuning_database;
  std::error_code error;
  // tune makes the file.
  if (file.empty() || file == "off" || app.got_subcommand("tune") ||
      std::filesystem::exists(file, error)) {
    return jitgemm::ok_status();
  }
  return jitgemm::invalid_argument(
      fmt::format("--tuning-db: expected a file that is there, or off; found '{}'", file));
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
                 "Read kernel templates from this folder (JITGEMM_TEMPLATES)")
      ->check(CLI::ExistingDirectory);
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

  app.parse_complete_callback([&] {
    const jitgemm::Status status = check_settings(app, cli.flags.context);
    if (status.ok()) return;
    cli.finish(status);
    throw CLI::RuntimeError(cli.exit_code);  // before the verb runs
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError&) {
    return cli.exit_code;
  } catch (const CLI::ParseError& error) {
    // Help and version are successes; everything else is a wrong command line.
    if (error.get_exit_code() == 0) return app.exit(error);
    print_error(asks_for_json(argc, argv), "INVALID_ARGUMENT", message_of(app, error).c_str());
    return jitgemm::cli::kExitUsage;
  }
  return cli.exit_code;
}

int run_and_report(int argc, char** argv) {
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

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_and_report(argc, argv);
  } catch (...) {  // not even the report could be written
    return jitgemm::cli::kExitFailed;
  }
}
