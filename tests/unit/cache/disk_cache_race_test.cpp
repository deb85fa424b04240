// SPDX-License-Identifier: Apache-2.0
// Many writers and readers at once, in threads and in processes, some of them killed.
#include "cache/disk_cache.h"
#include "unit/cache/cache_fixture.h"
#include "unit/cache/failing_file_ops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace jitgemm {
namespace {

using DiskCacheRace = CacheTest;
using Clock = std::chrono::steady_clock;

bool succeeded(PublishOutcome outcome) {
  return outcome == PublishOutcome::kPublished || outcome == PublishOutcome::kAlreadyPresent ||
         outcome == PublishOutcome::kReplaced;
}

// Runs `work` in processes that start together; the number of those that returned true.
int run_processes(int count, const std::function<bool(int)>& work) {
  int gate[2];
  if (::pipe(gate) != 0) return -1;
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(gate[1]);
      char byte = 0;
      if (::read(gate[0], &byte, 1) != 0) ::_exit(1);  // returns when the parent closes its end
      ::_exit(work(i) ? 0 : 1);
    }
    children.push_back(child);
  }
  ::close(gate[0]);
  ::close(gate[1]);
  int good = 0;
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      ++good;
  }
  return good;
}

TEST_F(DiskCacheRace, ProcessesThatPublishOneKeyAllSucceedAndLeaveOneFile) {
  constexpr int kProcesses = 8;
  for (int round = 0; round < 10; ++round) {
    const CanonicalKey key = sample_key(round);
    const CacheEntry entry = sample_entry(key, 20000);
    EXPECT_EQ(run_processes(kProcesses,
                            [&](int) {
                              auto cache = open(without_sync());
                              const CacheLookup before = cache->find(key);
                              if (before.entry && !(*before.entry == entry)) return false;
                              if (!succeeded(cache->publish(key, entry))) return false;
                              const CacheLookup after = cache->find(key);
                              return after.entry && *after.entry == entry;
                            }),
              kProcesses);
    EXPECT_EQ(count_files(""), static_cast<size_t>(round) + 1);
  }
}

TEST_F(DiskCacheRace, ThreadsThatShareACachePublishAndFind) {
  auto cache = open({.root = root_, .publishes_per_eviction = 4}, without_sync());
  constexpr int kThreads = 8, kKeys = 12;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kKeys; ++i) {
        const CanonicalKey key = sample_key((i + t) % kKeys);
        const CacheEntry entry = sample_entry(key, 3000);
        const CacheLookup lookup = cache->find(key);
        if (lookup.entry && !(*lookup.entry == entry)) ++wrong;
        if (!lookup.entry && lookup.miss != MissReason::kAbsent) ++wrong;
        if (!succeeded(cache->publish(key, entry))) ++wrong;
        if (!cache->find(key).entry) ++wrong;
        (void)cache->stat();
        (void)cache->counters();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache->stat()->entries, static_cast<uint64_t>(kKeys));
  EXPECT_EQ(cache->counters().published, static_cast<uint64_t>(kKeys));
  EXPECT_EQ(cache->counters().already_present, static_cast<uint64_t>((kThreads - 1) * kKeys));
  EXPECT_EQ(count_files("/v1/tmp"), 0u);
}

TEST_F(DiskCacheRace, ThreadsThatShareTheMemoryPublishAndFind) {
  auto cache = open(DiskCacheOptions{.memory_cap_bytes = 20000});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const CanonicalKey key = sample_key((i * 7 + t) % 20);
        cache->publish(key, sample_entry(key, 800));
        const CacheLookup lookup = cache->find(key);
        if (lookup.entry && !(*lookup.entry == sample_entry(key, 800))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache->stat()->bytes, 20000u);
}

// Half of the writers damage the file in place, as nobody should: readers see a good entry or a
// miss.
TEST_F(DiskCacheRace, ReplacingADamagedEntryRacesSafely) {
  const CanonicalKey key = sample_key(1);
  const CacheEntry entry = sample_entry(key, 5000);
  open(without_sync())->publish(key, entry);
  EXPECT_EQ(run_processes(6,
                          [&](int i) {
                            auto cache = open(without_sync());
                            for (int round = 0; round < 40; ++round) {
                              if (i % 2 == 0) {
                                std::error_code ignored;
                                std::filesystem::resize_file(entry_path(key), 100, ignored);
                              }
                              if (!succeeded(cache->publish(key, entry))) return false;
                              const CacheLookup lookup = cache->find(key);
                              if (lookup.entry && !(*lookup.entry == entry)) return false;
                            }
                            return true;
                          }),
            6);
  auto cache = open(without_sync());
  EXPECT_TRUE(succeeded(cache->publish(key, entry)));
  EXPECT_EQ(*cache->find(key).entry, entry);
  EXPECT_EQ(count_files(""), 1u);
}

