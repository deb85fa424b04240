// SPDX-License-Identifier: Apache-2.0
// System calls that fail: whatever fails and whenever, the caller goes on, gets no wrong entry, and
// the cache works again as soon as the system does.
#include "cache/disk_cache.h"
#include "support/filesystem.h"
#include "unit/cache/cache_fixture.h"
#include "unit/cache/failing_file_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace jitgemm::disk_cache_faults_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class DiskCacheFaults : public CacheTest {
 protected:
  DiskCacheFaults() : CacheTest(fast_folder()) {}
};

// Those that the code tells apart, and others.
constexpr int kErrors[] = {EIO, ESTALE, ENOENT, EEXIST, EINTR};
constexpr int kOtherErrors[] = {ENOSPC, EDQUOT, EACCES, EPERM, EROFS, EMFILE, ENFILE,
                                ENOLCK, EINVAL, ENOSYS, EBUSY, ELOOP, ENOTDIR};

void expect_same(const CacheLookup& lookup, const CacheEntry& entry, const std::string& where) {
  if (lookup.entry) {
    EXPECT_EQ(*lookup.entry, entry) << where;
  }
}

// One life of a cache: everything that makes system calls, in an order that reaches each of them.
void use_everything(DiskCache& cache, const std::string& where) {
  const CanonicalKey key = sample_key(1), damaged = sample_key(2);
  const CacheEntry entry = sample_entry(key, 600), repaired = sample_entry(damaged, 600);
  expect_same(cache.find(key), entry, where);
  const KeyLock lock = cache.lock(key, std::chrono::steady_clock::now());
  cache.publish(key, entry);
  // What was just published is found again: on disk, or in memory when the disk refused. Only when
  // reading fails may it be missing.
  const CacheLookup lookup = cache.find(key);
  expect_same(lookup, entry, where);
  EXPECT_TRUE(lookup.entry || lookup.miss == MissReason::kIoError ||
              lookup.miss == MissReason::kUnsafe || lookup.miss == MissReason::kAbsent)
      << where << ": " << lookup.detail;
  cache.publish(key, entry);
  expect_same(cache.find(damaged), repaired, where);
  cache.publish(damaged, repaired);
  expect_same(cache.find(damaged), repaired, where);
  (void)cache.list();
  (void)cache.stat();
  cache.evict();
}

class DiskCacheFaultOnce : public DiskCacheFaults, public testing::WithParamInterface<int> {};

TEST_P(DiskCacheFaultOnce, InEachSystemCallHarmsNobody) {
  const int error = GetParam();
  const CanonicalKey key = sample_key(1), damaged = sample_key(2);
  size_t injected = 0;
  for (int target = 1;; ++target) {
    std::filesystem::remove_all(root_);
    open(without_sync())->publish(damaged, sample_entry(damaged, 600));
    ASSERT_TRUE(write_file(entry_path(damaged), "damaged"));

    int calls = 0;
    std::string failed;
    auto faulty = with_faults([&](const std::string& operation, size_t*) {
      if (++calls != target) return 0;
      failed = operation;
      return -error;
    });
    const std::string where =
        std::string("call ") + std::to_string(target) + " " + std::strerror(error);
    use_everything(*open(std::move(faulty)), where);
    // The system is well again: so is the cache.
    auto healthy = open(without_sync());
    for (const CanonicalKey& k : {key, damaged}) {
      expect_same(healthy->find(k), sample_entry(k, 600), where + failed);
      const PublishOutcome outcome = healthy->publish(k, sample_entry(k, 600));
      ASSERT_NE(outcome, PublishOutcome::kFailed) << where << failed;
      ASSERT_TRUE(healthy->find(k).entry) << where << failed;
    }
    if (calls < target) break;  // nothing was left to fail: the run was clean
    ++injected;
  }
  RecordProperty("injected_faults", static_cast<int>(injected));
  EXPECT_GT(injected, 50u) << "the faults reached the whole sequence";
}

std::string name_of(const testing::TestParamInfo<int>& error) {
  return strerrorname_np(error.param);
}

INSTANTIATE_TEST_SUITE_P(Errors, DiskCacheFaultOnce, testing::ValuesIn(kErrors), name_of);
// Run by tools/check --all.
INSTANTIATE_TEST_SUITE_P(OtherErrors, DiskCacheFaultOnce, testing::ValuesIn(kOtherErrors), name_of);

