// SPDX-License-Identifier: Apache-2.0
#include "selftest/gemm_case.h"

#include "device/sim_device.h"
#include "selftest/device_buffer.h"
#include "verify/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

namespace jitgemm {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Which lines of an extent are compared: all, or the ends, the borders of tiles, and random ones.
std::vector<int64_t> sampled_lines(int64_t extent, int64_t tile, int64_t wanted, uint64_t seed) {
  if (wanted == 0 || wanted >= extent) return all_indices(extent);
  std::set<int64_t> lines;
  const auto add = [&](int64_t line) {
    if (line >= 0 && line < extent) lines.insert(line);
  };
  for (int64_t i = 0; i < 4; ++i) {
    add(i);
    add(extent - 1 - i);
  }
  const int64_t tiles = (extent + tile - 1) / tile;
  const int64_t step = std::max<int64_t>(1, tiles * 4 / wanted);
  for (int64_t t = 1; t < tiles; t += step) {
    add(t * tile - 1);
    add(t * tile);
  }
  for (uint64_t i = 0; static_cast<int64_t>(lines.size()) < wanted; ++i) {
    add(static_cast<int64_t>(
        philox4x32({static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32), 0x11e5, 0},
                   {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)})[0] %
        static_cast<uint64_t>(extent)));
  }
  return {lines.begin(), lines.end()};
}

struct Buffers {
  DeviceBuffer a;
  DeviceBuffer b;
  DeviceBuffer a_scales;
  DeviceBuffer b_scales;
  DeviceBuffer out;
  DeviceBuffer workspace;
};

Result<Buffers> make_buffers(Device& device, const GemmOperation& operation,
                             const BlockScaledTensors& tensors, size_t scale_shift) {
  const GemmProblem& p = operation.plan().problem;
  JITGEMM_ASSIGN(const BlockScaledStorage storage, lay_out(p, tensors));
  const int64_t out_elements = p.m == 0 ? 0 : (p.m - 1) * p.ldo_or_dense() + p.n;
  const size_t out_bytes = static_cast<size_t>(out_elements * dtype_info(p.out_dtype).bytes);
  JITGEMM_ASSIGN(DeviceBuffer a, DeviceBuffer::copy_of(device, storage.a));
  JITGEMM_ASSIGN(DeviceBuffer b, DeviceBuffer::copy_of(device, storage.b));
  JITGEMM_ASSIGN(DeviceBuffer a_scales,
                 DeviceBuffer::copy_of(device, storage.a_scales, scale_shift));
  JITGEMM_ASSIGN(DeviceBuffer b_scales,
                 DeviceBuffer::copy_of(device, storage.b_scales, scale_shift));
  JITGEMM_ASSIGN(DeviceBuffer out, DeviceBuffer::create(device, out_bytes, 0xff));
  JITGEMM_ASSIGN(DeviceBuffer workspace,
                 DeviceBuffer::create(device, operation.workspace_bytes(p.m), 0xff));
  return Buffers{std::move(a),        std::move(b),   std::move(a_scales),
                 std::move(b_scales), std::move(out), std::move(workspace)};
}

// The output without the gaps between its rows; gaps must still hold what they were filled with.
Result<HostTensor> collect_output(const GemmProblem& p, const std::vector<std::byte>& bytes) {
  HostTensor out = make_host_tensor("out", p.out_dtype, {p.m, p.n});
  const auto element = static_cast<size_t>(dtype_info(p.out_dtype).bytes);
  const size_t row_bytes = static_cast<size_t>(p.n) * element;
  const size_t stride = static_cast<size_t>(p.ldo_or_dense()) * element;
  for (size_t row = 0; row < static_cast<size_t>(p.m); ++row) {
    const auto start = bytes.begin() + static_cast<ptrdiff_t>(row * stride);
    std::copy(start, start + static_cast<ptrdiff_t>(row_bytes),
              out.bytes.begin() + static_cast<ptrdiff_t>(row * row_bytes));
    if (row + 1 == static_cast<size_t>(p.m)) break;
    for (size_t i = row_bytes; i < stride; ++i) {
      if (start[static_cast<ptrdiff_t>(i)] != std::byte{0xff}) {
        return Status(
            StatusCode::kVerificationFailed,
            fmt::format("the kernel wrote between rows of 'out': row {}, byte {}", row, i));
      }
    }
  }
  return out;
}

