// SPDX-License-Identifier: Apache-2.0
// What goes when the cache is above its cap, and what never goes.
#include "cache/disk_cache.h"
#include "support/filesystem.h"
#include "unit/cache/cache_fixture.h"
#include "unit/cache/failing_file_ops.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <sys/stat.h>

namespace jitgemm::disk_cache_eviction_test {
namespace {

class DiskCacheEviction : public CacheTest {
 protected:
  void publish(int number, int64_t age_s) {
    const CanonicalKey key = sample_key(number);
    open({.root = root_, .cap_bytes = 0}, without_sync())->publish(key, sample_entry(key, 4000));
    set_age(entry_path(key), age_s);
  }
  static void set_age(const std::string& path, int64_t age_s) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::seconds(age_s));
  }
  bool exists(int number) const { return std::filesystem::exists(entry_path(sample_key(number))); }
  uint64_t entry_bytes() const { return std::filesystem::file_size(entry_path(sample_key(1))); }
};

TEST_F(DiskCacheEviction, TheLeastRecentlyUsedGoFirstAndOnlyAsManyAsNeeded) {
  for (int i = 0; i < 10; ++i) publish(i, 100000 - 1000 * ((i * 3) % 10));
  auto cache = open({.root = root_, .cap_bytes = entry_bytes() * 8}, without_sync());
  const RemovedFiles removed = cache->evict();
  EXPECT_EQ(removed.entries, 3u) << "down to nine tenths of the cap";
  EXPECT_EQ(removed.bytes, 3 * entry_bytes());
  EXPECT_FALSE(exists(0));  // age rank 0
  EXPECT_FALSE(exists(7));  // age rank 1
  EXPECT_FALSE(exists(4));  // age rank 2
  EXPECT_EQ(cache->stat()->entries, 7u);
  EXPECT_EQ(cache->counters().evicted, 3u);
  EXPECT_EQ(cache->evict().entries, 0u);
}

TEST_F(DiskCacheEviction, BelowTheCapOrWithoutOneNothingGoes) {
  for (int i = 0; i < 3; ++i) publish(i, 100000);
  EXPECT_EQ(open({.root = root_, .cap_bytes = entry_bytes() * 3}, without_sync())->evict().entries,
            0u);
  EXPECT_EQ(open({.root = root_, .cap_bytes = 0}, without_sync())->evict().entries, 0u);
}

TEST_F(DiskCacheEviction, YoungEntriesAndEntriesFromTheFutureStay) {
  publish(0, 590);
  publish(1, -1000000);
  publish(2, 610);
  auto cache = open({.root = root_, .cap_bytes = 1}, without_sync());
  EXPECT_EQ(cache->evict().entries, 1u);
  EXPECT_TRUE(exists(0));
  EXPECT_TRUE(exists(1));
  EXPECT_FALSE(exists(2));
}

TEST_F(DiskCacheEviction, AHitRenewsTheTimeAtMostOnceADay) {
  publish(0, 100000);
  publish(1, 80000);
  auto cache = open({.root = root_, .cap_bytes = 1}, without_sync());
  const auto before = std::filesystem::last_write_time(entry_path(sample_key(1)));
  EXPECT_TRUE(cache->find(sample_key(0)).entry);
  EXPECT_TRUE(cache->find(sample_key(1)).entry);
  EXPECT_EQ(std::filesystem::last_write_time(entry_path(sample_key(1))), before);
  cache->evict();
  EXPECT_TRUE(exists(0)) << "used a moment ago";
  EXPECT_FALSE(exists(1));
}

TEST_F(DiskCacheEviction, TheFirstPublicationEvicts) {
  publish(0, 100000);
  publish(1, 100000);
  auto cache = open({.root = root_, .cap_bytes = 1}, without_sync());
  cache->publish(sample_key(2), sample_entry(sample_key(2), 10));
  EXPECT_FALSE(exists(0));
  EXPECT_FALSE(exists(1));
  EXPECT_TRUE(exists(2)) << "young";
}

TEST_F(DiskCacheEviction, OldTemporaryFilesGoAndFreshOnesStay) {
  auto cache = open(without_sync());
  for (const char* name : {"/v1/tmp/old", "/v1/tmp/fresh"})
    ASSERT_TRUE(write_file(root_ + name, "x"));
  set_age(root_ + "/v1/tmp/old", 3700);
  set_age(root_ + "/v1/tmp/fresh", 3500);
  EXPECT_EQ(cache->stat()->temp_files, 2u);
  EXPECT_EQ(cache->evict().temp_files, 1u);
  EXPECT_TRUE(std::filesystem::exists(root_ + "/v1/tmp/fresh"));
  EXPECT_EQ(cache->clear()->temp_files, 0u) << "it may be in use";
}

TEST_F(DiskCacheEviction, AFileReplacedSinceItWasListedStays) {
  publish(0, 100000);
  FileOps ops = without_sync();
  const FileOps real = real_file_ops();
  int stats = 0;
  ops.stat_at = [&, real](int folder, const char* path, struct stat* info) {
    if (++stats == 2) {  // the look before the removal
      std::filesystem::remove(entry_path(sample_key(0)));
      publish(0, 90000);
    }
    return real.stat_at(folder, path, info);
  };
  auto cache = open({.root = root_, .cap_bytes = 1}, std::move(ops));
  EXPECT_EQ(cache->evict().entries, 0u);
  EXPECT_TRUE(exists(0));
}

TEST_F(DiskCacheEviction, WhileAnotherProcessEvictsNothingIsDone) {
  publish(0, 100000);
  auto cache =
      open({.root = root_, .cap_bytes = 1}, with_faults([](const std::string& operation, size_t*) {
             return operation == "try_lock" ? -EAGAIN : 0;
           }));
  EXPECT_EQ(cache->evict().entries, 0u);
  EXPECT_TRUE(exists(0));
  auto without_locks =
      open({.root = root_, .cap_bytes = 1}, with_faults([](const std::string& operation, size_t*) {
             return operation == "try_lock" ? -ENOLCK : 0;
           }));
  EXPECT_EQ(without_locks->evict().entries, 1u);
}

}  // namespace
}  // namespace jitgemm::disk_cache_eviction_test