TEST_F(DiskCacheFaults, EachSystemCallFailingForeverHarmsNobody) {
  const char* const operations[] = {"open_at",
                                    "close",
                                    "read",
                                    "write",
                                    "sync",
                                    "stat",
                                    "stat_at",
                                    "touch",
                                    "make_folder_at",
                                    "unlink_at",
                                    "link_at",
                                    "rename_at",
                                    "rename_no_replace_at",
                                    "list_folder",
                                    "try_lock",
                                    "unlock",
                                    "random_bytes"};
  std::vector<int> errors(std::begin(kErrors), std::end(kErrors));
  errors.insert(errors.end(), std::begin(kOtherErrors), std::end(kOtherErrors));
  for (const char* operation : operations) {
    for (const int error : errors) {
      std::filesystem::remove_all(root_);
      const std::string where = std::string(operation) + " " + std::strerror(error);
      use_everything(*open(with_faults([&](const std::string& called, size_t*) {
        return called == operation ? -error : 0;
      })),
                     where);
      auto healthy = open(without_sync());
      const CanonicalKey key = sample_key(1);
      EXPECT_NE(healthy->publish(key, sample_entry(key, 600)), PublishOutcome::kFailed) << where;
      EXPECT_TRUE(healthy->find(key).entry) << where;
    }
  }
}

TEST_F(DiskCacheFaults, ADiskFullAtEachOffsetPublishesNothingAndLeavesNoFile) {
  const CanonicalKey key = sample_key(1);
  const CacheEntry entry = sample_entry(key, 600);
  const size_t size = write_entry(entry)->size();
  for (size_t room = 0; room < size; room += 7) {
    size_t left = room;
    auto cache = open(with_faults([&](const std::string& operation, size_t* granted) {
      if (operation != "write") return 0;
      if (left == 0) return -ENOSPC;
      *granted = std::min(*granted, left);
      left -= *granted;
      return 0;
    }));
    ASSERT_EQ(cache->publish(key, entry), PublishOutcome::kFailed) << room;
    EXPECT_EQ(cache->counters().publish_failures, 1u);
    ASSERT_THAT(take_log(), ElementsAre(HasSubstr("No space left on device"))) << room;
    ASSERT_EQ(count_files(""), 0u) << room;
    ASSERT_EQ(*cache->find(key).entry, entry) << "kept in memory";
  }
}

TEST_F(DiskCacheFaults, ShortReadsAndWritesAreContinued) {
  const CanonicalKey key = sample_key(1);
  const CacheEntry entry = sample_entry(key, 600);
  auto cache = open(with_faults([](const std::string&, size_t* granted) {
    *granted = std::min<size_t>(*granted, 13);
    return 0;
  }));
  EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kPublished);
  EXPECT_EQ(*cache->find(key).entry, entry);
}

TEST_F(DiskCacheFaults, AFailedFlushPublishesNothingButAMissingOneDoes) {
  const CanonicalKey key = sample_key(1);
  const auto publish_with = [&](int error) {
    return open(with_faults([error](const std::string& operation, size_t*) {
             return operation == "sync" ? -error : 0;
           }))
        ->publish(key, sample_entry(key, 10));
  };
  for (const int lost : {EIO, ENOSPC, EDQUOT}) {
    EXPECT_EQ(publish_with(lost), PublishOutcome::kFailed) << std::strerror(lost);
  }
  EXPECT_EQ(count_files(""), 0u);
  EXPECT_EQ(publish_with(EINVAL), PublishOutcome::kPublished);
}

// renameat2 is missing (old kernel), then hard links too (some FUSE file systems).
TEST_F(DiskCacheFaults, PublishesWithoutRenameat2AndWithoutHardLinks) {
  for (const bool links : {true, false}) {
    std::filesystem::remove_all(root_);
    auto cache = open(with_faults([&](const std::string& operation, size_t*) {
      if (operation == "rename_no_replace_at") return -ENOSYS;
      return operation == "link_at" && !links ? -EPERM : 0;
    }));
    const CanonicalKey key = sample_key(1);
    const CacheEntry entry = sample_entry(key, 10);
    EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kPublished);
    EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kAlreadyPresent);
    ASSERT_TRUE(write_file(entry_path(key), "damaged"));
    EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kReplaced);
    EXPECT_EQ(*cache->find(key).entry, entry);
    EXPECT_EQ(count_files(""), 1u);
  }
}