// What an operation that quantises a has left in its workspace, against the host quantiser: bit for
// bit, row by row.
Status compare_quantized(const OperationPlan& plan, const BlockScaledTensors& tensors,
                         const DeviceBuffer& workspace) {
  const auto& quantize = std::get<QuantizePlan>(plan.launches.front());
  const WorkspaceLayout layout = workspace_layout(plan, plan.problem.m);
  JITGEMM_ASSIGN(const std::vector<std::byte> bytes, workspace.read());
  const auto check = [&](const HostTensor& expected, int64_t offset, int64_t stride) -> Status {
    const auto element = static_cast<size_t>(dtype_info(expected.dtype).bytes);
    const size_t row_bytes = static_cast<size_t>(expected.shape[1]) * element;
    for (int64_t row = 0; row < expected.shape[0]; ++row) {
      const size_t found = static_cast<size_t>(offset + row * stride);
      const size_t wanted = static_cast<size_t>(row) * row_bytes;
      for (size_t i = 0; i < row_bytes; ++i) {
        if (bytes[found + i] == expected.bytes[wanted + i]) continue;
        return Status(StatusCode::kVerificationFailed,
                      fmt::format("quantised '{}': row {}, element {}: expected byte {:#04x}, "
                                  "found {:#04x}",
                                  expected.name, row, i / element,
                                  static_cast<unsigned>(expected.bytes[wanted + i]),
                                  static_cast<unsigned>(bytes[found + i])));
      }
    }
    return ok_status();
  };
  JITGEMM_TRY(check(tensors.a, layout.a_codes, quantize.code_ld));
  return check(tensors.a_scales, layout.a_scales,
               quantize.scale_ld * dtype_info(quantize.scale_dtype).bytes);
}

Status compare(const GemmProblem& p, const GemmPlan& plan, const BlockScaledTensors& tensors,
               const Device& device, const GemmCaseOptions& options, GemmCaseResult& result) {
  const std::vector<int64_t> rows =
      sampled_lines(p.m, plan.tile_m, options.sampled_lines, options.seed);
  const std::vector<int64_t> columns =
      sampled_lines(p.n, plan.tile_n, options.sampled_lines, options.seed + 1);
  // The kernels multiply the two scales in fp32, which decides where infinities and NaN arise.
  JITGEMM_ASSIGN(
      std::vector<double> reference,
      reference_block_scaled_mm(tensors.views(), rows, columns, {ScaleProduct::kFloat32, 0}));
  // The accumulator is fp32: what float64 holds beyond its range is infinite there.
  constexpr double kOverflow = 0x1.ffffffp127;
  for (double& value : reference) {
    if (std::abs(value) >= kOverflow)
      value = std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  const std::vector<double> found = read_matrix(view_of(result.out), rows, columns);
  result.errors = measure_errors(found, reference);
  JITGEMM_TRY(round_values(reference, p.out_dtype));
  result.rounded_errors = measure_errors(found, reference);
  result.verified = true;

  ErrorLimits limits;
  ErrorLimits rounded_limits;
  if (options.exact) {
    rounded_limits.equal = true;
  } else {
    limits.relative_l2 = relative_l2_limit(p, device);
    rounded_limits.mean_ratio = 1e-3;
  }
  result.verdict = judge(result.errors, limits);
  const Verdict rounded = judge(result.rounded_errors, rounded_limits);
  if (result.verdict.passed && !rounded.passed) result.verdict = rounded;
  return ok_status();
}

Status compare_checksums(const GemmProblem& p, const BlockScaledTensors& tensors,
                         const Device& device, const GemmCaseOptions& options,
                         GemmCaseResult& result) {
  // Element errors of relative size e add up to about e along a line; six times that is clear of
  // chance.
  const double limit = 6 * relative_l2_limit(p, device);
  const MatrixView out = view_of(result.out);
  const BlockScaledInputs inputs = tensors.views();
  // Along a short line one element near zero can dominate, with an error that is not relative to
  // it; such lines are compared element by element already.
  constexpr int64_t kShortLine = 64;
  const auto merge = [&result](const char* what, const ChecksumReport& report) {
    if (!result.verdict.passed) return;
    if (report.passed) {
      result.verdict.text += fmt::format("; {} {} agree", report.count, what);
    } else {
      result.verdict = {false, fmt::format("{}: {}", what, report.text)};
    }
  };
  if (p.n >= kShortLine) {
    const std::vector<double> weights = checksum_weights(p.n, options.seed);
    JITGEMM_ASSIGN(const Checksums rows, row_checksums(inputs, weights));
    merge("row sums", check_row_sums(out, weights, rows, limit));
  }
  if (p.m >= kShortLine) {
    const std::vector<double> weights = checksum_weights(p.m, options.seed + 1);
    JITGEMM_ASSIGN(const Checksums columns, column_checksums(inputs, weights));
    merge("column sums", check_column_sums(out, weights, columns, limit));
  }
  return ok_status();
}

Status time_launches(Device& device, const GemmOperation& operation, const GemmArguments& arguments,
                     int count, GemmCaseResult& result) {
  Result<std::unique_ptr<DeviceTimer>> timer = device.make_timer();
  if (!timer) return timer.error().code() == StatusCode::kUnsupported ? ok_status() : timer.error();
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    JITGEMM_TRY((*timer)->start(nullptr));
    JITGEMM_TRY(operation.launch(arguments, nullptr));
    JITGEMM_ASSIGN(const double microseconds, (*timer)->stop(nullptr));
    samples.push_back(microseconds);
  }
  std::sort(samples.begin(), samples.end());
  result.kernel_us = samples[samples.size() / 2];
  const GemmProblem& p = operation.plan().problem;
  result.tflops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                  static_cast<double>(p.k) / (*result.kernel_us * 1e6);
  return ok_status();
}

}  // namespace

