// SPDX-License-Identifier: Apache-2.0
// What the simulator is worth: delete each fence, wait, commit and transaction count from our
// kernels, one at a time, and see whether anyone notices. A deletion counts as noticed when the
// sanitizer reports a fault, the kernel deadlocks, or the result is wrong, under at least one of
// several schedules. A deletion may stay silent only where the instruction is not executed by the
// problem, or where kNotForbidden says why the ISA lets it go; docs/simulator.md has the table.
#include "plan/planner.h"
#include "runtime/context.h"
#include "selftest/device_buffer.h"
#include "verify/compare.h"
#include "verify/inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {
namespace {

constexpr std::array<std::string_view, 13> kDeletable = {"fence.proxy.async",
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
                                                         "cp.async.bulk.commit_group",
                                                         "mbarrier.try_wait"};

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

// What stands in its place: nothing, for a wait an answer that it is over, for the question whether
// it is executed at all a trap.
std::string replacement(std::string_view ptx, const Line& line, bool trap) {
  std::string_view text = ptx.substr(line.begin, line.end - line.begin);
  // A label stays.
  const size_t at = text.find(line.what);
  std::string before(text.substr(0, at));
  if (const size_t guard = before.find('@'); guard != std::string::npos) {
    before.resize(guard);
  }
  if (trap) return before + "trap;\n";
  if (line.what != "mbarrier.try_wait") return before + "\n";
  text.remove_prefix(at);
  const size_t begin = text.find_first_of(" \t") + 1;
  const std::string predicate(text.substr(begin, text.find(',') - begin));
  return before + "setp.eq.u32 " + predicate + ", 0, 0;\n";
}

struct Kernel {
  const char* name;
  GemmProblem problem;
  PlanRequest request;
  // Deletions that the ISA allows, by instruction, and why.
  struct Allowed {
    std::string_view what;
    size_t count;
    const char* why;
  };
  std::vector<Allowed> allowed;
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
  // On the simulator's four SMs three tiles a CTA, and rings that are shorter than the walk: every
  // barrier is waited for in earnest.
  GemmProblem blackwell = hopper;
  blackwell.arch = Arch::kSm100a;
  blackwell.m = 64;
  blackwell.n = 384;
  blackwell.k = 1280;
  PlanRequest short_rings;
  short_rings.overrides.stages = 3;
  short_rings.overrides.cluster = 1;
  short_rings.overrides.split_k = 1;
  GemmProblem scaled = blackwell;
  scaled.scale_values = ScaleValues::kPowerOfTwo;
  const Kernel::Allowed permit = {"tcgen05.relinquish", 1, "a courtesy to other CTAs (9.7.16.7.1)"};
  // The pair at the start: allocation is synchronous (9.7.16.6.1), and every role fences again
  // after its own wait. The pair at the end: every load has been waited for, and dealloc is
  // synchronous.
  const Kernel::Allowed around_alloc = {"tcgen05.fence", 4,
                                        "two pairs around allocation and release, which are "
                                        "synchronous"};
  // After the wait for operands: the wait for a free accumulator and its fence follow before the
  // first MMA, because a scale block of this problem is a stage.
  const Kernel::Allowed another_follows = {"tcgen05.fence", 1, "another one follows on every path"};
  return {
      {"sm90",          hopper,    {},          {}                                     },
      {"sm90_few_rows", few_rows,  {},          {}                                     },
      {"sm100",         blackwell, short_rings, {permit, around_alloc, another_follows}},
      {"sm100_mx",      scaled,    short_rings, {permit, around_alloc}                 }
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
  const GemmOperation operation({p, {plan}},
                                {std::shared_ptr<const LoadedKernel>(std::move(loaded))}, device);
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
  const Result<GemmPlan> plan = plan_gemm(kernel.problem, kernel.request);
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
  size_t noticed = 0, not_executed = 0;
  std::string silent;
  std::map<std::string_view, size_t> silent_counts;
  for (const Line& line : lines) {
    const auto runs_clean = [&](SimDevice& device, bool trap) {
      KernelImage mutant = *built->image;
      mutant.ptx = ptx.substr(0, line.begin) + replacement(ptx, line, trap) + ptx.substr(line.end);
      return run(device, *plan, mutant, storage, reference).ok();
    };
    const bool seen = std::any_of(devices.begin(), devices.end(),
                                  [&](const auto& device) { return !runs_clean(*device, false); });
    if (seen) {
      ++noticed;
    } else if (runs_clean(*devices[0], true)) {
      ++not_executed;
    } else {
      ++silent_counts[line.what];
      silent += fmt::format(
          "  line {}: {}",
          1 + std::count(ptx.begin(), ptx.begin() + static_cast<long>(line.begin), '\n'),
          ptx.substr(line.begin, line.end - line.begin));
    }
  }
  fmt::print("{}: {} deletions, {} noticed, {} of instructions that are not executed; silent:\n{}",
             kernel.name, lines.size(), noticed, not_executed, silent);
  RecordProperty("noticed", static_cast<int>(noticed));
  RecordProperty("deletions", static_cast<int>(lines.size()));
  for (const auto& [what, count] : silent_counts) {
    size_t allowed = 0;
    for (const Kernel::Allowed& a : kernel.allowed) {
      if (a.what == what) allowed += a.count;
    }
    EXPECT_LE(count, allowed) << what << ": more deletions stay silent than the ISA allows";
  }
}

std::string kernel_name(const testing::TestParamInfo<Kernel>& kernel) {
  return kernel.param.name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation, testing::ValuesIn(kernels()), kernel_name);

}  // namespace
}  // namespace jitgemm
