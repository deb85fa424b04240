// SPDX-License-Identifier: Apache-2.0
// The committed PTX of tests/ptx/corpus: compiler output for the sources in its src folder.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace jitgemm::ptx {

inline std::vector<std::filesystem::path> corpus_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(JITGEMM_SOURCE_DIR "/tests/ptx/corpus")) {
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::string corpus_case_name(const testing::TestParamInfo<std::filesystem::path>& info) {
  return info.param.stem().string();
}

}  // namespace jitgemm::ptx
