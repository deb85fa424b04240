// SPDX-License-Identifier: Apache-2.0
// The element types of buffers and scalars of a launch description: a table of names and widths,
// and numbers to bits and back. Values of 8 bytes or fewer are their bits in a uint64_t. It knows
// nothing of buffers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jitgemm::simrun {

enum class ElementKind : uint8_t { kBits, kUnsigned, kSigned, kFloat };

struct ElementType {
  std::string_view name;  // as safetensors spells it; b8 to b64 and s8 to s64 are ours
  uint32_t bytes = 1;
  ElementKind kind = ElementKind::kUnsigned;
  // Of floats: bits of exponent and fraction, and which codes are special.
  uint8_t exponent_bits = 0, fraction_bits = 0;
  bool has_sign = true;
  bool has_infinity = true;  // else the largest code is NaN
};

// By name in upper or lower case; null if there is none. "S32" is "I32".
const ElementType* find_element_type(std::string_view name);
// "u8, i8, ..., f64", for messages.
std::string element_type_list();

// The bits of a number, rounded to nearest even; none if the type cannot hold it.
std::optional<uint64_t> encode(const ElementType& type, double value);
std::optional<uint64_t> encode_signed(const ElementType& type, int64_t value);
std::optional<uint64_t> encode_unsigned(const ElementType& type, uint64_t value);
double decode(const ElementType& type, uint64_t bits);
// "0.25", "-7", "0x1f".
std::string format_element(const ElementType& type, uint64_t bits);

}  // namespace jitgemm::simrun
