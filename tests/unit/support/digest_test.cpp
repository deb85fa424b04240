// SPDX-License-Identifier: Apache-2.0
#include "support/digest.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>

namespace jitgemm {
namespace {

CanonicalKey sample() {
  return KeyBuilder("gemm-1")
      .add("target", "sm_90a")
      .add("m", 64)
      .add_bytes("source", "abc")
      .build();
}

TEST(KeyBuilder, TheSameFieldsGiveTheSameKey) {
  EXPECT_EQ(sample().bytes, sample().bytes);
  EXPECT_EQ(sample().digest, sha256(sample().bytes));
}

// A change of these bytes is a change of the key format: every stored entry would be orphaned.
TEST(KeyBuilder, WritesTheDocumentedBytes) {
  const std::string expected(
      "t\x06\x00\x06\x00\x00\x00schemagemm-1"
      "i\x01\x00\x08\x00\x00\x00m\xff\xff\xff\xff\xff\xff\xff\xff",
      19 + 16);
  EXPECT_EQ(KeyBuilder("gemm-1").add("m", -1).build().bytes, expected);
}

TEST(KeyBuilder, EveryDifferenceGivesAnotherKey) {
  const CanonicalKey keys[] = {
      sample(),
      KeyBuilder("gemm-2").add("target", "sm_90a").add("m", 64).add_bytes("source", "abc").build(),
      KeyBuilder("gemm-1").add("target", "sm_90").add("m", 64).add_bytes("source", "abc").build(),
      KeyBuilder("gemm-1").add("target", "sm_90a").add("m", 65).add_bytes("source", "abc").build(),
      KeyBuilder("gemm-1").add("target", "sm_90a").add("n", 64).add_bytes("source", "abc").build(),
      KeyBuilder("gemm-1").add("target", "sm_90a").add("m", 64).add_bytes("source", "abd").build(),
      KeyBuilder("gemm-1")
          .add("target", "sm_90a")
          .add("m", "64")
          .add_bytes("source", "abc")
          .build(),
      KeyBuilder("gemm-1").add("target", "sm_90a").add("m", 64).add("source", "abc").build(),
      KeyBuilder("gemm-1").add("m", 64).add("target", "sm_90a").add_bytes("source", "abc").build(),
      KeyBuilder("gemm-1").add("target", "sm_90a").add("m", 64).build(),
  };
  std::set<std::string> bytes, digests;
  for (const CanonicalKey& key : keys) {
    bytes.insert(key.bytes);
    digests.insert(key.hex());
  }
  EXPECT_EQ(bytes.size(), std::size(keys));
  EXPECT_EQ(digests.size(), std::size(keys));
}

TEST(KeyBuilder, MovingAByteAcrossAFieldBoundaryGivesAnotherKey) {
  const auto two = [](const char* tag1, const char* value1, const char* tag2, const char* value2) {
    return KeyBuilder("s").add(tag1, value1).add(tag2, value2).build().bytes;
  };
  EXPECT_NE(two("a", "ab", "b", "c"), two("a", "a", "b", "bc"));
  EXPECT_NE(two("a", "ab", "b", "c"), two("aa", "b", "b", "c"));
  EXPECT_NE(two("a", "b", "c", ""), two("a", "", "c", "b"));
  EXPECT_NE(two("a", "", "b", ""), KeyBuilder("s").add("ab", "").build().bytes);
}

TEST(KeyBuilder, AnIntegerIsItsValueWhateverItsType) {
  const std::string reference = KeyBuilder("s").add("x", 5).build().bytes;
  EXPECT_EQ(KeyBuilder("s").add("x", int64_t{5}).build().bytes, reference);
  EXPECT_EQ(KeyBuilder("s").add("x", uint8_t{5}).build().bytes, reference);
  EXPECT_EQ(KeyBuilder("s").add("x", uint64_t{5}).build().bytes, reference);
  EXPECT_EQ(KeyBuilder("s").add("x", true).build().bytes,
            KeyBuilder("s").add("x", 1).build().bytes);
  EXPECT_NE(KeyBuilder("s").add("x", -1).build().bytes,
            KeyBuilder("s").add("x", std::numeric_limits<uint64_t>::max()).build().bytes);
}

TEST(KeyDump, ShowsWhatWasHashed) {
  const CanonicalKey key = KeyBuilder("gemm-1")
                               .add("target", "sm_90a")
                               .add("m", std::numeric_limits<int64_t>::min())
                               .add("u", std::numeric_limits<uint64_t>::max())
                               .add("options", "-a\n-b\\c\x01")
                               .add_bytes("source", "abc")
                               .build();
  EXPECT_EQ(dump_key(key.bytes),
            "schema=gemm-1\ntarget=sm_90a\nm=-9223372036854775808\nu=18446744073709551615\n"
            "options=-a\\n-b\\\\c\\x01\n"
            "source=<3 bytes, sha256 "
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad>\n");
}

TEST(KeyDump, RefusesEveryTruncation) {
  const std::string bytes = sample().bytes;
  std::set<size_t> field_ends = {19, 19 + 19, 19 + 19 + 16};
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto fields = read_key_fields(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(fields.has_value(), field_ends.contains(size)) << size;
  }
}

TEST(KeyDump, RefusesForeignBytes) {
  EXPECT_EQ(read_key_fields("").error().code(), StatusCode::kCorruptData);
  EXPECT_EQ(read_key_fields(std::string("x\0\0\0\0\0\0", 7)).error().code(),
            StatusCode::kCorruptData);
  EXPECT_EQ(read_key_fields("t\xff\xff\xff\xff\xff\xff").error().code(), StatusCode::kCorruptData);
  EXPECT_EQ(read_key_fields(std::string("i\1\0\0\0\0\0m", 8)).error().code(),
            StatusCode::kCorruptData);
  EXPECT_EQ(dump_key("?"), "unreadable key (key: byte 0: a field header is cut short)\n");
}

}  // namespace
}  // namespace jitgemm
