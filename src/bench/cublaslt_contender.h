// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's products as contenders: block-scaled FP8 (1 x 128, 128 x 128), tensor-wise FP8, and
// bf16 for the ceiling; of groups a loop. A library without an entry for a shape answers
// UNSUPPORTED.
#pragma once

#include "bench/contender.h"
#include "bench/cublaslt_api.h"
#include "bench/grouped_operands.h"
#include "bench/operands.h"

#include <memory>
#include <string>

namespace jitgemm::bench {

// The library and what its calls share.
class CublasLt {
 public:
  static Result<std::unique_ptr<CublasLt>> create(Workbench& bench, const std::string& path);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  const CublasLtApi& api() const { return api_; }
  CublasLtHandle handle() const { return handle_; }
  const DeviceMemory& workspace() const { return workspace_; }
  uint64_t tensorwise_scale() const { return scale_.address(); }
  std::string version() const;

 private:
  explicit CublasLt(CublasLtApi api) : api_(std::move(api)) {}

  CublasLtApi api_;
  CublasLtHandle handle_ = nullptr;
  DeviceMemory workspace_;
  DeviceMemory scale_;
};

enum class CublasLtKind { kBlock, kTensorwise, kTensorwiseSlow, kBF16 };

// `operands` and `library` outlive the contender.
Result<std::unique_ptr<Contender>> make_cublaslt_contender(CublasLt& library, CublasLtKind kind,
                                                           const GemmProblem& problem,
                                                           const Operands& operands);
// A block-scaled product for each group that has rows.
Result<std::unique_ptr<Contender>> make_cublaslt_loop(CublasLt& library, DType out_dtype,
                                                      const GroupedOperands& operands);

}  // namespace jitgemm::bench
