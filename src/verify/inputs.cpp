// SPDX-License-Identifier: Apache-2.0
#include "verify/inputs.h"

#include "verify/fp8_reference.h"
#include "verify/parallel.h"
#include "verify/quantizer.h"
#include "verify/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace jitgemm {
namespace {

// The random streams of the tensors beside A.
constexpr uint32_t kStreamB = 2;
constexpr uint32_t kStreamAScales = 3;
constexpr uint32_t kStreamBScales = 4;

constexpr std::array<std::pair<InputKind, std::string_view>, 6> kNames = {
    {
     {InputKind::kSeed, "seed"},
     {InputKind::kAmax, "amax"},
     {InputKind::kUniformCodes, "uniform"},
     {InputKind::kWideScales, "wide"},
     {InputKind::kSmallIntegers, "integers"},
     {InputKind::kSpecialValues, "special"},
     }
};

OperandDraw matrix_draw(std::string name, DType dtype, Distribution distribution, int64_t rows,
                        int64_t cols, uint64_t seed, uint32_t stream, int threads) {
  OperandDraw draw;
  draw.name = std::move(name);
  draw.distribution = distribution;
  draw.rows = rows;
  draw.cols = cols;
  draw.seed = seed;
  draw.stream = stream;
  draw.quantize.code_dtype = dtype;
  draw.quantize.threads = threads;
  return draw;
}

OperandDraw operand_draw(std::string name, const GemmProblem& problem, InputKind kind, DType dtype,
                         int64_t rows, int64_t group_rows, uint64_t seed, uint32_t stream,
                         int threads) {
  const Distribution distribution = kind == InputKind::kSeed || kind == InputKind::kAmax
                                        ? Distribution::kNormal
                                    : kind == InputKind::kSmallIntegers ? Distribution::kIntegers
                                                                        : Distribution::kUniform;
  OperandDraw draw =
      matrix_draw(std::move(name), dtype, distribution, rows, problem.k, seed, stream, threads);
  draw.quantize.scale_dtype = problem.scale_dtype;
  draw.quantize.group_rows = group_rows;
  draw.quantize.group_cols = problem.group_k;
  draw.quantize.scale_rule = problem.power_of_two_scales() ? ScaleRule::kPow2 : ScaleRule::kAmax;
  return draw;
}

OperandDraw scale_draw(std::string name, const GemmProblem& problem, InputKind kind, int64_t rows,
                       uint64_t seed, uint32_t stream, int threads) {
  const Distribution distribution = kind == InputKind::kSmallIntegers ? Distribution::kIntegerScales
                                    : kind == InputKind::kWideScales  ? Distribution::kWideScales
                                                                      : Distribution::kSmallScales;
  OperandDraw draw = matrix_draw(std::move(name), problem.scale_dtype, distribution, rows,
                                 problem.k_blocks(), seed, stream, threads);
  draw.quantize.scale_rule = problem.power_of_two_scales() ? ScaleRule::kPow2 : ScaleRule::kAmax;
  return draw;
}

// An A that is to be quantised.
OperandDraw source_draw(const GemmProblem& p, InputKind kind, uint64_t seed, int threads) {
  const Distribution distribution = kind == InputKind::kSmallIntegers
                                        ? Distribution::kMarkedIntegers
                                    : kind == InputKind::kUniformCodes ? Distribution::kUniform
                                    : kind == InputKind::kWideScales   ? Distribution::kScaledNormal
                                                                       : Distribution::kNormal;
  OperandDraw draw = matrix_draw("a", p.a_dtype, distribution, p.m, p.k, seed, kStreamOfA, threads);
  draw.quantize.group_cols = p.group_k;
  return draw;
}

// Operands of 16 bits: small integers or normal values.
OperandDraw wide_draw(std::string name, const GemmProblem& p, InputKind kind, DType dtype,
                      int64_t rows, uint64_t seed, uint32_t stream, int threads) {
  return matrix_draw(
      std::move(name), dtype,
      kind == InputKind::kSmallIntegers ? Distribution::kIntegers : Distribution::kNormal, rows,
      p.k, seed, stream, threads);
}

// What an element of a scale matrix becomes; F8_E8M0 can only hold the NaN and powers of two.
void put_scale(HostTensor& scales, int64_t row, int64_t col, float value) {
  const int64_t index = row * scales.shape[1] + col;
  if (scales.dtype == DType::kF8E8M0) {
    scales.data<uint8_t>()[index] = std::isnan(value) ? uint8_t{255} : exponent_code(value);
  } else {
    scales.data<float>()[index] = value;
  }
}

// Of a in the first m rows.
void put_special_values(BlockScaledTensors& t, int64_t m, bool powers_of_two) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr uint8_t kNanCode = 0x7f;
  constexpr uint8_t kInfCode = 0x7c;  // of e5m2
  const int64_t n = t.b.shape[0];
  const int64_t k = t.a.shape[1];
  const int64_t last_block = t.a_scales.shape[1] - 1;
  if (k == 0) return;
  auto* a = t.a.data<uint8_t>();
  auto* b = t.b.data<uint8_t>();
  for (int64_t row = 0; row < m; ++row) {
    uint8_t* codes = a + row * k;
    switch (row % 16) {
      case 1: codes[k - 1] = kNanCode; break;
      case 2:
        if (t.a.dtype == DType::kF8E5M2) codes[k / 2] = kInfCode;
        break;
      case 3: std::fill(codes, codes + k, uint8_t{0}); break;
      case 4: std::fill(codes, codes + k, uint8_t{1}); break;  // the least subnormal
      case 5: put_scale(t.a_scales, row, 0, kNan); break;
      default: break;
    }
    if (powers_of_two) continue;
    switch (row % 16) {
      case 6: put_scale(t.a_scales, row, last_block, kInf); break;
      case 7: put_scale(t.a_scales, row, 0, -kInf); break;
      case 8:
        std::fill(codes, codes + k, uint8_t{0x80});
        put_scale(t.a_scales, row, 0, kInf);
        break;
      case 9: put_scale(t.a_scales, row, 0, 0.0F); break;
      case 10: put_scale(t.a_scales, row, last_block, 0x1p-130F); break;
      case 11: put_scale(t.a_scales, row, 0, 3e38F); break;
      case 12: put_scale(t.a_scales, row, 0, -0.5F); break;
      default: break;
    }
  }
  for (int64_t row = 0; row < n; ++row) {
    uint8_t* codes = b + row * k;
    switch (row % 64) {
      case 5: codes[0] = kNanCode; break;
      case 6:
        if (t.b.dtype == DType::kF8E5M2) codes[k - 1] = kInfCode | 0x80;
        break;
      case 7: std::fill(codes, codes + k, uint8_t{0x81}); break;
      default: break;
    }
  }
  // Whole blocks of columns share a scale, so only the last one gets a strange value.
  if (!powers_of_two && t.b_scales.shape[0] > 1) {
    put_scale(t.b_scales, t.b_scales.shape[0] - 1, 0, 0x1p-140F);
  }
}

