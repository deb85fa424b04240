// SPDX-License-Identifier: Apache-2.0
// jitgemm run group_gemm_fp8_nt_groupwise: drawn groups of rows, one launch, every group verified.
#include "json.h"
#include "run.h"
#include "selftest/device_inputs.h"
#include "selftest/grouped_case.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::cli {
namespace {

void report(const GroupedCaseResult& result, const std::vector<int64_t>& counts, bool verified,
            const Cli& cli) {
  const auto empty = std::count(counts.begin(), counts.end(), 0);
  const int64_t largest = *std::max_element(counts.begin(), counts.end());
  if (cli.flags.json) {
    Json json = document("run");
    json["device"] = result.device;
    json["plan"] = to_json(result.plan);
    json["image"] = to_json(result.image);
    json["from_cache"] = result.from_cache;
    json["prepare_ms"] = result.prepare_ms;
    json["run_ms"] = result.run_ms;
    json["group_counts"] = counts;
    if (result.kernel_us) json["kernel_us"] = *result.kernel_us;
    if (result.plan.problem.grouping.count_invalid) json["invalid_count"] = result.invalid_count;
    json["verified"] = verified;
    if (verified) {
      json["passed"] = result.verdict.passed;
      json["verdict"] = result.verdict.text;
      json["errors"] = to_json(result.errors);
    }
    print(json);
    return;
  }
  fmt::print("problem    {}\ndevice     {}\n{}", to_string(result.plan.problem), result.device,
             to_string(result.plan));
  fmt::print("groups     {} of {} are empty, the largest has {} rows\n", empty, counts.size(),
             largest);
  fmt::print("image      {} registers, {} bytes spilled; {} in {:.1f} ms\n", result.image.registers,
             result.image.spill_bytes, result.from_cache ? "from the cache" : "compiled",
             result.prepare_ms);
  fmt::print("ran        {:.1f} ms\n", result.run_ms);
  if (result.kernel_us) fmt::print("kernel     {:.2f} us\n", *result.kernel_us);
  if (result.plan.problem.grouping.count_invalid)
    fmt::print("invalid    {} integers out of range\n", result.invalid_count);
  if (!verified) {
    fmt::print("verified   no\n");
    return;
  }
  fmt::print("verified   {}: {}\n", result.verdict.passed ? "yes" : "NO", result.verdict.text);
}

Result<Routing> parse_routing(const std::string& text) {
  for (const Routing routing : {Routing::kEven, Routing::kSkewed, Routing::kOneGroup}) {
    if (routing_name(routing) == text) return routing;
  }
  return invalid_argument(
      fmt::format("--routing: expected even, skewed or one_group, found '{}'", text));
}

}  // namespace

Status run_grouped(Context& context, Device& device, GemmProblem problem,
                   const PlanOverrides& overrides, const RunFlags& flags, Cli& cli) {
  if (!flags.input.empty() || !flags.output.empty()) {
    return unsupported("--input and --output: not there for grouped products");
  }
  if (flags.checksums) {
    return unsupported(
        "--checksums: expected with block_scaled_mm alone, found with "
        "group_gemm_fp8_nt_groupwise");
  }
  const std::optional<InputKind> kind = parse_input_kind(flags.data);
  if (!kind)
    return invalid_argument(fmt::format(
        "--data: expected seed, amax, uniform, wide, integers or special, found '{}'", flags.data));
  JITGEMM_ASSIGN(const Routing routing, parse_routing(flags.routing));
  const Grouping& grouping = problem.grouping;
  int64_t rows = problem.m;
  if (grouping.separate_rows()) {
    const int64_t each = grouping.expected_m != 0 ? grouping.expected_m : (problem.m + 1) / 2;
    rows = grouping.groups * std::min(each, problem.m);
  }
  std::vector<int64_t> counts = draw_group_counts(grouping.groups, rows, routing, flags.seed);
  if (grouping.separate_rows()) {
    for (int64_t& count : counts) count = std::min(count, problem.m);
  }
  const GroupedRows placed = place_groups(problem, counts, std::max(grouping.row_alignment, 1));
  problem.m = placed.m;
  JITGEMM_ASSIGN(const GroupedTensors tensors,
                 make_grouped_tensors_for(context, device, problem, *kind, flags.seed));
  GroupedCaseOptions options;
  options.verify = !flags.no_verify;
  options.exact = *kind == InputKind::kSmallIntegers;
  options.timed_launches = flags.repeat;
  options.sampled_lines = rows * problem.n * problem.k > (int64_t{1} << 33) ? 64 : 0;
  options.seed = flags.seed;
  JITGEMM_ASSIGN(
      const GroupedCaseResult result,
      run_grouped_case(context, device, problem, overrides, tensors, placed.group_rows, options));
  report(result, counts, options.verify, cli);
  if (!result.verdict.passed) cli.exit_code = kExitFailed;
  return ok_status();
}

}  // namespace jitgemm::cli
