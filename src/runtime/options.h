// SPDX-License-Identifier: Apache-2.0
// What a context may be told. Every setting has an option and an environment variable; the option
// wins, and the effective value remembers where it came from. The environment is read here and
// nowhere else.
#pragma once

#include "support/log.h"
#include "support/result.h"

#include <string>
#include <vector>

namespace jitgemm {

// As the caller gives them; an empty string means "not given".
struct ContextOptions {
  std::string
      cache_folder;  // JITGEMM_CACHE_DIR, else XDG_CACHE_HOME/jitgemm, else HOME/.cache/jitgemm
  std::string cache_mode;       // JITGEMM_CACHE: rw (default), ro, memory
  std::string nvrtc;            // JITGEMM_NVRTC: the library file
  std::string driver;           // JITGEMM_DRIVER: the library file
  std::string template_folder;  // JITGEMM_TEMPLATES: read templates from disk while developing them
  std::string log_level;        // JITGEMM_LOG: off (default), error, warning, info, debug
  std::string sim_numerics;     // JITGEMM_SIM_NUMERICS: exact, hopper, blackwell; default by arch
  std::string sim_seed;      // JITGEMM_SIM_SEED: 0 completes asynchronous work as late as is legal
  std::string sim_threads;   // JITGEMM_SIM_THREADS: 0 is one a core
  std::string sim_sanitize;  // JITGEMM_SIM_SANITIZE: 1 (default), no-races or 0
  // JITGEMM_TUNING_DB: the file of measured plans (default: tuning.json in the cache folder), or
  // "off": neither that nor what the library ships.
  std::string tuning_database;
  LogSink log_sink;  // where log lines go; null: standard error, once a level is asked for
};

// One effective setting, for doctor.
struct Setting {
  std::string name;
  std::string value;
  std::string origin;  // "option", "JITGEMM_CACHE_DIR", "HOME", "default"
};

struct Settings {
  std::vector<Setting> all;

  // The value of a setting that exists.
  const std::string& value(const std::string& name) const;
};

// Reads the environment once and resolves every setting.
Settings resolve_settings(const ContextOptions& options);

}  // namespace jitgemm
