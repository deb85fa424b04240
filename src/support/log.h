// SPDX-License-Identifier: Apache-2.0
// Logging as a value that is passed along: a level and a callback. A default Logger is silent, so
// the library says nothing unless its user installs a sink. There is no global logger and no
// environment variable here; the format of a line is the sink's business.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace jitgemm {

// In order of importance: a Logger passes on its own level and everything before it.
enum class LogLevel : uint8_t { kOff = 0, kError = 1, kWarning = 2, kInfo = 3, kDebug = 4 };

// "off", "error", "warning", "info", "debug".
std::string_view log_level_name(LogLevel level);
Result<LogLevel> parse_log_level(std::string_view name);

// Called by any thread, possibly by several at once; must not throw.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

class Logger {
 public:
  Logger() = default;  // silent
  Logger(LogLevel level, LogSink sink);

  // Ask before building a message that costs something.
  bool enabled(LogLevel level) const { return sink_ && level != LogLevel::kOff && level <= level_; }
  void log(LogLevel level, std::string_view message) const {
    if (enabled(level)) (*sink_)(level, message);
  }
  void error(std::string_view message) const { log(LogLevel::kError, message); }
  void warning(std::string_view message) const { log(LogLevel::kWarning, message); }
  void info(std::string_view message) const { log(LogLevel::kInfo, message); }
  void debug(std::string_view message) const { log(LogLevel::kDebug, message); }

 private:
  LogLevel level_ = LogLevel::kOff;
  std::shared_ptr<const LogSink> sink_;
};

// For programs: "[jitgemm] [warning] message" on standard error, coloured on a terminal.
Logger make_stderr_logger(LogLevel level);

}  // namespace jitgemm
