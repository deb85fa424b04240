// SPDX-License-Identifier: Apache-2.0
// Measures the candidate plans of one problem and says which to keep: a few rounds of all, then all
// rounds of the best few. Rested regime; every candidate is checked before it is timed.
#pragma once

#include "bench/shape_run.h"
#include "plan/tuning_database.h"

#include <optional>
#include <string>
#include <vector>

namespace jitgemm::bench {

struct TuneOptions {
  int coarse_rounds = 3;
  int fine_rounds = 9;
  int finalists = 4;
  // The model's choice stays unless another is faster by this share.
  double advantage = 0.01;
};

struct TuneOutcome {
  TunedPlan row;
  ShapeResult coarse;
  ShapeResult fine;
};

// Of contenders that were timed, the fastest few, fastest first, and the first of all (the model's
// choice) in any case. Indices into the contenders.
std::vector<size_t> finalists(const ShapeResult& coarse, int wanted);

// The contender to keep: the first, unless another is faster by the advantage. Nothing if none was
// timed.
std::optional<size_t> winner(const ShapeResult& fine, double advantage);

// `ranked`: the candidates, the model's choice first; of groups, those of one of
// grouped_problems(). VERIFICATION_FAILED if none is right.
Result<TuneOutcome> tune_shape(GpuSession& session, const std::optional<GroupedShape>& groups,
                               const std::vector<OperationPlan>& ranked, const TuneOptions& options,
                               const std::string& version, const std::string& date);

}  // namespace jitgemm::bench
