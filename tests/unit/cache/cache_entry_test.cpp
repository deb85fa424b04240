// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_entry.h"

#include "unit/cache/sample_entry.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace jitgemm {
namespace {

TEST(CacheEntry, RoundTrips) {
  const CacheEntry entry = sample_entry(sample_key(1), 5000);
  const auto bytes = write_entry(entry);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const auto parsed = parse_entry(*bytes);
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(*parsed, entry);
}

TEST(CacheEntry, BinaryPayloadsRoundTrip) {
  CacheEntry entry = sample_entry(sample_key(1), 300);
  entry.ptx = std::string("\0\n=\xff", 4);
  EXPECT_EQ(*parse_entry(*write_entry(entry)), entry);
}

// Pins format version 1: entries on disk stay readable, or the version changes.
TEST(CacheEntry, WritesTheDocumentedLayout) {
  const CacheEntry entry = sample_entry(sample_key(1), 64);
  const std::string bytes = *write_entry(entry);
  EXPECT_EQ(bytes.substr(0, 8), "\x89JGK\r\n\x1a\n");
  EXPECT_EQ(bytes.substr(8, 12), std::string("\1\0\0\0\xac\0\0\0\0\0\0\0", 12));
  EXPECT_EQ(bytes.substr(kEntryHeaderBytes, entry.key.size()), entry.key);
  EXPECT_TRUE(bytes.ends_with(entry.ptx + entry.cubin));
  EXPECT_EQ(bytes.substr(40, 32), as_bytes(sha256(entry.key)));
  EXPECT_EQ(bytes.substr(136, 32), as_bytes(sha256(entry.cubin)));
}

TEST(CacheEntry, EveryTruncationIsDetected) {
  const std::string bytes = *write_entry(sample_entry(sample_key(1), 200));
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto parsed = parse_entry(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(parsed) << size;
    ASSERT_EQ(parsed.error().code(), StatusCode::kCorruptData) << size;
  }
}

TEST(CacheEntry, EveryExtensionIsDetected) {
  const std::string bytes = *write_entry(sample_entry(sample_key(1), 200));
  for (const size_t more : {1, 2, 172, 4096}) {
    EXPECT_FALSE(parse_entry(bytes + std::string(more, '\0'))) << more;
  }
  EXPECT_FALSE(parse_entry(bytes + bytes));
}

TEST(CacheEntry, EveryFlippedBitOfASmallEntryIsDetected) {
  std::string bytes = *write_entry(sample_entry(sample_key(1), 16));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      ASSERT_FALSE(parse_entry(bytes)) << "byte " << i << " bit " << bit;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
  }
  EXPECT_TRUE(parse_entry(bytes));
}

TEST(CacheEntry, RandomDamageOfALargeEntryIsDetected) {
  const std::string good = *write_entry(sample_entry(sample_key(1), 4096));
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
    }
    if (bytes == good) continue;
    ASSERT_FALSE(parse_entry(bytes)) << round;
  }
}

TEST(CacheEntry, AZeroFilledTailOfTheRightLengthIsDetected) {
  const std::string good = *write_entry(sample_entry(sample_key(1), 1000));
  for (const size_t kept :
       {size_t{0}, size_t{8}, kEntryHeaderBytes, good.size() / 2, good.size() - 1}) {
    std::string bytes = good.substr(0, kept) + std::string(good.size() - kept, '\0');
    EXPECT_FALSE(parse_entry(bytes)) << kept;
  }
}

// With a valid checksum over it, each header field is still distrusted.
struct Forgery {
  const char* name;
  size_t offset;
  uint32_t value;
  StatusCode code;
};
TEST(CacheEntry, AForgedHeaderWithAValidChecksumIsRefused) {
  const std::string good = *write_entry(sample_entry(sample_key(1), 100));
  const Forgery forgeries[] = {
      {"next version",             8,  2,          StatusCode::kUnsupported},
      {"version 0",                8,  0,          StatusCode::kUnsupported},
      {"header length",            12, 176,        StatusCode::kCorruptData},
      {"flags",                    16, 1,          StatusCode::kCorruptData},
      {"no key",                   20, 0,          StatusCode::kCorruptData},
      {"key above its cap",        20, 0x10001,    StatusCode::kCorruptData},
      {"key of 4 GiB",             20, 0xffffffff, StatusCode::kCorruptData},
      {"no metadata",              24, 0,          StatusCode::kCorruptData},
      {"metadata of 4 GiB",        24, 0xffffffff, StatusCode::kCorruptData},
      {"no PTX",                   28, 0,          StatusCode::kCorruptData},
      {"PTX longer than the file", 28, 1 << 24,    StatusCode::kCorruptData},
      {"cubin of 3 bytes",         32, 3,          StatusCode::kCorruptData},
      {"cubin of 4 GiB",           32, 0xffffffff, StatusCode::kCorruptData},
      {"file length",              36, 1,          StatusCode::kCorruptData},
  };
  for (const Forgery& forgery : forgeries) {
    std::string bytes = good;
    put_u32(bytes, forgery.offset, forgery.value);
    seal_header(bytes);
    const auto parsed = parse_entry(bytes);
    ASSERT_FALSE(parsed) << forgery.name;
    EXPECT_EQ(parsed.error().code(), forgery.code) << forgery.name << parsed.error().message();
    EXPECT_FALSE(parse_entry_head(bytes, bytes.size())) << forgery.name;
  }
  std::string resealed = good;
  seal_header(resealed);
  EXPECT_EQ(resealed, good) << "the forger's checksum is the right one";
}