// Rows that a quantiser may get wrong.
void put_special_source(HostTensor& source) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const int64_t k = source.shape[1];
  const float least = source.dtype == DType::kF16 ? 0x1p-24F : 0x1p-133F;
  const float largest = source.dtype == DType::kF16 ? 65504.0F : 0x1.fep127F;
  const auto fill = [&](int64_t row, float value) {
    for (int64_t col = 0; col < k; ++col) put_element(source, row * k + col, value);
  };
  for (int64_t row = 0; row < source.shape[0]; ++row) {
    switch (row % 16) {
      case 1: put_element(source, row * k + k - 1, std::numeric_limits<float>::quiet_NaN()); break;
      case 2: put_element(source, row * k + k / 2, kInf); break;
      case 3: put_element(source, row * k, -kInf); break;
      case 4: fill(row, 0.0F); break;
      case 5: fill(row, -0.0F); break;
      case 6: fill(row, least); break;
      case 7: put_element(source, row * k + k / 2, -largest); break;
      case 8: fill(row, 1e-9F); break;  // below what the least scale can tell apart
      default: break;
    }
  }
}

void copy_matrix(const HostTensor& source, int64_t row_stride, int64_t col_stride,
                 std::vector<std::byte>& target) {
  const int64_t rows = source.shape[0];
  const int64_t cols = source.shape[1];
  const auto width = static_cast<size_t>(dtype_info(source.dtype).bytes);
  const int64_t extent =
      rows == 0 || cols == 0 ? 0 : (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
  target.assign(static_cast<size_t>(extent) * width, std::byte{0xff});
  if (col_stride == 1) {
    for (int64_t row = 0; row < rows && cols > 0; ++row) {
      std::memcpy(&target[static_cast<size_t>(row * row_stride) * width],
                  &source.bytes[static_cast<size_t>(row * cols) * width],
                  static_cast<size_t>(cols) * width);
    }
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      std::memcpy(&target[static_cast<size_t>(row * row_stride + col * col_stride) * width],
                  &source.bytes[static_cast<size_t>(row * cols + col) * width], width);
    }
  }
}

