// SPDX-License-Identifier: Apache-2.0
#include "selftest/grouped_case.h"

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

std::vector<std::byte> bytes_of(std::span<const int32_t> integers) {
  const auto bytes = std::as_bytes(integers);
  return {bytes.begin(), bytes.end()};
}

// The first, the last, and random ones of some lines.
std::vector<int64_t> sample(const std::vector<int64_t>& lines, int64_t wanted, uint64_t seed) {
  const auto count = static_cast<int64_t>(lines.size());
  if (wanted == 0 || wanted >= count) return lines;
  std::set<int64_t> chosen = {lines.front(), lines.back()};
  const RandomStream random(seed, 0x5a3e);
  for (uint64_t i = 0; static_cast<int64_t>(chosen.size()) < wanted; ++i) {
    chosen.insert(
        lines[static_cast<size_t>(random.integer(i, 0, static_cast<int32_t>(count) - 1))]);
  }
  return {chosen.begin(), chosen.end()};
}

struct Buffers {
  DeviceBuffer a;
  DeviceBuffer b;
  DeviceBuffer a_scales;
  DeviceBuffer b_scales;
  DeviceBuffer group_rows;
  DeviceBuffer out;
  DeviceBuffer invalid_count;

  Status check_guards() const {
    JITGEMM_TRY(a.check_guards("a"));
    JITGEMM_TRY(b.check_guards("b"));
    JITGEMM_TRY(a_scales.check_guards("a_scales"));
    JITGEMM_TRY(b_scales.check_guards("b_scales"));
    JITGEMM_TRY(group_rows.check_guards("group_rows"));
    JITGEMM_TRY(out.check_guards("out"));
    return invalid_count.check_guards("invalid_count");
  }
};

Result<Buffers> make_buffers(Device& device, const GemmProblem& p, const GroupedTensors& tensors,
                             std::span<const int32_t> group_rows) {
  JITGEMM_ASSIGN(const BlockScaledStorage storage, lay_out(p, tensors));
  size_t out_bytes = 0;
  const int64_t rows = all_rows(p);
  for (int64_t row = 0; row < rows; row += std::max<int64_t>(1, rows - 1)) {
    const int64_t end = (output_offset(p, row) + p.n) * dtype_info(p.out_dtype).bytes;
    out_bytes = std::max(out_bytes, static_cast<size_t>(end));
  }
  JITGEMM_ASSIGN(DeviceBuffer a, DeviceBuffer::copy_of(device, storage.a));
  JITGEMM_ASSIGN(DeviceBuffer b, DeviceBuffer::copy_of(device, storage.b));
  JITGEMM_ASSIGN(DeviceBuffer a_scales, DeviceBuffer::copy_of(device, storage.a_scales));
  JITGEMM_ASSIGN(DeviceBuffer b_scales, DeviceBuffer::copy_of(device, storage.b_scales));
  JITGEMM_ASSIGN(DeviceBuffer integers, DeviceBuffer::copy_of(device, bytes_of(group_rows)));
  JITGEMM_ASSIGN(DeviceBuffer out, DeviceBuffer::create(device, out_bytes, 0xff));
  JITGEMM_ASSIGN(DeviceBuffer invalid_count, DeviceBuffer::create(device, sizeof(uint32_t), 0));
  return Buffers{std::move(a),        std::move(b),   std::move(a_scales),     std::move(b_scales),
                 std::move(integers), std::move(out), std::move(invalid_count)};
}

