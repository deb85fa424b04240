// SPDX-License-Identifier: Apache-2.0
// What every check of a contender's result has in common: a sample of lines, and the judgement.
#pragma once

#include "bench/contender.h"
#include "support/result.h"

#include <cstdint>
#include <string>
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

// `not_finite`: of all elements that the contender had to write.
CheckResult judge_sample(const std::vector<double>& found, const std::vector<double>& expected,
                         uint64_t not_finite, double error_limit);

class ContenderCheck {
 public:
  virtual ~ContenderCheck() = default;
  // Fills set 0's out with NaN, launches, and judges.
  virtual Result<CheckResult> run(Contender& contender) = 0;
};

}  // namespace jitgemm::bench
