// SPDX-License-Identifier: Apache-2.0
// Growth past the first table, collisions, and readers that meet a writer.
#include "runtime/insert_only_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace jitgemm {
namespace {

struct SameHash {
  size_t operator()(int) const { return SIZE_MAX; }  // probing wraps around the table
};
struct OwnHash {
  size_t operator()(int key) const { return static_cast<size_t>(key) * 0x9e3779b97f4a7c15ULL; }
};

template <typename Hash>
void expect_keeps_everything(int count) {
  InsertOnlyMap<int, int, Hash> map;
  EXPECT_EQ(map.find(0), nullptr);
  int* first = &map.insert(0, 1000);
  for (int key = 1; key < count; ++key) map.insert(key, key + 1000);
  for (int key = 0; key < count; ++key) {
    ASSERT_NE(map.find(key), nullptr) << key;
    EXPECT_EQ(*map.find(key), key + 1000);
  }
  EXPECT_EQ(map.find(count), nullptr);
  EXPECT_EQ(map.find(0), first);  // values do not move
}

TEST(InsertOnlyMap, KeepsEverythingThroughGrowth) {
  expect_keeps_everything<OwnHash>(5000);
}

TEST(InsertOnlyMap, KeepsKeysOfOneHashApart) {
  expect_keeps_everything<SameHash>(300);
}

TEST(InsertOnlyMap, KeepsTheFirstValueOfAKey) {
  InsertOnlyMap<int, int, OwnHash> map;
  EXPECT_EQ(map.insert(7, 1), 1);
  EXPECT_EQ(map.insert(7, 2), 1);
  EXPECT_EQ(*map.find(7), 1);
}

TEST(InsertOnlyMap, ReadersSeeWhatWasInsertedWhileItGrows) {
  constexpr int kKeys = 4000;
  InsertOnlyMap<int, int, OwnHash> map;
  std::atomic<int> inserted{0};
  std::atomic<int> missing{0};
  std::thread reader([&] {
    for (int seen = 0; seen < kKeys;) {
      seen = inserted.load(std::memory_order_acquire);
      for (int key = seen > 64 ? seen - 64 : 0; key < seen; ++key) {
        const int* value = map.find(key);
        if (value == nullptr || *value != key) ++missing;
      }
    }
  });
  for (int key = 0; key < kKeys; ++key) {
    map.insert(key, key);
    inserted.store(key + 1, std::memory_order_release);
  }
  reader.join();
  EXPECT_EQ(missing, 0);
}

}  // namespace
}  // namespace jitgemm