Status check_tensor(const HostTensor& tensor, const char* name, DType dtype, int64_t rows,
                    int64_t cols) {
  if (tensor.dtype == dtype && tensor.shape == std::vector<int64_t>{rows, cols}) return ok_status();
  return invalid_argument(
      fmt::format("lay_out: {}: expected {} [{}, {}], found {} of rank {}, {} elements", name,
                  dtype_info(dtype).name, rows, cols, dtype_info(tensor.dtype).name,
                  tensor.shape.size(), tensor.element_count()));
}

HostTensor ones(std::string name, int64_t rows, int64_t cols) {
  HostTensor tensor = make_host_tensor(std::move(name), DType::kF32, {rows, cols});
  std::fill_n(tensor.data<float>(), rows * cols, 1.0F);
  return tensor;
}

// Packed scales are bytes in words, which no view with two strides describes.
void copy_scales(const HostTensor& source, ScaleMajor major, int64_t ld, const MatrixView& view,
                 std::vector<std::byte>& target) {
  if (major != ScaleMajor::kPacked) {
    copy_matrix(source, view.row_stride, view.col_stride, target);
    return;
  }
  const int64_t rows = source.shape[0];
  const int64_t cols = source.shape[1];
  const int64_t words = rows == 0 ? 0 : ((cols + 3) / 4 - 1) * ld + rows;
  target.assign(static_cast<size_t>(words) * 4, std::byte{0xff});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      target[static_cast<size_t>(4 * (col / 4 * ld + row) + col % 4)] =
          source.bytes[static_cast<size_t>(row * cols + col)];
    }
  }
}

}  // namespace

std::optional<InputKind> parse_input_kind(std::string_view name) {
  for (const auto& [kind, text] : kNames) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

std::string_view input_kind_name(InputKind kind) {
  for (const auto& [value, text] : kNames) {
    if (value == kind) return text;
  }
  return "unknown";
}

BlockScaledInputs BlockScaledTensors::views() const {
  return {view_of(a), view_of(b), view_of(a_scales), view_of(b_scales), group_n, group_k};
}

Result<HostTensor> make_normal_tensor(std::string name, DType dtype, std::vector<int64_t> shape,
                                      uint64_t seed, uint32_t stream, int threads) {
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    return invalid_argument(fmt::format("normal values: dtype: expected F32, F16 or BF16, found {}",
                                        dtype_info(dtype).name));
  }
  HostTensor tensor = make_host_tensor(std::move(name), dtype, std::move(shape));
  const RandomStream random(seed, stream);
  // Pieces begin at even elements, so each piece draws whole pairs.
  parallel_pieces(tensor.element_count(), threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i += 2) {
      const std::array<float, 2> pair = random.normal_pair(static_cast<uint64_t>(i) / 2);
      for (int64_t j = i; j < std::min(i + 2, last); ++j) {
        const float value = pair[static_cast<size_t>(j - i)];
        if (dtype == DType::kF32) {
          tensor.data<float>()[j] = value;
        } else {
          tensor.data<uint16_t>()[j] =
              dtype == DType::kF16 ? round_to_fp16(value) : round_to_bf16(value);
        }
      }
    }
  });
  return tensor;
}

Status quantize_source(const GemmProblem& problem, BlockScaledTensors& tensors, int threads) {
  QuantizeOptions options;
  options.code_dtype = problem.a_code_dtype;
  options.scale_dtype = problem.scale_dtype;
  options.group_cols = problem.group_k;
  options.scale_rule = problem.power_of_two_scales() ? ScaleRule::kPow2 : ScaleRule::kAmax;
  options.threads = threads;
  JITGEMM_ASSIGN(QuantizedMatrix made, quantize(tensors.a_source, options));
  tensors.a = std::move(made.codes);
  tensors.a_scales = std::move(made.scales);
  return ok_status();
}

std::array<OperandDraw, 2> operand_draws(const GemmProblem& problem, InputKind kind, uint64_t seed,
                                         int threads) {
  std::array<OperandDraw, 2> draws = {
      operand_draw("a", problem, kind, problem.a_dtype, problem.m, 1, seed, kStreamOfA, threads),
      operand_draw("b", problem, kind, problem.b_dtype, problem.n, problem.group_n, seed, kStreamB,
                   threads)};
  draws[1].quantize.signed_maximum = kind == InputKind::kSeed;
  return draws;
}

