// SPDX-License-Identifier: Apache-2.0
// How an operand or a matrix of scales is drawn at random, as a value: each element is a function
// of the seed, the stream and its place alone, so any rows of it can be drawn alone, here or on a
// device, with the same bits.
#pragma once

#include "support/result.h"
#include "verify/host_tensor.h"
#include "verify/quantizer.h"

#include <cstdint>
#include <functional>
#include <string>

namespace jitgemm {

enum class Distribution {
  kNormal,          // standard normal values
  kUniform,         // uniform over +- the largest of an FP8 type, over +-1 of another
  kIntegers,        // the integers -4..4
  kMarkedIntegers,  // the same with 448 first in each block of columns, whose scale is then 1
  kScaledNormal,    // normal values times a power of two of their block of columns
  kSmallScales,     // uniform on [0, 0.01)
  kIntegerScales,   // 1, 2, 3 or 4
  kWideScales,      // of either sign, 2^-30 to 2^31 in size
};

struct OperandDraw {
  std::string name;
  Distribution distribution = Distribution::kNormal;
  int64_t first_row = 0;  // of the whole matrix; a multiple of quantize.group_rows
  int64_t rows = 0;
  int64_t cols = 0;
  uint64_t seed = 0;
  uint32_t stream = 0;
  // code_dtype is the type of what is drawn. Normal values of an FP8 type are quantised as this
  // says; others are rounded once. Of scales that must be powers of two (F8_E8M0, or the rule
  // pow2), the sign and the fraction are left out.
  QuantizeOptions quantize;

  bool quantized() const;  // normal values of an FP8 type
};

struct DrawnOperand {
  HostTensor codes;   // [rows, cols]
  HostTensor scales;  // where the values were quantised; else empty
};

using DrawOperand = std::function<Result<DrawnOperand>(const OperandDraw&)>;

// On this machine's CPUs; quantize.threads of them.
Result<DrawnOperand> draw_operand(const OperandDraw& draw);

// The greatest power of two <= |value| as F8_E8M0, with 2^-127 standing for zero.
uint8_t exponent_code(float value);

// Rounded once to F32, F16 or BF16.
void put_element(HostTensor& tensor, int64_t index, float value);

}  // namespace jitgemm
