// SPDX-License-Identifier: Apache-2.0
// Replays the fuzzer's corpus, and small mutations of each file, through the same checks.
#include "fuzz/cache_entry_checks.h"
#include "support/filesystem.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

namespace jitgemm {
namespace {

TEST(CacheEntryCorpus, EveryFileAndItsMutationsHold) {
  std::mt19937 random(3);
  size_t files = 0, accepted = 0;
  for (const auto& item :
       std::filesystem::directory_iterator(JITGEMM_SOURCE_DIR "/tests/fuzz/corpus/cache_entry")) {
    const auto bytes = read_file(item.path().string());
    ASSERT_TRUE(bytes) << bytes.error().message();
    ++files;
    check_cache_entry(*bytes);
    for (int round = 0; round < 400 && !bytes->empty(); ++round) {
      std::string mutated = *bytes;
      for (int i = 0; i < 2; ++i) mutated[random() % mutated.size()] = static_cast<char>(random());
      if (round % 4 == 0) mutated.resize(random() % mutated.size());
      check_cache_entry(mutated);
      if (entry_holds(with_valid_checksums(mutated))) ++accepted;
    }
  }
  EXPECT_GE(files, 5u);
  EXPECT_GT(accepted, 100u) << "the mutations reach what lies behind the checksums";
}

TEST(CacheEntryCorpus, AWholeEntryKeepsItsMeaningWhenItsChecksumsAreMadeAnew) {
  const std::string bytes = *write_entry(sample_entry(sample_key(1), 50));
  EXPECT_EQ(with_valid_checksums(bytes), bytes);
  EXPECT_TRUE(entry_holds(bytes));
}

}  // namespace
}  // namespace jitgemm
