// SPDX-License-Identifier: Apache-2.0
// jitgemm quantize: fp32, fp16 or bf16 matrices of a safetensors file to FP8 codes and scales.
#include "cli.h"
#include "json.h"
#include "verify/quantize_file.h"

#include <fmt/format.h>

namespace jitgemm::cli {
namespace {

struct QuantizeFlags {
  std::string input;
  std::string output;
  std::vector<std::string> tensors;
  std::string a;
  std::string b;
  std::string role = "b";
  int64_t group_n = 128;
  int64_t group_k = 128;
  std::string scale_rule = "amax";
  std::string dtype = "F8_E4M3";
  std::string scale_dtype = "F32";
};

Result<QuantizeFileOptions> options_of(const QuantizeFlags& flags) {
  QuantizeFileOptions options;
  const std::optional<OperandRole> role = parse_operand_role(flags.role);
  if (!role) {
    return invalid_argument(fmt::format("--role: expected a or b, found '{}'", flags.role));
  }
  const std::optional<ScaleRule> rule = parse_scale_rule(flags.scale_rule);
  if (!rule) {
    return invalid_argument(
        fmt::format("--scale-rule: expected amax or pow2, found '{}'", flags.scale_rule));
  }
  const std::optional<DType> codes = parse_dtype(flags.dtype);
  if (!codes || !is_fp8_operand(*codes)) {
    return invalid_argument(
        fmt::format("--dtype: expected F8_E4M3 or F8_E5M2, found '{}'", flags.dtype));
  }
  const std::optional<DType> scales = parse_dtype(flags.scale_dtype);
  if (scales != DType::kF32 && scales != DType::kF8E8M0) {
    return invalid_argument(
        fmt::format("--scale-dtype: expected F32 or F8_E8M0, found '{}'", flags.scale_dtype));
  }
  options.default_role = *role;
  options.group_n = flags.group_n;
  options.group_k = flags.group_k;
  options.scale_rule = *rule;
  options.code_dtype = *codes;
  options.scale_dtype = *scales;
  for (const std::string& name : flags.tensors) options.items.push_back({name, name, *role});
  if (!flags.a.empty()) options.items.push_back({flags.a, "a", OperandRole::kA});
  if (!flags.b.empty()) options.items.push_back({flags.b, "b", OperandRole::kB});
  return options;
}

void print_json(const QuantizeFlags& flags, const QuantizeFileReport& report) {
  Json json = document("quantize");
  json["output"] = flags.output;
  json["tensors"] = Json::array();
  for (const QuantizedTensorReport& tensor : report.tensors) {
    Json row = Json::object();
    row["source"] = tensor.source;
    row["name"] = tensor.target;
    row["role"] = tensor.role == OperandRole::kA ? "a" : "b";
    row["shape"] = {tensor.rows, tensor.cols};
    row["scales_shape"] = tensor.scales_shape;
    row["relative_l2"] = tensor.relative_l2;
    json["tensors"].push_back(row);
  }
  json["left_out"] = report.left_out;
  print(json);
}

Status quantize(const QuantizeFlags& flags, Cli& cli) {
  JITGEMM_ASSIGN(const QuantizeFileOptions options, options_of(flags));
  JITGEMM_ASSIGN(const QuantizeFileReport report,
                 quantize_file(flags.input, flags.output, options));
  if (cli.flags.json) {
    print_json(flags, report);
    return ok_status();
  }
  for (const QuantizedTensorReport& tensor : report.tensors) {
    fmt::print("{}: [{}, {}] {} -> {}, {}_scales [{}, {}]; relative L2 {:.3g}\n", tensor.source,
               tensor.rows, tensor.cols, tensor.role == OperandRole::kA ? "a" : "b", tensor.target,
               tensor.target, tensor.scales_shape[0], tensor.scales_shape[1], tensor.relative_l2);
  }
  fmt::print("wrote {}: {} matrices; {} other tensors left out\n", flags.output,
             report.tensors.size(), report.left_out.size());
  return ok_status();
}

}  // namespace

void add_quantize_command(CLI::App& app, Cli& cli) {
  CLI::App* command =
      app.add_subcommand("quantize", "Convert matrices of a safetensors file to FP8 and scales");
  auto flags = std::make_shared<QuantizeFlags>();
  command->add_option("input", flags->input, "Safetensors file with F32, F16 or BF16 matrices")
      ->required();
  command->add_option("output", flags->output, "File to write: NAME and NAME_scales")->required();
  command
      ->add_option("--tensor", flags->tensors,
                   "Convert this tensor, in the role of --role; may be repeated. Without "
                   "--tensor, --a and --b every matrix is converted")
      ->allow_extra_args(false);
  command->add_option("--a", flags->a, "Convert this tensor as operand A, named a in the output");
  command->add_option("--b", flags->b, "Convert this tensor as operand B, named b in the output");
  command
      ->add_option("--role", flags->role,
                   "a: one scale for 1 x group_k elements; b: for group_n x group_k")
      ->capture_default_str();
  command->add_option("--group-n", flags->group_n, "Rows of B that share a scale")
      ->capture_default_str();
  command->add_option("--group-k", flags->group_k, "Columns that share a scale")
      ->capture_default_str();
  command
      ->add_option("--scale-rule", flags->scale_rule,
                   "amax: the largest |x| over the largest code; pow2: that rounded up to a power "
                   "of two")
      ->capture_default_str();
  command->add_option("--dtype", flags->dtype, "F8_E4M3 or F8_E5M2")->capture_default_str();
  command->add_option("--scale-dtype", flags->scale_dtype, "F32, or F8_E8M0 with pow2")
      ->capture_default_str();
  command->callback([flags, &cli] { cli.finish(quantize(*flags, cli)); });
}

}  // namespace jitgemm::cli
