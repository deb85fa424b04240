// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning.h"

#include "support/filesystem.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace jitgemm {
namespace {

class TuningFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("jitgemm_tuning_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Settings settings(const std::string& database) {
    ContextOptions options;
    options.cache_folder = folder_.string();
    options.tuning_database = database;
    return resolve_settings(options);
  }
  std::string file(const char* name) { return (folder_ / name).string(); }

  static TuningDatabase one_row(int64_t m) {
    GemmProblem p;
    p.m = m;
    p.n = 256;
    p.k = 512;
    TunedPlan tuned;
    tuned.problem = tuning_key(p);
    tuned.device = "GPU";
    tuned.sm_count = 132;
    tuned.plan.tile_m = 64;
    tuned.date = "2026-01-01T00:00:00Z";
    TuningDatabase database;
    database.put(tuned);
    return database;
  }

  std::filesystem::path folder_;
};

TEST_F(TuningFile, LiesBesideTheCacheUnlessItIsNamedOrOff) {
  EXPECT_EQ(tuning_path(settings("")), file("tuning.json"));
  EXPECT_EQ(tuning_path(settings("/x/y.json")), "/x/y.json");
  EXPECT_EQ(tuning_path(settings("off")), "");
}

TEST_F(TuningFile, KeepsRowsOfEarlierRuns) {
  const std::string path = file("a/tuning.json");
  ASSERT_TRUE(add_to_tuning_file(path, one_row(1)).ok());
  ASSERT_TRUE(add_to_tuning_file(path, one_row(2)).ok());
  const auto loaded = load_tuning(settings(path), Logger());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->size(), embedded_tuning()->size() + 2);
  // Nothing is left of the way there but what writers lock.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "a"),
                          std::filesystem::directory_iterator()),
            2);
  EXPECT_TRUE(std::filesystem::exists(path + ".lock"));
}

TEST_F(TuningFile, OfTwoWritersAtOnceKeepsTheRowsOfBoth) {
  const std::string path = file("tuning.json");
  constexpr int64_t kRows = 20;
  const auto write = [&](int64_t first) {
    for (int64_t m = first; m < first + kRows; ++m)
      EXPECT_TRUE(add_to_tuning_file(path, one_row(m)).ok());
  };
  {
    const std::jthread one(write, 1);
    const std::jthread other(write, 1000);
  }
  EXPECT_EQ(load_tuning(settings(path), Logger())->size(), embedded_tuning()->size() + 2 * kRows);
}

TEST_F(TuningFile, ThatIsAFolderIsAnErrorOfReading) {
  EXPECT_EQ(open_tuning(settings(folder_.string()), Logger()).error().code(), StatusCode::kIoError);
}

TEST_F(TuningFile, OfNothingIsWhatTheLibraryShipsAndOffIsNothing) {
  EXPECT_EQ(load_tuning(settings(""), Logger())->size(), embedded_tuning()->size());
  EXPECT_EQ(load_tuning(settings("off"), Logger())->size(), 0u);
}

TEST_F(TuningFile, ThatIsDamagedIsAnErrorWhereItWasNamedAndALogLineElsewhere) {
  ASSERT_TRUE(write_file(file("tuning.json"), "{").ok());
  std::vector<std::string> lines;
  const Logger log(LogLevel::kWarning,
                   [&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  const auto beside = load_tuning(settings(""), log);
  ASSERT_TRUE(beside);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("tuning.json"), std::string::npos);
  const auto named = load_tuning(settings(file("tuning.json")), log);
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code(), StatusCode::kCorruptData);
  // Nor is it overwritten.
  EXPECT_FALSE(add_to_tuning_file(file("tuning.json"), one_row(1)).ok());
}

}  // namespace
}  // namespace jitgemm
