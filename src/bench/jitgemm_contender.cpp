// SPDX-License-Identifier: Apache-2.0
#include "bench/jitgemm_contender.h"

#include "selftest/gemm_case.h"

#include <utility>

namespace jitgemm::bench {
namespace {

class JitgemmContender final : public Contender {
 public:
  JitgemmContender(ContenderInfo info, std::shared_ptr<GemmOperation> operation,
                   DeviceMemory workspace, std::vector<GemmArguments> sets)
      : info_(std::move(info)),
        operation_(std::move(operation)),
        workspace_(std::move(workspace)),
        sets_(std::move(sets)) {
    for (GemmArguments& set : sets_) {
      set.workspace = workspace_.address();
      set.workspace_bytes = workspace_.bytes();
    }
  }

  const ContenderInfo& info() const override { return info_; }

  Status launch(size_t index, CuStream stream) override {
    return operation_->launch(sets_[index], stream);
  }

 private:
  ContenderInfo info_;
  std::shared_ptr<GemmOperation> operation_;
  DeviceMemory workspace_;
  std::vector<GemmArguments> sets_;
};

}  // namespace

std::vector<GemmArguments> launch_sets(const GemmProblem& problem, const Operands& operands) {
  std::vector<GemmArguments> sets;
  for (const OperandSet& set : operands.sets()) {
    GemmArguments of_set;
    of_set.a = set.a;
    of_set.b = set.b;
    of_set.a_scales =
        problem.a_scale_major == ScaleMajor::kRow ? set.a_scales : set.a_scales_column_major;
    of_set.b_scales = set.b_scales;
    of_set.out = set.out;
    of_set.m = problem.m;
    sets.push_back(of_set);
  }
  return sets;
}

std::vector<GemmArguments> launch_sets(const GemmProblem& problem,
                                       const GroupedOperands& operands) {
  const GroupedForms& form = operands.form(form_of(operands.shape(), problem));
  const bool pointers = problem.grouping.layout == GroupLayout::kRowPointers;
  std::vector<GemmArguments> sets;
  for (size_t i = 0; i < form.sets.size(); ++i) {
    const GroupedRowSet& rows = form.sets[i];
    GemmArguments of_set;
    of_set.a = rows.a;
    of_set.b = operands.weights()[i].b;
    of_set.a_scales =
        problem.a_scale_major == ScaleMajor::kRow ? rows.a_scales : rows.a_scales_column_major;
    of_set.b_scales = operands.weights()[i].b_scales;
    of_set.out = rows.out;
    of_set.group_rows = pointers ? form.row_pointers : form.group_rows;
    of_set.m = problem.m;
    sets.push_back(of_set);
  }
  return sets;
}

Result<std::unique_ptr<Contender>> make_jitgemm_contender(Workbench& bench,
                                                          const OperationPlan& plan,
                                                          std::vector<GemmArguments> sets,
                                                          GroupedForm form) {
  JITGEMM_ASSIGN(const PreparedGemm prepared, bench.context().prepare(plan, bench.device()));
  const GemmPlan& product = plan.product();
  ContenderInfo info;
  info.name = "jitgemm";
  info.variant = plan_identity(product);
  if (plan.problem.m_policy == MPolicy::kClass) info.variant += " m=class";
  if (plan.problem.m_policy == MPolicy::kAny) info.variant += " m=any";
  if (plan.problem.a_scale_major == ScaleMajor::kColumn) info.variant += " scales=column";
  info.source = plan_source_name(product.source);
  info.programmatic = !sets.empty() && sets.front().programmatic_dependence;
  info.form = form;
  if (plan.problem.grouping.grouped()) {
    info.layout = group_layout_name(plan.problem.grouping.layout);
  }
  info.error_limit = relative_l2_limit(plan.problem, bench.device());
  JITGEMM_ASSIGN(
      DeviceMemory workspace,
      DeviceMemory::create(bench, static_cast<size_t>(std::max<uint64_t>(
                                      256, prepared.operation->workspace_bytes(plan.problem.m)))));
  return std::unique_ptr<Contender>(new JitgemmContender(std::move(info), prepared.operation,
                                                         std::move(workspace), std::move(sets)));
}

}  // namespace jitgemm::bench
