// SPDX-License-Identifier: Apache-2.0
#include "verify/quantizer.h"

#include "verify/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace jitgemm {
namespace {

// The layout of a target format and its greatest finite value.
struct Target {
  int fraction_bits;
  int bias;
  uint32_t largest_code;
  uint32_t nan_code;
  float largest;
};
constexpr Target kE4m3Target{3, 7, 0x7e, 0x7f, 448.0F};
constexpr Target kE5m2Target{2, 15, 0x7b, 0x7f, 57344.0F};

const Target& target_of(DType dtype) {
  return dtype == DType::kF8E5M2 ? kE5m2Target : kE4m3Target;
}

uint8_t encode(float value, const Target& target) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 31 << 7;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<uint8_t>(target.nan_code);
  if (magnitude >= std::bit_cast<uint32_t>(target.largest)) {
    return static_cast<uint8_t>(sign | target.largest_code);
  }
  const int field = static_cast<int>(magnitude >> 23);
  const int exponent = std::max(field, 1) - 127;
  const uint32_t significand = (magnitude & 0x7fffffU) | (field > 0 ? 0x800000U : 0U);
  // Bits to drop: down to the target's fraction, and further below its least normal exponent.
  const int least = 1 - target.bias;
  const int shift = 23 - target.fraction_bits + std::max(0, least - exponent);
  if (shift > 25) return static_cast<uint8_t>(sign);
  const uint32_t kept = significand >> shift;
  const uint32_t dropped = significand & ((1U << shift) - 1U);
  const uint32_t half = 1U << (shift - 1);
  const uint32_t up = dropped > half || (dropped == half && (kept & 1U) != 0) ? 1U : 0U;
  // For a normal number `kept` carries the leading one, which is one step of the exponent field.
  const auto steps = static_cast<uint32_t>(std::max(0, exponent - least));
  const uint32_t code = kept + up + (steps << target.fraction_bits);
  return static_cast<uint8_t>(sign | std::min(code, target.largest_code));
}

float half_to_float(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code >> 15) << 31;
  const uint32_t exponent = (code >> 10) & 0x1fU;
  const uint32_t fraction = code & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -magnitude : magnitude;
}

// Row-major elements of the three source types as fp32; all conversions are exact.
class Source {
 public:
  explicit Source(const HostTensor& tensor)
      : dtype_(tensor.dtype), data_(tensor.bytes.data()), cols_(tensor.shape[1]) {}

  float operator()(int64_t row, int64_t col) const {
    const auto index = static_cast<size_t>(row * cols_ + col);
    if (dtype_ == DType::kF32) return load<float>(index);
    const auto code = load<uint16_t>(index);
    return dtype_ == DType::kF16 ? half_to_float(code)
                                 : std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
  }

 private:
  template <typename T>
  T load(size_t index) const {
    T value;
    std::memcpy(&value, data_ + index * sizeof(T), sizeof(T));
    return value;
  }

  DType dtype_;
  const std::byte* data_;
  int64_t cols_;
};

// Keeps a NaN of either side.
float propagating_max(float a, float b) {
  if (std::isnan(a)) return a;
  return std::isnan(b) || b > a ? b : a;
}

// The least power of two >= a positive normal number; infinity and NaN stay.
float round_up_to_power_of_two(float value) {
  if (!std::isfinite(value)) return value;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffffU) & 0xff800000U);
}

struct Block {
  int64_t row, row_end, col, col_end;
};

float block_scale(const Source& source, const Block& block, const QuantizeOptions& options) {
  const Target& target = target_of(options.code_dtype);
  bool first = true;
  float maximum = 0.0F;
  for (int64_t row = block.row; row < block.row_end; ++row) {
    for (int64_t col = block.col; col < block.col_end; ++col) {
      const float value = source(row, col);
      const float size = options.signed_maximum ? value : std::fabs(value);
      maximum = first ? size : propagating_max(maximum, size);
      first = false;
    }
  }
  const float scale = propagating_max(maximum / target.largest, options.min_scale);
  // Which NaN an operation gives depends on the machine.
  if (std::isnan(scale)) return std::bit_cast<float>(0x7fc00000U);
  return options.scale_rule == ScaleRule::kPow2 ? round_up_to_power_of_two(scale) : scale;
}

