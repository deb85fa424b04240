// SPDX-License-Identifier: Apache-2.0
// Writes a line of text for every warp instruction, with what its first active lane got, and for
// every wait. For people and for diffs: with one seed, two runs of a program write the same lines,
// addresses apart.
#pragma once

#include "sim/observer.h"

namespace jitgemm::sim {

class TraceWriter final : public Observer {
 public:
  explicit TraceWriter(const GridState& grid) : grid_(&grid) {}

  void before(const Warp&, const Op&, LaneMask) override {}
  void after(const Warp& warp, const Op& op, LaneMask active) override;
  void parked(const Warp& warp, const Split& split) override;
  void resumed(const Warp& warp, const Split& split, uint64_t steps) override;
  void cluster_ended(const Cluster& cluster) override;

 private:
  const GridState* grid_;
};

}  // namespace jitgemm::sim
