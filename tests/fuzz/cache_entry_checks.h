// SPDX-License-Identifier: Apache-2.0
// What must hold for any bytes given to the entry parser; shared by the fuzzer and the replay of
// its corpus. Aborts when it does not hold.
#pragma once

#include "cache/cache_entry.h"
#include "support/digest.h"
#include "unit/cache/sample_entry.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace jitgemm {

inline bool entry_holds(std::string_view bytes) {
  const auto head = parse_entry_head(bytes, bytes.size());
  const auto entry = parse_entry(bytes);
  if (!entry) return false;
  (void)dump_key(entry->key);
  // Accepted bytes are within the caps, agree with their head, and can be written and read again.
  if (!head || head->key != entry->key || !(head->metadata == entry->metadata)) std::abort();
  if (bytes.size() > kMaxEntryBytes || head->cubin_bytes != entry->cubin.size()) std::abort();
  const auto written = write_entry(*entry);
  if (!written) std::abort();
  const auto again = parse_entry(*written);
  if (!again || !(*again == *entry)) std::abort();
  return true;
}

// The bytes with lengths, digests and checksum made consistent where that is possible, so that
// what lies behind the checksums is reached too.
inline std::string with_valid_checksums(std::string_view damaged) {
  std::string bytes(damaged);
  if (bytes.size() < kEntryHeaderBytes) return bytes;
  bytes.replace(0, 20, std::string("\x89JGK\r\n\x1a\n\1\0\0\0\xac\0\0\0\0\0\0\0", 20));
  size_t left = bytes.size() - kEntryHeaderBytes;
  put_u32(bytes, 36, static_cast<uint32_t>(bytes.size()));
  size_t at = kEntryHeaderBytes;
  for (size_t part = 0; part < 4; ++part) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) {
      length |= size_t{static_cast<uint8_t>(bytes[20 + 4 * part + i])} << (8 * i);
    }
    length = part == 3 ? left : std::min(length, left);
    put_u32(bytes, 20 + 4 * part, static_cast<uint32_t>(length));
    const Sha256Digest digest = sha256(std::string_view(bytes).substr(at, length));
    bytes.replace(40 + 32 * part, 32, as_bytes(digest));
    at += length;
    left -= length;
  }
  seal_header(bytes);
  return bytes;
}

inline void check_cache_entry(std::string_view bytes) {
  entry_holds(bytes);
  entry_holds(with_valid_checksums(bytes));
  (void)dump_key(bytes);
}

}  // namespace jitgemm
