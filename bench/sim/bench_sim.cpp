// SPDX-License-Identifier: Apache-2.0
// The simulator's speed: our kernels on a small and a larger product, with the sanitizer
// and without, on one host thread and on two. Prints thread instructions per second and what the
// sanitizer costs; docs/simulator.md has the figures. Needs NVRTC or a warm cache.
#include "device/sim_device.h"
#include "runtime/context.h"
#include "selftest/device_buffer.h"
#include "verify/grouped_inputs.h"
#include "verify/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <span>
#include <utility>
#include <vector>

namespace jitgemm {
namespace {

struct Work {
  const char* kernel;
  GemmProblem problem;
  PlanOverrides overrides = {};
  std::vector<int64_t> counts = {};  // rows of each group
};

enum class Checks { kAll, kNoRaces, kNone };

struct Sample {
  double seconds = 0;
  uint64_t thread_instructions = 0;  // of all launches
  uint64_t bytes = 0;                // the most of any
};

struct Inputs {
  BlockScaledStorage storage;
  std::vector<int32_t> group_rows;
};

Result<Sample> run(const Work& work, const Inputs& inputs, Checks checks, uint32_t threads) {
  Sample sample;
  SimDeviceOptions options;
  options.sanitize = checks != Checks::kNone;
  options.races = checks == Checks::kAll;
  options.threads = threads;
  options.observe = [&](const sim::Report& report) {
    sample.thread_instructions += report.thread_instructions;
    sample.bytes = std::max(sample.bytes, report.peak_state_bytes + report.race_state_bytes);
  };
  const GemmProblem& p = work.problem;
  SimDevice device(p.arch, options);
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create({}));
  JITGEMM_ASSIGN(const PreparedGemm prepared, context->prepare(p, work.overrides, device));
  JITGEMM_ASSIGN(const DeviceBuffer a, DeviceBuffer::copy_of(device, inputs.storage.a));
  JITGEMM_ASSIGN(const DeviceBuffer b, DeviceBuffer::copy_of(device, inputs.storage.b));
  JITGEMM_ASSIGN(const DeviceBuffer a_scales,
                 DeviceBuffer::copy_of(device, inputs.storage.a_scales));
  JITGEMM_ASSIGN(const DeviceBuffer b_scales,
                 DeviceBuffer::copy_of(device, inputs.storage.b_scales));
  JITGEMM_ASSIGN(const DeviceBuffer group_rows,
                 DeviceBuffer::copy_of(device, std::as_bytes(std::span(inputs.group_rows))));
  JITGEMM_ASSIGN(const DeviceBuffer out,
                 DeviceBuffer::create(device, static_cast<size_t>(p.m * p.n) * 4, 0xff));
  const auto workspace_bytes = static_cast<size_t>(prepared.operation->workspace_bytes(p.m));
  JITGEMM_ASSIGN(const DeviceBuffer workspace, DeviceBuffer::create(device, workspace_bytes, 0xff));
  GemmArguments arguments{a.address(),   b.address(), a_scales.address(),  b_scales.address(),
                          out.address(), p.m,         workspace.address(), workspace.bytes()};
  if (!work.counts.empty()) arguments.group_rows = group_rows.address();
  // Of all host threads; a busy machine counts less.
  const std::clock_t begin = std::clock();
  JITGEMM_TRY(prepared.operation->launch(arguments, nullptr));
  sample.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return sample;
}

Status bench(Work work, uint32_t threads) {
  GemmProblem& p = work.problem;
  Inputs inputs;
  if (work.counts.empty()) {
    JITGEMM_ASSIGN(const BlockScaledTensors tensors,
                   make_block_scaled_tensors(p, InputKind::kSmallIntegers, 5));
    JITGEMM_ASSIGN(inputs.storage, lay_out(p, tensors));
  } else {
    p.grouping.layout = GroupLayout::kRowIndices;
    p.grouping.groups = static_cast<int64_t>(work.counts.size());
    GroupedRows rows = place_groups(p, work.counts, 1);
    p.m = rows.m;
    inputs.group_rows = std::move(rows.group_rows);
    JITGEMM_ASSIGN(const GroupedTensors tensors,
                   make_grouped_tensors(p, InputKind::kSmallIntegers, 5));
    JITGEMM_ASSIGN(inputs.storage, lay_out(p, tensors));
  }
  JITGEMM_ASSIGN(const Sample with, run(work, inputs, Checks::kAll, threads));
  JITGEMM_ASSIGN(const Sample no_races, run(work, inputs, Checks::kNoRaces, threads));
  JITGEMM_ASSIGN(const Sample without, run(work, inputs, Checks::kNone, threads));
  fmt::print("| `{}` | {} x {} x {} | {} | {:.2f} | {:.1f} | {:.2f} | {:.2f} | {:.1f} |\n",
             work.kernel, p.m, p.n, p.k, threads, with.seconds,
             static_cast<double>(with.thread_instructions) / with.seconds / 1e6, no_races.seconds,
             without.seconds, static_cast<double>(with.bytes) / (1 << 20));
  return ok_status();
}

GemmProblem product(Arch arch, int64_t m, int64_t n, int64_t k) {
  GemmProblem p;
  p.arch = arch;
  p.m = m;
  p.n = n;
  p.k = k;
  p.out_dtype = DType::kBF16;
  return p;
}

int bench_all() {
  fmt::print(
      "| kernel | m x n x k | host threads | CPU s | M thread instructions / s | without races, "
      "CPU s | without sanitizer, CPU s | state MiB |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
  for (const bool large : {false, true}) {
    const int64_t m = large ? 256 : 128, n = large ? 512 : 128, k = large ? 1024 : 512;
    std::vector<Work> works;
    for (const Arch arch : {Arch::kSm90a, Arch::kSm100a}) {
      const bool hopper = arch == Arch::kSm90a;
      const GemmProblem p = product(arch, m, n, k);
      works.push_back({hopper ? "sm90" : "sm100", p});
      works.push_back({
          hopper ? "sm90, groups" : "sm100, groups", p, {     },
                { m / 2, 0, m / 4, m / 4}
      });
      if (hopper) {
        PlanOverrides aligned;
        aligned.align_rows = true;
        works.push_back({"align_rows, sm90", product(arch, m, n, k - 2), aligned});
      } else {
        GemmProblem powers = p;
        powers.scale_values = ScaleValues::kPowerOfTwo;
        works.push_back({"sm100_mx", powers});
      }
    }
    for (const Work& work : works) {
      const Status status = bench(work, large ? 2 : 1);
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
