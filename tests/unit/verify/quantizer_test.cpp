// SPDX-License-Identifier: Apache-2.0
// The quantiser against the reference decoder: the two share no code, so they check each other.
#include "verify/quantizer.h"

#include "verify/fp8_reference.h"
#include "verify/inputs.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace jitgemm::quantizer_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Format {
  const char* name;
  uint8_t (*encode)(float);
  double (*decode)(uint8_t);
  uint8_t largest;
};
const Format kFormats[] = {
    {"e4m3", encode_e4m3, decode_e4m3, 0x7e},
    {"e5m2", encode_e5m2, decode_e5m2, 0x7b},
};

TEST(Encode, EveryFiniteCodeRoundTripsAndEveryMidpointGoesToTheEvenCode) {
  for (const Format& format : kFormats) {
    for (int code = 0; code <= format.largest; ++code) {
      const auto low = static_cast<uint8_t>(code);
      const auto value = static_cast<float>(format.decode(low));
      ASSERT_EQ(format.encode(value), low) << format.name;
      ASSERT_EQ(format.encode(-value), low | 0x80) << format.name;
      if (code == format.largest) break;
      const auto high = static_cast<uint8_t>(code + 1);
      const auto middle = static_cast<float>((format.decode(low) + format.decode(high)) / 2);
      ASSERT_EQ(format.encode(middle), code % 2 == 0 ? low : high) << format.name << " " << code;
      ASSERT_EQ(format.encode(std::nextafter(middle, 0.0F)), low) << format.name << " " << code;
      ASSERT_EQ(format.encode(std::nextafter(middle, kInf)), high) << format.name << " " << code;
    }
  }
}

TEST(Encode, ValuesBeyondTheGreatestSaturateAndNanStaysNan) {
  for (const Format& format : kFormats) {
    const auto largest = static_cast<float>(format.decode(format.largest));
    for (const float value : {largest * 1.01F, largest * 2, 3e38F, kInf}) {
      EXPECT_EQ(format.encode(value), format.largest) << format.name;
      EXPECT_EQ(format.encode(-value), format.largest | 0x80) << format.name;
    }
    EXPECT_TRUE(std::isnan(format.decode(format.encode(kNan)))) << format.name;
    for (const float tiny : {1e-45F, 1e-40F, 1e-30F, 1e-12F}) {
      EXPECT_EQ(format.encode(tiny), 0) << format.name;
      EXPECT_EQ(format.encode(-tiny), 0x80) << format.name;
    }
  }
}

HostTensor matrix(const std::vector<std::vector<float>>& rows) {
  const auto cols = static_cast<int64_t>(rows[0].size());
  HostTensor t = make_host_tensor("w", DType::kF32, {static_cast<int64_t>(rows.size()), cols});
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), t.data<float>() + static_cast<int64_t>(i) * cols);
  }
  return t;
}

// One block of one row; what its scale and its codes' values must be.
TEST(Quantize, TheScaleOfOneBlockFollowsTheRule) {
  struct Case {
    const char* name;
    std::vector<float> row;
    ScaleRule rule;
    DType codes;
    bool signed_maximum;
    float scale;
    std::vector<double> values;  // of the codes
  };
  const ScaleRule amax = ScaleRule::kAmax;
  const ScaleRule pow2 = ScaleRule::kPow2;
  const DType e4m3 = DType::kF8E4M3;
  const DType e5m2 = DType::kF8E5M2;
  const Case cases[] = {
      {"amax at the positive end",       {448, -224}, amax, e4m3, false, 1.0F,     {448, -224} },
      {"amax at the negative end",       {-896, 224}, amax, e4m3, false, 2.0F,     {-448, 112} },
      {"signed maximum saturates",       {-896, 448}, amax, e4m3, true,  1.0F,     {-448, 448} },
      {"all negative, signed",           {-1, -2},    amax, e4m3, true,  1e-10F,   {-448, -448}},
      {"zeros clamp the scale",          {0, -0.0F},  amax, e4m3, false, 1e-10F,   {0, -0.0}   },
      {"zeros clamp before rounding up", {0, 0},      pow2, e4m3, false, 0x1p-33F, {0, 0}      },
      {"a power of two stays",           {448, 1},    pow2, e4m3, false, 1.0F,     {448, 1}    },
      {"just above goes up",             {449, 2},    pow2, e4m3, false, 2.0F,     {224, 1}    },
      {"just below goes up to one",      {447, 2},    pow2, e4m3, false, 1.0F,     {448, 2}    },
      {"e5m2",                           {57344, -1}, amax, e5m2, false, 1.0F,     {57344, -1} },
      {"e5m2 pow2",                      {57345, 4},  pow2, e5m2, false, 2.0F,     {28672, 2}  },
      {"nan spreads",                    {1, kNan},   amax, e4m3, false, kNan,     {kNan, kNan}},
      {"nan spreads from the front",     {kNan, 1},   pow2, e4m3, false, kNan,     {kNan, kNan}},
      {"infinity",                       {1, -kInf},  amax, e4m3, false, kInf,     {0, kNan}   },
  };
  for (const Case& c : cases) {
    QuantizeOptions options;
    options.code_dtype = c.codes;
    options.scale_rule = c.rule;
    options.signed_maximum = c.signed_maximum;
    const auto result = quantize(matrix({c.row}), options);
    ASSERT_TRUE(result) << c.name;
    const float scale = *result->scales.data<float>();
    if (std::isnan(c.scale)) {
      EXPECT_TRUE(std::isnan(scale)) << c.name;
    } else {
      EXPECT_EQ(scale, c.scale) << c.name;
    }
    for (size_t i = 0; i < c.values.size(); ++i) {
      const uint8_t code = result->codes.data<uint8_t>()[i];
      const double value = c.codes == e4m3 ? decode_e4m3(code) : decode_e5m2(code);
      if (std::isnan(c.values[i])) {
        EXPECT_TRUE(std::isnan(value)) << c.name << " " << i;
      } else {
        EXPECT_EQ(value, c.values[i]) << c.name << " " << i;
      }
    }
  }
}

