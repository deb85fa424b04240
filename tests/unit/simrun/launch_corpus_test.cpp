// SPDX-License-Identifier: Apache-2.0
// Replays the fuzzer's corpus of launch descriptions with programs, and mutations of it, through
// the fuzzer's checks.
#include "fuzz/launch_checks.h"
#include "support/filesystem.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <random>
#include <set>
#include <string>

namespace jitgemm::simrun {
namespace {

using ::testing::ElementsAre;

TEST(LaunchFuzzCorpus, EveryFileAndItsMutationsHold) {
  std::mt19937 random(5);
  size_t files = 0;
  std::set<std::string> refused;
  for (const auto& item : std::filesystem::directory_iterator(std::string(JITGEMM_SOURCE_DIR) +
                                                              "/tests/fuzz/corpus/launch")) {
    const auto bytes = read_file(item.path().string());
    ASSERT_TRUE(bytes) << bytes.error().message();
    ++files;
    const std::string name = item.path().filename().string();
    if (!check_launch(*bytes) && !name.starts_with("found_")) refused.insert(name);
    // What the fuzzer found runs for long.
    const int rounds = name.starts_with("found_") ? 4 : 100;
    for (int round = 0; round < rounds; ++round) {
      std::string mutated = *bytes;
      const size_t at = random() % mutated.size();
      switch (random() % 3) {
        case 0: mutated[at] = static_cast<char>(random()); break;
        case 1: mutated.erase(at, 1 + random() % 8); break;
        default: mutated.insert(at, mutated.substr(random() % mutated.size(), 1 + random() % 20));
      }
      check_launch(mutated);
    }
  }
  EXPECT_GE(files, 14u);
  // The others must reach what lies behind the parser.
  EXPECT_THAT(refused, ElementsAre("barrier", "spin"));
}

}  // namespace
}  // namespace jitgemm::simrun
