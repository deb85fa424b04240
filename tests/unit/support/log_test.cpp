// SPDX-License-Identifier: Apache-2.0
#include "support/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace jitgemm {
namespace {

Logger recorder(LogLevel level, std::vector<std::string>* lines) {
  return Logger(level, [lines](LogLevel at, std::string_view message) {
    lines->push_back(std::string(log_level_name(at)) + ": " + std::string(message));
  });
}

TEST(Logger, DefaultIsSilentAndDisabled) {
  const Logger log;
  for (const LogLevel level : {LogLevel::kOff, LogLevel::kError, LogLevel::kDebug}) {
    EXPECT_FALSE(log.enabled(level));
    log.log(level, "nobody hears this");
  }
}

TEST(Logger, PassesItsLevelAndTheMoreImportantOnes) {
  std::vector<std::string> lines;
  const Logger log = recorder(LogLevel::kWarning, &lines);
  log.error("e");
  log.warning("w");
  log.info("i");
  log.debug("d");
  log.log(LogLevel::kOff, "o");
  EXPECT_EQ(lines, (std::vector<std::string>{"error: e", "warning: w"}));
}

TEST(Logger, CopiesShareTheSinkAndOutliveTheOriginal) {
  std::vector<std::string> lines;
  Logger copy;
  {
    const Logger original = recorder(LogLevel::kDebug, &lines);
    copy = original;
  }
  copy.debug("still here");
  EXPECT_EQ(lines, std::vector<std::string>{"debug: still here"});
}

TEST(Logger, AnEmptySinkIsSilence) {
  EXPECT_FALSE(Logger(LogLevel::kDebug, nullptr).enabled(LogLevel::kError));
}

TEST(Logger, OffPassesNothing) {
  std::vector<std::string> lines;
  recorder(LogLevel::kOff, &lines).error("e");
  EXPECT_TRUE(lines.empty());
}

TEST(LogLevel, NamesRoundTrip) {
  for (const LogLevel level :
       {LogLevel::kOff, LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo, LogLevel::kDebug}) {
    EXPECT_EQ(*parse_log_level(log_level_name(level)), level);
  }
  EXPECT_EQ(parse_log_level("verbose").error().message(),
            "log level: expected off, error, warning, info, debug, found 'verbose'");
}

TEST(StderrLogger, WritesOneLineAMessageAtItsLevel) {
  testing::internal::CaptureStderr();
  const Logger log = make_stderr_logger(LogLevel::kWarning);
  log.warning("careful {}");
  log.info("unheard");
  log.error("broken");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[jitgemm] [warning] careful {}\n[jitgemm] [error] broken\n");
}

}  // namespace
}  // namespace jitgemm
