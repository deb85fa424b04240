// SPDX-License-Identifier: Apache-2.0
// Whether a contender's product is right, before it is timed: every element finite, and a sample of
// rows and columns within the error limit of float64. Costs milliseconds at any size.
#pragma once

#include "bench/contender.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace jitgemm::bench {

struct CheckResult {
  bool passed = false;
  double relative_l2 = 0;
  int64_t not_finite = 0;
  int64_t checked = 0;  // elements
  std::string text;     // what is wrong; empty if passed
};

// At most `wanted` of 0 ... extent - 1, rising: the first, the last, and some between at random.
std::vector<int64_t> sample_lines(int64_t extent, int64_t wanted, uint64_t seed);

class SampledCheck {
 public:
  // Reads the sample of set 0 back.
  static Result<SampledCheck> create(GpuSession& session, const GemmProblem& problem,
                                     const Operands& operands);
  // Fills set 0's out with NaN, launches, and judges.
  Result<CheckResult> run(Contender& contender);

 private:
  SampledCheck(GpuSession& session, const GemmProblem& problem, const Operands& operands)
      : session_(session), problem_(problem), operands_(operands) {}
  Status read_sample();
  Result<const std::vector<double>*> reference(Product product);

  GpuSession& session_;
  GemmProblem problem_;
  const Operands& operands_;
  std::vector<int64_t> rows_;
  std::vector<int64_t> columns_;
  std::vector<uint8_t> a_;
  std::vector<uint8_t> b_;
  std::vector<float> a_scales_;  // of the sampled rows and columns, row by row
  std::vector<float> b_scales_;
  std::optional<std::vector<double>> block_;
  std::optional<std::vector<double>> tensorwise_;
  DeviceMemory counter_;
};

}  // namespace jitgemm::bench
