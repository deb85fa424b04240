// SPDX-License-Identifier: Apache-2.0
#include "simrun/element_type.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace jitgemm::simrun {
namespace {

using enum ElementKind;

constexpr ElementType kTypes[] = {
    {"U8",      1, kUnsigned, 0,  0,  true,  true },
    {"I8",      1, kSigned,   0,  0,  true,  true },
    {"U16",     2, kUnsigned, 0,  0,  true,  true },
    {"I16",     2, kSigned,   0,  0,  true,  true },
    {"U32",     4, kUnsigned, 0,  0,  true,  true },
    {"I32",     4, kSigned,   0,  0,  true,  true },
    {"U64",     8, kUnsigned, 0,  0,  true,  true },
    {"I64",     8, kSigned,   0,  0,  true,  true },
    {"B8",      1, kBits,     0,  0,  true,  true },
    {"B16",     2, kBits,     0,  0,  true,  true },
    {"B32",     4, kBits,     0,  0,  true,  true },
    {"B64",     8, kBits,     0,  0,  true,  true },
    {"F8_E4M3", 1, kFloat,    4,  3,  true,  false},
    {"F8_E5M2", 1, kFloat,    5,  2,  true,  true },
    {"F8_E8M0", 1, kFloat,    8,  0,  false, false},
    {"F16",     2, kFloat,    5,  10, true,  true },
    {"BF16",    2, kFloat,    8,  7,  true,  true },
    {"F32",     4, kFloat,    8,  23, true,  true },
    {"F64",     8, kFloat,    11, 52, true,  true },
};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

int bias_of(const ElementType& type) {
  return (1 << (type.exponent_bits - 1)) - 1;
}

uint64_t mask_of(uint32_t bits) {
  return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

// F8_E8M0: 2^(code - 127), without zero, sign or subnormals; 255 is NaN.
std::optional<uint64_t> encode_power(double value) {
  if (std::isnan(value)) return 255;
  if (!(value > 0) || std::isinf(value)) return std::nullopt;
  const int exponent = static_cast<int>(std::lround(std::log2(value)));
  if (exponent < -127 || exponent > 127) return std::nullopt;
  return static_cast<uint64_t>(exponent + 127);
}

std::optional<uint64_t> encode_float(const ElementType& type, double value) {
  if (type.bytes == 8) return std::bit_cast<uint64_t>(value);
  if (!type.has_sign) return encode_power(value);
  const uint64_t sign =
      std::signbit(value) ? uint64_t{1} << (type.exponent_bits + type.fraction_bits) : 0;
  const uint64_t exponent_mask = mask_of(type.exponent_bits) << type.fraction_bits;
  if (std::isnan(value)) {
    return type.has_infinity ? exponent_mask | uint64_t{1} << (type.fraction_bits - 1)
                             : exponent_mask | mask_of(type.fraction_bits);
  }
  if (std::isinf(value)) {
    return type.has_infinity ? std::optional<uint64_t>(sign | exponent_mask) : std::nullopt;
  }
  if (value == 0) return sign;
  const int least = 1 - bias_of(type);  // exponent of subnormals
  const int exponent = std::max(std::ilogb(value), least);
  // In units of the last place; nearbyint rounds to nearest even, and a carry runs into the
  // exponent.
  const double scaled = std::nearbyint(std::ldexp(std::fabs(value), type.fraction_bits - exponent));
  const auto code = static_cast<uint64_t>(scaled) +
                    (static_cast<uint64_t>(exponent - least) << type.fraction_bits);
  const uint64_t largest =
      type.has_infinity ? exponent_mask - 1 : (exponent_mask | mask_of(type.fraction_bits)) - 1;
  if (code > largest) return std::nullopt;
  return sign | code;
}

double decode_float(const ElementType& type, uint64_t bits) {
  if (type.bytes == 8) return std::bit_cast<double>(bits);
  const uint64_t fraction = bits & mask_of(type.fraction_bits);
  const uint64_t exponent = bits >> type.fraction_bits & mask_of(type.exponent_bits);
  const uint64_t last = mask_of(type.exponent_bits);
  if (!type.has_sign) {
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN()
                       : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
  const double sign = (bits >> (type.exponent_bits + type.fraction_bits) & 1) != 0 ? -1 : 1;
  if (exponent == last && type.has_infinity) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == last && fraction == mask_of(type.fraction_bits)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const int least = 1 - bias_of(type);
  if (exponent == 0) {
    return sign * std::ldexp(static_cast<double>(fraction), least - type.fraction_bits);
  }
  return sign * std::ldexp(static_cast<double>(fraction | uint64_t{1} << type.fraction_bits),
                           static_cast<int>(exponent) - 1 + least - type.fraction_bits);
}

}  // namespace

const ElementType* find_element_type(std::string_view name) {
  std::string wanted = upper(name);
  if (wanted.size() >= 2 && wanted[0] == 'S') wanted[0] = 'I';  // PTX says s32
  for (const ElementType& type : kTypes) {
    if (type.name == wanted) return &type;
  }
  return nullptr;
}

std::string element_type_list() {
  std::string list;
  for (const ElementType& type : kTypes)
    list += (list.empty() ? "" : ", ") + std::string(type.name);
  return list;
}

std::optional<uint64_t> encode(const ElementType& type, double value) {
  if (type.kind == kFloat) return encode_float(type, value);
  if (value != std::floor(value) || std::fabs(value) > 9.0e18) return std::nullopt;
  return encode_signed(type, static_cast<int64_t>(value));
}

std::optional<uint64_t> encode_signed(const ElementType& type, int64_t value) {
  if (type.kind == kFloat) return encode_float(type, static_cast<double>(value));
  if (value >= 0) return encode_unsigned(type, static_cast<uint64_t>(value));
  if (type.kind == kUnsigned) return std::nullopt;
  const uint32_t bits = 8 * type.bytes;
  if (bits < 64 && value < -(int64_t{1} << (bits - 1))) return std::nullopt;
  return static_cast<uint64_t>(value) & mask_of(bits);
}

std::optional<uint64_t> encode_unsigned(const ElementType& type, uint64_t value) {
  if (type.kind == kFloat) return encode_float(type, static_cast<double>(value));
  const uint32_t bits = 8 * type.bytes - (type.kind == kSigned ? 1 : 0);
  if (value > mask_of(bits)) return std::nullopt;
  return value;
}

double decode(const ElementType& type, uint64_t bits) {
  switch (type.kind) {
    case kFloat: return decode_float(type, bits);
    case kSigned: {
      const uint32_t unused = 64 - 8 * type.bytes;
      return static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
    }
    default: return static_cast<double>(bits);
  }
}

std::string format_element(const ElementType& type, uint64_t bits) {
  switch (type.kind) {
    case kFloat: return fmt::format("{:.{}g}", decode(type, bits), type.bytes == 8 ? 17 : 9);
    case kSigned: {
      const uint32_t unused = 64 - 8 * type.bytes;
      return fmt::format("{}", static_cast<int64_t>(bits << unused) >> unused);
    }
    case kUnsigned: return fmt::format("{}", bits);
    case kBits: return fmt::format("{:#x}", bits);
  }
  return "";
}

}  // namespace jitgemm::simrun
