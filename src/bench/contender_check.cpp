// SPDX-License-Identifier: Apache-2.0
#include "bench/contender_check.h"

#include "verify/compare.h"
#include "verify/matrix_view.h"
#include "verify/random.h"

#include <fmt/format.h>

#include <set>

namespace jitgemm::bench {

std::vector<int64_t> sample_lines(int64_t extent, int64_t wanted, uint64_t seed) {
  if (extent <= wanted) return all_indices(extent);
  std::set<int64_t> lines;
  for (int64_t i = 0; i < wanted / 4; ++i) {
    lines.insert(i);
    lines.insert(extent - 1 - i);
  }
  for (uint32_t i = 0; static_cast<int64_t>(lines.size()) < wanted; ++i) {
    const auto word = philox4x32({i, 0, 0xbe9c, 0}, {static_cast<uint32_t>(seed), 0})[0];
    lines.insert(static_cast<int64_t>(static_cast<uint64_t>(word) % static_cast<uint64_t>(extent)));
  }
  return {lines.begin(), lines.end()};
}

CheckResult judge_sample(const std::vector<double>& found, const std::vector<double>& expected,
                         uint64_t not_finite, double error_limit) {
  const ErrorMetrics metrics = measure_errors(found, expected);
  CheckResult result;
  result.relative_l2 = metrics.relative_l2;
  result.not_finite = static_cast<int64_t>(not_finite);
  result.checked = static_cast<int64_t>(found.size());
  if (not_finite != 0 || metrics.non_finite_mismatches != 0) {
    result.text = fmt::format(
        "{} elements of out, {} of the {} sampled ones, are not finite or were not written",
        not_finite, metrics.non_finite_mismatches, found.size());
  } else if (!(metrics.relative_l2 <= error_limit)) {
    result.text =
        fmt::format("relative L2 error {:.3g}, limit {:.3g}", metrics.relative_l2, error_limit);
  }
  result.passed = result.text.empty();
  return result;
}

}  // namespace jitgemm::bench
