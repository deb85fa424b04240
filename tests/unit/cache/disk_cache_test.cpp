// SPDX-License-Identifier: Apache-2.0
#include "cache/disk_cache.h"

#include "support/filesystem.h"
#include "unit/cache/cache_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>

namespace jitgemm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using DiskCacheTest = CacheTest;

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

TEST_F(DiskCacheTest, FindsWhatAnotherObjectPublished) {
  const CanonicalKey key = sample_key(1);
  const CacheEntry entry = sample_entry(key, 3000);
  auto writer = open();
  EXPECT_FALSE(writer->find(key).entry);
  EXPECT_EQ(writer->publish(key, entry), PublishOutcome::kPublished);
  auto reader = open();
  const CacheLookup lookup = reader->find(key);
  ASSERT_TRUE(lookup.entry);
  EXPECT_EQ(*lookup.entry, entry);
  EXPECT_FALSE(reader->find(sample_key(2)).entry);
  EXPECT_EQ(reader->counters().hits, 1u);
  EXPECT_EQ(reader->counters().misses[static_cast<size_t>(MissReason::kAbsent)], 1u);
  EXPECT_THAT(take_log(), IsEmpty());
}

TEST_F(DiskCacheTest, NamesAndPermissionsAreTheDocumentedOnes) {
  const CanonicalKey key = sample_key(1);
  const mode_t old_mask = ::umask(0);
  auto cache = open({.root = root_ + "/deep/er"});
  cache->publish(key, sample_entry(key, 10));
  ::umask(old_mask);
  root_ += "/deep/er";
  EXPECT_EQ(cache->entry_path(key), entry_path(key));
  EXPECT_EQ(mode_of(entry_path(key)), 0600u);
  for (const char* folder : {"", "/v1", "/v1/tmp"})
    EXPECT_EQ(mode_of(root_ + folder), 0700u) << folder;
  EXPECT_EQ(mode_of(std::filesystem::path(entry_path(key)).parent_path()), 0700u);
  EXPECT_EQ(count_files("/v1/tmp"), 0u);
}

TEST_F(DiskCacheTest, PublishingTwiceKeepsTheFirstFile) {
  const CanonicalKey key = sample_key(1);
  auto cache = open();
  CacheEntry entry = sample_entry(key, 100);
  cache->publish(key, entry);
  entry.metadata.compile_ms = 1;
  EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kAlreadyPresent);
  EXPECT_EQ(cache->find(key).entry->metadata.compile_ms, 812);
  EXPECT_EQ(count_files(""), 1u);
}

TEST_F(DiskCacheTest, ADamagedEntryIsAMissWithALogLineAndIsReplaced) {
  const CanonicalKey key = sample_key(1);
  auto cache = open();
  const CacheEntry entry = sample_entry(key, 1000);
  cache->publish(key, entry);
  const std::string good = *read_file(entry_path(key));
  const std::string other = *write_entry(sample_entry(sample_key(2), 1000));
  std::string flipped = good;
  flipped[flipped.size() - 5] ^= 1;
  std::string next_version = good;
  put_u32(next_version, 8, 2);
  seal_header(next_version);
  struct Case {
    const char* name;
    std::string content;
    MissReason reason;
    const char* logged;
  };
  const Case cases[] = {
      {"empty",     "",            MissReason::kCorrupt, "expected 172 bytes, found 0"},
      {"truncated", good.substr(0, 700),                 MissReason::kCorrupt,          "promises"},
      {"flipped bit",           flipped,            MissReason::kCorrupt,               "cubin: SHA-256 differs"            },
      {"text",           "hello",                   MissReason::kCorrupt,                      "header"},
      {"swapped entry",           other,          MissReason::kKeyMismatch,               "answers another key"          },
      {"other version",           next_version,          MissReason::kVersion,        "format version 2"},
  };
  for (const Case& c : cases) {
    ASSERT_TRUE(write_file(entry_path(key), c.content));
    take_log();
    const CacheLookup lookup = cache->find(key);
    EXPECT_FALSE(lookup.entry) << c.name;
    EXPECT_EQ(lookup.miss, c.reason) << c.name;
    EXPECT_THAT(take_log(), ElementsAre(HasSubstr(c.logged))) << c.name;
    EXPECT_TRUE(std::filesystem::exists(entry_path(key))) << "a reader deletes nothing";
    EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kReplaced) << c.name;
    EXPECT_TRUE(cache->find(key).entry) << c.name;
  }
  EXPECT_EQ(cache->counters().replaced, std::size(cases));
  EXPECT_EQ(count_files("/v1/tmp"), 0u);
}

