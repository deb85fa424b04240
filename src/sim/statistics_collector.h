// SPDX-License-Identifier: Apache-2.0
// Gathers the Statistics of the clusters that one host thread runs. Collectors of several threads
// are merged at the end; sums do not depend on the order.
#pragma once

#include "sim/observer.h"
#include "sim/statistics.h"

#include <map>
#include <utility>
#include <vector>

namespace jitgemm::sim {

class StatisticsCollector final : public Observer {
 public:
  explicit StatisticsCollector(const GridState& grid);

  void before(const Warp& warp, const Op& op, LaneMask active) override;
  void after(const Warp&, const Op&, LaneMask) override {}
  void parked(const Warp& warp, const Split& split) override;
  void resumed(const Warp& warp, const Split& split, uint64_t steps) override;
  void cluster_ended(const Cluster& cluster) override;

  void merge(const StatisticsCollector& other);
  Statistics finish() const;

 private:
  struct Accesses {
    uint64_t requests = 0, wavefronts = 0, ideal = 0;
  };
  struct Waits {
    uint64_t waits = 0, steps = 0, longest = 0;
  };
  struct WaitKey {
    uint32_t warp;
    uint32_t op;
    std::string_view what;  // a literal
    // NOLINTNEXTLINE(modernize-use-nullptr): the check takes the comparison with 0 for a pointer's
    auto operator<=>(const WaitKey&) const = default;
  };

  const GridState* grid_;
  Statistics sums_;                                 // its vectors stay empty
  std::vector<Accesses> accesses_;                  // by op
  std::vector<uint64_t> instructions_, lifetimes_;  // by warp
  std::map<WaitKey, Waits> waits_;
};

}  // namespace jitgemm::sim
