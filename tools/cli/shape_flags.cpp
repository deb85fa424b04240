// SPDX-License-Identifier: Apache-2.0
#include "shape_flags.h"

#include "bench/operands.h"

#include <fmt/format.h>

#include <ctime>

namespace jitgemm::cli {

void ShapeFlags::add_to(CLI::App& command) {
  command.add_option("operation", operation,
                     "The operation: block_scaled_mm or group_gemm_fp8_nt_groupwise");
  command.add_option("--suite", suite,
                     "Shapes: seed, decode or odd; of groups contiguous, masked or grouped (both)");
  comma_list(command.add_option("--groups", groups,
                                "Of groups: how many, a list; -m is then the rows of each"));
  comma_list(command.add_option(
      "--mean", means,
      "Groups with room for -m rows each, of which this many are in use on average: masked"));
  comma_list(command.add_option("-m,--m", m, "Shapes: every m of a list"));
  comma_list(command.add_option("-n,--n", n, "with every (n, k) of two lists"));
  comma_list(command.add_option("-k,--k", k, "of one length"));
  comma_list(command.add_option("--out-dtype", out_dtypes, "BF16, F32, F16, or a list"))
      ->capture_default_str();
  comma_list(command.add_option("--m-policy", m_policies, "exact, class, any, or a list"))
      ->capture_default_str();
  comma_list(
      command.add_option("--a-scale-major", a_scale_majors, "row, column, or both side by side"))
      ->capture_default_str();
  command.add_flag("--batch-invariant", batch_invariant, "A row's bits do not depend on m");
}

namespace {

Status one_way_to_name_shapes(const ShapeFlags& flags) {
  const bool listed = !flags.m.empty() || !flags.n.empty() || !flags.k.empty() ||
                      !flags.groups.empty() || !flags.means.empty();
  if (flags.suite.empty() || !listed) return ok_status();
  return invalid_argument("--suite: expected a suite or lists of sizes, found both");
}

}  // namespace

Status ShapeFlags::check() const {
  if (grouped()) {
    JITGEMM_ASSIGN(const std::vector<bench::GroupedShape> listed, grouped_shapes());
  } else {
    JITGEMM_ASSIGN(const std::vector<bench::Shape> listed, shapes());
  }
  return ok_status();
}

Result<std::vector<bench::Shape>> ShapeFlags::shapes() const {
  if (operation != "block_scaled_mm") {
    return unsupported(
        fmt::format("operation: '{}' cannot be timed; block_scaled_mm and "
                    "group_gemm_fp8_nt_groupwise can",
                    operation));
  }
  JITGEMM_TRY(one_way_to_name_shapes(*this));
  if (!groups.empty() || !means.empty()) {
    return invalid_argument("--groups, --mean: block_scaled_mm has none");
  }
  return suite.empty() ? bench::listed_shapes(m, n, k) : bench::suite_shapes(suite);
}

Result<std::vector<bench::GroupedShape>> ShapeFlags::grouped_shapes() const {
  JITGEMM_TRY(one_way_to_name_shapes(*this));
  return suite.empty() ? bench::listed_grouped_shapes(groups, m, means, n, k)
                       : bench::grouped_suite_shapes(suite);
}

Result<GemmProblem> ShapeFlags::problem(const bench::Shape& shape, const std::string& out_dtype,
                                        const std::string& m_policy,
                                        const std::string& a_scale_major, Arch arch) const {
  ProblemFlags flags;
  flags.m = std::to_string(shape.m);
  flags.n = shape.n;
  flags.k = shape.k;
  flags.out_dtype = out_dtype;
  flags.m_policy = m_policy;
  flags.a_scale_major = a_scale_major;
  flags.batch_invariant = batch_invariant;
  JITGEMM_ASSIGN(GemmProblem problem, flags.problem(arch));
  // Columns as operands have them: of a multiple of 4 rows.
  if (problem.a_scale_major == ScaleMajor::kColumn && !grouped()) {
    problem.a_scale_ld = bench::operand_layout(shape).padded_m;
  }
  return problem;
}

Result<std::vector<GemmProblem>> ShapeFlags::problems(const bench::GroupedShape& shape,
                                                      const std::string& out_dtype,
                                                      const std::string& m_policy,
                                                      const std::string& a_scale_major,
                                                      Arch arch) const {
  JITGEMM_ASSIGN(const GemmProblem base,
                 problem(bench::product_of(shape), out_dtype, m_policy, a_scale_major, arch));
  std::vector<GemmProblem> list = bench::grouped_problems(shape, base);
  for (const GemmProblem& p : list) JITGEMM_TRY(validate(p));
  return list;
}

std::string utc_now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&time, &utc);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace jitgemm::cli
