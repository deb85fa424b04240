// SPDX-License-Identifier: Apache-2.0
#include "verify/inputs.h"

#include "verify/fp8_reference.h"
#include "verify/parallel.h"
#include "verify/quantizer.h"
#include "verify/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
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

float draw_scale(InputKind kind, const RandomStream& random, uint64_t index) {
  if (kind == InputKind::kSmallIntegers) {
    return static_cast<float>(random.integer(index, 1, 4));
  }
  if (kind == InputKind::kWideScales) {
    const uint32_t bits = random.bits(index);
    const float fraction = 1.0F + static_cast<float>(bits >> 9) * 0x1p-23F;
    const int exponent = static_cast<int>(bits % 61U) - 30;
    return std::ldexp((bits & 0x100U) != 0 ? -fraction : fraction, exponent);
  }
  return random.uniform(index) * 1e-2F;
}

// The greatest power of two <= |value|, with 2^-127 standing for zero, as an exponent code.
uint8_t exponent_code(float value) {
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(value) >> 23 & 0xffU);
}

HostTensor drawn_scales(std::string name, const GemmProblem& problem, InputKind kind, int64_t rows,
                        uint64_t seed, uint32_t stream) {
  HostTensor tensor =
      make_host_tensor(std::move(name), problem.scale_dtype, {rows, problem.k_blocks()});
  const RandomStream random(seed, stream);
  const int64_t count = tensor.element_count();
  for (int64_t i = 0; i < count; ++i) {
    const float scale = draw_scale(kind, random, static_cast<uint64_t>(i));
    if (problem.scale_dtype == DType::kF8E8M0) {
      tensor.data<uint8_t>()[i] = exponent_code(scale);
    } else if (problem.power_of_two_scales()) {
      // At least the least normal power, so that a scale stays a power of two.
      const uint32_t code = std::max<uint32_t>(exponent_code(scale), 1U);
      tensor.data<float>()[i] = std::bit_cast<float>(code << 23);
    } else {
      tensor.data<float>()[i] = scale;
    }
  }
  return tensor;
}

