// SPDX-License-Identifier: Apache-2.0
// Problems found again by their bytes: any field that differs tells them apart.
#include "runtime/given_key.h"

#include "runtime/insert_only_map.h"

#include <gtest/gtest.h>

#include <set>

namespace jitgemm {
namespace {

struct Words {
  uint64_t word[16];
};

TEST(GivenKey, EveryBitAndTheDeviceTellProblemsApart) {
  const auto* device = reinterpret_cast<const Device*>(0x1000);
  const auto* other_device = reinterpret_cast<const Device*>(0x2000);
  InsertOnlyMap<GivenKey<Words>, int, GivenKeyHash<Words>> map;
  map.insert({device, {}}, -1);
  for (int bit = 0; bit < 16 * 64; ++bit) {
    Words words = {};
    words.word[bit / 64] = uint64_t{1} << (bit % 64);
    ASSERT_EQ(map.find({device, words}), nullptr) << bit;
    map.insert({device, words}, bit);
  }
  for (int bit = 0; bit < 16 * 64; ++bit) {
    Words words = {};
    words.word[bit / 64] = uint64_t{1} << (bit % 64);
    const int* found = map.find({device, words});
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, bit);
    EXPECT_EQ(map.find({other_device, words}), nullptr);
  }
  EXPECT_EQ(*map.find({device, {}}), -1);
}

TEST(GivenKey, HashesOfNeighboursReachTheLowBits) {
  std::set<size_t> buckets;
  for (uint64_t m = 0; m < 1024; ++m) {
    Words words = {};
    words.word[1] = m;
    buckets.insert(GivenKeyHash<Words>()({nullptr, words}) & 1023);
  }
  EXPECT_GT(buckets.size(), 512U);
}

}  // namespace
}  // namespace jitgemm
