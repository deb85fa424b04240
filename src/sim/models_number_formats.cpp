// SPDX-License-Identifier: Apache-2.0
#include "sim/models_number_formats.h"

#include <bit>
#include <cmath>
#include <limits>

namespace jitgemm::sim {
namespace {

enum class Specials : uint8_t { kNone, kIeee, kNanOnly, kAllOnes };

struct Layout {
  std::string_view name;
  int bits;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
};

// Indexed by NumberFormat. kNanOnly: exponent and mantissa all ones is NaN, no infinity.
constexpr Layout kLayouts[] = {
    {"e4m3",  8,  4, 3,  7,   Specials::kNanOnly},
    {"e5m2",  8,  5, 2,  15,  Specials::kIeee   },
    {"e2m3",  6,  2, 3,  1,   Specials::kNone   },
    {"e3m2",  6,  3, 2,  3,   Specials::kNone   },
    {"e2m1",  4,  2, 1,  1,   Specials::kNone   },
    {"ue8m0", 8,  8, 0,  127, Specials::kAllOnes},
    {"ue4m3", 8,  4, 3,  7,   Specials::kNanOnly},
    {"f16",   16, 5, 10, 15,  Specials::kIeee   },
    {"bf16",  16, 8, 7,  127, Specials::kIeee   },
    {"tf32",  32, 8, 10, 127, Specials::kIeee   },
    {"f32",   32, 8, 23, 127, Specials::kIeee   },
    {"s8",    8,  0, 0,  0,   Specials::kNone   },
    {"u8",    8,  0, 0,  0,   Specials::kNone   },
};

const Layout& layout_of(NumberFormat format) {
  return kLayouts[static_cast<int>(format)];
}

// Cuts or rounds |sum| * 2^scale to `keep` fraction bits over the minimum exponent `min_exponent`.
struct Normalized {
  uint64_t significand;  // with keep fraction bits; may reach 2^(keep+1) after rounding
  int exponent;
};

Normalized normalize(uint64_t magnitude, int scale, int keep, int min_exponent, bool nearest) {
  const int top = 63 - std::countl_zero(magnitude);
  int exponent = top + scale;
  if (exponent < min_exponent) exponent = min_exponent;
  // The unit of the result is 2^(exponent - keep); the magnitude's unit is 2^scale.
  const int drop = exponent - keep - scale;
  if (drop <= 0) return {magnitude << -drop, exponent};
  if (drop > 64) return {0, exponent};
  if (drop == 64) return {(nearest && magnitude > (1ull << 63)) ? 1ull : 0ull, exponent};
  uint64_t kept = magnitude >> drop;
  if (nearest) {
    const uint64_t rest = magnitude & ((1ull << drop) - 1);
    const uint64_t half = 1ull << (drop - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  if (kept == (2ull << keep)) {
    kept >>= 1;
    ++exponent;
  }
  return {kept, exponent};
}

uint64_t magnitude_of(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

uint32_t f32_cut(int64_t sum, int scale, int keep) {
  if (sum == 0) return 0;
  const Normalized r = normalize(magnitude_of(sum), scale, keep, -126, false);
  if (r.significand == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0u;
  if (r.exponent > 127) return sign | 0x7f800000u;
  const uint32_t significand = static_cast<uint32_t>(r.significand) << (23 - keep);
  const uint32_t field =
      (significand >> 23) != 0 ? static_cast<uint32_t>(r.exponent + 127) << 23 : 0u;
  return sign | field | (significand & 0x7fffffu);
}

}  // namespace

std::string_view format_name(NumberFormat format) {
  return layout_of(format).name;
}
int format_bits(NumberFormat format) {
  return layout_of(format).bits;
}
int fraction_bits(NumberFormat format) {
  return layout_of(format).mantissa_bits;
}

Unpacked unpack(NumberFormat format, uint32_t code) {
  if (format == NumberFormat::kS8 || format == NumberFormat::kU8) {
    const int32_t value = format == NumberFormat::kS8 ? static_cast<int8_t>(code & 0xff)
                                                      : static_cast<int32_t>(code & 0xff);
    return {value == 0 ? NumberClass::kZero : NumberClass::kFinite, value < 0, 0,
            static_cast<uint32_t>(value < 0 ? -value : value)};
  }
  if (format == NumberFormat::kUe8m0) {
    code &= 0xff;
    if (code == 0xff) return {NumberClass::kNan, false, 0, 0};
    return {NumberClass::kFinite, false, static_cast<int32_t>(code) - 127, 1};
  }
  if (format == NumberFormat::kTf32) code >>= 13;
  const Layout& layout = layout_of(format);
  const int m = layout.mantissa_bits;
  const uint32_t exponent_mask = (1u << layout.exponent_bits) - 1;
  const uint32_t mantissa = code & ((1u << m) - 1);
  const uint32_t exponent = (code >> m) & exponent_mask;
  const bool negative =
      format != NumberFormat::kUe4m3 && ((code >> (m + layout.exponent_bits)) & 1) != 0;
  if (exponent == exponent_mask) {
    if (layout.specials == Specials::kIeee) {
      return {mantissa == 0 ? NumberClass::kInfinity : NumberClass::kNan, negative, 0, 0};
    }
    if (layout.specials == Specials::kNanOnly && mantissa == (1u << m) - 1) {
      return {NumberClass::kNan, negative, 0, 0};
    }
  }
  if (exponent == 0) {
    return {mantissa == 0 ? NumberClass::kZero : NumberClass::kFinite, negative, 1 - layout.bias,
            mantissa};
  }
  return {NumberClass::kFinite, negative, static_cast<int32_t>(exponent) - layout.bias,
          mantissa | (1u << m)};
}

double to_double(NumberFormat format, uint32_t code) {
  const Unpacked u = unpack(format, code);
  double value = 0.0;
  switch (u.number_class) {
    case NumberClass::kZero: break;
    case NumberClass::kFinite:
      value = std::ldexp(static_cast<double>(u.significand), u.exponent - fraction_bits(format));
      break;
    case NumberClass::kInfinity: value = std::numeric_limits<double>::infinity(); break;
    case NumberClass::kNan: return std::numeric_limits<double>::quiet_NaN();
  }
  return u.negative ? -value : value;
}

uint32_t f32_truncated(int64_t sum, int scale) {
  return f32_cut(sum, scale, 23);
}
uint32_t e8m13_truncated(int64_t sum, int scale) {
  return f32_cut(sum, scale, 13);
}

uint16_t f16_nearest_even(int64_t sum, int scale) {
  if (sum == 0) return 0;
  const Normalized r = normalize(magnitude_of(sum), scale, 10, -14, true);
  if (r.significand == 0) return 0;
  const uint32_t sign = sum < 0 ? 0x8000u : 0u;
  if (r.exponent > 15) return static_cast<uint16_t>(sign | 0x7c00u);
  const uint32_t significand = static_cast<uint32_t>(r.significand);
  const uint32_t field =
      (significand >> 10) != 0 ? static_cast<uint32_t>(r.exponent + 15) << 10 : 0u;
  return static_cast<uint16_t>(sign | field | (significand & 0x3ffu));
}

uint16_t f16_from_double(double value) {
  if (std::isnan(value)) return kMmaNanF16;
  if (std::isinf(value)) return value < 0 ? 0xfc00 : 0x7c00;
  if (value == 0) return std::signbit(value) ? 0x8000 : 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const uint16_t magnitude =
      f16_nearest_even(static_cast<int64_t>(std::ldexp(std::fabs(fraction), 53)), exponent - 53);
  return static_cast<uint16_t>(magnitude | (value < 0 ? 0x8000u : 0u));
}

uint16_t f16_from_f32(float value) {
  return f16_from_double(static_cast<double>(value));
}

}  // namespace jitgemm::sim
