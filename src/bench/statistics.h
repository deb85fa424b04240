// SPDX-License-Identifier: Apache-2.0
// What a list of samples says: the median that is reported, and the spread that says how far to
// trust it. Knows nothing of devices.
#pragma once

#include <span>
#include <vector>

namespace jitgemm::bench {

struct Summary {
  int count = 0;
  double median = 0;
  double mean = 0;
  double lowest = 0;
  double highest = 0;

  // Highest less lowest, over the median.
  double spread() const { return median > 0 ? (highest - lowest) / median : 0; }
};

// Of no samples: all zero.
Summary summarize(std::span<const double> samples);

// The n-th root of a product of n positive numbers; 0 of none.
double geometric_mean(std::span<const double> values);

}  // namespace jitgemm::bench
