// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace jitgemm::bench {

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const size_t half = sorted.size() / 2;
  Summary summary;
  summary.count = static_cast<int>(sorted.size());
  summary.median = sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
  summary.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / summary.count;
  summary.lowest = sorted.front();
  summary.highest = sorted.back();
  return summary;
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace jitgemm::bench
