// SPDX-License-Identifier: Apache-2.0
#include "verify/operand_draw.h"

#include "verify/fp8_reference.h"
#include "verify/parallel.h"
#include "verify/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

namespace jitgemm {
namespace {

// Normal numbers come in pairs, which a piece of a matrix may begin or end in the middle of.
class NormalNumbers {
 public:
  explicit NormalNumbers(const RandomStream& random) : random_(random) {}
  float operator[](uint64_t index) {
    if (index / 2 != held_) {
      held_ = index / 2;
      pair_ = random_.normal_pair(held_);
    }
    return pair_[index % 2];
  }

 private:
  const RandomStream& random_;
  std::array<float, 2> pair_ = {};
  uint64_t held_ = UINT64_MAX;
};

// Calls f(element of the drawn rows, element of the whole matrix), normal numbers beside it.
template <typename F>
void each_element(const OperandDraw& draw, const RandomStream& random, const F& f) {
  parallel_pieces(draw.rows * draw.cols, draw.quantize.threads, [&](int64_t first, int64_t last) {
    NormalNumbers normal(random);
    for (int64_t i = first; i < last; ++i) {
      f(i, static_cast<uint64_t>(draw.first_row * draw.cols + i), normal);
    }
  });
}

Result<DrawnOperand> quantized_normal(const OperandDraw& draw) {
  HostTensor values = make_host_tensor(draw.name, DType::kF32, {draw.rows, draw.cols});
  const RandomStream random(draw.seed, draw.stream);
  auto* to = values.data<float>();
  each_element(draw, random,
               [&](int64_t i, uint64_t index, NormalNumbers& normal) { to[i] = normal[index]; });
  JITGEMM_ASSIGN(QuantizedMatrix made, quantize(values, draw.quantize));
  return DrawnOperand{std::move(made.codes), std::move(made.scales)};
}

float wide_scale(uint32_t bits) {
  const float fraction = 1.0F + static_cast<float>(bits >> 9) * 0x1p-23F;
  const int exponent = static_cast<int>(bits % 61U) - 30;
  return std::ldexp((bits & 0x100U) != 0 ? -fraction : fraction, exponent);
}

// One element before it is rounded to its type; `largest` is that of the type.
float value_of(const OperandDraw& draw, const RandomStream& random, uint64_t index, float largest,
               NormalNumbers& normal) {
  const auto cols = static_cast<uint64_t>(draw.cols);
  const auto group = static_cast<uint64_t>(draw.quantize.group_cols);
  switch (draw.distribution) {
    case Distribution::kNormal: return normal[index];
    case Distribution::kUniform: return (2.0F * random.uniform(index) - 1.0F) * largest;
    case Distribution::kIntegers: return static_cast<float>(random.integer(index, -4, 4));
    case Distribution::kMarkedIntegers:
      return index % cols % group == 0 ? 448.0F : static_cast<float>(random.integer(index, -4, 4));
    case Distribution::kScaledNormal: {
      const uint64_t block = index / cols * ((cols + group - 1) / group) + index % cols / group;
      return std::ldexp(normal[index], static_cast<int>(block % 24) - 12);
    }
    case Distribution::kSmallScales: return random.uniform(index) * 1e-2F;
    case Distribution::kIntegerScales: return static_cast<float>(random.integer(index, 1, 4));
    case Distribution::kWideScales: return wide_scale(random.bits(index));
  }
  return 0;
}

}  // namespace

bool OperandDraw::quantized() const {
  return distribution == Distribution::kNormal && is_fp8_operand(quantize.code_dtype);
}

Result<DrawnOperand> draw_operand(const OperandDraw& draw) {
  if (draw.quantized()) return quantized_normal(draw);
  const DType dtype = draw.quantize.code_dtype;
  const bool powers = draw.quantize.scale_rule == ScaleRule::kPow2 && dtype == DType::kF32;
  const float largest = dtype == DType::kF8E5M2 ? 57344.0F : dtype == DType::kF8E4M3 ? 448.0F : 1;
  DrawnOperand drawn;
  drawn.codes = make_host_tensor(draw.name, dtype, {draw.rows, draw.cols});
  const RandomStream random(draw.seed, draw.stream);
  each_element(draw, random, [&](int64_t i, uint64_t index, NormalNumbers& normal) {
    const float value = value_of(draw, random, index, largest, normal);
    if (is_fp8_operand(dtype)) {
      drawn.codes.data<uint8_t>()[i] =
          dtype == DType::kF8E5M2 ? encode_e5m2(value) : encode_e4m3(value);
    } else if (dtype == DType::kF8E8M0) {
      drawn.codes.data<uint8_t>()[i] = exponent_code(value);
    } else if (powers) {
      // At least the least normal power, so that a scale stays a power of two.
      const uint32_t code = std::max<uint32_t>(exponent_code(value), 1U);
      drawn.codes.data<float>()[i] = std::bit_cast<float>(code << 23);
    } else {
      put_element(drawn.codes, i, value);
    }
  });
  return drawn;
}

uint8_t exponent_code(float value) {
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(value) >> 23 & 0xffU);
}

void put_element(HostTensor& tensor, int64_t index, float value) {
  if (tensor.dtype == DType::kF32) {
    tensor.data<float>()[index] = value;
  } else {
    tensor.data<uint16_t>()[index] =
        tensor.dtype == DType::kF16 ? round_to_fp16(value) : round_to_bf16(value);
  }
}

}  // namespace jitgemm
