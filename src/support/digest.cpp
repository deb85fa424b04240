// SPDX-License-Identifier: Apache-2.0
#include "support/digest.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

namespace jitgemm {
namespace {

constexpr size_t kFieldHeaderBytes = 1 + 2 + 4;

void append_little_endian(std::string& bytes, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t load_little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return value;
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

KeyBuilder::KeyBuilder(std::string_view schema) {
  add("schema", schema);
}

KeyBuilder& KeyBuilder::add(std::string_view tag, std::string_view text) {
  return add_field('t', tag, text);
}

KeyBuilder& KeyBuilder::add_bytes(std::string_view tag, std::string_view bytes) {
  return add_field('b', tag, bytes);
}

KeyBuilder& KeyBuilder::add_integer(std::string_view tag, char type, uint64_t value) {
  std::string bytes;
  append_little_endian(bytes, value, 8);
  return add_field(type, tag, bytes);
}

KeyBuilder& KeyBuilder::add_field(char type, std::string_view tag, std::string_view value) {
  // A truncated length would let two different keys have equal bytes: stop, in every build.
  if (tag.size() > std::numeric_limits<uint16_t>::max()) std::abort();
  if (value.size() > std::numeric_limits<uint32_t>::max()) std::abort();
  bytes_ += type;
  append_little_endian(bytes_, tag.size(), 2);
  append_little_endian(bytes_, value.size(), 4);
  bytes_ += tag;
  bytes_ += value;
  return *this;
}

CanonicalKey KeyBuilder::build() const {
  return {bytes_, sha256(bytes_)};
}

Result<std::vector<KeyField>> read_key_fields(std::string_view key_bytes) {
  std::vector<KeyField> fields;
  for (size_t at = 0; at < key_bytes.size();) {
    const std::string_view rest = key_bytes.substr(at);
    if (rest.size() < kFieldHeaderBytes) {
      return corrupt_data(fmt::format("key: byte {}: a field header is cut short", at));
    }
    const char type = rest[0];
    const uint64_t tag_length = load_little_endian(rest.substr(1, 2));
    const uint64_t value_length = load_little_endian(rest.substr(3, 4));
    if (tag_length + value_length > rest.size() - kFieldHeaderBytes) {
      return corrupt_data(fmt::format("key: byte {}: a field is longer than the key", at));
    }
    const std::string_view tag = rest.substr(kFieldHeaderBytes, tag_length);
    const std::string_view value = rest.substr(kFieldHeaderBytes + tag_length, value_length);
    if ((type == 'i' || type == 'u') && value_length != 8) {
      return corrupt_data(fmt::format("key: byte {}: an integer of {} bytes", at, value_length));
    }
    std::string readable;
    switch (type) {
      case 't': readable = value; break;
      case 'i': readable = std::to_string(static_cast<int64_t>(load_little_endian(value))); break;
      case 'u': readable = std::to_string(load_little_endian(value)); break;
      case 'b':
        readable = fmt::format("<{} bytes, sha256 {}>", value_length, to_hex(sha256(value)));
        break;
      default:
        return corrupt_data(fmt::format("key: byte {}: unknown field type {:#04x}", at,
                                        static_cast<unsigned char>(type)));
    }
    fields.push_back({std::string(tag), std::move(readable)});
    at += kFieldHeaderBytes + tag_length + value_length;
  }
  if (fields.empty() || fields.front().tag != "schema") {
    return corrupt_data("key: does not begin with its schema");
  }
  return fields;
}

std::string dump_key(std::string_view key_bytes) {
  const auto fields = read_key_fields(key_bytes);
  if (!fields) return fmt::format("unreadable key ({})\n", fields.error().message());
  std::string text;
  for (const KeyField& field : *fields) {
    text += fmt::format("{}={}\n", escaped(field.tag), escaped(field.value));
  }
  return text;
}

}  // namespace jitgemm
