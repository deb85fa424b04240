// SPDX-License-Identifier: Apache-2.0
// The flags that name many shapes, shared by bench and tune.
#pragma once

#include "bench/grouped_shapes.h"
#include "bench/shapes.h"
#include "cli.h"

#include <string>
#include <utility>
#include <vector>

namespace jitgemm::cli {

struct ShapeFlags {
  std::string operation;
  std::string suite;
  std::vector<int64_t> m;
  std::vector<int64_t> n;
  std::vector<int64_t> k;
  std::vector<int64_t> groups;
  std::vector<int64_t> means;
  std::vector<std::string> out_dtypes = {"BF16"};
  std::vector<std::string> m_policies = {"exact"};
  std::vector<std::string> a_scale_majors = {"row"};
  bool batch_invariant = false;

  void add_to(CLI::App& command);
  bool any() const {
    return !suite.empty() || !m.empty() || !n.empty() || !k.empty() || !groups.empty() ||
           !means.empty();
  }
  bool grouped() const { return operation == "group_gemm_fp8_nt_groupwise"; }
  // Each policy of m with each order of a's scales, side by side.
  std::vector<std::pair<std::string, std::string>> variants() const {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& policy : m_policies) {
      for (const std::string& major : a_scale_majors) all.emplace_back(policy, major);
    }
    return all;
  }
  // Whether the lists and names are right, without a device.
  Status check() const;
  Result<std::vector<bench::Shape>> shapes() const;
  // Of the grouped operation.
  Result<std::vector<bench::GroupedShape>> grouped_shapes() const;
  Result<GemmProblem> problem(const bench::Shape& shape, const std::string& out_dtype,
                              const std::string& m_policy, const std::string& a_scale_major,
                              Arch arch) const;
  // One for each way to say whose rows are whose: bench::grouped_problems().
  Result<std::vector<GemmProblem>> problems(const bench::GroupedShape& shape,
                                            const std::string& out_dtype,
                                            const std::string& m_policy,
                                            const std::string& a_scale_major, Arch arch) const;
};

// Now, in UTC: "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace jitgemm::cli