uint8_t encode_power_of_two(float scale) {
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(scale) >> 23 & 0xffU);
}

Status check(const HostTensor& source, const QuantizeOptions& options) {
  const DType dtype = source.dtype;
  if (dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16) {
    return invalid_argument(fmt::format("quantize: {}: dtype: expected F32, F16 or BF16, found {}",
                                        source.name, dtype_info(dtype).name));
  }
  if (source.shape.size() != 2) {
    return invalid_argument(
        fmt::format("quantize: {}: rank: expected 2, found {}", source.name, source.shape.size()));
  }
  if (!is_fp8_operand(options.code_dtype)) {
    return invalid_argument(
        fmt::format("quantize: code dtype: expected F8_E4M3 or F8_E5M2, found {}",
                    dtype_info(options.code_dtype).name));
  }
  if (options.group_rows < 1 || options.group_cols < 1) {
    return invalid_argument(fmt::format("quantize: group: expected >= 1, found {} x {}",
                                        options.group_rows, options.group_cols));
  }
  const bool exponents = options.scale_dtype == DType::kF8E8M0;
  if (!exponents && options.scale_dtype != DType::kF32) {
    return invalid_argument(fmt::format("quantize: scale dtype: expected F32 or F8_E8M0, found {}",
                                        dtype_info(options.scale_dtype).name));
  }
  if (exponents && options.scale_rule != ScaleRule::kPow2) {
    return invalid_argument("quantize: scale dtype F8_E8M0 needs the scale rule pow2, found amax");
  }
  if (!(options.min_scale >= 0x1p-126F && std::isfinite(options.min_scale))) {
    return invalid_argument(fmt::format(
        "quantize: min_scale: expected a positive normal number, found {}", options.min_scale));
  }
  return ok_status();
}

}  // namespace

std::optional<ScaleRule> parse_scale_rule(std::string_view name) {
  if (name == "amax") return ScaleRule::kAmax;
  if (name == "pow2") return ScaleRule::kPow2;
  return std::nullopt;
}

uint8_t encode_e4m3(float value) {
  return encode(value, kE4m3Target);
}
uint8_t encode_e5m2(float value) {
  return encode(value, kE5m2Target);
}

Result<QuantizedMatrix> quantize(const HostTensor& source, const QuantizeOptions& options) {
  JITGEMM_TRY(check(source, options));
  const int64_t rows = source.shape[0];
  const int64_t cols = source.shape[1];
  const int64_t block_rows = (rows + options.group_rows - 1) / options.group_rows;
  const int64_t block_cols = (cols + options.group_cols - 1) / options.group_cols;
  QuantizedMatrix result{
      make_host_tensor(source.name, options.code_dtype, {rows, cols}),
      make_host_tensor(source.name + "_scales", options.scale_dtype, {block_rows, block_cols})};
  auto* codes = result.codes.data<uint8_t>();
  const Target& target = target_of(options.code_dtype);
  const Source read(source);

  parallel_for(block_rows, options.threads, [&](int64_t block_row) {
    for (int64_t block_col = 0; block_col < block_cols; ++block_col) {
      const Block block{
          block_row * options.group_rows, std::min(rows, (block_row + 1) * options.group_rows),
          block_col * options.group_cols, std::min(cols, (block_col + 1) * options.group_cols)};
      const float scale = block_scale(read, block, options);
      const auto index = static_cast<size_t>(block_row * block_cols + block_col);
      if (options.scale_dtype == DType::kF32) {
        std::memcpy(result.scales.bytes.data() + index * sizeof(float), &scale, sizeof(float));
      } else {
        result.scales.data<uint8_t>()[index] = encode_power_of_two(scale);
      }
      for (int64_t row = block.row; row < block.row_end; ++row) {
        for (int64_t col = block.col; col < block.col_end; ++col) {
          codes[row * cols + col] = encode(read(row, col) / scale, target);
        }
      }
    }
  });
  return result;
}

}  // namespace jitgemm
