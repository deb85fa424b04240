// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <limits>

namespace jitgemm::cli {
namespace {

Result<DType> dtype_flag(const char* flag, const std::string& text) {
  if (const std::optional<DType> dtype = parse_dtype(text)) return *dtype;
  return invalid_argument(fmt::format(
      "{}: expected one of F8_E4M3, F8_E5M2, F8_E8M0, F32, BF16, F16; found '{}'", flag, text));
}

// The index of the text among the choices.
template <typename Enum>
Result<Enum> choice_flag(const char* flag, const std::string& text,
                         std::initializer_list<const char*> choices) {
  int32_t index = 0;
  std::string list;
  for (const char* choice : choices) {
    if (text == choice) return static_cast<Enum>(index);
    list += fmt::format("{}{}", index == 0 ? "" : ", ", choice);
    ++index;
  }
  return invalid_argument(fmt::format("{}: expected one of {}, found '{}'", flag, list, text));
}

}  // namespace

CLI::Validator integer_from(uint64_t least) {
  return CLI::Validator(
      [least](std::string& text) -> std::string {
        constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
        uint64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && stop == end && value >= least && value <= kMost) return "";
        return fmt::format("expected an integer from {} to {}, found '{}'", least, kMost, text);
      },
      "", "");
}

CLI::Option* comma_list(CLI::Option* option) {
  return option->delimiter(',')->allow_extra_args(false);
}

void TargetFlags::add_to(CLI::App& command) {
  command.add_option("--sm-count", sm_count, "SMs to plan for (default: the arch's usual part)")
      ->check(CLI::Range(1, 10000));
  command.add_option("--device-name", device_name,
                     "Measured plans of this device only, as the driver names it (default: of any "
                     "with that SM count)");
}

void TargetFlags::apply(PlanRequest& request) const {
  request.sm_count = sm_count;
  request.device_name = device_name;
}

Result<TuningDatabase> tuning_for(const Cli& cli) {
  return open_tuning(resolve_settings(cli.flags.context), Logger());
}

int exit_code_for(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return kExitOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kUnsupported: return kExitUsage;
    case StatusCode::kCorruptData: return kExitCorrupt;
    case StatusCode::kNoCompiler:
    case StatusCode::kNoDriver: return kExitEnvironment;
    default: return kExitFailed;
  }
}

