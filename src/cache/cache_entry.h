// SPDX-License-Identifier: Apache-2.0
// One cache entry: the key it answers, what is known about the compile, and its two products. Bytes
// on disk and back, as pure functions. The reader trusts nothing: lengths are compared with the
// caps and with the number of bytes at hand before anything is copied, and every byte is covered by
// a checksum. It must not know files, kernels or what a key means.
//
// entry    := header key metadata ptx cubin            nothing between the parts, nothing behind
// header   := magic:8 version:u32 header_length:u32 flags:u32 key_length:u32 metadata_length:u32
//             ptx_length:u32 cubin_length:u32 file_length:u32 key_sha256:32 metadata_sha256:32
//             ptx_sha256:32 cubin_sha256:32 header_crc32c:u32          integers little-endian
// magic    := 89 4A 47 4B 0D 0A 1A 0A                  (0x89 "JGK" CR LF SUB LF)
// version  := 1         header_length := 172         flags := 0
// metadata := (name '=' value '\n')*                   name is [a-z0-9_]+, value has no '\n'
//
// header_crc32c covers the 168 bytes before it. Version history: 1, the first.
#pragma once

#include "support/digest.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace jitgemm {

struct EntryMetadata {
  std::string entry_name;        // the symbol to launch
  std::string compiler_version;  // e.g. "NVRTC 13.0"
  int64_t registers = 0;         // a thread
  int64_t spill_bytes = 0;       // a thread, stores and loads together
  int64_t stack_bytes = 0;       // a thread
  int64_t shared_bytes = 0;      // a block, static and dynamic
  int64_t compile_ms = 0;
  int64_t created_unix_s = 0;
  std::map<std::string, std::string> extra;  // further name=value pairs of the caller

  bool operator==(const EntryMetadata&) const = default;
};

struct CacheEntry {
  std::string key;  // the canonical key bytes, whole
  EntryMetadata metadata;
  std::string ptx;
  std::string cubin;

  bool operator==(const CacheEntry&) const = default;
};

struct EntryCaps {
  static constexpr size_t kKeyBytes = size_t{1} << 16;
  static constexpr size_t kMetadataBytes = size_t{1} << 14;
  static constexpr size_t kPtxBytes = size_t{32} << 20;
  static constexpr size_t kCubinBytes = size_t{32} << 20;
};
inline constexpr size_t kEntryHeaderBytes = 172;
inline constexpr uint32_t kEntryFormatVersion = 1;
inline constexpr size_t kMaxEntryHeadBytes =
    kEntryHeaderBytes + EntryCaps::kKeyBytes + EntryCaps::kMetadataBytes;
inline constexpr size_t kMaxEntryBytes =
    kMaxEntryHeadBytes + EntryCaps::kPtxBytes + EntryCaps::kCubinBytes;

// INVALID_ARGUMENT when a part is empty or above its cap, the cubin is no ELF file, or a metadata
// name or value cannot be written: nothing that a reader would refuse is ever written.
Result<std::string> write_entry(const CacheEntry& entry);

// CORRUPT_DATA names what is wrong; UNSUPPORTED: an intact header of another format version.
Result<CacheEntry> parse_entry(std::string_view bytes);

// Header, key and metadata only, for listings: `bytes` begins an entry of file_length bytes and
// holds at least min(file_length, kMaxEntryHeadBytes) of them. The payloads are not looked at.
struct EntryHead {
  std::string key;
  Sha256Digest key_digest = {};
  EntryMetadata metadata;
  size_t ptx_bytes = 0;
  size_t cubin_bytes = 0;
};
Result<EntryHead> parse_entry_head(std::string_view bytes, uint64_t file_length);

}  // namespace jitgemm
