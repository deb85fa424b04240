// SPDX-License-Identifier: Apache-2.0
// Replays the fuzzer's corpus and small mutations of it and of our sample texts through the
// fuzzer's checks.
#include "fuzz/ptx_checks.h"
#include "support/filesystem.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

namespace jitgemm::ptx {
namespace {

void replay(const std::string& folder, int rounds, size_t& files, size_t& programs) {
  std::mt19937 random(3);
  for (const auto& item :
       std::filesystem::directory_iterator(std::string(JITGEMM_SOURCE_DIR) + folder)) {
    if (!item.is_regular_file()) continue;
    const auto bytes = read_file(item.path().string());
    ASSERT_TRUE(bytes) << bytes.error().message();
    ++files;
    programs += check_ptx(*bytes) ? 1 : 0;
    for (int round = 0; round < rounds && !bytes->empty(); ++round) {
      std::string mutated = *bytes;
      for (int i = 0; i < 2; ++i) {
        const size_t at = random() % mutated.size();
        switch (random() % 3) {
          case 0: mutated[at] = static_cast<char>(random()); break;
          case 1: mutated.erase(at, 1 + random() % 8); break;
          default: mutated.insert(at, mutated.substr(random() % mutated.size(), 1 + random() % 40));
        }
        if (mutated.empty()) break;
      }
      check_ptx(mutated);
    }
  }
}

TEST(PtxFuzzCorpus, EveryFileAndItsMutationsHold) {
  size_t files = 0, programs = 0;
  replay("/tests/fuzz/corpus/ptx", 60, files, programs);
  EXPECT_GE(files, 10u);
  EXPECT_GE(programs, 5u) << "some of the corpus must reach what lies behind the parser";
}

TEST(PtxFuzzCorpus, SampleTextsAndTheirMutationsHold) {
  size_t files = 0, programs = 0;
  replay("/tests/ptx/corpus", 4, files, programs);
  EXPECT_EQ(files, programs);
}

}  // namespace
}  // namespace jitgemm::ptx