void print_error_json(std::string_view status, std::string_view message) {
  const nlohmann::json document = {
      {"status",  status },
      {"message", message}
  };
  // Names of files and pieces of them may be no UTF-8.
  std::printf("%s\n",
              document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void Cli::finish(const Status& status) {
  exit_code = exit_code_for(status.code());
  if (status.ok()) return;
  if (flags.json) {
    print_error_json(status_name(status.code()), status.message());
  } else {
    std::fprintf(stderr, "jitgemm: %s\n", status.to_string().c_str());
  }
}

void ProblemFlags::add_to(CLI::App& command, const char* m_help) {
  command
      .add_option("operation", operation,
                  "The operation: block_scaled_mm or group_gemm_fp8_nt_groupwise")
      ->required();
  command.add_option("--arch", arch, supported_arch_list());
  command.add_option("-m,--m", m, m_help)->capture_default_str();
  command.add_option("-n,--n", n, "Rows of b, columns of the output")->capture_default_str();
  command.add_option("-k,--k", k, "Columns of a and b")->capture_default_str();
  command
      .add_option("--a-dtype", a_dtype,
                  "F8_E4M3 or F8_E5M2; or F32, BF16 or F16, to be quantised first")
      ->capture_default_str();
  command
      .add_option("--a-code-dtype", a_code_dtype,
                  "What an a of F32, BF16 or F16 becomes: F8_E4M3 or F8_E5M2")
      ->capture_default_str();
  command.add_option("--b-dtype", b_dtype, "F8_E4M3 or F8_E5M2; of groups also F16 or BF16")
      ->capture_default_str();
  command.add_option("--scale-dtype", scale_dtype, "F32 or F8_E8M0")->capture_default_str();
  command.add_option("--out-dtype", out_dtype, "F32, BF16 or F16")->capture_default_str();
  command.add_option("--group-n", group_n, "Rows of b that share a scale")->capture_default_str();
  command.add_option("--group-k", group_k, "Columns that share a scale")->capture_default_str();
  command.add_option("--a-scale-major", a_scale_major, "row, column or packed")
      ->capture_default_str();
  command.add_option("--b-scale-major", b_scale_major, "row, column or packed")
      ->capture_default_str();
  command.add_option("--scale-values", scale_values, "any, or pow2 to declare powers of two")
      ->capture_default_str();
  command.add_option("--m-policy", m_policy, "exact, class or any")->capture_default_str();
  command.add_flag("--batch-invariant", batch_invariant,
                   "A row's bits depend neither on m nor on other rows");
  command.add_option("--kernel", kernel, "Force a kernel: " + kernel_family_list());
  const CLI::Range choice(1, 65536);
  command.add_option("--tile-m", tile_m, "Force the tile's rows")->check(choice);
  command.add_option("--tile-n", tile_n, "Force the tile's columns")->check(choice);
  command.add_option("--stages", stages, "Force the pipeline's depth")->check(choice);
  command.add_option("--split-k", split_k, "Force the number of splits of k")->check(choice);
  command.add_option("--cluster", cluster, "Force the CTAs of a cluster")->check(choice);
  command.add_option("--align-rows", align_rows,
                     "on or off: copy rows that TMA cannot address to where it can, ahead of the "
                     "product");
  of_groups(
      command.add_option("--layout", layout, "row_indices, end_offsets, row_pointers or masked"))
      ->capture_default_str();
  of_groups(command.add_option("--groups", groups, "How many groups"))->capture_default_str();
  of_groups(
      command.add_option("--expected-m", expected_m, "Rows of an average group, a hint for tiles"));
  of_groups(command.add_option("--row-alignment", row_alignment,
                               "Groups begin at multiples of this row"));
  of_groups(command.add_flag("--zero-ungrouped", zero_ungrouped, "Zero the rows of no group"));
  of_groups(
      command.add_flag("--count-invalid", count_invalid, "Count integers that are out of range"));
}

CLI::Option* ProblemFlags::of_groups(CLI::Option* option) {
  option->group("Groups of rows (group_gemm_fp8_nt_groupwise)");
  group_options_.push_back(option);
  return option;
}

Status ProblemFlags::refuse_group_flags() const {
  for (const CLI::Option* option : group_options_) {
    if (option->count() == 0) continue;
    return invalid_argument(
        fmt::format("{}: expected with group_gemm_fp8_nt_groupwise alone, found with {}",
                    option->get_name(), operation));
  }
  return ok_status();
}

Result<MRange> ProblemFlags::m_range() const {
  const size_t dots = m.find("..");
  const char* begin = m.data();
  const char* end = begin + m.size();
  const auto number = [](const char* from, const char* to, int64_t& value) {
    const auto [stop, error] = std::from_chars(from, to, value);
    return error == std::errc() && stop == to;
  };
  MRange range;
  if (dots != std::string::npos && !takes_m_range) {
    return invalid_argument(fmt::format("--m: a range is for plan, found '{}'", m));
  }
  if (dots == std::string::npos) {
    if (number(begin, end, range.first)) return MRange{range.first, range.first};
    return invalid_argument(fmt::format("--m: expected a number, found '{}'", m));
  }
  const bool good = number(begin, begin + dots, range.first) &&
                    number(begin + dots + 2, end, range.last) && range.first >= 1 &&
                    range.first <= range.last;
  if (good) return range;
  return invalid_argument(fmt::format("--m: expected A..B with 1 <= A <= B, found '{}'", m));
}

Result<GemmProblem> ProblemFlags::problem(Arch default_arch) const {
  if (operation != "block_scaled_mm" && !grouped()) {
    return unsupported(
        fmt::format("operation: '{}' is not there; supported are block_scaled_mm and "
                    "group_gemm_fp8_nt_groupwise",
                    operation));
  }
  GemmProblem problem;
  problem.arch = default_arch;
  if (!arch.empty()) {
    JITGEMM_ASSIGN(problem.arch, parse_arch(arch));
  }
  JITGEMM_ASSIGN(const MRange range, m_range());
  problem.m = range.last;
  problem.n = n;
  problem.k = k;
  JITGEMM_ASSIGN(problem.a_dtype, dtype_flag("--a-dtype", a_dtype));
  JITGEMM_ASSIGN(problem.a_code_dtype, dtype_flag("--a-code-dtype", a_code_dtype));
  JITGEMM_ASSIGN(problem.b_dtype, dtype_flag("--b-dtype", b_dtype));
  JITGEMM_ASSIGN(problem.scale_dtype, dtype_flag("--scale-dtype", scale_dtype));
  JITGEMM_ASSIGN(problem.out_dtype, dtype_flag("--out-dtype", out_dtype));
  problem.group_n = group_n;
  problem.group_k = group_k;
  JITGEMM_ASSIGN(problem.a_scale_major, choice_flag<ScaleMajor>("--a-scale-major", a_scale_major,
                                                                {"row", "column", "packed"}));
  JITGEMM_ASSIGN(problem.b_scale_major, choice_flag<ScaleMajor>("--b-scale-major", b_scale_major,
                                                                {"row", "column", "packed"}));
  JITGEMM_ASSIGN(problem.scale_values,
                 choice_flag<ScaleValues>("--scale-values", scale_values, {"any", "pow2"}));
  JITGEMM_ASSIGN(problem.m_policy,
                 choice_flag<MPolicy>("--m-policy", m_policy, {"exact", "class", "any"}));
  problem.batch_invariant = batch_invariant;
  if (grouped()) {
    JITGEMM_TRY(fill_grouping(problem.grouping));
  } else {
    JITGEMM_TRY(refuse_group_flags());
  }
  JITGEMM_TRY(validate(problem));
  return problem;
}

Status ProblemFlags::fill_grouping(Grouping& grouping) const {
  // 0 is no layout, and columns are refused later, with the reason.
  static constexpr const char* kLayouts = "row_indices, end_offsets, row_pointers or masked";
  for (const GroupLayout known :
       {GroupLayout::kRowIndices, GroupLayout::kEndOffsets, GroupLayout::kRowPointers,
        GroupLayout::kMasked, GroupLayout::kColumns}) {
    if (group_layout_name(known) == layout) grouping.layout = known;
  }
  if (!grouping.grouped()) {
    return invalid_argument(fmt::format("--layout: expected {}, found '{}'", kLayouts, layout));
  }
  grouping.groups = groups;
  grouping.expected_m = expected_m;
  grouping.row_alignment = row_alignment;
  grouping.zero_ungrouped = zero_ungrouped;
  grouping.count_invalid = count_invalid;
  return ok_status();
}

Result<PlanOverrides> ProblemFlags::overrides() const {
  PlanOverrides overrides;
  if (!kernel.empty()) {
    overrides.family = parse_kernel_family(kernel);
    if (!overrides.family) {
      return invalid_argument(
          fmt::format("--kernel: expected one of {}, found '{}'", kernel_family_list(), kernel));
    }
  }
  const auto force = [](int32_t flag, std::optional<int32_t>& field) {
    if (flag != 0) field = flag;
  };
  force(tile_m, overrides.tile_m);
  force(tile_n, overrides.tile_n);
  force(stages, overrides.stages);
  force(split_k, overrides.split_k);
  force(cluster, overrides.cluster);
  if (!align_rows.empty()) {
    if (align_rows != "on" && align_rows != "off") {
      return invalid_argument(
          fmt::format("--align-rows: expected on or off, found '{}'", align_rows));
    }
    overrides.align_rows = align_rows == "on";
  }
  return overrides;
}

void add_launch_option(CLI::App& command, int& launch) {
  command
      .add_option("--launch", launch,
                  "Of an operation of several launches, show this one (default: the last)")
      ->check(CLI::Range(1, 1000));
}

Result<const LaunchPlan*> choose_launch(const OperationPlan& plan, int launch) {
  const auto count = static_cast<int>(plan.launches.size());
  if (launch < 0 || launch > count) {
    return invalid_argument(fmt::format("--launch: expected 1 to {}, found {}", count, launch));
  }
  return &plan.launches[static_cast<size_t>(launch == 0 ? count - 1 : launch - 1)];
}

}  // namespace jitgemm::cli
