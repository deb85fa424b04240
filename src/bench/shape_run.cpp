// SPDX-License-Identifier: Apache-2.0
#include "bench/shape_run.h"

#include "bench/grouped_check.h"
#include "bench/jitgemm_contender.h"
#include "bench/sampled_check.h"

#include <chrono>
#include <utility>

namespace jitgemm::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

ContenderInfo ours(const OperationPlan& plan) {
  ContenderInfo info;
  info.name = "jitgemm";
  info.variant = plan_identity(plan.product());
  info.source = plan_source_name(plan.product().source);
  return info;
}

std::vector<GemmArguments> with_edges(std::vector<GemmArguments> sets, bool early) {
  for (GemmArguments& set : sets) set.programmatic_dependence = early;
  return sets;
}

ContenderInfo peer(std::string name, Product product = Product::kBlockScaled, bool early = false) {
  ContenderInfo info;
  info.programmatic = early;
  info.name = std::move(name);
  info.source = "peer";
  info.product = product;
  return info;
}

}  // namespace

Result<ShapeResult> run_shape(GpuSession& session, const std::vector<OperationPlan>& plans,
                              CublasLt* peers, const ShapeRunOptions& options) {
  const Clock::time_point start = Clock::now();
  if (plans.empty()) return invalid_argument("bench: no plan to time");
  const GemmProblem& problem = plans.front().problem;
  ShapeResult result;
  result.shape = {problem.m, problem.n, problem.k};
  result.out_dtype = dtype_info(problem.out_dtype).name;
  result.fewest_bytes = fewest_bytes(result.shape, dtype_info(problem.out_dtype).bytes);
  result.single_call = result.shape.flops() >= kGraphBelowFlops;
  result.sets = operand_sets(result.shape.flops(), operand_bytes(result.shape));
  JITGEMM_ASSIGN(const Operands operands, Operands::draw(session, problem, result.sets));
  Contest contest(session, result);
  for (const bool early : options.edges()) {
    for (const OperationPlan& plan : plans) {
      JITGEMM_TRY(
          contest.add(ours(plan), plan.product().estimate_us,
                      make_jitgemm_contender(
                          session, plan, with_edges(launch_sets(plan.problem, operands), early))));
    }
  }
  // cuBLASLt offers no launches that may begin early.
  if (peers != nullptr && options.pdl != PdlEdges::kOn) {
    JITGEMM_TRY(
        contest.add(peer("cublaslt_block"), 0,
                    make_cublaslt_contender(*peers, CublasLtKind::kBlock, problem, operands)));
    if (options.tensorwise) {
      JITGEMM_TRY(contest.add(
          peer("cublaslt_tensorwise", Product::kTensorwise), 0,
          make_cublaslt_contender(*peers, CublasLtKind::kTensorwise, problem, operands)));
    }
  }
  for (const bool early : options.edges()) {
    for (const PeerModule* module : options.modules) {
      JITGEMM_TRY(contest.add(peer(module->name(), Product::kBlockScaled, early), 0,
                              make_module_contender(*module, problem, operands, early)));
    }
  }
  JITGEMM_ASSIGN(SampledCheck check, SampledCheck::create(session, problem, operands));
  JITGEMM_TRY(contest.check_all(check));
  result.setup_s = seconds_since(start);
  if (options.repeats > 0) {
    JITGEMM_TRY(contest.repeat_all(operands.sets()[0].out, operands.out_bytes(), options.repeats));
    return result;
  }
  JITGEMM_TRY(contest.time_all(options.timing));
  return result;
}

Result<ShapeResult> run_grouped_shape(GpuSession& session, const GroupedShape& shape,
                                      const std::vector<OperationPlan>& plans, CublasLt* peers,
                                      const ShapeRunOptions& options) {
  const Clock::time_point start = Clock::now();
  if (plans.empty()) return invalid_argument("bench: no plan to time");
  const DType out_dtype = plans.front().problem.out_dtype;
  ShapeResult result;
  result.shape = product_of(shape);
  result.groups = shape;
  result.out_dtype = dtype_info(out_dtype).name;
  result.fewest_bytes = fewest_bytes(shape, dtype_info(out_dtype).bytes);
  result.sets = operand_sets(result.shape.flops(), fewest_bytes(shape, 0));
  JITGEMM_ASSIGN(const GroupedOperands operands,
                 GroupedOperands::draw(session, shape, out_dtype, result.sets));
  Contest contest(session, result);
  for (const bool early : options.edges()) {
    for (const OperationPlan& plan : plans) {
      ContenderInfo info = ours(plan);
      info.form = form_of(shape, plan.problem);
      info.layout = group_layout_name(plan.problem.grouping.layout);
      Result<std::unique_ptr<Contender>> contender = make_jitgemm_contender(
          session, plan, with_edges(launch_sets(plan.problem, operands), early), info.form);
      JITGEMM_TRY(contest.add(std::move(info), plan.product().estimate_us, std::move(contender)));
    }
  }
  const auto add_peer = [&](const std::string& name, bool early,
                            Result<std::unique_ptr<Contender>> contender) -> Status {
    ContenderInfo info = peer(name, Product::kBlockScaled, early);
    info.form = peer_form(shape);
    return contest.add(std::move(info), 0, std::move(contender));
  };
  if (peers != nullptr && options.pdl != PdlEdges::kOn) {
    JITGEMM_TRY(add_peer("cublaslt_loop", false, make_cublaslt_loop(*peers, out_dtype, operands)));
  }
  for (const bool early : options.edges()) {
    for (const PeerModule* module : options.modules) {
      JITGEMM_TRY(add_peer(module->name(), early,
                           make_module_contender(*module, out_dtype, operands, early)));
    }
  }
  JITGEMM_ASSIGN(GroupedCheck check, GroupedCheck::create(session, out_dtype, operands));
  JITGEMM_TRY(contest.check_all(check));
  result.setup_s = seconds_since(start);
  JITGEMM_TRY(contest.time_all(options.timing));
  return result;
}

}  // namespace jitgemm::bench
