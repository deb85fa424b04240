// SPDX-License-Identifier: Apache-2.0
// A cache in a private temporary folder, with the log lines it wrote.
#pragma once

#include "cache/disk_cache.h"
#include "unit/cache/sample_entry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace jitgemm {

class CacheTest : public testing::Test {
 protected:
  explicit CacheTest(const std::string& parent = testing::TempDir()) {
    std::string pattern = parent + "jitgemm-cache-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    root_ = folder_ + "/root";
  }
  // For tests that make thousands of files: the memory file system, where there is one.
  static std::string fast_folder() {
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : testing::TempDir();
  }
  ~CacheTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::unique_ptr<DiskCache> open(FileOps ops = real_file_ops()) {
    return open({.root = root_}, std::move(ops));
  }
  std::unique_ptr<DiskCache> open(DiskCacheOptions options, FileOps ops = real_file_ops()) {
    Logger log(LogLevel::kInfo, [this](LogLevel, std::string_view line) {
      const std::lock_guard guard(log_mutex_);
      log_.emplace_back(line);
    });
    return DiskCache::open(std::move(options), std::move(log), std::move(ops));
  }
  std::string entry_path(const CanonicalKey& key) const {
    return root_ + "/v1/" + key.hex().substr(0, 2) + "/" + key.hex().substr(2) + ".jgk";
  }
  // The log lines since the last call.
  std::vector<std::string> take_log() {
    const std::lock_guard guard(log_mutex_);
    return std::exchange(log_, {});
  }
  size_t count_files(const std::string& below) const {
    size_t count = 0;
    std::error_code missing;
    for (const auto& item : std::filesystem::recursive_directory_iterator(root_ + below, missing)) {
      if (!item.is_directory() && item.path().filename() != "lock") ++count;
    }
    return count;
  }

  std::string folder_;
  std::string root_;

 private:
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

}  // namespace jitgemm
