// SPDX-License-Identifier: Apache-2.0
#include "runtime/options.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace jitgemm {
namespace {

std::string environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

Setting resolve(std::string name, const std::string& option, const char* variable,
                std::string fallback) {
  if (!option.empty()) return {std::move(name), option, "option"};
  if (std::string value = environment(variable); !value.empty())
    return {std::move(name), std::move(value), variable};
  return {std::move(name), std::move(fallback), "default"};
}

Setting resolve_cache_folder(const std::string& option) {
  Setting setting = resolve("cache_folder", option, "JITGEMM_CACHE_DIR", "");
  if (!setting.value.empty()) {
    // The folder stays where it is when the process changes its own.
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(setting.value, error);
    if (!error) setting.value = whole.string();
    return setting;
  }
  // XDG Base Directory Specification: a relative path is to be ignored.
  if (const std::string xdg = environment("XDG_CACHE_HOME"); xdg.starts_with("/")) {
    return {"cache_folder", xdg + "/jitgemm", "XDG_CACHE_HOME"};
  }
  if (const std::string home = environment("HOME"); home.starts_with("/") && home != "/") {
    return {"cache_folder", home + "/.cache/jitgemm", "HOME"};
  }
  return {"cache_folder", "", "default"};
}

}  // namespace

const std::string& Settings::value(const std::string& name) const {
  for (const Setting& setting : all) {
    if (setting.name == name) return setting.value;
  }
  std::abort();  // a name that resolve_settings does not know is a bug
}

Settings resolve_settings(const ContextOptions& o) {
  return {
      {
       resolve_cache_folder(o.cache_folder),
       resolve("cache_mode", o.cache_mode, "JITGEMM_CACHE", "rw"),
       resolve("nvrtc", o.nvrtc, "JITGEMM_NVRTC", ""),
       resolve("driver", o.driver, "JITGEMM_DRIVER", ""),
       resolve("template_folder", o.template_folder, "JITGEMM_TEMPLATES", ""),
       resolve("log_level", o.log_level, "JITGEMM_LOG", "off"),
       resolve("sim_numerics", o.sim_numerics, "JITGEMM_SIM_NUMERICS", "auto"),
       resolve("sim_seed", o.sim_seed, "JITGEMM_SIM_SEED", "0"),
       resolve("sim_threads", o.sim_threads, "JITGEMM_SIM_THREADS", "0"),
       resolve("tuning_database", o.tuning_database, "JITGEMM_TUNING_DB", ""),
       resolve("sim_sanitize", o.sim_sanitize, "JITGEMM_SIM_SANITIZE", "1"),
       }
  };
}

}  // namespace jitgemm
