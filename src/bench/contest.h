// SPDX-License-Identifier: Apache-2.0
// The contenders of one shape, whatever its kind: gathered, checked, and timed in the regimes asked
// for. A contender that cannot run, or whose result is wrong, stays in the result with the reason
// and without a time.
#pragma once

#include "bench/contender_check.h"
#include "bench/gpu_session.h"
#include "bench/regimes.h"
#include "bench/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace jitgemm::bench {

struct TimingOptions {
  bool rested = true;
  bool sustained = false;
  RestedSchedule rested_schedule;
  SustainedSchedule sustained_schedule;
};

class Contest {
 public:
  Contest(GpuSession& session, ShapeResult& result) : session_(session), result_(result) {}

  // `unnamed`: what the result says of a contender that could not be made.
  Status add(ContenderInfo unnamed, double estimate_us,
             Result<std::unique_ptr<Contender>> contender);
  Status check_all(ContenderCheck& check);
  Status time_all(const TimingOptions& options);
  // Repeats each contender's launch of set 0 and compares the bytes that it leaves at `out`.
  Status repeat_all(uint64_t out, size_t bytes, int runs);

 private:
  struct Entry {
    size_t result;  // its index in the results
    std::unique_ptr<Contender> contender;
  };

  GpuSession& session_;
  ShapeResult& result_;
  std::vector<Entry> entries_;
};

}  // namespace jitgemm::bench
