// SPDX-License-Identifier: Apache-2.0
// The flags that name many shapes, shared by bench and tune.
#pragma once

#include "bench/shapes.h"
#include "cli.h"

#include <string>
#include <vector>

namespace jitgemm::cli {

struct ShapeFlags {
  std::string operation;
  std::string suite;
  std::vector<int64_t> m;
  std::vector<int64_t> n;
  std::vector<int64_t> k;
  std::vector<std::string> out_dtypes = {"BF16"};
  std::vector<std::string> m_policies = {"exact"};
  std::string a_scale_major = "row";
  bool batch_invariant = false;

  void add_to(CLI::App& command);
  bool any() const { return !suite.empty() || !m.empty() || !n.empty() || !k.empty(); }
  Result<std::vector<bench::Shape>> shapes() const;
  Result<GemmProblem> problem(const bench::Shape& shape, const std::string& out_dtype,
                              const std::string& m_policy, Arch arch) const;
};

// Now, in UTC: "2026-01-31T12:00:00Z".
std::string utc_now();

}  // namespace jitgemm::cli
