// SPDX-License-Identifier: Apache-2.0
#include "verify/fp8_reference.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace jitgemm::fp8_reference_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expect_same(double found, double expected, const char* what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << what;
  } else {
    EXPECT_EQ(std::bit_cast<uint64_t>(found), std::bit_cast<uint64_t>(expected)) << what;
  }
}

TEST(Fp8Reference, LandmarkCodesDecodeToTheValuesOfTheFormatTables) {
  struct Case {
    const char* name;
    double found;
    double expected;
  };
  const Case cases[] = {
      {"e4m3 zero",               decode_e4m3(0x00),   0.0       },
      {"e4m3 minus zero",         decode_e4m3(0x80),   -0.0      },
      {"e4m3 least subnormal",    decode_e4m3(0x01),   0x1p-9    },
      {"e4m3 greatest subnormal", decode_e4m3(0x07),   7 * 0x1p-9},
      {"e4m3 least normal",       decode_e4m3(0x08),   0x1p-6    },
      {"e4m3 one",                decode_e4m3(0x38),   1.0       },
      {"e4m3 greatest",           decode_e4m3(0x7e),   448.0     },
      {"e4m3 256",                decode_e4m3(0x78),   256.0     },
      {"e4m3 -448",               decode_e4m3(0xfe),   -448.0    },
      {"e4m3 nan",                decode_e4m3(0x7f),   kNan      },
      {"e4m3 -nan",               decode_e4m3(0xff),   kNan      },
      {"e5m2 least subnormal",    decode_e5m2(0x01),   0x1p-16   },
      {"e5m2 least normal",       decode_e5m2(0x04),   0x1p-14   },
      {"e5m2 one",                decode_e5m2(0x3c),   1.0       },
      {"e5m2 greatest",           decode_e5m2(0x7b),   57344.0   },
      {"e5m2 inf",                decode_e5m2(0x7c),   kInf      },
      {"e5m2 -inf",               decode_e5m2(0xfc),   -kInf     },
      {"e5m2 nan",                decode_e5m2(0x7d),   kNan      },
      {"e5m2 nan all ones",       decode_e5m2(0x7f),   kNan      },
      {"ue8m0 least",             decode_ue8m0(0),     0x1p-127  },
      {"ue8m0 one",               decode_ue8m0(127),   1.0       },
      {"ue8m0 greatest",          decode_ue8m0(254),   0x1p127   },
      {"ue8m0 nan",               decode_ue8m0(255),   kNan      },
      {"bf16 one",                decode_bf16(0x3f80), 1.0       },
      {"bf16 least subnormal",    decode_bf16(0x0001), 0x1p-133  },
      {"bf16 -inf",               decode_bf16(0xff80), -kInf     },
      {"bf16 nan",                decode_bf16(0x7fc0), kNan      },
      {"fp16 one",                decode_fp16(0x3c00), 1.0       },
      {"fp16 greatest",           decode_fp16(0x7bff), 65504.0   },
      {"fp16 least subnormal",    decode_fp16(0x0001), 0x1p-24   },
      {"fp16 inf",                decode_fp16(0x7c00), kInf      },
  };
  for (const Case& c : cases) expect_same(c.found, c.expected, c.name);
}

// bf16 is the upper half of fp32, an independent definition of the same numbers.
TEST(Fp8Reference, EveryBf16CodeEqualsTheFp32WithThatUpperHalf) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const double expected = std::bit_cast<float>(code << 16);
    const double found = decode_bf16(static_cast<uint16_t>(code));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(found)) << code;
    } else {
      ASSERT_EQ(std::bit_cast<uint64_t>(found), std::bit_cast<uint64_t>(expected)) << code;
    }
  }
}

// Dropping the low byte of fp16 leaves e5m2: the two formats share sign and exponent.
TEST(Fp8Reference, EveryE5m2CodeEqualsTheFp16WithThatUpperByte) {
  for (uint32_t code = 0; code < 256; ++code) {
    expect_same(decode_e5m2(static_cast<uint8_t>(code)),
                decode_fp16(static_cast<uint16_t>(code << 8)), "e5m2 against fp16");
  }
}

template <typename Decode, typename Round>
void check_round_trip_and_midpoints(Decode decode, Round round, uint16_t infinity_code) {
  for (uint32_t code = 0; code < infinity_code; ++code) {
    const auto low = static_cast<uint16_t>(code);
    ASSERT_EQ(round(decode(low)), low);
    ASSERT_EQ(round(-decode(low)), low | 0x8000);
    if (code + 1 == infinity_code) break;
    const auto high = static_cast<uint16_t>(code + 1);
    const double middle = (decode(low) + decode(high)) / 2;
    ASSERT_EQ(round(middle), code % 2 == 0 ? low : high) << code;
    ASSERT_EQ(round(std::nextafter(middle, 0.0)), low) << code;
    ASSERT_EQ(round(std::nextafter(middle, kInf)), high) << code;
  }
}

TEST(Fp8Reference, RoundingToBf16IsNearestEvenAtEveryMidpoint) {
  check_round_trip_and_midpoints(decode_bf16, round_to_bf16, 0x7f80);
}

TEST(Fp8Reference, RoundingToFp16IsNearestEvenAtEveryMidpoint) {
  check_round_trip_and_midpoints(decode_fp16, round_to_fp16, 0x7c00);
}

TEST(Fp8Reference, RoundingOverflowsAtHalfAUnitAboveTheGreatestAndKeepsNan) {
  EXPECT_EQ(round_to_fp16(65519.999), 0x7bff);
  EXPECT_EQ(round_to_fp16(65520.0), 0x7c00);
  EXPECT_EQ(round_to_fp16(-1e300), 0xfc00);
  EXPECT_EQ(round_to_fp16(kInf), 0x7c00);
  EXPECT_EQ(round_to_fp16(kNan), 0x7e00);
  EXPECT_EQ(round_to_bf16(1e300), 0x7f80);
  EXPECT_EQ(round_to_bf16(kNan), 0x7fc0);
  EXPECT_EQ(round_to_bf16(1e-300), 0x0000);
  EXPECT_EQ(round_to_bf16(-5e-324), 0x8000);
  EXPECT_EQ(round_to_fp32(1.0 + 0x1p-24), 1.0F);
  EXPECT_EQ(round_to_fp32(1.0 + 0x1.8p-23), 1.0F + 0x1p-22F);
  EXPECT_TRUE(std::isinf(round_to_fp32(1e300)));
}

}  // namespace
}  // namespace jitgemm::fp8_reference_test
