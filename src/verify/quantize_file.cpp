// SPDX-License-Identifier: Apache-2.0
#include "verify/quantize_file.h"

#include "verify/compare.h"
#include "verify/matrix_view.h"
#include "verify/safetensors.h"

#include <fmt/format.h>

namespace jitgemm {
namespace {

bool is_float_matrix(const SafetensorsEntry& entry) {
  return entry.shape.size() == 2 &&
         (entry.dtype == DType::kF32 || entry.dtype == DType::kF16 || entry.dtype == DType::kBF16);
}

QuantizeOptions options_for(const QuantizeFileOptions& options, OperandRole role) {
  QuantizeOptions result;
  result.code_dtype = options.code_dtype;
  result.scale_dtype = options.scale_dtype;
  result.group_rows = role == OperandRole::kA ? 1 : options.group_n;
  result.group_cols = options.group_k;
  result.scale_rule = options.scale_rule;
  result.threads = options.threads;
  return result;
}

double relative_error(const HostTensor& source, const QuantizedMatrix& quantized,
                      const QuantizeOptions& options) {
  const std::vector<double> wanted = read_matrix(view_of(source));
  std::vector<double> found = read_matrix(view_of(quantized.codes));
  const Decoder decode(quantized.scales.dtype);
  const MatrixView scales = view_of(quantized.scales);
  const int64_t cols = source.shape[1];
  for (size_t i = 0; i < found.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    found[i] *=
        decode(scales, index / cols / options.group_rows, index % cols / options.group_cols);
  }
  return measure_errors(found, wanted).relative_l2;
}

}  // namespace

std::optional<OperandRole> parse_operand_role(std::string_view name) {
  if (name == "a") return OperandRole::kA;
  if (name == "b") return OperandRole::kB;
  return std::nullopt;
}

Result<QuantizeFileReport> quantize_file(const std::string& input, const std::string& output,
                                         const QuantizeFileOptions& options) {
  JITGEMM_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(input));
  QuantizeFileReport report;
  std::vector<QuantizeItem> items = options.items;
  if (items.empty()) {
    for (const SafetensorsEntry& entry : file.header().entries) {
      if (is_float_matrix(entry)) {
        items.push_back({entry.name, entry.name, options.default_role});
      } else {
        report.left_out.push_back(entry.name);
      }
    }
  }
  if (items.empty()) {
    return invalid_argument(fmt::format(
        "{}: expected at least one rank-2 tensor of dtype F32, F16 or BF16, found none", input));
  }
  std::vector<HostTensor> tensors;
  for (const QuantizeItem& item : items) {
    JITGEMM_ASSIGN(HostTensor source, file.load(item.source));
    const QuantizeOptions quantize_options = options_for(options, item.role);
    JITGEMM_ASSIGN(QuantizedMatrix quantized, quantize(source, quantize_options));
    report.tensors.push_back({item.source, item.target, item.role, source.shape[0], source.shape[1],
                              quantized.scales.shape,
                              relative_error(source, quantized, quantize_options)});
    quantized.codes.name = item.target;
    quantized.scales.name = item.target + "_scales";
    tensors.push_back(std::move(quantized.codes));
    tensors.push_back(std::move(quantized.scales));
  }
  const std::map<std::string, std::string> metadata = {
      {"group_n",         fmt::format("{}", options.group_n)},
      {"group_k",                 fmt::format("{}",                         options.group_k)},
      {"scale_rule", options.scale_rule == ScaleRule::kPow2 ? "pow2" : "amax"},
  };
  JITGEMM_TRY(write_safetensors(output, tensors, metadata));
  return report;
}

}  // namespace jitgemm
