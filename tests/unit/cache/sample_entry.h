// SPDX-License-Identifier: Apache-2.0
// Entries to test with, and a forger that damages them and then repairs their checksums, written
// against the grammar in cache_entry.h rather than with the code under test.
#pragma once

#include "cache/cache_entry.h"
#include "support/digest.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace jitgemm {

inline CanonicalKey sample_key(int number) {
  return KeyBuilder("test-1").add("target", "sm_90a").add("m", number).build();
}

inline CacheEntry sample_entry(const CanonicalKey& key, size_t payload_bytes) {
  CacheEntry entry;
  entry.key = key.bytes;
  entry.metadata.entry_name = "jitgemm_kernel";
  entry.metadata.compiler_version = "NVRTC 13.0";
  entry.metadata.registers = 168;
  entry.metadata.spill_bytes = 0;
  entry.metadata.stack_bytes = 16;
  entry.metadata.shared_bytes = 200 * 1024;
  entry.metadata.compile_ms = 812;
  entry.metadata.created_unix_s = 1750000000;
  entry.metadata.extra["tile"] = "128x128x128";
  entry.ptx.assign(payload_bytes, 'p');
  entry.cubin =
      "\x7f"
      "ELF";
  for (size_t i = 0; i < payload_bytes; ++i) {
    entry.cubin += static_cast<char>(i * 131 + key.digest[i % 32]);
  }
  return entry;
}

inline void put_u32(std::string& bytes, size_t offset, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[offset + i] = static_cast<char>(value >> (8 * i) & 0xff);
}

// Bit by bit, unlike the table of the code under test.
inline void seal_header(std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < 168; ++i) {
    crc ^= static_cast<uint8_t>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
  }
  put_u32(bytes, 168, ~crc);
}

// A consistent entry with this metadata text.
inline std::string entry_with_metadata(std::string_view metadata) {
  const CacheEntry entry = sample_entry(sample_key(1), 10);
  std::string bytes = *write_entry(entry);
  const size_t old_size =
      bytes.size() - 172 - entry.key.size() - entry.ptx.size() - entry.cubin.size();
  bytes.replace(172 + entry.key.size(), old_size, metadata);
  put_u32(bytes, 24, static_cast<uint32_t>(metadata.size()));
  put_u32(bytes, 36, static_cast<uint32_t>(bytes.size()));
  bytes.replace(72, 32, as_bytes(sha256(metadata)));
  seal_header(bytes);
  return bytes;
}

}  // namespace jitgemm
