// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace jitgemm {
namespace {

constexpr std::string_view kMagic("\x89JGK\r\n\x1a\n", 8);
constexpr std::string_view kElfMagic(
    "\x7f"
    "ELF",
    4);
constexpr size_t kCheckedHeaderBytes = kEntryHeaderBytes - 4;

// CRC-32C (Castagnoli), reflected polynomial 0x82F63B78, one byte a step: the header is short.
constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
    table[i] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

void append_u32(std::string& bytes, size_t value) {
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t load_u32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

struct Header {
  size_t key_length = 0;
  size_t metadata_length = 0;
  size_t ptx_length = 0;
  size_t cubin_length = 0;
  std::string_view key_digest, metadata_digest, ptx_digest, cubin_digest;

  size_t file_length() const {
    return kEntryHeaderBytes + key_length + metadata_length + ptx_length + cubin_length;
  }
};

Status check_length(std::string_view part, size_t length, size_t minimum, size_t cap) {
  if (length >= minimum && length <= cap) return ok_status();
  return corrupt_data(fmt::format("{}: length {} is not in {}..{}", part, length, minimum, cap));
}

Result<Header> parse_header(std::string_view bytes, uint64_t file_length) {
  if (bytes.size() < kEntryHeaderBytes) {
    return corrupt_data(
        fmt::format("header: expected {} bytes, found {}", kEntryHeaderBytes, bytes.size()));
  }
  if (bytes.substr(0, 8) != kMagic) return corrupt_data("header: not a cache entry");
  const uint32_t version = load_u32(bytes, 8);
  const uint32_t header_length = load_u32(bytes, 12);
  const uint32_t crc = load_u32(bytes, kCheckedHeaderBytes);
  if (crc != crc32c(bytes.substr(0, kCheckedHeaderBytes))) {
    return corrupt_data("header: checksum differs");
  }
  if (version != kEntryFormatVersion) {
    return unsupported(fmt::format("header: format version {}, this build reads {}", version,
                                   kEntryFormatVersion));
  }
  if (header_length != kEntryHeaderBytes) return corrupt_data("header: wrong header length");
  if (load_u32(bytes, 16) != 0) return corrupt_data("header: unknown flags");

  Header header;
  header.key_length = load_u32(bytes, 20);
  header.metadata_length = load_u32(bytes, 24);
  header.ptx_length = load_u32(bytes, 28);
  header.cubin_length = load_u32(bytes, 32);
  JITGEMM_TRY(check_length("key", header.key_length, 1, EntryCaps::kKeyBytes));
  JITGEMM_TRY(check_length("metadata", header.metadata_length, 1, EntryCaps::kMetadataBytes));
  JITGEMM_TRY(check_length("PTX", header.ptx_length, 1, EntryCaps::kPtxBytes));
  JITGEMM_TRY(check_length("cubin", header.cubin_length, kElfMagic.size(), EntryCaps::kCubinBytes));
  if (header.file_length() != load_u32(bytes, 36) || header.file_length() != file_length) {
    return corrupt_data(
        fmt::format("header: promises {} bytes, found {}", header.file_length(), file_length));
  }
  header.key_digest = bytes.substr(40, 32);
  header.metadata_digest = bytes.substr(72, 32);
  header.ptx_digest = bytes.substr(104, 32);
  header.cubin_digest = bytes.substr(136, 32);
  return header;
}

Status check_digest(std::string_view part, std::string_view bytes, std::string_view expected) {
  if (as_bytes(sha256(bytes)) == expected) return ok_status();
  return corrupt_data(fmt::format("{}: SHA-256 differs", part));
}

// --- Metadata ----------------------------------------------------------------------------------

struct TextField {
  std::string_view name;
  std::string EntryMetadata::*member;
};
constexpr TextField kTextFields[] = {
    {"entry_name",       &EntryMetadata::entry_name      },
    {"compiler_version", &EntryMetadata::compiler_version},
};
struct IntegerField {
  std::string_view name;
  int64_t EntryMetadata::*member;
};
constexpr IntegerField kIntegerFields[] = {
    {"registers",      &EntryMetadata::registers     },
    {"spill_bytes",    &EntryMetadata::spill_bytes   },
    {"stack_bytes",    &EntryMetadata::stack_bytes   },
    {"shared_bytes",   &EntryMetadata::shared_bytes  },
    {"compile_ms",     &EntryMetadata::compile_ms    },
    {"created_unix_s", &EntryMetadata::created_unix_s},
};

bool is_known_name(std::string_view name) {
  return std::any_of(std::begin(kTextFields), std::end(kTextFields),
                     [&](const TextField& field) { return field.name == name; }) ||
         std::any_of(std::begin(kIntegerFields), std::end(kIntegerFields),
                     [&](const IntegerField& field) { return field.name == name; });
}

bool is_valid_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Result<std::string> write_metadata(const EntryMetadata& metadata) {
  std::string text;
  for (const TextField& field : kTextFields) {
    const std::string& value = metadata.*field.member;
    if (value.find('\n') != std::string::npos) {
      return invalid_argument(
          fmt::format("metadata: the value of {} has a line break", field.name));
    }
    text += fmt::format("{}={}\n", field.name, value);
  }
  for (const IntegerField& field : kIntegerFields) {
    text += fmt::format("{}={}\n", field.name, metadata.*field.member);
  }
  for (const auto& [name, value] : metadata.extra) {
    if (!is_valid_name(name) || is_known_name(name) || value.find('\n') != std::string::npos) {
      return invalid_argument(
          fmt::format("metadata: '{}' needs another name, or a value without line breaks", name));
    }
    text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

Result<EntryMetadata> parse_metadata(std::string_view text) {
  EntryMetadata metadata;
  size_t known_seen = 0;
  std::map<std::string, std::string> seen;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t equals = text.find('=');
    if (end == std::string_view::npos || equals == std::string_view::npos || equals > end) {
      return corrupt_data("metadata: a line is not name=value");
    }
    const std::string_view name = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1, end - equals - 1);
    text.remove_prefix(end + 1);
    if (!is_valid_name(name) || !seen.emplace(name, value).second) {
      return corrupt_data("metadata: a name is malformed or given twice");
    }
    if (is_known_name(name)) ++known_seen;
  }
  if (known_seen != std::size(kTextFields) + std::size(kIntegerFields)) {
    return corrupt_data("metadata: a field is missing");
  }
  for (const TextField& field : kTextFields) {
    metadata.*field.member = std::move(seen.extract(std::string(field.name)).mapped());
  }
  for (const IntegerField& field : kIntegerFields) {
    const std::string value = std::move(seen.extract(std::string(field.name)).mapped());
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, metadata.*field.member);
    if (error != std::errc() || stop != end) {
      return corrupt_data(fmt::format("metadata: {} is not an integer", field.name));
    }
  }
  metadata.extra = std::move(seen);
  return metadata;
}

// Checks the key and the metadata that follow the header.
Result<EntryHead> parse_head_parts(std::string_view bytes, const Header& header) {
  const std::string_view key = bytes.substr(kEntryHeaderBytes, header.key_length);
  const std::string_view metadata =
      bytes.substr(kEntryHeaderBytes + header.key_length, header.metadata_length);
  JITGEMM_TRY(check_digest("key", key, header.key_digest));
  JITGEMM_TRY(check_digest("metadata", metadata, header.metadata_digest));
  EntryHead head;
  JITGEMM_ASSIGN(head.metadata, parse_metadata(metadata));
  head.key = key;
  std::copy(header.key_digest.begin(), header.key_digest.end(),
            reinterpret_cast<char*>(head.key_digest.data()));
  head.ptx_bytes = header.ptx_length;
  head.cubin_bytes = header.cubin_length;
  return head;
}

}  // namespace

