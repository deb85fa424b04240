// SPDX-License-Identifier: Apache-2.0
#include "verify/operand_draw.h"

#include "verify/parallel.h"
#include "verify/random.h"

#include <array>
#include <utility>

namespace jitgemm {
namespace {

Result<DrawnOperand> quantized_normal(const OperandDraw& draw) {
  HostTensor values = make_host_tensor(draw.name, DType::kF32, {draw.rows, draw.cols});
  const RandomStream random(draw.seed, draw.stream);
  auto* to = values.data<float>();
  parallel_pieces(draw.rows * draw.cols, draw.quantize.threads, [&](int64_t first, int64_t last) {
    // Numbers come in pairs, which a piece may begin or end in the middle of.
    std::array<float, 2> pair = {};
    uint64_t held = UINT64_MAX;
    for (int64_t i = first; i < last; ++i) {
      const auto index = static_cast<uint64_t>(draw.first_row * draw.cols + i);
      if (index / 2 != held) {
        held = index / 2;
        pair = random.normal_pair(held);
      }
      to[i] = pair[index % 2];
    }
  });
  JITGEMM_ASSIGN(QuantizedMatrix made, quantize(values, draw.quantize));
  return DrawnOperand{std::move(made.codes), std::move(made.scales)};
}

}  // namespace

Result<DrawnOperand> draw_operand(const OperandDraw& draw) {
  if (draw.distribution == Distribution::kNormal) return quantized_normal(draw);
  const bool e5m2 = draw.quantize.code_dtype == DType::kF8E5M2;
  DrawnOperand drawn;
  drawn.codes = make_host_tensor(draw.name, draw.quantize.code_dtype, {draw.rows, draw.cols});
  const RandomStream random(draw.seed, draw.stream);
  auto* codes = drawn.codes.data<uint8_t>();
  const float largest = e5m2 ? 57344.0F : 448.0F;
  parallel_pieces(draw.rows * draw.cols, draw.quantize.threads, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto index = static_cast<uint64_t>(draw.first_row * draw.cols + i);
      const float value = draw.distribution == Distribution::kIntegers
                              ? static_cast<float>(random.integer(index, -4, 4))
                              : (2.0F * random.uniform(index) - 1.0F) * largest;
      codes[i] = e5m2 ? encode_e5m2(value) : encode_e4m3(value);
    }
  });
  return drawn;
}

}  // namespace jitgemm
