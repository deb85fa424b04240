// SPDX-License-Identifier: Apache-2.0
// Who may put what where: links, odd files, foreign owners, permissions, read-only roots.
#include "cache/disk_cache.h"
#include "support/filesystem.h"
#include "unit/cache/cache_fixture.h"
#include "unit/cache/failing_file_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace jitgemm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DiskCacheSafety : public CacheTest {
 protected:
  // Publishes an entry, lets `change` do something to its file, and expects an unsafe miss and a
  // replacement by the next publication.
  template <typename Change>
  void expect_unsafe_and_replaced(const char* logged, Change change) {
    const CacheEntry entry = sample_entry(key_, 100);
    auto cache = open(without_sync());
    cache->publish(key_, entry);
    const std::string path = entry_path(key_);
    change(path);
    take_log();
    const CacheLookup lookup = cache->find(key_);
    EXPECT_FALSE(lookup.entry) << logged;
    EXPECT_EQ(lookup.miss, MissReason::kUnsafe) << logged;
    EXPECT_THAT(take_log(), ElementsAre(HasSubstr(logged)));
    EXPECT_EQ(cache->publish(key_, entry), PublishOutcome::kReplaced) << logged;
    EXPECT_EQ(*cache->find(key_).entry, entry) << logged;
    struct stat info = {};
    ASSERT_EQ(::lstat(path.c_str(), &info), 0);
    EXPECT_TRUE(S_ISREG(info.st_mode)) << logged;
    EXPECT_EQ(info.st_mode & 0777u, 0600u) << logged;
  }

  const CanonicalKey key_ = sample_key(1);
};

TEST_F(DiskCacheSafety, ASymbolicLinkToAGoodEntryIsRefused) {
  expect_unsafe_and_replaced("a symbolic link", [&](const std::string& path) {
    std::filesystem::rename(path, folder_ + "/elsewhere");
    std::filesystem::create_symlink(folder_ + "/elsewhere", path);
  });
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/elsewhere"))
      << "the link's target is not touched";
}

TEST_F(DiskCacheSafety, AFifoIsRefusedWithoutWaiting) {
  expect_unsafe_and_replaced("no regular file", [](const std::string& path) {
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  });
}

TEST_F(DiskCacheSafety, AnEntryThatEverybodyMayWriteIsRefused) {
  expect_unsafe_and_replaced("writable by every user", [](const std::string& path) {
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  });
}

TEST_F(DiskCacheSafety, AnEntryAboveTheSizeCapIsRefusedUnread) {
  expect_unsafe_and_replaced("bytes, above", [](const std::string& path) {
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(kMaxEntryBytes) + 1), 0);
  });
}

TEST_F(DiskCacheSafety, AFolderInPlaceOfAnEntryIsAMissAndAFailedPublication) {
  auto cache = open(without_sync());
  std::filesystem::create_directories(entry_path(key_) + "/inside");
  EXPECT_EQ(cache->find(key_).miss, MissReason::kUnsafe);
  EXPECT_EQ(cache->publish(key_, sample_entry(key_, 10)), PublishOutcome::kFailed);
  EXPECT_TRUE(cache->find(key_).entry) << "kept in memory";
  EXPECT_EQ(count_files("/v1/tmp"), 0u);
}

TEST_F(DiskCacheSafety, ALinkedShardIsNotFollowed) {
  auto cache = open(without_sync());
  cache->publish(key_, sample_entry(key_, 10));
  const std::filesystem::path shard = std::filesystem::path(entry_path(key_)).parent_path();
  std::filesystem::rename(shard, folder_ + "/elsewhere");
  std::filesystem::create_directory_symlink(folder_ + "/elsewhere", shard);
  EXPECT_EQ(cache->find(key_).miss, MissReason::kUnsafe);
  EXPECT_EQ(cache->publish(key_, sample_entry(key_, 10)), PublishOutcome::kFailed);
  EXPECT_EQ(cache->stat()->entries, 0u);
}

TEST_F(DiskCacheSafety, EntriesOfAnotherUserAreRefusedAndRootsAreNot) {
  const CacheEntry entry = sample_entry(key_, 10);
  open(without_sync())->publish(key_, entry);
  struct stat info = {};
  ASSERT_EQ(::stat(entry_path(key_).c_str(), &info), 0);
  FileOps ops = without_sync();
  const FileOps real = real_file_ops();
  uid_t file_owner = 0;
  ops.effective_uid = [] { return uid_t{4321}; };
  ops.stat = [&, real](int fd, struct stat* found) {
    const int result = real.stat(fd, found);
    found->st_uid = S_ISREG(found->st_mode) ? file_owner : 4321;
    return result;
  };
  auto cache = open(std::move(ops));
  EXPECT_TRUE(cache->find(key_).entry);
  file_owner = 4321;
  EXPECT_TRUE(cache->find(key_).entry);
  file_owner = 4322;
  EXPECT_EQ(cache->find(key_).miss, MissReason::kUnsafe);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("belongs to user 4322")));
}