TEST_F(DiskCacheFaults, ALinkWhoseReplyWasLostCountsAsMade) {
  FileOps ops = without_sync();
  const FileOps real = real_file_ops();
  ops.rename_no_replace_at = [](int, const char*, int, const char*) { return -EINVAL; };
  ops.link_at = [real](int from, const char* source, int to, const char* target) {
    EXPECT_EQ(real.link_at(from, source, to, target), 0);
    return -EIO;
  };
  auto cache = open(std::move(ops));
  const CanonicalKey key = sample_key(1);
  EXPECT_EQ(cache->publish(key, sample_entry(key, 10)), PublishOutcome::kPublished);
  EXPECT_EQ(count_files(""), 1u);
}

// Content nobody could read is neither trusted nor replaced.
TEST_F(DiskCacheFaults, AnIoErrorIsNotTakenForCorruption) {
  const CanonicalKey key = sample_key(1);
  const CacheEntry entry = sample_entry(key, 100);
  open(without_sync())->publish(key, entry);
  auto cache = open(with_faults(
      [](const std::string& operation, size_t*) { return operation == "read" ? -EIO : 0; }));
  const CacheLookup lookup = cache->find(key);
  EXPECT_EQ(lookup.miss, MissReason::kIoError);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("cannot read: Input/output error")));
  EXPECT_EQ(cache->publish(key, entry), PublishOutcome::kAlreadyPresent);
  EXPECT_EQ(cache->counters().replaced, 0u);
}

TEST_F(DiskCacheFaults, AStaleHandleIsRetriedOnce) {
  const CanonicalKey key = sample_key(1);
  const CacheEntry entry = sample_entry(key, 100);
  open(without_sync())->publish(key, entry);
  int stale = 1;
  auto cache = open(with_faults([&](const std::string& operation, size_t*) {
    return operation == "read" && stale-- > 0 ? -ESTALE : 0;
  }));
  EXPECT_TRUE(cache->find(key).entry);
  stale = 2;
  EXPECT_EQ(cache->find(key).miss, MissReason::kIoError);
}

TEST_F(DiskCacheFaults, WithoutALockServiceWorkGoesOn) {
  auto cache = open(with_faults(
      [](const std::string& operation, size_t*) { return operation == "try_lock" ? -ENOLCK : 0; }));
  const CanonicalKey key = sample_key(1);
  const KeyLock lock = cache->lock(key, std::chrono::steady_clock::time_point::max());
  EXPECT_FALSE(lock.held());
  EXPECT_FALSE(lock.waited());
  EXPECT_THAT(lock.problem(), HasSubstr("No locks available"));
  EXPECT_EQ(cache->counters().lock_failures, 1u);
  EXPECT_EQ(cache->publish(key, sample_entry(key, 10)), PublishOutcome::kPublished);
}

TEST_F(DiskCacheFaults, ARootThatCannotBeMadeGivesMemoryOnlyAndOneLogLine) {
  ASSERT_TRUE(write_file(root_, "a file where the folder should be"));
  auto cache = open();
  EXPECT_EQ(cache->mode(), CacheMode::kMemoryOnly);
  EXPECT_THAT(take_log(), ElementsAre(HasSubstr("kept in memory only")));
  const CanonicalKey key = sample_key(1);
  EXPECT_EQ(cache->publish(key, sample_entry(key, 10)), PublishOutcome::kMemoryOnly);
  EXPECT_TRUE(cache->find(key).entry);
  EXPECT_THAT(take_log(), SizeIs(0));
}

TEST_F(DiskCacheFaults, ARootRemovedWhileInUseIsAFailedPublication) {
  auto cache = open();
  std::filesystem::remove_all(root_);
  const CanonicalKey key = sample_key(1);
  EXPECT_EQ(cache->publish(key, sample_entry(key, 10)), PublishOutcome::kFailed);
  EXPECT_TRUE(cache->find(key).entry) << "kept in memory";
}

}  // namespace
}  // namespace jitgemm::disk_cache_faults_test
