// SPDX-License-Identifier: Apache-2.0
#include "selftest/device_inputs.h"

#include "runtime/quantize_launch.h"
#include "selftest/device_buffer.h"
#include "verify/quantizer.h"
#include "verify/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace jitgemm {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxCtas = 1 << 16;
// Below this the CPU is as fast.
constexpr int64_t kWorthADevice = int64_t{1} << 24;
constexpr int64_t kCheckedRows = 16;

// kernels/templates/draw_normal.cu: DrawParams.
struct DrawParams {
  uint64_t values;
  uint64_t count;
  uint64_t seed;
  uint32_t stream;
  uint32_t reserved;
};
static_assert(sizeof(DrawParams) == 32);

// The same, as far as A is concerned, but with the scales dense and row by row, as files have them.
GemmProblem source_problem(const GemmProblem& problem) {
  GemmProblem source = problem;
  source.a_dtype = DType::kF32;
  source.a_code_dtype = problem.a_dtype;
  source.lda = 0;
  source.alignment = 16;
  return source;
}

Status copy_rows(Device& device, uint64_t address, int64_t stride_bytes, HostTensor& tensor) {
  const int64_t row_bytes = tensor.shape[1] * dtype_info(tensor.dtype).bytes;
  if (stride_bytes == row_bytes) {
    return device.copy_to_host(tensor.bytes.data(), address, tensor.bytes.size());
  }
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    JITGEMM_TRY(device.copy_to_host(tensor.bytes.data() + row * row_bytes,
                                    address + static_cast<uint64_t>(row * stride_bytes),
                                    static_cast<size_t>(row_bytes)));
  }
  return ok_status();
}

Result<BuiltKernel> build_draw(Context& context, Arch arch) {
  return context.builder().build("draw_normal.cu", arch,
                                 {
                                     {"kThreads", kThreads}
  },
                                 BuildMode::kCached);
}

// Some rows against the CPU twin, drawn and quantised anew.
Status compare_with_twin(const GemmProblem& problem, const DrawnOperand& drawn, uint64_t seed) {
  const RandomStream random(seed, kStreamOfA);
  QuantizeOptions options;
  options.code_dtype = problem.a_dtype;
  options.scale_dtype = problem.scale_dtype;
  options.group_cols = problem.group_k;
  options.scale_rule = problem.power_of_two_scales() ? ScaleRule::kPow2 : ScaleRule::kAmax;
  const int64_t rows = std::min(problem.m, kCheckedRows);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t row = rows == 1 ? 0 : i * (problem.m - 1) / (rows - 1);
    HostTensor values = make_host_tensor("a", DType::kF32, {1, problem.k});
    for (int64_t column = 0; column < problem.k; ++column) {
      values.data<float>()[column] = random.normal(static_cast<uint64_t>(row * problem.k + column));
    }
    JITGEMM_ASSIGN(const QuantizedMatrix twin, quantize(values, options));
    const auto same = [row](const HostTensor& all, const HostTensor& one) {
      const size_t bytes = one.bytes.size();
      return std::memcmp(all.bytes.data() + static_cast<size_t>(row) * bytes, one.bytes.data(),
                         bytes) == 0;
    };
    if (!same(drawn.codes, twin.codes) || !same(drawn.scales, twin.scales)) {
      return Status(
          StatusCode::kVerificationFailed,
          fmt::format("inputs drawn on the device: row {} differs from its CPU twin", row));
    }
  }
  return ok_status();
}

}  // namespace

Status compile_drawing(Context& context, const GemmProblem& problem) {
  if (problem.quantizes_a()) return ok_status();
  JITGEMM_ASSIGN(const BuiltKernel draw, build_draw(context, problem.arch));
  JITGEMM_ASSIGN(
      const BuiltKernel quantize,
      context.builder().build(plan_quantize(source_problem(problem)), BuildMode::kCached));
  return ok_status();
}