struct Shape {
  int64_t rows, cols, group_rows, group_cols;
};

TEST(Quantize, EveryBlockHasItsOwnScaleAndErrorsStayWithinHalfAUnit) {
  const Shape shapes[] = {
      {7,   512, 1,   128},
      {130, 300, 128, 128},
      {5,   33,  1,   32 },
      {200, 64,  64,  128},
      {1,   1,   128, 128},
      {3,   260, 1,   64 }
  };
  for (const DType source_dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const Shape& s : shapes) {
      for (const ScaleRule rule : {ScaleRule::kAmax, ScaleRule::kPow2}) {
        const auto source = make_normal_tensor("w", source_dtype, {s.rows, s.cols}, 3, 9);
        ASSERT_TRUE(source);
        QuantizeOptions options;
        options.group_rows = s.group_rows;
        options.group_cols = s.group_cols;
        options.scale_rule = rule;
        options.threads = 2;
        const auto result = quantize(*source, options);
        ASSERT_TRUE(result);
        const int64_t block_cols = (s.cols + s.group_cols - 1) / s.group_cols;
        ASSERT_EQ(result->scales.name, "w_scales");
        ASSERT_EQ(result->scales.shape,
                  (std::vector<int64_t>{(s.rows + s.group_rows - 1) / s.group_rows, block_cols}));
        const std::vector<double> values = read_matrix(view_of(*source));
        const std::vector<double> codes = read_matrix(view_of(result->codes));
        std::vector<double> largest(static_cast<size_t>(result->scales.element_count()));
        for (int64_t row = 0; row < s.rows; ++row) {
          for (int64_t col = 0; col < s.cols; ++col) {
            const auto i = static_cast<size_t>(row * s.cols + col);
            const auto block =
                static_cast<size_t>(row / s.group_rows * block_cols + col / s.group_cols);
            const double scale = result->scales.data<float>()[block];
            // Half a unit of e4m3 is 2^-4 of the value, or half of 2^-9 among subnormals.
            const double bound = std::max(std::fabs(values[i]) * 0x1.0001p-4, scale * 0x1.0001p-10);
            ASSERT_LE(std::fabs(codes[i] * scale - values[i]), bound);
            largest[block] = std::max(largest[block], std::fabs(codes[i]));
          }
        }
        for (const double code : largest) {
          if (rule == ScaleRule::kAmax) {
            ASSERT_EQ(code, 448.0);
          } else {
            ASSERT_GE(code, 224.0);
          }
        }
      }
    }
  }
}

TEST(Quantize, ExponentScalesEqualThePowersOfTwoTheyStandFor) {
  const auto source = make_normal_tensor("w", DType::kF32, {40, 256}, 4, 1);
  QuantizeOptions options;
  options.scale_rule = ScaleRule::kPow2;
  const auto floats = quantize(*source, options);
  options.scale_dtype = DType::kF8E8M0;
  const auto exponents = quantize(*source, options);
  ASSERT_TRUE(floats && exponents);
  EXPECT_EQ(floats->codes.bytes, exponents->codes.bytes);
  EXPECT_EQ(read_matrix(view_of(floats->scales)), read_matrix(view_of(exponents->scales)));
}

TEST(Quantize, EveryBadRequestIsRefusedByName) {
  const HostTensor good = matrix({
      {1, 2}
  });
  HostTensor rank = good;
  rank.shape = {2};
  HostTensor dtype = good;
  dtype.dtype = DType::kI32;
  QuantizeOptions code;
  code.code_dtype = DType::kF16;
  QuantizeOptions group;
  group.group_cols = 0;
  QuantizeOptions scale;
  scale.scale_dtype = DType::kBF16;
  QuantizeOptions exponents;
  exponents.scale_dtype = DType::kF8E8M0;
  QuantizeOptions least;
  least.min_scale = 0.0F;
  struct Case {
    const char* message;
    const HostTensor* source;
    QuantizeOptions options;
  };
  const QuantizeOptions plain;
  const Case cases[] = {
      {"rank: expected 2, found 1",                          &rank,  plain    },
      {"dtype: expected F32, F16 or BF16, found I32",        &dtype, plain    },
      {"code dtype: expected F8_E4M3 or F8_E5M2, found F16", &good,  code     },
      {"group: expected >= 1, found 1 x 0",                  &good,  group    },
      {"scale dtype: expected F32 or F8_E8M0, found BF16",   &good,  scale    },
      {"needs the scale rule pow2",                          &good,  exponents},
      {"min_scale",                                          &good,  least    },
  };
  for (const Case& c : cases) {
    const auto result = quantize(*c.source, c.options);
    ASSERT_FALSE(result) << c.message;
    EXPECT_EQ(result.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(result.error().message().find(c.message), std::string::npos)
        << result.error().message();
  }
}

}  // namespace
}  // namespace jitgemm::quantizer_test
