// SPDX-License-Identifier: Apache-2.0
// The simulator's speed: each of our kernels on a small and a larger product, with the sanitizer
// and without, on one host thread and on two. Prints thread instructions per second and what the
// sanitizer costs; docs/simulator.md has the figures. Needs NVRTC or a warm cache.
#include "device/sim_device.h"
#include "runtime/context.h"
#include "selftest/device_buffer.h"
#include "verify/inputs.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <vector>

namespace jitgemm {
namespace {

struct Work {
  const char* kernel;
  Arch arch;
  ScaleValues scales;
};

enum class Checks { kAll, kNoRaces, kNone };

struct Sample {
  double seconds = 0;
  uint64_t thread_instructions = 0;
  uint64_t bytes = 0;
};

Result<Sample> run(const GemmPlan& plan, const KernelImage& image,
                   const BlockScaledStorage& storage, Checks checks, uint32_t threads) {
  Sample sample;
  SimDeviceOptions options;
  options.sanitize = checks != Checks::kNone;
  options.races = checks == Checks::kAll;
  options.threads = threads;
  options.observe = [&](const sim::Report& report) {
    sample.thread_instructions = report.thread_instructions;
    sample.bytes = report.peak_state_bytes + report.race_state_bytes;
  };
  const GemmProblem& p = plan.problem;
  SimDevice device(p.arch, options);
  JITGEMM_ASSIGN(std::unique_ptr<LoadedKernel> loaded,
                 device.load(image, launch_geometry(plan, p.m, device.info().sm_count)));
  const GemmOperation operation({plan.problem, {plan}},
                                {std::shared_ptr<const LoadedKernel>(std::move(loaded))}, device);
  JITGEMM_ASSIGN(const DeviceBuffer a, DeviceBuffer::copy_of(device, storage.a));
  JITGEMM_ASSIGN(const DeviceBuffer b, DeviceBuffer::copy_of(device, storage.b));
  JITGEMM_ASSIGN(const DeviceBuffer a_scales, DeviceBuffer::copy_of(device, storage.a_scales));
  JITGEMM_ASSIGN(const DeviceBuffer b_scales, DeviceBuffer::copy_of(device, storage.b_scales));
  JITGEMM_ASSIGN(const DeviceBuffer out,
                 DeviceBuffer::create(device, static_cast<size_t>(p.m * p.n) * 4, 0xff));
  JITGEMM_ASSIGN(const DeviceBuffer workspace,
                 DeviceBuffer::create(device, operation.workspace_bytes(p.m), 0xff));
  // Of all host threads; a busy machine counts less.
  const std::clock_t begin = std::clock();
  JITGEMM_TRY(operation.launch({a.address(), b.address(), a_scales.address(), b_scales.address(),
                                out.address(), p.m, workspace.address(), workspace.bytes()},
                               nullptr));
  sample.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return sample;
}

Status bench(const Work& work, int64_t m, int64_t n, int64_t k, uint32_t threads) {
  GemmProblem problem;
  problem.arch = work.arch;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.out_dtype = DType::kBF16;
  problem.scale_values = work.scales;
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create({}));
  JITGEMM_ASSIGN(const GemmPlan plan, plan_gemm(problem));
  JITGEMM_ASSIGN(const BuiltKernel built, context->builder().build(plan, BuildMode::kCached));
  JITGEMM_ASSIGN(const BlockScaledTensors tensors,
                 make_block_scaled_tensors(problem, InputKind::kSmallIntegers, 5));
  JITGEMM_ASSIGN(const BlockScaledStorage storage, lay_out(problem, tensors));
  JITGEMM_ASSIGN(const Sample with, run(plan, *built.image, storage, Checks::kAll, threads));
  JITGEMM_ASSIGN(const Sample no_races,
                 run(plan, *built.image, storage, Checks::kNoRaces, threads));
  JITGEMM_ASSIGN(const Sample without, run(plan, *built.image, storage, Checks::kNone, threads));
  fmt::print("| `{}` | {} x {} x {} | {} | {:.3f} | {:.1f} | {:.3f} | {:.3f} | {:.1f} | {:.1f} |\n",
             work.kernel, m, n, k, threads, with.seconds,
             static_cast<double>(with.thread_instructions) / with.seconds / 1e6, no_races.seconds,
             without.seconds, static_cast<double>(with.bytes) / (1 << 20),
             static_cast<double>(no_races.bytes) / (1 << 20));
  return ok_status();
}

int bench_all() {
  const Work works[] = {
      {"sm90",     Arch::kSm90a,  ScaleValues::kAnyFloat  },
      {"sm100",    Arch::kSm100a, ScaleValues::kAnyFloat  },
      {"sm100_mx", Arch::kSm100a, ScaleValues::kPowerOfTwo},
  };
  fmt::print(
      "| kernel | m x n x k | threads | CPU s | M thread instructions / s | without races | "
      "without sanitizer | state MiB | without races |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
  for (const Work& work : works) {
    for (const auto& [m, n, k, threads] : std::vector<std::array<int64_t, 4>>{
             {128, 128, 512,  1},
             {256, 512, 1024, 2}
    }) {
      const Status status = bench(work, m, n, k, static_cast<uint32_t>(threads));
      if (!status.ok()) {
        fmt::print(stderr, "{}\n", status.to_string());
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace jitgemm

int main() {
  return jitgemm::bench_all();
}
