// SPDX-License-Identifier: Apache-2.0
#include "bench/contest.h"

#include "bench/gpu_stage.h"

#include <utility>

namespace jitgemm::bench {
namespace {

// Errors that are about one contender, not about the device.
bool concerns_contender(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnsupported:
    case StatusCode::kInvalidArgument:
    case StatusCode::kCompileFailed:
    case StatusCode::kNoCompiler: return true;
    default: return false;
  }
}

// A contender that cannot take part is told of; any other error ends the run.
Status leave_out(ContenderResult& result, const Status& reason) {
  if (!concerns_contender(reason)) return reason;
  result.not_timed = reason.to_string();
  return ok_status();
}

}  // namespace

Status Contest::add(ContenderInfo unnamed, double estimate_us,
                    Result<std::unique_ptr<Contender>> contender) {
  ContenderResult entry;
  entry.info = std::move(unnamed);
  entry.estimate_us = estimate_us;
  if (!contender) {
    JITGEMM_TRY(leave_out(entry, contender.error()));
  } else {
    entry.info = (*contender)->info();
    entries_.push_back({result_.contenders.size(), std::move(*contender)});
  }
  result_.contenders.push_back(std::move(entry));
  return ok_status();
}

Status Contest::check_all(ContenderCheck& check) {
  std::vector<Entry> right;
  for (Entry& entry : entries_) {
    ContenderResult& result = result_.contenders[entry.result];
    Result<CheckResult> checked = check.run(*entry.contender);
    if (!checked) {
      JITGEMM_TRY(leave_out(result, checked.error()));
      continue;
    }
    result.check = std::move(*checked);
    if (result.check->passed) {
      right.push_back(std::move(entry));
    } else {
      result.not_timed = "wrong result: " + result.check->text;
    }
  }
  entries_ = std::move(right);
  return ok_status();
}

Status Contest::time_all(const TimingOptions& options) {
  GpuStage stage(session_);
  std::vector<Entry> staged;
  for (Entry& entry : entries_) {
    const Status added = stage.add(*entry.contender, result_.sets, result_.single_call);
    if (added.ok()) {
      staged.push_back(std::move(entry));
    } else {
      JITGEMM_TRY(leave_out(result_.contenders[entry.result], added));
    }
  }
  entries_ = std::move(staged);
  if (entries_.empty()) return ok_status();
  const int calls = result_.sets;
  if (options.rested) {
    JITGEMM_ASSIGN(const auto samples,
                   measure_rested(stage, entries_.size(), options.rested_schedule));
    for (size_t i = 0; i < entries_.size(); ++i) {
      for (const double unit_us : samples[i]) {
        result_.contenders[entries_[i].result].rested_us.push_back(unit_us / calls);
      }
    }
  }
  if (options.sustained) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      JITGEMM_ASSIGN(const SustainedFigure figure,
                     measure_sustained(stage, i, options.sustained_schedule));
      result_.contenders[entries_[i].result].sustained =
          SustainedResult{figure.unit_us / calls, figure.units * calls, figure.state};
    }
  }
  return ok_status();
}

Status Contest::repeat_all(uint64_t out, size_t bytes, int runs) {
  std::vector<std::byte> first(bytes);
  std::vector<std::byte> again(bytes);
  for (Entry& entry : entries_) {
    RepeatResult repeats;
    for (int run = 0; run <= runs; ++run) {
      // Every other one follows a launch and the fill, so that not all find an idle device.
      if (run % 2 == 1) JITGEMM_TRY(entry.contender->launch(0, session_.stream()));
      JITGEMM_TRY(session_.fill(out, 0xff, bytes));
      JITGEMM_TRY(entry.contender->launch(0, session_.stream()));
      JITGEMM_TRY(session_.synchronize());
      std::vector<std::byte>& found = run == 0 ? first : again;
      JITGEMM_TRY(session_.device().copy_to_host(found.data(), out, bytes));
      if (run == 0) continue;
      ++repeats.runs;
      if (again != first) ++repeats.differing;
    }
    result_.contenders[entry.result].repeats = repeats;
  }
  return ok_status();
}

}  // namespace jitgemm::bench
