// SPDX-License-Identifier: Apache-2.0
// How an FP8 operand is drawn at random, as a value: each element is a function of the seed, the
// stream and its place alone, so any rows of it can be drawn alone, here or on a device, with the
// same bits.
#pragma once

#include "support/result.h"
#include "verify/host_tensor.h"
#include "verify/quantizer.h"

#include <cstdint>
#include <functional>
#include <string>

namespace jitgemm {

enum class Distribution {
  kNormal,    // standard normal values, quantised, with scales
  kUniform,   // codes of values uniform over +- the largest
  kIntegers,  // codes of the integers -4..4
};

struct OperandDraw {
  std::string name;
  Distribution distribution = Distribution::kNormal;
  int64_t first_row = 0;  // of the whole matrix; a multiple of quantize.group_rows
  int64_t rows = 0;
  int64_t cols = 0;
  uint64_t seed = 0;
  uint32_t stream = 0;
  // The codes' type; for normal values also how they are quantised.
  QuantizeOptions quantize;
};

struct DrawnOperand {
  HostTensor codes;   // [rows, cols]
  HostTensor scales;  // of normal values; else empty
};

using DrawOperand = std::function<Result<DrawnOperand>(const OperandDraw&)>;

// On this machine's CPUs; quantize.threads of them.
Result<DrawnOperand> draw_operand(const OperandDraw& draw);

}  // namespace jitgemm