std::vector<OperandDraw> input_draws(const GemmProblem& problem, InputKind kind, uint64_t seed,
                                     int threads) {
  const GemmProblem& p = problem;
  if (!p.scaled()) {
    return {wide_draw("a", p, kind, p.a_dtype, p.m, seed, kStreamOfA, threads),
            wide_draw("b", p, kind, p.b_dtype, p.n, seed, kStreamB, threads)};
  }
  if (p.quantizes_a()) {
    GemmProblem codes = p;
    codes.a_dtype = p.a_code_dtype;
    std::vector<OperandDraw> draws = input_draws(codes, kind, seed, threads);
    draws[0] = source_draw(p, kind, seed, threads);
    std::erase_if(draws, [](const OperandDraw& draw) { return draw.name == "a_scales"; });
    return draws;
  }
  auto [a, b] = operand_draws(p, kind, seed, threads);
  const bool scales_come_along = a.quantized();
  std::vector<OperandDraw> draws = {std::move(a), std::move(b)};
  if (!scales_come_along) {
    draws.push_back(scale_draw("a_scales", p, kind, p.m, seed, kStreamAScales, threads));
    draws.push_back(scale_draw("b_scales", p, kind, p.n_blocks(), seed, kStreamBScales, threads));
  }
  return draws;
}

Result<BlockScaledTensors> make_block_scaled_tensors(const GemmProblem& problem, InputKind kind,
                                                     uint64_t seed, int threads,
                                                     const DrawOperand& draw) {
  BlockScaledTensors t;
  t.group_n = problem.group_n;
  t.group_k = problem.group_k;
  for (const OperandDraw& one : input_draws(problem, kind, seed, threads)) {
    JITGEMM_ASSIGN(DrawnOperand drawn, draw(one));
    const bool of_a = one.name == "a" || one.name == "a_scales";
    const bool is_scales = one.name == "a_scales" || one.name == "b_scales";
    HostTensor& codes = is_scales ? (of_a ? t.a_scales : t.b_scales) : (of_a ? t.a : t.b);
    codes = std::move(drawn.codes);
    if (one.quantized()) (of_a ? t.a_scales : t.b_scales) = std::move(drawn.scales);
  }
  if (!problem.scaled()) {
    // For the reference alone.
    t.a_scales = ones("a_scales", problem.m, problem.k_blocks());
    t.b_scales = ones("b_scales", problem.n_blocks(), problem.k_blocks());
    return t;
  }
  const bool special = kind == InputKind::kSpecialValues;
  if (problem.quantizes_a()) {
    t.a_source = std::move(t.a);
    if (special && problem.k > 0) put_special_source(t.a_source);
    JITGEMM_TRY(quantize_source(problem, t, threads));
  }
  if (special) {
    put_special_values(t, problem.quantizes_a() ? 0 : problem.m, problem.power_of_two_scales());
  }
  return t;
}

Result<BlockScaledStorage> lay_out(const GemmProblem& problem, const BlockScaledTensors& tensors) {
  const GemmProblem& p = problem;
  const HostTensor& a = p.quantizes_a() ? tensors.a_source : tensors.a;
  JITGEMM_TRY(check_tensor(a, "a", p.a_dtype, p.m, p.k));
  JITGEMM_TRY(check_tensor(tensors.b, "b", p.b_dtype, p.n, p.k));
  JITGEMM_TRY(check_tensor(tensors.a_scales, "a_scales", p.scale_dtype, p.m, p.k_blocks()));
  JITGEMM_TRY(
      check_tensor(tensors.b_scales, "b_scales", p.scale_dtype, p.n_blocks(), p.k_blocks()));
  const BlockScaledInputs views = make_inputs(problem, nullptr, nullptr, nullptr, nullptr);
  BlockScaledStorage storage;
  copy_matrix(a, views.a.row_stride, views.a.col_stride, storage.a);
  copy_matrix(tensors.b, views.b.row_stride, views.b.col_stride, storage.b);
  if (!p.quantizes_a()) {
    copy_scales(tensors.a_scales, p.a_scale_major, p.a_scale_ld_or_dense(), views.a_scales,
                storage.a_scales);
  }
  copy_scales(tensors.b_scales, p.b_scale_major, p.b_scale_ld_or_dense(), views.b_scales,
              storage.b_scales);
  return storage;
}

}  // namespace jitgemm
