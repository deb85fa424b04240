// SPDX-License-Identifier: Apache-2.0
#include "selftest/device_inputs.h"

#include "selftest/device_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace jitgemm {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 1 << 16;
// Below this the CPU is as fast.
constexpr int64_t kWorthADevice = int64_t{1} << 24;
constexpr int64_t kCheckedBlocks = 16;  // of rows that share scales

// kernels/templates/draw_normal.cu and draw_codes.cu: DrawParams.
struct DrawParams {
  uint64_t values;
  uint64_t count;
  uint64_t seed;
  uint32_t stream;
  uint32_t reserved;
};
static_assert(sizeof(DrawParams) == 32);

// kernels/templates/draw_values.cu.
struct DrawValuesParams {
  uint64_t values;
  uint64_t count;
  uint64_t cols;
  uint64_t seed;
  uint32_t stream;
  uint32_t reserved;
};
static_assert(sizeof(DrawValuesParams) == 40);

// kernels/templates/quantize_blocks.cu.
struct QuantizeBlocksParams {
  uint64_t source;
  uint64_t codes;
  uint64_t scales;
  int64_t rows;
  int64_t cols;
};
static_assert(sizeof(QuantizeBlocksParams) == 40);

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// A template that no operation uses, with its constants.
struct Drawing {
  const char* file;
  std::vector<SpecField> fields;

  int threads() const { return static_cast<int>(fields.front().second); }
};

Drawing normal_drawing() {
  return {"draw_normal.cu", {{"kThreads", kThreads}}};
}

int code_type(DType dtype) {
  return dtype == DType::kF8E5M2 ? 1 : 0;
}

Drawing codes_drawing(const OperandDraw& draw) {
  return {
      "draw_codes.cu",
      {{"kThreads", kThreads},
        {"kKind", draw.distribution == Distribution::kIntegers ? 1 : 0},
        {"kTypeA", code_type(draw.quantize.code_dtype)},
        {"kScaleType", 0},
        {"kPowerOfTwo", 0}}
  };
}

Drawing values_drawing(const OperandDraw& draw) {
  const DType dtype = draw.quantize.code_dtype;
  const bool powers = draw.quantize.scale_rule == ScaleRule::kPow2 && dtype == DType::kF32;
  return {
      "draw_values.cu",
      {{"kThreads", kThreads},
        {"kKind", static_cast<int64_t>(draw.distribution)},
        {"kOut", dtype == DType::kF8E8M0 ? 3
                : dtype == DType::kF16  ? 2
                : dtype == DType::kBF16 ? 1
                                        : 0},
        {"kPowerOfTwo", powers ? 1 : 0},
        {"kGroupCols", draw.quantize.group_cols}}
  };
}

Drawing quantizing(const QuantizeOptions& o) {
  const int64_t threads = ceil_div(o.group_rows * o.group_cols, 32) * 32;
  return {
      "quantize_blocks.cu",
      {{"kThreads", std::min<int64_t>(threads, kThreads)},
        {"kGroupRows", o.group_rows},
        {"kGroupCols", o.group_cols},
        {"kSigned", o.signed_maximum ? 1 : 0},
        {"kTypeA", code_type(o.code_dtype)},
        {"kScaleType", o.scale_dtype == DType::kF8E8M0 ? 1 : 0},
        {"kPowerOfTwo", o.scale_rule == ScaleRule::kPow2 ? 1 : 0}}
  };
}

Result<BuiltKernel> build(Context& context, Arch arch, const Drawing& drawing) {
  return context.builder().build(drawing.file, arch, drawing.fields, BuildMode::kCached);
}

template <typename Params>
Status launch(Context& context, Device& device, const Drawing& drawing, int64_t ctas,
              const Params& params, std::span<const MemoryRange> ranges) {
  JITGEMM_ASSIGN(const BuiltKernel kernel, build(context, device.info().arch, drawing));
  LaunchGeometry geometry;
  geometry.grid = {static_cast<uint32_t>(std::min(ctas, kMaxCtas)), 1, 1};
  geometry.block = {static_cast<uint32_t>(drawing.threads()), 1, 1};
  JITGEMM_ASSIGN(const std::shared_ptr<const LoadedKernel> loaded,
                 context.load(device, kernel, geometry));
  LaunchRequest request;
  request.geometry = geometry;
  request.params = &params;
  request.param_bytes = sizeof(params);
  request.ranges = ranges;
  return device.launch(*loaded, request, nullptr);
}

Status quantize_on(Context& context, Device& device, const OperandDraw& draw, uint64_t codes,
                   const HostTensor& scales, uint64_t scale_address) {
  const auto count = static_cast<uint64_t>(draw.rows * draw.cols);
  JITGEMM_ASSIGN(const DeviceBuffer values,
                 DeviceBuffer::create(device, count * sizeof(float), 0xff));
  JITGEMM_TRY(draw_normal(context, device, values.address(), draw.rows * draw.cols, draw.seed,
                          draw.stream));
  const QuantizeBlocksParams params = {values.address(), codes, scale_address, draw.rows,
                                       draw.cols};
  const std::array<MemoryRange, 3> ranges = {
      {{values.address(), count * sizeof(float), false},
       {codes, count, true},
       {scale_address, scales.bytes.size(), true}}
  };
  JITGEMM_TRY(
      launch(context, device, quantizing(draw.quantize), scales.element_count(), params, ranges));
  return device.synchronize(nullptr);
}

