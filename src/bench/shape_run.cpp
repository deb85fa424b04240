// SPDX-License-Identifier: Apache-2.0
#include "bench/shape_run.h"

#include "bench/gpu_stage.h"
#include "bench/jitgemm_contender.h"

#include <chrono>
#include <utility>

namespace jitgemm::bench {
namespace {

struct Entry {
  size_t result;  // its index in the results
  std::unique_ptr<Contender> contender;
};

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

class ShapeRun {
 public:
  ShapeRun(GpuSession& session, const GemmProblem& problem, const Operands& operands,
           ShapeResult& result)
      : session_(session), problem_(problem), operands_(operands), result_(result) {}

  Status add(ContenderInfo unnamed, double estimate_us,
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

  Status check_all() {
    JITGEMM_ASSIGN(SampledCheck check, SampledCheck::create(session_, problem_, operands_));
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

  Status time_all(const ShapeRunOptions& options) {
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

 private:
  // A contender that cannot take part is told of; any other error ends the run.
  static Status leave_out(ContenderResult& result, const Status& reason) {
    if (!concerns_contender(reason)) return reason;
    result.not_timed = reason.to_string();
    return ok_status();
  }

  GpuSession& session_;
  const GemmProblem& problem_;
  const Operands& operands_;
  ShapeResult& result_;
  std::vector<Entry> entries_;
};

}  // namespace

Result<ShapeResult> run_shape(GpuSession& session, const std::vector<OperationPlan>& plans,
                              CublasLt* peers, const ShapeRunOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  if (plans.empty()) return invalid_argument("bench: no plan to time");
  const GemmProblem& problem = plans.front().problem;
  ShapeResult result;
  result.shape = {problem.m, problem.n, problem.k};
  result.out_dtype = dtype_info(problem.out_dtype).name;
  result.single_call = result.shape.flops() >= kGraphBelowFlops;
  result.sets = operand_sets(result.shape.flops(), operand_bytes(result.shape));
  JITGEMM_ASSIGN(const Operands operands, Operands::draw(session, problem, result.sets));
  ShapeRun run(session, problem, operands, result);
  for (const OperationPlan& plan : plans) {
    ContenderInfo info{"jitgemm", plan_identity(plan.product()),
                       std::string(plan_source_name(plan.product().source))};
    JITGEMM_TRY(run.add(std::move(info), plan.product().estimate_us,
                        make_jitgemm_contender(session, plan, operands)));
  }
  if (peers != nullptr) {
    JITGEMM_TRY(run.add({"cublaslt_block", "", "peer"}, 0,
                        make_cublaslt_contender(*peers, CublasLtKind::kBlock, problem, operands)));
    if (options.tensorwise) {
      JITGEMM_TRY(
          run.add({"cublaslt_tensorwise", "", "peer", Product::kTensorwise}, 0,
                  make_cublaslt_contender(*peers, CublasLtKind::kTensorwise, problem, operands)));
    }
  }
  for (const PeerModule* module : options.modules) {
    JITGEMM_TRY(run.add({module->name(), "", "peer"}, 0,
                        make_module_contender(*module, problem, operands)));
  }
  JITGEMM_TRY(run.check_all());
  result.setup_s = std::chrono::duration<double>(Clock::now() - start).count();
  JITGEMM_TRY(run.time_all(options));
  return result;
}

}  // namespace jitgemm::bench