// A part replaced together with its digest and checksum: the bytes are consistent and still
// refused.
TEST(CacheEntry, MalformedMetadataWithValidDigestsIsRefused) {
  const std::string good =
      "entry_name=k\ncompiler_version=c\nregisters=1\nspill_bytes=0\n"
      "stack_bytes=0\nshared_bytes=0\ncompile_ms=1\ncreated_unix_s=2\n";
  ASSERT_TRUE(parse_entry(entry_with_metadata(good)));
  const std::string unfinished = good.substr(0, good.size() - 1);
  const std::string no_last_value = good.substr(0, good.size() - 2);
  const std::string malformed[] = {
      "entry_name=k\n",                       // a field is missing
      unfinished,                             // no line end
      good + "note\n",                        // no equals sign
      good + "note\na=b\n",                   // an equals sign, but in the next line
      good + "=v\n",                          // no name
      good + "a b=v\n",                       // a space in a name
      good + "registers=1\n",                 // a field twice
      good + "a=1\na=2\n",                    // a further name twice
      unfinished + "x\n",                     // an integer with a tail
      unfinished + "99999999999999999999\n",  // an integer beyond 64 bits
      no_last_value + "\n",                   // an empty integer
  };
  for (const std::string& metadata : malformed) {
    EXPECT_FALSE(parse_entry(entry_with_metadata(metadata))) << metadata;
  }
  EXPECT_EQ(parse_entry(entry_with_metadata(good + "tile=128\n"))->metadata.extra.at("tile"),
            "128");
}

TEST(CacheEntry, TheWriterRefusesWhatTheReaderWouldRefuse) {
  const CacheEntry good = sample_entry(sample_key(1), 100);
  const auto refuses = [&](auto change) {
    CacheEntry entry = good;
    change(entry);
    const auto bytes = write_entry(entry);
    return !bytes && bytes.error().code() == StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.key.clear(); }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.key.assign(EntryCaps::kKeyBytes + 1, 'k'); }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.ptx.clear(); }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.ptx.assign(EntryCaps::kPtxBytes + 1, 'p'); }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.cubin.clear(); }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.cubin = "not an ELF file"; }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.metadata.entry_name = "a\nregisters=0"; }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.metadata.extra["Tile"] = "1"; }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.metadata.extra["registers"] = "1"; }));
  EXPECT_TRUE(refuses([](CacheEntry& e) { e.metadata.extra["a"] = "b\nc"; }));
  EXPECT_TRUE(
      refuses([](CacheEntry& e) { e.metadata.extra["a"].assign(EntryCaps::kMetadataBytes, 'b'); }));
  EXPECT_FALSE(refuses([](CacheEntry&) {}));
}

TEST(CacheEntry, TheHeadIsReadWithoutThePayloads) {
  const CacheEntry entry = sample_entry(sample_key(1), 5000);
  const std::string bytes = *write_entry(entry);
  const size_t head_size = bytes.size() - entry.ptx.size() - entry.cubin.size();
  const auto head = parse_entry_head(std::string_view(bytes).substr(0, head_size), bytes.size());
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_EQ(head->key, entry.key);
  EXPECT_EQ(head->key_digest, sha256(entry.key));
  EXPECT_EQ(head->metadata, entry.metadata);
  EXPECT_EQ(head->ptx_bytes, entry.ptx.size());
  EXPECT_EQ(head->cubin_bytes, entry.cubin.size());
  EXPECT_FALSE(parse_entry_head(std::string_view(bytes).substr(0, head_size - 1), bytes.size()));
  EXPECT_FALSE(parse_entry_head(bytes, bytes.size() + 1));
}

}  // namespace
}  // namespace jitgemm
