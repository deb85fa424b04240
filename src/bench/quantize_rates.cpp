// SPDX-License-Identifier: Apache-2.0
#include "bench/quantize_rates.h"

#include "bench/gpu_stage.h"
#include "bench/statistics.h"
#include "runtime/quantize_launch.h"

#include <array>
#include <utility>

namespace jitgemm::bench {
namespace {

constexpr int64_t kRows = 65536;
constexpr int64_t kColumns = 7168;
constexpr std::array<std::pair<DType, const char*>, 2> kSources = {
    {{DType::kBF16, "quantize_bf16"}, {DType::kF32, "quantize_f32"}}
};

QuantizePlan plan_for(Arch arch, DType source) {
  GemmProblem problem;
  problem.arch = arch;
  problem.m = kRows;
  problem.k = kColumns;
  problem.a_dtype = source;
  return plan_quantize(problem);
}

Result<Ceiling> measure_one(GpuSession& session, DType source, const char* name) {
  Context& context = session.context();
  CudaDevice& device = session.device();
  const QuantizePlan plan = plan_for(device.info().arch, source);
  JITGEMM_ASSIGN(const BuiltKernel built, context.builder().build(plan, BuildMode::kCached));
  JITGEMM_ASSIGN(const std::shared_ptr<const LoadedKernel> kernel,
                 context.load(device, built, launch_geometry(plan, kRows)));
  const auto source_bytes = static_cast<size_t>(kRows * kColumns * dtype_info(source).bytes);
  const auto code_bytes = static_cast<size_t>(kRows * plan.code_ld);
  const auto scale_bytes = static_cast<size_t>(kRows * plan.scale_ld) * sizeof(float);
  JITGEMM_ASSIGN(const DeviceMemory values, DeviceMemory::create(session, source_bytes));
  JITGEMM_ASSIGN(const DeviceMemory codes, DeviceMemory::create(session, code_bytes));
  JITGEMM_ASSIGN(const DeviceMemory scales, DeviceMemory::create(session, scale_bytes));
  if (source == DType::kF32) {
    JITGEMM_TRY(session.kernels().draw_scales(values.address(), {kRows, kColumns, kColumns, 1}, 1,
                                              session.stream()));
  } else {
    JITGEMM_TRY(
        session.kernels().draw_bf16(values.address(), kRows, kColumns, 1, session.stream()));
  }
  const QuantizeParams params = {
      values.address(), codes.address(), scales.address(), plan.source_ld,
      plan.code_ld,     plan.scale_ld,   int32_t{kRows},   0};
  GpuStage stage(session);
  stage.add([&](CuStream stream) {
    return launch_quantize(device, *kernel, plan, params, false, stream);
  });
  const double moved = static_cast<double>(source_bytes + code_bytes + scale_bytes) / 1e3;
  Ceiling rate{name, "GB/s"};
  RestedSchedule schedule;
  schedule.rounds = 5;
  JITGEMM_ASSIGN(const auto samples, measure_rested(stage, 1, schedule));
  rate.rested = moved / summarize(samples[0]).median;
  JITGEMM_ASSIGN(const SustainedFigure figure, measure_sustained(stage, 0, {}));
  rate.sustained = moved / figure.unit_us;
  return rate;
}

}  // namespace

Result<std::vector<Ceiling>> measure_quantizing(GpuSession& session) {
  std::vector<Ceiling> rates;
  for (const auto& [source, name] : kSources) {
    JITGEMM_ASSIGN(Ceiling rate, measure_one(session, source, name));
    rates.push_back(std::move(rate));
  }
  return rates;
}

Status compile_quantizing(Context& context, Arch arch) {
  for (const auto& [source, name] : kSources) {
    JITGEMM_ASSIGN(const BuiltKernel built,
                   context.builder().build(plan_for(arch, source), BuildMode::kCached));
  }
  return ok_status();
}

}  // namespace jitgemm::bench