// A publisher is killed after a random delay, so many times. What it leaves is either nothing under
// the name or an intact entry; survivors publish at once, and left files go away later.
class DiskCacheKills : public DiskCacheRace, public testing::WithParamInterface<int> {};

TEST_P(DiskCacheKills, LeaveNothingThatIsLoaded) {
  const int kills = GetParam();
  constexpr int kKeys = 8;
  std::mt19937 random(11);
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0;; i = (i + 1) % kKeys) {
        auto cache = open(without_sync());
        const CanonicalKey key = sample_key(i);
        const KeyLock lock = cache->lock(key, Clock::now());
        cache->publish(key, sample_entry(key, 30000));
        (void)::unlink(entry_path(key).c_str());
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    auto survivor = open(without_sync());
    for (int i = 0; i < kKeys; ++i) {
      const CanonicalKey key = sample_key(i);
      const CacheLookup lookup = survivor->find(key);
      if (lookup.entry) {
        ASSERT_EQ(*lookup.entry, sample_entry(key, 30000));
      } else {
        ASSERT_EQ(lookup.miss, MissReason::kAbsent) << kill_number << ": " << lookup.detail;
      }
      ASSERT_TRUE(survivor->lock(key, Clock::now()).held()) << "the dead hold no lock";
    }
  }
  auto cache = open({.root = root_, .temp_age_s = -1}, without_sync());
  RecordProperty("left_temporary_files", static_cast<int>(count_files("/v1/tmp")));
  cache->evict();
  EXPECT_EQ(count_files("/v1/tmp"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, DiskCacheKills, testing::Values(100));
// Run by tools/check --all.
INSTANTIATE_TEST_SUITE_P(OfMany, DiskCacheKills, testing::Values(1000));

TEST_F(DiskCacheRace, TheLockExcludesProcessesAndThreadsAndFreesOnDeath) {
  auto cache = open();
  const CanonicalKey key = sample_key(1), other = sample_key(2);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto own = open();
    const KeyLock lock = own->lock(key, Clock::now());
    const char byte = lock.held() ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  const KeyLock refused = cache->lock(key, Clock::now());
  EXPECT_FALSE(refused.held());
  EXPECT_TRUE(refused.waited());
  EXPECT_TRUE(cache->lock(other, Clock::now()).held()) << "keys do not wait for each other";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);

  KeyLock held = cache->lock(key, Clock::now());
  ASSERT_TRUE(held.held());
  EXPECT_FALSE(cache->lock(key, Clock::now()).held()) << "one process, two holders";
  KeyLock moved = std::move(held);
  EXPECT_FALSE(cache->lock(key, Clock::now()).held()) << "still held after a move";
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    moved.release();
  });
  const KeyLock waited = cache->lock(key, Clock::now() + std::chrono::seconds(30));
  releaser.join();
  EXPECT_TRUE(waited.held());
}

TEST_F(DiskCacheRace, UnderTheLockOneProcessCompiles) {
  constexpr int kProcesses = 8;
  for (int round = 0; round < 5; ++round) {
    const CanonicalKey key = sample_key(round);
    const std::string log = folder_ + "/compiles";
    EXPECT_EQ(run_processes(
                  kProcesses,
                  [&](int) {
                    auto cache = open(without_sync());
                    if (cache->find(key).entry) return true;
                    const KeyLock lock = cache->lock(key, Clock::now() + std::chrono::seconds(30));
                    if (!lock.held()) return false;
                    if (cache->find(key).entry) return true;
                    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
                    const bool noted = ::write(fd, "x", 1) == 1;
                    ::close(fd);
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                    return noted && succeeded(cache->publish(key, sample_entry(key, 100)));
                  }),
              kProcesses);
    EXPECT_EQ(std::filesystem::file_size(log), static_cast<uintmax_t>(round) + 1);
  }
}

TEST_F(DiskCacheRace, EvictionRacesSafelyWithReadersAndWriters) {
  constexpr int kKeys = 30;
  EXPECT_EQ(run_processes(6,
                          [&](int i) {
                            // Everything counts as old here, or nothing would be evicted.
                            auto cache = open({.root = root_, .cap_bytes = 60000, .young_s = -10},
                                              without_sync());
                            for (int round = 0; round < 60; ++round) {
                              const CanonicalKey key = sample_key((round * 7 + i) % kKeys);
                              const CacheLookup lookup = cache->find(key);
                              if (lookup.entry && !(*lookup.entry == sample_entry(key, 2000)))
                                return false;
                              if (!lookup.entry && lookup.miss != MissReason::kAbsent) return false;
                              if (!succeeded(cache->publish(key, sample_entry(key, 2000))))
                                return false;
                              if (i < 2) cache->evict();
                            }
                            return true;
                          }),
            6);
  auto cache = open({.root = root_, .cap_bytes = 60000, .young_s = -10}, without_sync());
  cache->evict();
  EXPECT_LE(cache->stat()->bytes, 60000u);
  EXPECT_EQ(count_files("/v1/tmp"), 0u);
}

}  // namespace
}  // namespace jitgemm