double relative_l2_limit(const GemmProblem& problem, const Device& device) {
  // What rounding once to the output's dtype costs: about 2^-9 / sqrt(3) of uniformly placed
  // mantissas.
  const double rounding = problem.out_dtype == DType::kBF16  ? 2.0e-3
                          : problem.out_dtype == DType::kF16 ? 2.5e-4
                                                             : 0;
  // Hopper's FP8 tensor cores keep 13 fraction bits of each partial sum; Blackwell's and the exact
  // model keep what fp32 holds.
  const auto* sim = dynamic_cast<const SimDevice*>(&device);
  const bool short_accumulator = sim != nullptr ? sim->numerics() == sim::Numerics::kHopper
                                                : arch_info(problem.arch).compute_capability < 100;
  // That of 16-bit operands keeps 25.
  if (!problem.scaled()) return rounding + 1e-5;
  return rounding + (short_accumulator ? 2.5e-4 : 1e-6);
}

Result<GemmCaseResult> run_gemm_case(Context& context, Device& device, const GemmProblem& problem,
                                     const PlanOverrides& overrides,
                                     const BlockScaledTensors& tensors,
                                     const GemmCaseOptions& options) {
  const Clock::time_point start = Clock::now();
  JITGEMM_ASSIGN(const PreparedGemm prepared,
                 context.prepare(problem, overrides, device, options.build));
  const GemmOperation& operation = *prepared.operation;
  GemmCaseResult result;
  result.prepare_ms = milliseconds_since(start);
  result.operation = operation.plan();
  result.plan = operation.plan().product();
  result.image = *prepared.product().image;
  result.from_cache = std::all_of(prepared.kernels.begin(), prepared.kernels.end(),
                                  [](const BuiltKernel& kernel) { return kernel.from_cache; });
  result.device = device.info().description;
  result.sm_count = device.info().sm_count;

  JITGEMM_ASSIGN(const Buffers buffers,
                 make_buffers(device, operation, tensors, options.scale_shift));
  const uint64_t a_scales = problem.quantizes_a() ? 0 : buffers.a_scales.address();
  const GemmArguments arguments = {buffers.a.address(),         buffers.b.address(),      a_scales,
                                   buffers.b_scales.address(),  buffers.out.address(),    problem.m,
                                   buffers.workspace.address(), buffers.workspace.bytes()};
  const Clock::time_point launched = Clock::now();
  JITGEMM_TRY(operation.launch(arguments, nullptr));
  JITGEMM_TRY(device.synchronize(nullptr));
  result.run_ms = milliseconds_since(launched);

  JITGEMM_TRY(buffers.a.check_guards("a"));
  JITGEMM_TRY(buffers.b.check_guards("b"));
  JITGEMM_TRY(buffers.a_scales.check_guards("a_scales"));
  JITGEMM_TRY(buffers.b_scales.check_guards("b_scales"));
  JITGEMM_TRY(buffers.out.check_guards("out"));
  JITGEMM_TRY(buffers.workspace.check_guards("workspace"));
  if (problem.quantizes_a() && options.verify && problem.m > 0) {
    JITGEMM_TRY(compare_quantized(operation.plan(), tensors, buffers.workspace));
  }
  JITGEMM_ASSIGN(const std::vector<std::byte> bytes, buffers.out.read());
  JITGEMM_ASSIGN(result.out, collect_output(problem, bytes));
  if (options.verify && problem.m > 0) {
    JITGEMM_TRY(compare(problem, result.plan, tensors, device, options, result));
    if (options.checksums)
      JITGEMM_TRY(compare_checksums(problem, tensors, device, options, result));
  }
  if (options.timed_launches > 0 && problem.m > 0) {
    JITGEMM_TRY(time_launches(device, operation, arguments, options.timed_launches, result));
  }
  return result;
}

}  // namespace jitgemm
