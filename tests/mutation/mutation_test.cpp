// SPDX-License-Identifier: Apache-2.0
// What the simulator is worth: delete each fence, wait, commit and transaction count from our
// kernels, one at a time, and see whether anyone notices. A deletion counts as noticed when the
// sanitizer reports a fault, the kernel deadlocks, or the result is wrong, under at least one of
// several schedules. Deletions that stay silent are listed; docs/simulator.md says why each of them
// may.
#include "runtime/context.h"
#include "selftest/device_buffer.h"
#include "verify/compare.h"
#include "verify/inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {
namespace {

constexpr std::array<std::string_view, 12> kDeletable = {"fence.proxy.async",
                                                         "fence.mbarrier_init",
                                                         "wgmma.fence",
                                                         "wgmma.commit_group",
                                                         "wgmma.wait_group",
                                                         "tcgen05.fence",
                                                         "tcgen05.commit",
                                                         "tcgen05.wait",
                                                         "tcgen05.relinquish",
                                                         "mbarrier.arrive.expect_tx",
                                                         "cp.async.bulk.wait_group",
                                                         "cp.async.bulk.commit_group"};

struct Line {
  size_t begin;
  size_t end;  // past the newline
  std::string_view what;
};

std::vector<Line> deletable_lines(std::string_view ptx) {
  std::vector<Line> lines;
  for (size_t begin = 0; begin < ptx.size();) {
    size_t end = ptx.find('\n', begin);
    end = end == std::string_view::npos ? ptx.size() : end + 1;
    const std::string_view line = ptx.substr(begin, end - begin);
    for (const std::string_view what : kDeletable) {
      // The whole statement must stand on the line, or its rest would be left behind.
      if (line.find(what) == std::string_view::npos || line.find(';') == std::string_view::npos)
        continue;
      lines.push_back({begin, end, what});
      break;
    }
    begin = end;
  }
  return lines;
}

struct Kernel {
  const char* name;
  GemmProblem problem;
  // At least this share of deletions must be noticed: what was measured, rounded down.
  double floor;
};

std::vector<Kernel> kernels() {
  // Enough blocks of k and enough tiles a CTA that every buffer is used again.
  GemmProblem hopper;
  hopper.arch = Arch::kSm90a;
  hopper.m = 256;
  hopper.n = 256;
  hopper.k = 1024;
  hopper.out_dtype = DType::kBF16;
  GemmProblem few_rows = hopper;
  few_rows.m = 8;
  few_rows.n = 1024;
  few_rows.k = 2048;
  GemmProblem blackwell = hopper;
  blackwell.arch = Arch::kSm100a;
  blackwell.m = 64;
  blackwell.n = 128;
  blackwell.k = 1792;
  GemmProblem scaled = blackwell;
  scaled.scale_values = ScaleValues::kPowerOfTwo;
  return {
      {"sm90",          hopper,    0.5},
      {"sm90_few_rows", few_rows,  0.5},
      {"sm100",         blackwell, 0.5},
      {"sm100_mx",      scaled,    0.5}
  };
}

void PrintTo(const Kernel& kernel, std::ostream* out) {
  *out << kernel.name;
}

class Mutation : public testing::TestWithParam<Kernel> {};

// OK: the kernel ran and its result is right.
Status run(Device& device, const GemmPlan& plan, const KernelImage& image,
           const BlockScaledStorage& storage, const std::vector<double>& reference) {
  const GemmProblem& p = plan.problem;
  JITGEMM_ASSIGN(std::unique_ptr<LoadedKernel> loaded,
                 device.load(image, launch_geometry(plan, p.m, device.info().sm_count)));
  const GemmOperation operation(plan, std::shared_ptr<const LoadedKernel>(std::move(loaded)),
                                device);
  JITGEMM_ASSIGN(const DeviceBuffer a, DeviceBuffer::copy_of(device, storage.a));
  JITGEMM_ASSIGN(const DeviceBuffer b, DeviceBuffer::copy_of(device, storage.b));
  JITGEMM_ASSIGN(const DeviceBuffer a_scales, DeviceBuffer::copy_of(device, storage.a_scales));
  JITGEMM_ASSIGN(const DeviceBuffer b_scales, DeviceBuffer::copy_of(device, storage.b_scales));
  const auto element = static_cast<size_t>(dtype_info(p.out_dtype).bytes);
  JITGEMM_ASSIGN(const DeviceBuffer out,
                 DeviceBuffer::create(device, static_cast<size_t>(p.m * p.n) * element, 0xff));
  JITGEMM_ASSIGN(const DeviceBuffer workspace,
                 DeviceBuffer::create(device, static_cast<size_t>(plan.workspace_bytes), 0xff));
  JITGEMM_TRY(operation.launch({a.address(), b.address(), a_scales.address(), b_scales.address(),
                                out.address(), p.m, workspace.address(), workspace.bytes()},
                               nullptr));
  JITGEMM_ASSIGN(const std::vector<std::byte> bytes, out.read());
  const std::vector<double> found =
      read_matrix(row_major_view(bytes.data(), p.out_dtype, p.m, p.n));
  ErrorLimits limits;
  limits.equal = true;
  const Verdict verdict = judge(measure_errors(found, reference), limits);
  return verdict.passed ? ok_status() : Status(StatusCode::kVerificationFailed, verdict.text);
}

TEST_P(Mutation, DeletedSynchronisationIsNoticed) {
  const Kernel& kernel = GetParam();
  const auto context = *Context::create({});
  const Result<GemmPlan> plan = plan_gemm(kernel.problem);
  ASSERT_TRUE(plan) << plan.error().to_string();
  const Result<BuiltKernel> built = context->builder().build(*plan, BuildMode::kCached);
  ASSERT_TRUE(built) << built.error().to_string();
  const BlockScaledTensors tensors =
      *make_block_scaled_tensors(kernel.problem, InputKind::kSmallIntegers, 5);
  const BlockScaledStorage storage = *lay_out(kernel.problem, tensors);
  std::vector<double> reference = *reference_block_scaled_mm(tensors.views());
  ASSERT_TRUE(round_values(reference, kernel.problem.out_dtype).ok());

  std::vector<std::unique_ptr<SimDevice>> devices;
  for (const uint64_t seed : {0, 1}) {
    SimDeviceOptions options;
    options.seed = seed;
    options.step_limit = 20'000'000;
    devices.push_back(std::make_unique<SimDevice>(kernel.problem.arch, options));
    const Status whole = run(*devices.back(), *plan, *built->image, storage, reference);
    ASSERT_TRUE(whole.ok()) << "the whole kernel fails under seed " << seed << ": "
                            << whole.to_string();
  }

  const std::string& ptx = built->image->ptx;
  const std::vector<Line> lines = deletable_lines(ptx);
  ASSERT_FALSE(lines.empty());
  size_t noticed = 0;
  std::string silent;
  for (const Line& line : lines) {
    KernelImage mutant = *built->image;
    mutant.ptx = ptx.substr(0, line.begin) + ptx.substr(line.end);
    bool seen = false;
    for (const auto& device : devices) {
      seen = !run(*device, *plan, mutant, storage, reference).ok();
      if (seen) break;
    }
    noticed += seen ? 1 : 0;
    if (!seen) silent += "  " + ptx.substr(line.begin, line.end - line.begin);
  }
  const double share = static_cast<double>(noticed) / static_cast<double>(lines.size());
  fmt::print("{}: {} of {} deletions noticed ({:.0f} %); silent:\n{}", kernel.name, noticed,
             lines.size(), 100 * share, silent);
  RecordProperty("noticed", static_cast<int>(noticed));
  RecordProperty("deletions", static_cast<int>(lines.size()));
  EXPECT_GE(share, kernel.floor);
}

std::string kernel_name(const testing::TestParamInfo<Kernel>& kernel) {
  return kernel.param.name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation, testing::ValuesIn(kernels()), kernel_name);

}  // namespace
}  // namespace jitgemm
