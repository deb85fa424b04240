// SPDX-License-Identifier: Apache-2.0
// `jitgemm quantize` as a library call: matrices of one safetensors file become FP8 codes and
// scales in another. Parsing of options and printing belong to the CLI.
#pragma once

#include "support/result.h"
#include "verify/quantizer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jitgemm {

// The operand that a matrix will be: A has a scale per row and group_k columns, B one per block of
// group_n rows and group_k columns.
enum class OperandRole { kA, kB };
std::optional<OperandRole> parse_operand_role(std::string_view name);  // "a", "b"

struct QuantizeItem {
  std::string source;  // the tensor's name in the input file
  std::string target;  // the codes' name in the output file; scales are TARGET_scales
  OperandRole role = OperandRole::kB;
};

struct QuantizeFileOptions {
  // What to convert. Empty: every rank-2 tensor of dtype F32, F16 or BF16, under its own name, in
  // `default_role`; other tensors are left out.
  std::vector<QuantizeItem> items;
  OperandRole default_role = OperandRole::kB;
  int64_t group_n = 128;
  int64_t group_k = 128;
  ScaleRule scale_rule = ScaleRule::kAmax;
  DType code_dtype = DType::kF8E4M3;
  DType scale_dtype = DType::kF32;
  int threads = 0;
};

struct QuantizedTensorReport {
  std::string source;
  std::string target;
  OperandRole role = OperandRole::kB;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<int64_t> scales_shape;
  // |codes * scales - source| / |source|, over finite elements.
  double relative_l2 = 0;
};

struct QuantizeFileReport {
  std::vector<QuantizedTensorReport> tensors;
  std::vector<std::string> left_out;
};

// INVALID_ARGUMENT when there is nothing to convert or an item cannot be; the output file is
// written whole or not at all.
Result<QuantizeFileReport> quantize_file(const std::string& input, const std::string& output,
                                         const QuantizeFileOptions& options);

}  // namespace jitgemm
