// SPDX-License-Identifier: Apache-2.0
#include "bench/jitgemm_contender.h"

#include "selftest/gemm_case.h"

#include <utility>

namespace jitgemm::bench {
namespace {

class JitgemmContender final : public Contender {
 public:
  JitgemmContender(ContenderInfo info, std::shared_ptr<GemmOperation> operation,
                   DeviceMemory workspace, const Operands& operands)
      : info_(std::move(info)),
        operation_(std::move(operation)),
        workspace_(std::move(workspace)),
        operands_(operands) {}

  const ContenderInfo& info() const override { return info_; }

  Status launch(size_t index, CuStream stream) override {
    const OperandSet& set = operands_.sets()[index];
    GemmArguments arguments;
    arguments.a = set.a;
    arguments.b = set.b;
    arguments.a_scales = set.a_scales;
    arguments.b_scales = set.b_scales;
    arguments.out = set.out;
    arguments.m = operation_->plan().problem.m;
    arguments.workspace = workspace_.address();
    arguments.workspace_bytes = workspace_.bytes();
    return operation_->launch(arguments, stream);
  }

 private:
  ContenderInfo info_;
  std::shared_ptr<GemmOperation> operation_;
  DeviceMemory workspace_;
  const Operands& operands_;
};

}  // namespace

Result<std::unique_ptr<Contender>> make_jitgemm_contender(GpuSession& session,
                                                          const OperationPlan& plan,
                                                          const Operands& operands) {
  JITGEMM_ASSIGN(const PreparedGemm prepared, session.context().prepare(plan, session.device()));
  const GemmPlan& product = plan.product();
  ContenderInfo info;
  info.name = "jitgemm";
  info.variant = plan_identity(product);
  if (plan.problem.m_policy == MPolicy::kClass) info.variant += " m=class";
  if (plan.problem.m_policy == MPolicy::kAny) info.variant += " m=any";
  info.source = plan_source_name(product.source);
  info.error_limit = relative_l2_limit(plan.problem, session.device());
  JITGEMM_ASSIGN(DeviceMemory workspace,
                 DeviceMemory::create(
                     session, static_cast<size_t>(std::max<uint64_t>(
                                  256, prepared.operation->workspace_bytes(plan.problem.m)))));
  return std::unique_ptr<Contender>(
      new JitgemmContender(std::move(info), prepared.operation, std::move(workspace), operands));
}

}  // namespace jitgemm::bench