TEST_F(DiskCacheSafety, ARootOrVersionFolderThatOthersControlIsNotUsed) {
  struct Case {
    const char* folder;
    mode_t mode;
  };
  for (const Case& c : {
           Case{"",        0777 },
           Case{"",        01777},
           Case{"/v1",     0777 },
           Case{"/v1/tmp", 0777 }
  }) {
    std::filesystem::remove_all(root_);
    open(without_sync());
    ASSERT_EQ(::chmod((root_ + c.folder).c_str(), c.mode), 0);
    take_log();
    EXPECT_EQ(open(without_sync())->mode(), CacheMode::kMemoryOnly) << c.folder;
    EXPECT_THAT(take_log(), ElementsAre(HasSubstr("writable by every user"))) << c.folder;
  }
  std::filesystem::remove_all(root_);
  open(without_sync());
  FileOps foreign = without_sync();
  foreign.stat = [](int fd, struct stat* info) {
    const int result = ::fstat(fd, info);
    info->st_uid = 4322;
    return result;
  };
  take_log();
  EXPECT_EQ(open(std::move(foreign))->mode(), CacheMode::kMemoryOnly);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("belongs to user 4322")));
}

TEST_F(DiskCacheSafety, ALinkedVersionFolderIsNotUsedButALinkedRootIs) {
  std::filesystem::create_directories(folder_ + "/real");
  std::filesystem::create_directory_symlink(folder_ + "/real", root_);
  EXPECT_EQ(open(without_sync())->mode(), CacheMode::kReadWrite);
  std::filesystem::rename(folder_ + "/real/v1", folder_ + "/moved");
  std::filesystem::create_directory_symlink(folder_ + "/moved", root_ + "/v1");
  EXPECT_EQ(open(without_sync())->mode(), CacheMode::kMemoryOnly);
}

TEST_F(DiskCacheSafety, ARelativeRootIsNotUsed) {
  EXPECT_EQ(open({.root = "relative_cache_root"})->mode(), CacheMode::kMemoryOnly);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("expected an absolute path")));
  EXPECT_FALSE(std::filesystem::exists("relative_cache_root"));
}

TEST_F(DiskCacheSafety, TheReadOnlyOptionChangesNothingUnderTheRoot) {
  const CanonicalKey other = sample_key(2);
  open(without_sync())->publish(key_, sample_entry(key_, 10));
  const auto old_time = std::filesystem::file_time_type::clock::now() - std::chrono::hours(100);
  std::filesystem::last_write_time(entry_path(key_), old_time);
  auto cache = open({.root = root_, .read_only = true, .cap_bytes = 1}, without_sync());
  EXPECT_EQ(cache->mode(), CacheMode::kReadOnly);
  EXPECT_TRUE(cache->find(key_).entry);
  EXPECT_EQ(cache->publish(other, sample_entry(other, 10)), PublishOutcome::kMemoryOnly);
  EXPECT_TRUE(cache->find(other).entry);
  EXPECT_FALSE(cache->lock(key_, std::chrono::steady_clock::now()).held());
  EXPECT_EQ(cache->evict().entries, 0u);
  EXPECT_EQ(cache->clear().error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(std::filesystem::last_write_time(entry_path(key_)), old_time);
  EXPECT_EQ(count_files(""), 1u);
  EXPECT_THAT(take_log(), IsEmpty());

  EXPECT_EQ(open({.root = folder_ + "/none", .read_only = true})->mode(), CacheMode::kMemoryOnly);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/none"));
}

// As root, permissions do not bind: a child gives up its user first.
TEST_F(DiskCacheSafety, ARootWithoutWritePermissionIsReadAndNotWritten) {
  open(without_sync())->publish(key_, sample_entry(key_, 10));
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  for (const char* folder : {"", "/v1", "/v1/tmp"}) {
    ASSERT_EQ(::chmod((root_ + folder).c_str(), 0555), 0);
  }
  const std::filesystem::path shard = std::filesystem::path(entry_path(key_)).parent_path();
  ASSERT_EQ(::chmod(shard.c_str(), 0555), 0);
  ASSERT_EQ(::chmod(entry_path(key_).c_str(), 0444), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(9);
    auto cache = open(without_sync());
    const CanonicalKey other = sample_key(2);
    int failures = 0;
    failures += cache->mode() == CacheMode::kMemoryOnly ? 1 : 0;
    failures += cache->find(key_).entry ? 0 : 2;
    const PublishOutcome outcome = cache->publish(other, sample_entry(other, 10));
    failures +=
        outcome == PublishOutcome::kFailed || outcome == PublishOutcome::kMemoryOnly ? 0 : 4;
    failures += cache->find(other).entry ? 0 : 8;
    ::_exit(failures);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(count_files(""), 1u);
  for (const char* folder : {"", "/v1", "/v1/tmp"}) ::chmod((root_ + folder).c_str(), 0755);
  ::chmod(shard.c_str(), 0755);
}

TEST_F(DiskCacheSafety, AReadOnlyFileSystemIsUsedForReading) {
  open(without_sync())->publish(key_, sample_entry(key_, 10));
  std::filesystem::remove(root_ + "/v1/tmp");
  auto cache = open(with_faults([](const std::string& operation, size_t*) {
    return operation == "make_folder_at" ? -EROFS : 0;
  }));
  EXPECT_EQ(cache->mode(), CacheMode::kReadOnly);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("not writable")));
  EXPECT_TRUE(cache->find(key_).entry);
}

}  // namespace
}  // namespace jitgemm
