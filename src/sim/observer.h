// SPDX-License-Identifier: Apache-2.0
// Someone who watches a run: told of each warp instruction and of each wait. The interpreter has a
// copy of its loop for observed runs, so that an unobserved run pays nothing. An observer sees one
// cluster at a time and must not change anything.
#pragma once

#include "sim/machine_state.h"

#include <cstdint>
#include <vector>

namespace jitgemm::sim {

class Observer {
 public:
  virtual ~Observer() = default;
  // Around the execution of an op; `after` is not called for an op that parked or faulted.
  virtual void before(const Warp& warp, const Op& op, LaneMask active) = 0;
  virtual void after(const Warp& warp, const Op& op, LaneMask active) = 0;
  // A split has begun to wait at Split::parked_op, and has gone on after so many Cluster::steps.
  virtual void parked(const Warp& warp, const Split& split) = 0;
  virtual void resumed(const Warp& warp, const Split& split, uint64_t steps) = 0;
  virtual void cluster_ended(const Cluster& cluster) = 0;
};

// Several observers as one.
class Observers final : public Observer {
 public:
  void add(Observer& observer) { all_.push_back(&observer); }
  void before(const Warp& warp, const Op& op, LaneMask active) override {
    for (Observer* o : all_) o->before(warp, op, active);
  }
  void after(const Warp& warp, const Op& op, LaneMask active) override {
    for (Observer* o : all_) o->after(warp, op, active);
  }
  void parked(const Warp& warp, const Split& split) override {
    for (Observer* o : all_) o->parked(warp, split);
  }
  void resumed(const Warp& warp, const Split& split, uint64_t steps) override {
    for (Observer* o : all_) o->resumed(warp, split, steps);
  }
  void cluster_ended(const Cluster& cluster) override {
    for (Observer* o : all_) o->cluster_ended(cluster);
  }

 private:
  std::vector<Observer*> all_;
};

}  // namespace jitgemm::sim