TEST_F(DiskCacheTest, AnEntryThatBreaksItsFormatIsNotStored) {
  const CanonicalKey key = sample_key(1);
  auto cache = open();
  CacheEntry entry = sample_entry(key, 10);
  entry.cubin.clear();
  EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kRejected);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("cubin: expected")));
  EXPECT_EQ(cache->publish(key, sample_entry(sample_key(2), 10)), PublishOutcome::kRejected);
  EXPECT_FALSE(cache->find(key).entry);
  EXPECT_EQ(count_files(""), 0u);
}

TEST_F(DiskCacheTest, WithoutARootEntriesLiveInMemory) {
  const CanonicalKey key = sample_key(1);
  auto cache = open(DiskCacheOptions{});
  EXPECT_EQ(cache->mode(), CacheMode::kMemoryOnly);
  EXPECT_EQ(cache->publish(key, sample_entry(key, 100)), PublishOutcome::kMemoryOnly);
  EXPECT_EQ(*cache->find(key).entry, sample_entry(key, 100));
  EXPECT_EQ(cache->stat()->entries, 1u);
  EXPECT_FALSE(cache->lock(key, std::chrono::steady_clock::now()).held());
  EXPECT_EQ(cache->entry_path(key), "");
  EXPECT_EQ(cache->clear()->entries, 1u);
  EXPECT_FALSE(cache->find(key).entry);
  EXPECT_THAT(take_log(), IsEmpty());
}

TEST_F(DiskCacheTest, TheMemoryIsBoundedAndDropsTheOldest) {
  auto cache = open(DiskCacheOptions{.memory_cap_bytes = 2500});
  for (int i = 0; i < 10; ++i) cache->publish(sample_key(i), sample_entry(sample_key(i), 500));
  EXPECT_LE(cache->stat()->bytes, 2500u);
  EXPECT_FALSE(cache->find(sample_key(0)).entry);
  EXPECT_TRUE(cache->find(sample_key(9)).entry);
  cache->publish(sample_key(11), sample_entry(sample_key(11), 5000));
  EXPECT_FALSE(cache->find(sample_key(11)).entry) << "larger than the whole memory";
  EXPECT_TRUE(cache->find(sample_key(9)).entry);
}

TEST_F(DiskCacheTest, ListsEntriesWithTheirKeysAndProblems) {
  auto cache = open();
  const CanonicalKey good = sample_key(1), bad = sample_key(2), swapped = sample_key(3);
  for (const CanonicalKey& key : {good, bad, swapped}) cache->publish(key, sample_entry(key, 100));
  ASSERT_TRUE(write_file(entry_path(bad), "junk"));
  ASSERT_TRUE(write_file(entry_path(swapped), *read_file(entry_path(good))));
  ASSERT_TRUE(write_file(root_ + "/v1/README", "not an entry"));
  const auto listings = cache->list();
  ASSERT_TRUE(listings);
  ASSERT_EQ(listings->size(), 3u);
  for (const CacheListing& listing : *listings) {
    if (listing.hex == good.hex()) {
      ASSERT_TRUE(listing.head);
      EXPECT_EQ(dump_key(listing.head->key), dump_key(good.bytes));
      EXPECT_EQ(listing.head->metadata.registers, 168);
    } else {
      EXPECT_FALSE(listing.head);
      EXPECT_THAT(listing.problem, HasSubstr(listing.hex == bad.hex() ? "header" : "another key"));
    }
  }
  const auto stat = cache->stat();
  EXPECT_EQ(stat->entries, 3u);
  EXPECT_EQ(stat->mode, CacheMode::kReadWrite);
  EXPECT_EQ(stat->bytes, 2 * std::filesystem::file_size(entry_path(good)) + 4);
  EXPECT_EQ(cache->clear()->entries, 3u);
  EXPECT_EQ(cache->list()->size(), 0u);
  EXPECT_TRUE(std::filesystem::exists(root_ + "/v1/README")) << "only entries are removed";
}

}  // namespace
}  // namespace jitgemm
