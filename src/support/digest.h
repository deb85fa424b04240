// SPDX-License-Identifier: Apache-2.0
// Canonical keys: what a compiled kernel depends on, as typed, tagged, length-prefixed fields in
// the order they were added, and the SHA-256 of those bytes. Because every field carries its type
// and its lengths, moving a byte from one field to the next gives another key. The bytes can be
// read back, so a stored key explains itself. It must not know what the fields mean.
//
// key   := schema field*                      schema is a field of type 't' with the tag "schema"
// field := type:u8 tag_length:u16 value_length:u32 tag value            integers little-endian
// type  := 't' text | 'i' int64, 8 bytes | 'u' uint64 above the int64 range, 8 bytes | 'b' bytes
#pragma once

#include "support/result.h"
#include "support/sha256.h"

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jitgemm {

struct CanonicalKey {
  std::string bytes;
  Sha256Digest digest = {};

  std::string hex() const { return to_hex(digest); }
  bool operator==(const CanonicalKey& other) const { return bytes == other.bytes; }
};

class KeyBuilder {
 public:
  // The schema names the set of fields and its version; a change of meaning needs a new schema.
  explicit KeyBuilder(std::string_view schema);

  KeyBuilder& add(std::string_view tag, std::string_view text);
  // The key depends on the value alone, not on the C++ type that carried it.
  template <std::integral T>
  KeyBuilder& add(std::string_view tag, T value) {
    if (std::in_range<int64_t>(static_cast<decltype(+value)>(value))) {
      return add_integer(tag, 'i', static_cast<uint64_t>(static_cast<int64_t>(value)));
    }
    return add_integer(tag, 'u', static_cast<uint64_t>(value));
  }
  // For long or binary ingredients; the dump shows their size and digest instead of their content.
  KeyBuilder& add_bytes(std::string_view tag, std::string_view bytes);

  CanonicalKey build() const;

 private:
  KeyBuilder& add_integer(std::string_view tag, char type, uint64_t value);
  KeyBuilder& add_field(char type, std::string_view tag, std::string_view value);

  std::string bytes_;
};

struct KeyField {
  std::string tag;
  std::string
      value;  // readable: text as it is, integers in decimal, bytes as "<N bytes, sha256 ...>"
  bool operator==(const KeyField&) const = default;
};

// Reads canonical key bytes back; CORRUPT_DATA when they are not what KeyBuilder writes.
Result<std::vector<KeyField>> read_key_fields(std::string_view key_bytes);

// One "tag=value" line a field. Control characters and backslashes in values are escaped.
std::string dump_key(std::string_view key_bytes);

}  // namespace jitgemm