// Some blocks of rows against the CPU twin, drawn anew.
Status compare_with_twin(const OperandDraw& draw, const DrawnOperand& drawn) {
  const int64_t height = draw.quantized() ? draw.quantize.group_rows : 1;
  const int64_t blocks = ceil_div(draw.rows, height);
  const int64_t checked = std::min(blocks, kCheckedBlocks);
  for (int64_t i = 0; i < checked; ++i) {
    const int64_t block = checked == 1 ? 0 : i * (blocks - 1) / (checked - 1);
    OperandDraw part = draw;
    part.first_row = block * height;
    part.rows = std::min(height, draw.rows - part.first_row);
    JITGEMM_ASSIGN(const DrawnOperand twin, draw_operand(part));
    const auto same = [](const HostTensor& all, const HostTensor& one, int64_t first_row) {
      if (one.bytes.empty()) return true;
      const size_t row_bytes = one.bytes.size() / static_cast<size_t>(one.shape[0]);
      return std::memcmp(all.bytes.data() + static_cast<size_t>(first_row) * row_bytes,
                         one.bytes.data(), one.bytes.size()) == 0;
    };
    if (!same(drawn.codes, twin.codes, part.first_row) || !same(drawn.scales, twin.scales, block)) {
      return Status(StatusCode::kVerificationFailed,
                    fmt::format("{} drawn on the device: row {} or one of the {} after it differs "
                                "from its CPU twin",
                                draw.name, part.first_row, part.rows - 1));
    }
  }
  return ok_status();
}

}  // namespace

Status compile_drawing(Context& context, const GemmProblem& problem, InputKind kind) {
  for (const OperandDraw& draw : input_draws(problem, kind, 0)) {
    const Drawing drawing = draw.quantized()                           ? normal_drawing()
                            : is_fp8_operand(draw.quantize.code_dtype) ? codes_drawing(draw)
                                                                       : values_drawing(draw);
    JITGEMM_ASSIGN(const BuiltKernel drawn, build(context, problem.arch, drawing));
    if (!draw.quantized()) continue;
    JITGEMM_ASSIGN(const BuiltKernel quantize,
                   build(context, problem.arch, quantizing(draw.quantize)));
  }
  return ok_status();
}

Status draw_normal(Context& context, Device& device, uint64_t address, int64_t count, uint64_t seed,
                   uint32_t stream) {
  if (count == 0) return ok_status();
  const DrawParams params = {address, static_cast<uint64_t>(count), seed, stream, 0};
  const std::array<MemoryRange, 1> ranges = {
      {{address, static_cast<uint64_t>(count) * sizeof(float), true}}};
  return launch(context, device, normal_drawing(), ceil_div(ceil_div(count, 2), kThreads), params,
                ranges);
}

Result<DrawnOperand> draw_operand_on(Context& context, Device& device, const OperandDraw& draw) {
  DrawnOperand drawn;
  drawn.codes = make_host_tensor(draw.name, draw.quantize.code_dtype, {draw.rows, draw.cols});
  if (draw.quantized()) {
    drawn.scales = make_host_tensor(draw.name + "_scales", draw.quantize.scale_dtype,
                                    {ceil_div(draw.rows, draw.quantize.group_rows),
                                     ceil_div(draw.cols, draw.quantize.group_cols)});
  }
  if (draw.rows * draw.cols == 0) return drawn;
  JITGEMM_ASSIGN(const DeviceBuffer codes,
                 DeviceBuffer::create(device, drawn.codes.bytes.size(), 0xff));
  if (draw.quantized()) {
    JITGEMM_ASSIGN(const DeviceBuffer scales,
                   DeviceBuffer::create(device, drawn.scales.bytes.size(), 0xff));
    JITGEMM_TRY(
        quantize_on(context, device, draw, codes.address(), drawn.scales, scales.address()));
    JITGEMM_TRY(device.copy_to_host(drawn.scales.bytes.data(), scales.address(),
                                    drawn.scales.bytes.size()));
  } else {
    const auto count = static_cast<uint64_t>(draw.rows * draw.cols);
    const std::array<MemoryRange, 1> ranges = {{{codes.address(), drawn.codes.bytes.size(), true}}};
    const int64_t ctas = ceil_div(ceil_div(draw.rows * draw.cols, 4), kThreads);
    if (is_fp8_operand(draw.quantize.code_dtype)) {
      const DrawParams params = {codes.address(), count, draw.seed, draw.stream, 0};
      JITGEMM_TRY(launch(context, device, codes_drawing(draw), ctas, params, ranges));
    } else {
      const DrawValuesParams params = {
          codes.address(), count, static_cast<uint64_t>(draw.cols), draw.seed, draw.stream, 0};
      JITGEMM_TRY(launch(context, device, values_drawing(draw), ctas, params, ranges));
    }
    JITGEMM_TRY(device.synchronize(nullptr));
  }
  JITGEMM_TRY(
      device.copy_to_host(drawn.codes.bytes.data(), codes.address(), drawn.codes.bytes.size()));
  JITGEMM_TRY(compare_with_twin(draw, drawn));
  return drawn;
}

namespace {

DrawOperand drawing_for(Context& context, Device& device) {
  const bool simulated = device.info().driver_version == 0;
  return [&context, &device, simulated](const OperandDraw& draw) -> Result<DrawnOperand> {
    if (simulated || draw.rows * draw.cols < kWorthADevice) return draw_operand(draw);
    return draw_operand_on(context, device, draw);
  };
}

}  // namespace

Result<BlockScaledTensors> make_tensors_for(Context& context, Device& device,
                                            const GemmProblem& problem, InputKind kind,
                                            uint64_t seed) {
  return make_block_scaled_tensors(problem, kind, seed, 0, drawing_for(context, device));
}

Result<GroupedTensors> make_grouped_tensors_for(Context& context, Device& device,
                                                const GemmProblem& problem, InputKind kind,
                                                uint64_t seed) {
  return make_grouped_tensors(problem, kind, seed, drawing_for(context, device));
}

}  // namespace jitgemm