// What must hold of every byte that belongs to no group's row: rows of no group hold `expected`,
// gaps between rows what they were filled with.
Status check_untouched(const GemmProblem& p, const std::vector<int32_t>& groups,
                       const std::vector<std::byte>& out) {
  const auto element = static_cast<size_t>(dtype_info(p.out_dtype).bytes);
  std::vector<bool> owned(out.size(), false);
  for (size_t row = 0; row < groups.size(); ++row) {
    const size_t begin = static_cast<size_t>(output_offset(p, static_cast<int64_t>(row))) * element;
    const size_t end = begin + static_cast<size_t>(p.n) * element;
    const std::byte expected = p.grouping.zero_ungrouped ? std::byte{0} : std::byte{0xff};
    for (size_t i = begin; i < end; ++i) {
      owned[i] = true;
      if (groups[row] >= 0 || out[i] == expected) continue;
      return Status(StatusCode::kVerificationFailed,
                    fmt::format("row {} of 'out' is in no group: expected bytes {:#x}, found {:#x} "
                                "in column {}",
                                row, static_cast<int>(expected), static_cast<int>(out[i]),
                                (i - begin) / element));
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (owned[i] || out[i] == std::byte{0xff}) continue;
    return Status(StatusCode::kVerificationFailed,
                  fmt::format("the kernel wrote between rows of 'out': byte {}", i));
  }
  return ok_status();
}

// Found and expected values of the rows of every group.
struct Compared {
  std::vector<double> found;
  std::vector<double> reference;
};

Status compare_group(const GemmProblem& p, const GroupedTensors& tensors, int64_t group,
                     const std::vector<int64_t>& rows, const std::vector<int64_t>& columns,
                     const std::vector<std::byte>& out, Compared& compared) {
  const auto index = static_cast<size_t>(group);
  BlockScaledInputs inputs{view_of(tensors.a),
                           view_of(tensors.b[index]),
                           view_of(tensors.a_scales),
                           view_of(tensors.b_scales[index]),
                           p.group_n,
                           p.group_k};
  JITGEMM_ASSIGN(std::vector<double> reference,
                 reference_block_scaled_mm(inputs, rows, columns, {ScaleProduct::kFloat32, 0}));
  // The accumulator is fp32: what float64 holds beyond its range is infinite there.
  constexpr double kOverflow = 0x1.ffffffp127;
  for (double& value : reference) {
    if (std::abs(value) >= kOverflow)
      value = std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  compared.reference.insert(compared.reference.end(), reference.begin(), reference.end());
  const Decoder decode(p.out_dtype);
  for (const int64_t row : rows) {
    for (const int64_t column : columns)
      compared.found.push_back(decode.element(out.data(), output_offset(p, row) + column));
  }
  return ok_status();
}

Status compare(const GemmProblem& p, const GroupedTensors& tensors,
               const std::vector<int32_t>& groups, const std::vector<std::byte>& out,
               const Device& device, const GroupedCaseOptions& options, GroupedCaseResult& result) {
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(p.grouping.groups));
  for (size_t row = 0; row < groups.size(); ++row) {
    if (groups[row] >= 0)
      rows[static_cast<size_t>(groups[row])].push_back(static_cast<int64_t>(row));
  }
  const std::vector<int64_t> columns =
      sample(all_indices(p.n), options.sampled_lines, options.seed);
  Compared compared;
  for (size_t group = 0; group < rows.size(); ++group) {
    if (rows[group].empty()) continue;
    JITGEMM_TRY(compare_group(p, tensors, static_cast<int64_t>(group),
                              sample(rows[group], options.sampled_lines, options.seed + group),
                              columns, out, compared));
  }
  result.errors = measure_errors(compared.found, compared.reference);
  JITGEMM_TRY(round_values(compared.reference, p.out_dtype));
  const ErrorMetrics rounded_errors = measure_errors(compared.found, compared.reference);
  ErrorLimits limits;
  ErrorLimits rounded_limits;
  if (options.exact) {
    rounded_limits.equal = true;
  } else {
    limits.relative_l2 = relative_l2_limit(p, device);
    rounded_limits.mean_ratio = 1e-3;
  }
  result.verdict = judge(result.errors, limits);
  const Verdict rounded = judge(rounded_errors, rounded_limits);
  if (result.verdict.passed && !rounded.passed) result.verdict = rounded;
  return ok_status();
}

Status time_launches(Device& device, const GemmOperation& operation, const GemmArguments& arguments,
                     int count, GroupedCaseResult& result) {
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
  if (!samples.empty()) result.kernel_us = samples[samples.size() / 2];
  return ok_status();
}

}  // namespace

Result<GroupedCaseResult> run_grouped_case(Context& context, Device& device,
                                           const GemmProblem& problem,
                                           const PlanOverrides& overrides,
                                           const GroupedTensors& tensors,
                                           std::span<const int32_t> group_rows,
                                           const GroupedCaseOptions& options) {
  const int64_t integers = problem.grouping.info_count(problem.m);
  if (static_cast<int64_t>(group_rows.size()) != integers) {
    return invalid_argument(
        fmt::format("group_rows: expected {} integers, found {}", integers, group_rows.size()));
  }
  const Clock::time_point start = Clock::now();
  JITGEMM_ASSIGN(const PreparedGemm prepared, context.prepare(problem, overrides, device));
  const GemmOperation& operation = *prepared.operation;
  GroupedCaseResult result;
  result.prepare_ms = milliseconds_since(start);
  result.plan = operation.plan().product();
  result.image = *prepared.product().image;
  result.from_cache = prepared.product().from_cache;
  result.device = device.info().description;

  JITGEMM_ASSIGN(const Buffers buffers, make_buffers(device, problem, tensors, group_rows));
  GemmArguments arguments;
  arguments.a = buffers.a.address();
  arguments.b = buffers.b.address();
  if (problem.scaled()) {
    arguments.a_scales = buffers.a_scales.address();
    arguments.b_scales = buffers.b_scales.address();
  }
  arguments.out = buffers.out.address();
  arguments.group_rows = buffers.group_rows.address();
  if (problem.grouping.count_invalid) arguments.invalid_count = buffers.invalid_count.address();
  arguments.m = problem.m;
  const Clock::time_point launched = Clock::now();
  JITGEMM_TRY(operation.launch(arguments, nullptr));
  JITGEMM_TRY(device.synchronize(nullptr));
  result.run_ms = milliseconds_since(launched);

  JITGEMM_TRY(buffers.check_guards());
  JITGEMM_ASSIGN(result.out, buffers.out.read());
  const std::vector<std::byte>& out = result.out;
  JITGEMM_ASSIGN(const std::vector<std::byte> count, buffers.invalid_count.read());
  std::copy(count.begin(), count.end(), reinterpret_cast<std::byte*>(&result.invalid_count));
  result.verdict = {true, "not compared"};
  if (options.verify && problem.m > 0) {
    const std::vector<int32_t> groups = groups_of_rows(problem, group_rows);
    JITGEMM_TRY(compare(problem, tensors, groups, out, device, options, result));
    const Status untouched = check_untouched(problem, groups, out);
    if (!untouched.ok()) result.verdict = {false, untouched.message()};
  }
  if (options.timed_launches > 0 && problem.m > 0) {
    JITGEMM_TRY(time_launches(device, operation, arguments, options.timed_launches, result));
  }
  return result;
}

}  // namespace jitgemm
