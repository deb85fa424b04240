// SPDX-License-Identifier: Apache-2.0
#include "support/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <array>
#include <utility>

namespace jitgemm {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"off", "error", "warning", "info", "debug"};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kOff: return spdlog::level::off;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kDebug: return spdlog::level::debug;
  }
  return spdlog::level::off;
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  return kNames[static_cast<size_t>(level)];
}

Result<LogLevel> parse_log_level(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return invalid_argument(
      fmt::format("log level: expected {}, found '{}'", fmt::join(kNames, ", "), name));
}

Logger::Logger(LogLevel level, LogSink sink)
    : level_(level), sink_(sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr) {}

Logger make_stderr_logger(LogLevel level) {
  // Built directly, not through spdlog's registry: the logger lives and dies with its owner.
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  sink->set_pattern("[%n] [%^%l%$] %v");
  auto backend = std::make_shared<spdlog::logger>("jitgemm", std::move(sink));
  backend->set_level(to_spdlog(level));
  backend->flush_on(spdlog::level::trace);
  return Logger(level, [backend](LogLevel at, std::string_view message) {
    backend->log(to_spdlog(at), spdlog::string_view_t(message.data(), message.size()));
  });
}

}  // namespace jitgemm