Status draw_normal(Context& context, Device& device, uint64_t address, int64_t count, uint64_t seed,
                   uint32_t stream) {
  if (count == 0) return ok_status();
  JITGEMM_ASSIGN(const BuiltKernel kernel, build_draw(context, device.info().arch));
  const int64_t ctas = ((count + 1) / 2 + kThreads - 1) / kThreads;
  LaunchGeometry geometry;
  geometry.grid = {static_cast<uint32_t>(std::min(ctas, kMaxCtas)), 1, 1};
  geometry.block = {kThreads, 1, 1};
  JITGEMM_ASSIGN(const std::shared_ptr<const LoadedKernel> loaded,
                 context.load(device, kernel, geometry));
  const DrawParams params = {address, static_cast<uint64_t>(count), seed, stream, 0};
  const std::array<MemoryRange, 1> ranges = {
      {{address, static_cast<uint64_t>(count) * sizeof(float), true}}};
  LaunchRequest request;
  request.geometry = geometry;
  request.params = &params;
  request.param_bytes = sizeof(params);
  request.ranges = ranges;
  return device.launch(*loaded, request, nullptr);
}

Result<DrawnOperand> draw_normal_a(Context& context, Device& device, const GemmProblem& problem,
                                   uint64_t seed) {
  DrawnOperand drawn{
      make_host_tensor("a", problem.a_dtype, {problem.m, problem.k}),
      make_host_tensor("a_scales", problem.scale_dtype, {problem.m, problem.k_blocks()})};
  if (problem.m == 0) return drawn;
  const QuantizePlan plan = plan_quantize(source_problem(problem));
  JITGEMM_ASSIGN(const BuiltKernel kernel, context.builder().build(plan, BuildMode::kCached));
  JITGEMM_ASSIGN(const std::shared_ptr<const LoadedKernel> loaded,
                 context.load(device, kernel, launch_geometry(plan, problem.m)));
  const auto bytes = [&](int64_t row, int64_t element) {
    return static_cast<size_t>(problem.m * row * element);
  };
  JITGEMM_ASSIGN(const DeviceBuffer source,
                 DeviceBuffer::create(device, bytes(problem.k, sizeof(float)), 0xff));
  JITGEMM_ASSIGN(const DeviceBuffer codes,
                 DeviceBuffer::create(device, bytes(plan.code_ld, 1), 0xff));
  const int64_t scale_bytes = dtype_info(plan.scale_dtype).bytes;
  JITGEMM_ASSIGN(const DeviceBuffer scales,
                 DeviceBuffer::create(device, bytes(plan.scale_ld, scale_bytes), 0xff));
  JITGEMM_TRY(
      draw_normal(context, device, source.address(), problem.m * problem.k, seed, kStreamOfA));
  const QuantizeParams params = {source.address(),
                                 codes.address(),
                                 scales.address(),
                                 plan.source_ld,
                                 plan.code_ld,
                                 plan.scale_ld,
                                 static_cast<int32_t>(problem.m),
                                 0};
  JITGEMM_TRY(launch_quantize(device, *loaded, plan, params, false, nullptr));
  JITGEMM_TRY(device.synchronize(nullptr));
  JITGEMM_TRY(copy_rows(device, codes.address(), plan.code_ld, drawn.codes));
  JITGEMM_TRY(copy_rows(device, scales.address(), plan.scale_ld * scale_bytes, drawn.scales));
  JITGEMM_TRY(compare_with_twin(problem, drawn, seed));
  return drawn;
}

Result<BlockScaledTensors> make_tensors_for(Context& context, Device& device,
                                            const GemmProblem& problem, InputKind kind,
                                            uint64_t seed) {
  const bool normal = kind == InputKind::kSeed || kind == InputKind::kAmax;
  const bool simulated = device.info().driver_version == 0;
  if (simulated || !normal || problem.quantizes_a() || problem.m * problem.k < kWorthADevice) {
    return make_block_scaled_tensors(problem, kind, seed);
  }
  JITGEMM_ASSIGN(DrawnOperand a, draw_normal_a(context, device, problem, seed));
  GemmProblem rest = problem;
  rest.m = 0;
  JITGEMM_ASSIGN(BlockScaledTensors tensors, make_block_scaled_tensors(rest, kind, seed));
  tensors.a = std::move(a.codes);
  tensors.a_scales = std::move(a.scales);
  return tensors;
}

}  // namespace jitgemm