Result<std::string> write_entry(const CacheEntry& entry) {
  JITGEMM_ASSIGN(const std::string metadata, write_metadata(entry.metadata));
  struct Part {
    std::string_view name, bytes;
    size_t cap;
  };
  const Part parts[] = {
      {"key",      entry.key,   EntryCaps::kKeyBytes     },
      {"metadata", metadata,    EntryCaps::kMetadataBytes},
      {"PTX",      entry.ptx,   EntryCaps::kPtxBytes     },
      {"cubin",    entry.cubin, EntryCaps::kCubinBytes   }
  };
  size_t file_length = kEntryHeaderBytes;
  for (const Part& part : parts) {
    if (part.bytes.empty() || part.bytes.size() > part.cap) {
      return invalid_argument(fmt::format("{}: expected 1..{} bytes, found {}", part.name, part.cap,
                                          part.bytes.size()));
    }
    file_length += part.bytes.size();
  }
  if (!entry.cubin.starts_with(kElfMagic)) {
    return invalid_argument("cubin: expected an ELF file, found other bytes");
  }

  std::string bytes;
  bytes.reserve(file_length);
  bytes += kMagic;
  append_u32(bytes, kEntryFormatVersion);
  append_u32(bytes, kEntryHeaderBytes);
  append_u32(bytes, 0);
  for (const Part& part : parts) append_u32(bytes, part.bytes.size());
  append_u32(bytes, file_length);
  for (const Part& part : parts) bytes += as_bytes(sha256(part.bytes));
  append_u32(bytes, crc32c(bytes));
  for (const Part& part : parts) bytes += part.bytes;
  return bytes;
}

Result<CacheEntry> parse_entry(std::string_view bytes) {
  JITGEMM_ASSIGN(const Header header, parse_header(bytes, bytes.size()));
  const size_t ptx_at = kEntryHeaderBytes + header.key_length + header.metadata_length;
  const std::string_view ptx = bytes.substr(ptx_at, header.ptx_length);
  const std::string_view cubin = bytes.substr(ptx_at + header.ptx_length);
  JITGEMM_ASSIGN(EntryHead head, parse_head_parts(bytes, header));
  JITGEMM_TRY(check_digest("PTX", ptx, header.ptx_digest));
  JITGEMM_TRY(check_digest("cubin", cubin, header.cubin_digest));
  if (!cubin.starts_with(kElfMagic)) return corrupt_data("cubin: not an ELF file");
  return CacheEntry{std::move(head.key), std::move(head.metadata), std::string(ptx),
                    std::string(cubin)};
}

Result<EntryHead> parse_entry_head(std::string_view bytes, uint64_t file_length) {
  JITGEMM_ASSIGN(const Header header, parse_header(bytes, file_length));
  if (bytes.size() < kEntryHeaderBytes + header.key_length + header.metadata_length) {
    return corrupt_data("head: cut short");
  }
  return parse_head_parts(bytes, header);
}

}  // namespace jitgemm
