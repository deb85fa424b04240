// SPDX-License-Identifier: Apache-2.0
// Contenders of one shape as the units of a regime: single calls, or graphs over all sets.
#pragma once

#include "bench/contender.h"
#include "bench/gpu_session.h"
#include "bench/regimes.h"

#include <functional>
#include <utility>
#include <vector>

namespace jitgemm::bench {

class GpuStage final : public Stage {
 public:
  explicit GpuStage(GpuSession& session) : session_(session) {}

  // `sets` calls a unit, as a graph, or one call as it is.
  Status add(Contender& contender, int sets, bool single_call);
  // Anything else that can be put on a stream.
  void add(std::function<Status(CuStream)> work) { units_.push_back(std::move(work)); }
  void rest(double milliseconds) override;
  Result<double> time_one(size_t contender) override;
  Result<double> time_many(size_t contender, int64_t units, DeviceState* state) override;

 private:
  GpuSession& session_;
  std::vector<std::function<Status(CuStream)>> units_;
};

}  // namespace jitgemm::bench
