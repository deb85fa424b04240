// SPDX-License-Identifier: Apache-2.0
#include "sim/models_number_formats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace jitgemm::sim {
namespace {

struct KnownCode {
  NumberFormat format;
  uint32_t code;
  double value;
};

// Facts of the OCP 8-bit and microscaling formats and of IEEE 754.
TEST(ModelNumberFormats, KnownCodesHaveTheirPublishedValues) {
  const KnownCode codes[] = {
      {NumberFormat::kE4m3,  0x7e,         448.0                                   },
      {NumberFormat::kE4m3,  0x01,         std::ldexp(1.0,                           -9)},
      {NumberFormat::kE4m3,                    0x08,              std::ldexp(1.0,                               -6)},
      {NumberFormat::kE4m3,                 0xb8,                             -1.0                    },
      {NumberFormat::kE5m2,                0x7b,57344.0 },
      {NumberFormat::kE5m2,             0x01,                          std::ldexp(1.0,                                               -16)},
      {NumberFormat::kE5m2,      0x7c,HUGE_VAL},
      {NumberFormat::kE2m3,           0x1f,                           7.5                                                                                    },
      {NumberFormat::kE2m3,      0x01,0.125},
      {NumberFormat::kE3m2,           0x1f,                              28.0                                                                                                                             },
      {NumberFormat::kE3m2,      0x01,0.0625},
      {NumberFormat::kE2m1,           0x7,                                 6.0                                                                                                                                                                             },
      {NumberFormat::kE2m1,       0x1,0.5},
      {NumberFormat::kE2m1,           0xf,                                     -6.0                                                                                                                                                                                                                                  },
      {NumberFormat::kUe8m0,       127,1.0},
      {NumberFormat::kUe8m0,           0,                                          std::ldexp(1.0,                                                                                                                                                                                                                                                                                                  -127)},
      {NumberFormat::kUe4m3,         0xb8,1.0},
      {NumberFormat::kF16, 0x3c00, 1.0                                                                        },
      {NumberFormat::kF16,   0x0001,         std::ldexp(1.0,                                              -24)},
      {NumberFormat::kBf16,   0x3f80,       1.0                        },
      {NumberFormat::kTf32,                    0x3f801fff,              1.0                                             },
      {NumberFormat::kS8,                    0x80,              -128.0},
      {NumberFormat::kU8,                    0x80,                128.0},
  };
  for (const KnownCode& known : codes) {
    EXPECT_EQ(to_double(known.format, known.code), known.value)
        << format_name(known.format) << " " << known.code;
  }
  EXPECT_TRUE(std::isnan(to_double(NumberFormat::kE4m3, 0x7f)));
  EXPECT_TRUE(std::isnan(to_double(NumberFormat::kE5m2, 0x7d)));
  EXPECT_TRUE(std::isnan(to_double(NumberFormat::kUe8m0, 255)));
}

// A second route: the host's own float type.
TEST(ModelNumberFormats, F32ConversionsAgreeWithTheHost) {
  for (uint32_t i = 0; i < 200000; ++i) {
    const uint32_t code = i * 21473u;
    const float host = std::bit_cast<float>(code);
    if (!std::isfinite(host)) continue;
    EXPECT_EQ(to_double(NumberFormat::kF32, code), static_cast<double>(host));
    const Unpacked u = unpack(NumberFormat::kF32, code);
    const int64_t sum = u.negative ? -int64_t{u.significand} : int64_t{u.significand};
    EXPECT_EQ(f32_truncated(sum, u.exponent - 23), host == 0 ? 0u : code);
  }
}

TEST(ModelNumberFormats, EveryF16CodeSurvivesTheRoundTrip) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const double value = to_double(NumberFormat::kF16, code);
    if (std::isnan(value)) {
      EXPECT_EQ(f16_from_double(value), kMmaNanF16);
    } else {
      EXPECT_EQ(f16_from_double(value), code);
    }
  }
}

TEST(ModelNumberFormats, RoundingAndCuttingFollowTheirRule) {
  EXPECT_EQ(f32_truncated((1 << 24) + 1, 0), std::bit_cast<uint32_t>(16777216.0f));
  EXPECT_EQ(f32_truncated(-((1 << 25) + 3), 0), std::bit_cast<uint32_t>(-33554432.0f));
  EXPECT_EQ(f32_truncated(1, 128), 0x7f800000u);
  EXPECT_EQ(f32_truncated(1, -149), 1u);
  EXPECT_EQ(f32_truncated(3, -151), 0u);
  EXPECT_EQ(e8m13_truncated(0x7fff, 0), std::bit_cast<uint32_t>(32766.0f));
  EXPECT_EQ(f16_nearest_even(2049, 0), 0x6800);  // 2048: tie to even
  EXPECT_EQ(f16_nearest_even(2051, 0), 0x6802);  // 2052
  EXPECT_EQ(f16_nearest_even(65519, 0), 0x7bff);
  EXPECT_EQ(f16_nearest_even(65520, 0), 0x7c00);
  EXPECT_EQ(f16_nearest_even(1, -25), 0);
  EXPECT_EQ(f16_nearest_even(3, -25), 2);
}

}  // namespace
}  // namespace jitgemm::sim
