// SPDX-License-Identifier: Apache-2.0
#include "verify/fp8_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace jitgemm {
namespace {

struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

constexpr Format kE4m3{4, 3};
constexpr Format kE5m2{5, 2};
constexpr Format kBf16{8, 7};
constexpr Format kFp16{5, 10};

struct Fields {
  double sign;
  int exponent;
  int fraction;
};

Fields split(unsigned code, Format format) {
  const unsigned fraction_count = 1U << format.fraction_bits;
  const unsigned magnitude_count = fraction_count << format.exponent_bits;
  const unsigned magnitude = code % magnitude_count;
  return {code >= magnitude_count ? -1.0 : 1.0, static_cast<int>(magnitude / fraction_count),
          static_cast<int>(magnitude % fraction_count)};
}

// A finite code: (-1)^s 2^(e-bias) (1 + f/2^p), or (-1)^s 2^(1-bias) (f/2^p) when e is 0.
double finite_value(Fields fields, Format format) {
  const double fraction = std::ldexp(fields.fraction, -format.fraction_bits);
  if (fields.exponent == 0) return fields.sign * std::ldexp(fraction, 1 - format.bias());
  return fields.sign * std::ldexp(1.0 + fraction, fields.exponent - format.bias());
}

double decode_ieee(unsigned code, Format format) {
  const Fields fields = split(code, format);
  if (fields.exponent == (1 << format.exponent_bits) - 1) {
    return fields.fraction == 0 ? fields.sign * std::numeric_limits<double>::infinity()
                                : std::numeric_limits<double>::quiet_NaN();
  }
  return finite_value(fields, format);
}

uint16_t round_ieee(double value, Format format) {
  const int fraction_count = 1 << format.fraction_bits;
  const int top_exponent = (1 << format.exponent_bits) - 1;
  const int infinity = top_exponent * fraction_count;
  const int sign = std::signbit(value) ? (top_exponent + 1) * fraction_count : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(infinity + fraction_count / 2);
  if (std::isinf(value)) return static_cast<uint16_t>(sign + infinity);
  if (value == 0.0) return static_cast<uint16_t>(sign);

  const double magnitude = std::fabs(value);
  const int lowest = 1 - format.bias();
  const int exponent = std::max(std::ilogb(magnitude), lowest);
  // The number of units in the last place, an exact quotient, rounded once. A result of a whole
  // binade carries into the exponent by itself, because codes are consecutive across binades.
  const double units = std::ldexp(magnitude, format.fraction_bits - exponent);
  double whole = std::floor(units);
  const double rest = units - whole;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2.0) != 0.0)) whole += 1.0;
  const int code = static_cast<int>(whole) + (exponent - lowest) * fraction_count;
  return static_cast<uint16_t>(sign + std::min(code, infinity));
}

}  // namespace

double decode_e4m3(uint8_t code) {
  const Fields fields = split(code, kE4m3);
  if (fields.exponent == 15 && fields.fraction == 7)
    return std::numeric_limits<double>::quiet_NaN();
  return finite_value(fields, kE4m3);
}

double decode_e5m2(uint8_t code) {
  return decode_ieee(code, kE5m2);
}

double decode_ue8m0(uint8_t code) {
  if (code == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, static_cast<int>(code) - 127);
}

double decode_bf16(uint16_t code) {
  return decode_ieee(code, kBf16);
}
double decode_fp16(uint16_t code) {
  return decode_ieee(code, kFp16);
}

uint16_t round_to_bf16(double value) {
  return round_ieee(value, kBf16);
}
uint16_t round_to_fp16(double value) {
  return round_ieee(value, kFp16);
}

// The language's conversion is the IEEE 754 one: to nearest, ties to even.
float round_to_fp32(double value) {
  return static_cast<float>(value);
}

}  // namespace jitgemm
