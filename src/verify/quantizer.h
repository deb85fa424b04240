// SPDX-License-Identifier: Apache-2.0
// The host quantiser: fp32, fp16 or bf16 matrices to FP8 codes and one scale a block. It defines
// what the CLI writes and what the device quantiser must reproduce bit for bit. All arithmetic is
// fp32.
//
//   scale = max(maximum(|x|) / largest, min_scale), with pow2 then rounded up to a power of two
//   code  = fp8(clamp(x / scale, -largest, largest)), to nearest, ties to even
//
// `largest` is 448 for e4m3 and 57344 for e5m2. A NaN makes its block's scale and codes NaN (always
// 0x7fc00000 and 0x7f); an infinity makes the scale infinite, its own code NaN and the other codes
// zero.
#pragma once

#include "support/result.h"
#include "verify/host_tensor.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace jitgemm {

enum class ScaleRule {
  kAmax,  // any fp32 number
  kPow2,  // the next power of two
};
std::optional<ScaleRule> parse_scale_rule(std::string_view name);  // "amax", "pow2"

struct QuantizeOptions {
  DType code_dtype = DType::kF8E4M3;  // or F8_E5M2
  DType scale_dtype = DType::kF32;    // or F8_E8M0, with pow2 only; an infinite scale becomes NaN
  int64_t group_rows = 1;             // 1 for the A operand, group_n for the B operand
  int64_t group_cols = 128;
  ScaleRule scale_rule = ScaleRule::kAmax;
  float min_scale = 1e-10F;
  // The maximum of x instead of |x|: large negative values then saturate. The published generator
  // of test inputs treats its B operand so.
  bool signed_maximum = false;
  int threads = 0;
};

struct QuantizedMatrix {
  HostTensor codes;   // the source's name and shape
  HostTensor scales;  // NAME_scales, [ceil(rows / group_rows), ceil(cols / group_cols)]
};

// The source has rank 2 and dtype F32, F16 or BF16.
Result<QuantizedMatrix> quantize(const HostTensor& source, const QuantizeOptions& options);

// One value, saturating at the largest finite code; NaN stays NaN.
uint8_t encode_e4m3(float value);
uint8_t encode_e5m2(float value);

}  // namespace jitgemm
