// SPDX-License-Identifier: Apache-2.0
#include "shape_flags.h"

#include <fmt/format.h>

#include <ctime>

namespace jitgemm::cli {

void ShapeFlags::add_to(CLI::App& command) {
  command.add_option("operation", operation, "The operation: block_scaled_mm");
  command.add_option("--suite", suite, "Shapes: seed, decode or odd");
  command.add_option("-m,--m", m, "Shapes: every m of a list")->delimiter(',');
  command.add_option("-n,--n", n, "with every (n, k) of two lists")->delimiter(',');
  command.add_option("-k,--k", k, "of one length")->delimiter(',');
  command.add_option("--out-dtype", out_dtypes, "BF16, F32, F16, or a list")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--m-policy", m_policies, "exact, class, any, or a list")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--a-scale-major", a_scale_major, "row or column")->capture_default_str();
  command.add_flag("--batch-invariant", batch_invariant, "A row's bits do not depend on m");
}

Result<std::vector<bench::Shape>> ShapeFlags::shapes() const {
  if (operation != "block_scaled_mm") {
    return unsupported(
        fmt::format("operation: '{}' cannot be timed; block_scaled_mm can", operation));
  }
  if (suite.empty()) return bench::listed_shapes(m, n, k);
  if (m.empty() && n.empty() && k.empty()) return bench::suite_shapes(suite);
  return invalid_argument("--suite: expected a suite or -m, -n and -k, found both");
}

Result<GemmProblem> ShapeFlags::problem(const bench::Shape& shape, const std::string& out_dtype,
                                        const std::string& m_policy, Arch arch) const {
  ProblemFlags flags;
  flags.m = std::to_string(shape.m);
  flags.n = shape.n;
  flags.k = shape.k;
  flags.out_dtype = out_dtype;
  flags.m_policy = m_policy;
  flags.a_scale_major = a_scale_major;
  flags.batch_invariant = batch_invariant;
  return flags.problem(arch);
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
