// SPDX-License-Identifier: Apache-2.0
// Whether a contender's product is right, before it is timed: every element finite, and a sample of
// rows and columns within the error limit of float64. Costs milliseconds at any size.
#pragma once

#include "bench/contender_check.h"
#include "bench/operands.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace jitgemm::bench {

class SampledCheck final : public ContenderCheck {
 public:
  // Reads the sample of set 0 back.
  static Result<SampledCheck> create(Workbench& bench, const GemmProblem& problem,
                                     const Operands& operands);
  Result<CheckResult> run(Contender& contender) override;

 private:
  SampledCheck(Workbench& bench, const GemmProblem& problem, const Operands& operands)
      : bench_(bench), problem_(problem), operands_(operands) {}
  Status read_sample();
  Result<const std::vector<double>*> reference(Product product);

  Workbench& bench_;
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
