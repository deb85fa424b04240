// SPDX-License-Identifier: Apache-2.0
// What the simulator is worth: delete each fence, wait, commit and transaction count from our
// kernels, one at a time, and see whether anyone notices. A deletion counts as noticed when the
// sanitizer reports a fault, the kernel deadlocks, or the result is wrong, under at least one of
// several schedules. A deletion may stay silent only where the instruction is not executed by the
// problem, or where `allowed` says why the ISA lets it go; docs/simulator.md has the table.
#include "grouped/grouped_cases.h"
#include "mutating_device.h"
#include "runtime/context.h"
#include "selftest/device_buffer.h"
#include "selftest/device_inputs.h"
#include "selftest/grouped_case.h"
#include "verify/compare.h"
#include "verify/inputs.h"
#include "verify/random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm {
namespace {

constexpr std::string_view kPredecessorWait = "griddepcontrol.wait";

constexpr std::array<std::string_view, 14> kDeletable = {kPredecessorWait,
                                                         "fence.proxy.async",
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

// A deletion that the ISA allows, by instruction, and why.
struct Allowed {
  std::string_view what;
  size_t count;
  const char* why;
};

// Runs on the device it is given; OK: its result is right.
using Trial = std::function<Status(Context&, Device&)>;

struct Subject {
  std::string name;
  Arch arch;
  std::function<Result<Trial>()> prepare;  // draws inputs and computes what is right, once
  std::vector<Allowed> allowed = {};
  size_t kernel = 0;  // the one that is changed, of those that a run loads
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name;
}

// A dense product of small integers, whose result is exact.
// `scale_shift`: bytes that the scales begin behind an aligned address, which a kernel of sm_90a
// then copies by a warp of its own.
Result<Trial> dense_run(const GemmProblem& p, const PlanOverrides& overrides,
                        size_t scale_shift = 0) {
  JITGEMM_ASSIGN(BlockScaledTensors drawn,
                 make_block_scaled_tensors(p, InputKind::kSmallIntegers, 5));
  const auto tensors = std::make_shared<BlockScaledTensors>(std::move(drawn));
  JITGEMM_ASSIGN(BlockScaledStorage storage, lay_out(p, *tensors));
  for (std::vector<std::byte>* scales : {&storage.a_scales, &storage.b_scales})
    scales->insert(scales->begin(), scale_shift, std::byte{0});
  JITGEMM_ASSIGN(std::vector<double> reference, reference_block_scaled_mm(tensors->views()));
  JITGEMM_TRY(round_values(reference, p.out_dtype));
  return Trial([=](Context& context, Device& device) -> Status {
    JITGEMM_ASSIGN(const PreparedGemm prepared, context.prepare(p, overrides, device));
    JITGEMM_ASSIGN(const DeviceBuffer a, DeviceBuffer::copy_of(device, storage.a));
    JITGEMM_ASSIGN(const DeviceBuffer b, DeviceBuffer::copy_of(device, storage.b));
    JITGEMM_ASSIGN(const DeviceBuffer a_scales, DeviceBuffer::copy_of(device, storage.a_scales));
    JITGEMM_ASSIGN(const DeviceBuffer b_scales, DeviceBuffer::copy_of(device, storage.b_scales));
    const auto element = static_cast<size_t>(dtype_info(p.out_dtype).bytes);
    JITGEMM_ASSIGN(const DeviceBuffer out,
                   DeviceBuffer::create(device, static_cast<size_t>(p.m * p.n) * element, 0xff));
    JITGEMM_ASSIGN(
        const DeviceBuffer workspace,
        DeviceBuffer::create(device, static_cast<size_t>(prepared.operation->workspace_bytes(p.m)),
                             0xff));
    GemmArguments arguments;
    arguments.a = a.address();
    arguments.b = b.address();
    if (p.scaled()) {
      if (!p.quantizes_a()) arguments.a_scales = a_scales.address() + scale_shift;
      arguments.b_scales = b_scales.address() + scale_shift;
    }
    arguments.out = out.address();
    arguments.m = p.m;
    arguments.workspace = workspace.address();
    arguments.workspace_bytes = workspace.bytes();
    JITGEMM_TRY(prepared.operation->launch(arguments, nullptr));
    JITGEMM_ASSIGN(const std::vector<std::byte> bytes, out.read());
    const std::vector<double> found =
        read_matrix(row_major_view(bytes.data(), p.out_dtype, p.m, p.n));
    ErrorLimits limits;
    limits.equal = true;
    const Verdict verdict = judge(measure_errors(found, reference), limits);
    return verdict.passed ? ok_status() : Status(StatusCode::kVerificationFailed, verdict.text);
  });
}

Result<Trial> grouped_run(const GroupedCase& c, Arch arch, const PlanOverrides& more) {
  const GemmProblem p = c.problem(arch);
  PlanOverrides overrides = c.overrides(arch);
  if (more.stages) overrides.stages = more.stages;
  if (more.tile_n) overrides.tile_n = more.tile_n;
  JITGEMM_ASSIGN(GroupedTensors drawn, make_grouped_tensors(p, c.data, 1));
  const auto tensors = std::make_shared<GroupedTensors>(std::move(drawn));
  return Trial([=](Context& context, Device& device) -> Status {
    GroupedCaseOptions options;
    options.exact = true;
    JITGEMM_ASSIGN(
        const GroupedCaseResult result,
        run_grouped_case(context, device, p, overrides, *tensors, c.group_rows(), options));
    return result.verdict.passed ? ok_status()
                                 : Status(StatusCode::kVerificationFailed, result.verdict.text);
  });
}

Result<Trial> draw_run() {
  return Trial([](Context& context, Device& device) -> Status {
    constexpr int64_t kCount = 1000;
    JITGEMM_ASSIGN(const DeviceBuffer values,
                   DeviceBuffer::create(device, kCount * sizeof(float), 0xff));
    JITGEMM_TRY(draw_normal(context, device, values.address(), kCount, 3, 4));
    JITGEMM_ASSIGN(const std::vector<std::byte> bytes, values.read());
    const RandomStream random(3, 4);
    for (size_t i = 0; i < kCount; ++i) {
      const float expected = random.normal(i);
      if (std::memcmp(bytes.data() + i * sizeof(float), &expected, sizeof(float)) != 0)
        return Status(StatusCode::kVerificationFailed, fmt::format("number {}", i));
    }
    return ok_status();
  });
}

std::vector<Subject> subjects() {
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
  GemmProblem quantized = hopper;
  quantized.m = 40;
  quantized.n = 128;
  quantized.k = 384;
  quantized.a_dtype = DType::kBF16;
  // Rows of 1030 bytes: copied first, and the product begins while they are.
  GemmProblem odd_rows = hopper;
  odd_rows.m = 160;
  odd_rows.n = 192;
  odd_rows.k = 1030;
  PlanOverrides aligned;
  aligned.align_rows = true;
  // On the simulator's four SMs three tiles a CTA, and rings that are shorter than the walk: every
  // barrier is waited for in earnest.
  GemmProblem blackwell = hopper;
  blackwell.arch = Arch::kSm100a;
  blackwell.m = 64;
  blackwell.n = 384;
  blackwell.k = 1280;
  PlanOverrides short_rings;
  short_rings.stages = 3;
  short_rings.cluster = 1;
  short_rings.split_k = 1;
  GemmProblem scaled = blackwell;
  scaled.scale_values = ScaleValues::kPowerOfTwo;
  const Allowed permit = {"tcgen05.relinquish", 1, "a courtesy to other CTAs (9.7.16.7.1)"};
  // The pair at the start: allocation is synchronous (9.7.16.6.1), and every role fences again
  // after its own wait. The pair at the end: every load has been waited for, and dealloc is
  // synchronous.
  const Allowed around_alloc = {"tcgen05.fence", 4,
                                "two pairs around allocation and release, which are synchronous"};
  // After the wait for operands: the wait for a free accumulator and its fence follow before the
  // first MMA, because a scale block of this problem is a stage.
  const Allowed another_follows = {"tcgen05.fence", 1, "another one follows on every path"};

  // Before the end: the accumulator's commit, which the epilogue waits for, is issued after those
  // of the stages by the same thread, and commits of a thread complete in order.
  const Allowed last_commits = {"mbarrier.try_wait", 1, "a later commit has been waited for"};

  GroupedCase contiguous;
  contiguous.name = "contiguous";
  // A window that is no whole tile, and whole ones as the last of each CTA: tiles of both kinds are
  // stored wherever the kernel stores them.
  contiguous.counts = {130, 0, 126, 128};
  // Six tiles a CTA on the simulator's four SMs: the ring of four tiles begins again. And more
  // blocks of k than that ring could hold back by itself.
  contiguous.n = 384;
  contiguous.k = 512;
  contiguous.sides = GroupedCase::Sides::kRows;
  GroupedCase masked = contiguous;
  masked.layout = GroupLayout::kMasked;
  // Whole tiles one after the other in each CTA: their boxes use each other's places again.
  masked.counts = {256, 20, 33, 128};
  masked.m = 260;
  // Fewer stages than a tile has blocks of k: a warpgroup without rows of the tile cannot pass them
  // all at once.
  PlanOverrides few_stages;
  few_stages.stages = 3;
  GroupedCase clustered = contiguous;
  clustered.sides = GroupedCase::Sides::kSharedRows;
  GroupedCase few = contiguous;
  few.counts = {5, 9, 0, 3, 17};
  few.n = 256;
  few.k = 768;
  few.sides = GroupedCase::Sides::kSwapped;
  GroupedCase tensor = contiguous;
  tensor.counts = {130, 0, 70, 128};
  tensor.n = 640;
  tensor.k = 384;
  // Enough columns that the buffers of the epilogue begin again within a tile.
  PlanOverrides wide;
  wide.stages = 3;
  wide.tile_n = 128;
  GroupedCase plain = tensor;
  plain.a = plain.b = DType::kBF16;

  const auto dense = [](const char* name, const GemmProblem& p, const PlanOverrides& overrides,
                        std::vector<Allowed> allowed, size_t kernel = 0) {
    return Subject{name, p.arch, [=] { return dense_run(p, overrides); }, std::move(allowed),
                   kernel};
  };
  const auto grouped = [](const char* name, const GroupedCase& c, Arch arch,
                          const PlanOverrides& more, std::vector<Allowed> allowed) {
    return Subject{name, arch, [=] { return grouped_run(c, arch, more); }, std::move(allowed)};
  };
  std::vector<Subject> all;
  all.push_back(dense("sm90", hopper, {}, {}));
  all.push_back(dense("sm90_few_rows", few_rows, {}, {}));
  for (const auto& [name, p] :
       {std::pair("sm90_copied_scales", hopper), std::pair("sm90_swap_copied_scales", few_rows)}) {
    all.push_back({name, Arch::kSm90a, [p] { return dense_run(p, {}, sizeof(float)); }});
  }
  all.push_back(dense("sm100", blackwell, short_rings, {permit, around_alloc, another_follows}));
  all.push_back(dense("sm100_mx", scaled, short_rings, {permit, around_alloc}));
  all.push_back(dense("quantize_rows", quantized, {}, {}));
  GemmProblem few_quantized = few_rows;
  few_quantized.a_dtype = DType::kBF16;
  all.push_back(dense("sm90_swap_after_quantize_rows", few_quantized, {}, {}, 1));
  all.push_back(dense("align_rows", odd_rows, aligned, {}));
  all.push_back(dense("sm90_after_align_rows", odd_rows, aligned, {}, 1));
  all.push_back(Subject{"draw_normal", Arch::kSm90a, draw_run});
  all.push_back(grouped("sm90_contiguous", contiguous, Arch::kSm90a, few_stages, {}));
  all.push_back(grouped("sm90_masked", masked, Arch::kSm90a, few_stages, {}));
  all.push_back(grouped("sm90_clustered", clustered, Arch::kSm90a, few_stages, {}));
  all.push_back(grouped("sm90_swap_contiguous", few, Arch::kSm90a, {}, {}));
  all.push_back(grouped("sm100_contiguous", tensor, Arch::kSm100a, wide,
                        {permit, around_alloc, another_follows}));
  all.push_back(
      grouped("sm100_plain", plain, Arch::kSm100a, wide, {permit, around_alloc, last_commits}));
  return all;
}

class Mutation : public testing::TestWithParam<Subject> {};

// Schedules, of which one has to notice.
constexpr std::array<uint64_t, 6> kSeeds = {0, 1, 2, 3, 4, 5};

SimDeviceOptions device_options(uint64_t seed) {
  SimDeviceOptions options;
  options.seed = seed;
  options.step_limit = 20'000'000;
  return options;
}

TEST_P(Mutation, DeletedSynchronisationIsNoticed) {
  const Subject& subject = GetParam();
  const auto context = *Context::create({});
  const Result<Trial> run = subject.prepare();
  ASSERT_TRUE(run) << run.error().to_string();
  // A kernel is kept for its device, so each run has a device of its own, which outlives it.
  std::vector<std::unique_ptr<MutatingDevice>> devices;
  const auto device = [&](uint64_t seed) -> MutatingDevice& {
    devices.push_back(std::make_unique<MutatingDevice>(subject.arch, device_options(seed)));
    return *devices.back();
  };

  MutatingDevice& first = device(0);
  ASSERT_EQ((*run)(*context, first).to_string(), ok_status().to_string());
  ASSERT_LT(subject.kernel, first.loaded().size());
  const std::string ptx = first.loaded()[subject.kernel];
  const auto run_mutant = [&](const std::string& mutant, uint64_t seed, bool predecessor) {
    MutatingDevice& d = device(seed);
    d.replace(ptx, mutant);
    d.set_predecessor(predecessor);
    return (*run)(*context, d);
  };
  const std::vector<Line> lines = deletable_lines(ptx);
  for (const uint64_t seed : kSeeds) {
    for (const bool predecessor : {false, true}) {
      if (lines.empty() && predecessor) continue;  // it does not say that it may be overtaking
      ASSERT_EQ(run_mutant(ptx, seed, predecessor).to_string(), ok_status().to_string())
          << "the whole kernel under seed " << seed;
    }
  }

  size_t noticed = 0, not_executed = 0;
  std::string silent, idle;
  std::map<std::string_view, size_t> silent_counts;
  for (const Line& line : lines) {
    const auto runs_clean = [&](uint64_t seed, bool trap) {
      const std::string mutant =
          ptx.substr(0, line.begin) + replacement(ptx, line, trap) + ptx.substr(line.end);
      return run_mutant(mutant, seed, line.what == kPredecessorWait).ok();
    };
    const std::string place =
        fmt::format("  line {}: {}",
                    1 + std::count(ptx.begin(), ptx.begin() + static_cast<long>(line.begin), '\n'),
                    ptx.substr(line.begin, line.end - line.begin));
    if (!std::all_of(kSeeds.begin(), kSeeds.end(),
                     [&](uint64_t seed) { return runs_clean(seed, false); })) {
      ++noticed;
    } else if (runs_clean(0, true)) {
      ++not_executed;
      idle += place;
    } else {
      ++silent_counts[line.what];
      silent += place;
    }
  }
  fmt::print(
      "{}: {} deletions, {} noticed; {} of instructions that are not executed:\n{}silent:\n{}",
      subject.name, lines.size(), noticed, not_executed, idle, silent);
  RecordProperty("noticed", static_cast<int>(noticed));
  RecordProperty("deletions", static_cast<int>(lines.size()));
  for (const auto& [what, count] : silent_counts) {
    size_t allowed = 0;
    for (const Allowed& a : subject.allowed) {
      if (a.what == what) allowed += a.count;
    }
    EXPECT_LE(count, allowed) << what << ": more deletions stay silent than the ISA allows";
  }
}

std::string subject_name(const testing::TestParamInfo<Subject>& subject) {
  return subject.param.name;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Mutation, testing::ValuesIn(subjects()), subject_name);

}  // namespace
}  // namespace jitgemm