OperandDraw operand_draw(std::string name, const GemmProblem& problem, InputKind kind, DType dtype,
                         int64_t rows, int64_t group_rows, uint64_t seed, uint32_t stream,
                         int threads) {
  OperandDraw draw;
  draw.name = std::move(name);
  draw.distribution = kind == InputKind::kSeed || kind == InputKind::kAmax ? Distribution::kNormal
                      : kind == InputKind::kSmallIntegers                  ? Distribution::kIntegers
                                                                           : Distribution::kUniform;
  draw.rows = rows;
  draw.cols = problem.k;
  draw.seed = seed;
  draw.stream = stream;
  draw.quantize.code_dtype = dtype;
  draw.quantize.scale_dtype = problem.scale_dtype;
  draw.quantize.group_rows = group_rows;
  draw.quantize.group_cols = problem.group_k;
  draw.quantize.scale_rule = problem.power_of_two_scales() ? ScaleRule::kPow2 : ScaleRule::kAmax;
  draw.quantize.threads = threads;
  return draw;
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

void put_special_values(BlockScaledTensors& t, bool powers_of_two) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr uint8_t kNanCode = 0x7f;
  constexpr uint8_t kInfCode = 0x7c;  // of e5m2
  const int64_t m = t.a.shape[0];
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

void put_element(HostTensor& tensor, int64_t index, float value) {
  if (tensor.dtype == DType::kF32) {
    tensor.data<float>()[index] = value;
  } else {
    tensor.data<uint16_t>()[index] =
        tensor.dtype == DType::kF16 ? round_to_fp16(value) : round_to_bf16(value);
  }
}

// One element of an A that is to be quantised.
float draw_source(InputKind kind, const RandomStream& random, int64_t index, int64_t block,
                  bool starts_block) {
  const auto i = static_cast<uint64_t>(index);
  switch (kind) {
    // The first element of a block makes its scale 1, so that codes are the integers themselves.
    case InputKind::kSmallIntegers:
      return starts_block ? 448.0F : static_cast<float>(random.integer(i, -4, 4));
    case InputKind::kUniformCodes: return 2.0F * random.uniform(i) - 1.0F;
    // Within what fp16 holds.
    case InputKind::kWideScales:
      return std::ldexp(random.normal(i), static_cast<int>(block % 24) - 12);
    default: return random.normal(i);
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

HostTensor drawn_source(const GemmProblem& p, InputKind kind, uint64_t seed, int threads) {
  HostTensor source = make_host_tensor("a", p.a_dtype, {p.m, p.k});
  const RandomStream random(seed, kStreamOfA);
  parallel_pieces(p.m * p.k, threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t column = i % p.k;
      put_element(source, i,
                  draw_source(kind, random, i, i / p.k * p.k_blocks() + column / p.group_k,
                              column % p.group_k == 0));
    }
  });
  if (kind == InputKind::kSpecialValues && p.k > 0) put_special_source(source);
  return source;
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

// Operands of 16 bits: small integers or normal values; scales are ones, for the reference alone.
Result<HostTensor> wide_operand(std::string name, DType dtype, int64_t rows, int64_t cols,
                                InputKind kind, uint64_t seed, uint32_t stream, int threads) {
  if (kind != InputKind::kSmallIntegers) {
    return make_normal_tensor(std::move(name), dtype, {rows, cols}, seed, stream, threads);
  }
  // Of 0 to 4, as fp16 and as bf16.
  constexpr std::array<uint16_t, 5> kHalf = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
  constexpr std::array<uint16_t, 5> kBrain = {0, 0x3f80, 0x4000, 0x4040, 0x4080};
  HostTensor tensor = make_host_tensor(std::move(name), dtype, {rows, cols});
  const RandomStream random(seed, stream);
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int32_t value = random.integer(static_cast<uint64_t>(i), -4, 4);
    const auto size = static_cast<size_t>(std::abs(value));
    const uint16_t code = dtype == DType::kF16 ? kHalf[size] : kBrain[size];
    tensor.data<uint16_t>()[i] = static_cast<uint16_t>(code | (value < 0 ? 0x8000U : 0U));
  }
  return tensor;
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

Result<BlockScaledTensors> make_block_scaled_tensors(const GemmProblem& problem, InputKind kind,
                                                     uint64_t seed, int threads,
                                                     const DrawOperand& draw) {
  if (problem.quantizes_a()) {
    GemmProblem codes = problem;
    codes.a_dtype = problem.a_code_dtype;
    codes.m = 0;
    JITGEMM_ASSIGN(BlockScaledTensors t,
                   make_block_scaled_tensors(codes, kind, seed, threads, draw));
    t.a_source = drawn_source(problem, kind, seed, threads);
    JITGEMM_TRY(quantize_source(problem, t, threads));
    return t;
  }
  BlockScaledTensors t;
  t.group_n = problem.group_n;
  t.group_k = problem.group_k;
  if (!problem.scaled()) {
    JITGEMM_ASSIGN(t.a, wide_operand("a", problem.a_dtype, problem.m, problem.k, kind, seed,
                                     kStreamOfA, threads));
    JITGEMM_ASSIGN(t.b, wide_operand("b", problem.b_dtype, problem.n, problem.k, kind, seed,
                                     kStreamB, threads));
    t.a_scales = ones("a_scales", problem.m, problem.k_blocks());
    t.b_scales = ones("b_scales", problem.n_blocks(), problem.k_blocks());
    return t;
  }
  const auto [of_a, of_b] = operand_draws(problem, kind, seed, threads);
  JITGEMM_ASSIGN(DrawnOperand a, draw(of_a));
  JITGEMM_ASSIGN(DrawnOperand b, draw(of_b));
  t.a = std::move(a.codes);
  t.b = std::move(b.codes);
  if (of_a.distribution == Distribution::kNormal) {
    t.a_scales = std::move(a.scales);
    t.b_scales = std::move(b.scales);
    return t;
  }
  t.a_scales = drawn_scales("a_scales", problem, kind, problem.m, seed, kStreamAScales);
  t.b_scales = drawn_scales("b_scales", problem, kind, problem.n_blocks(), seed, kStreamBScales);
  if (kind == InputKind::kSpecialValues) put_special_values(t, problem.power_of_two_scales());
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
