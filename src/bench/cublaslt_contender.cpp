// SPDX-License-Identifier: Apache-2.0
#include "bench/cublaslt_contender.h"

#include <fmt/format.h>

#include <utility>

namespace jitgemm::bench {
namespace {

// What a caller usually gives it on this architecture.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

const void* pointer(uint64_t address) {
  return reinterpret_cast<const void*>(address);
}

int cuda_type(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3: return kCudaF8E4M3;
    case DType::kF8E5M2: return kCudaF8E5M2;
    case DType::kBF16: return kCudaBF16;
    case DType::kF16: return kCudaF16;
    default: return kCudaF32;
  }
}

// Its matrices are column-major: out is the [n, m] product of b, transposed, with a.
class CublasLtContender final : public Contender {
 public:
  CublasLtContender(CublasLt& library, CublasLtKind kind, const GemmProblem& problem,
                    const Operands& operands)
      : library_(library), kind_(kind), problem_(problem), operands_(operands) {}
  ~CublasLtContender() override {
    const CublasLtApi& api = library_.api();
    for (CublasLtMatmulDesc desc : descs_) api.desc_destroy(desc);
    for (CublasLtMatrixLayout layout : {weights_, tokens_, out_}) {
      if (layout != nullptr) api.layout_destroy(layout);
    }
  }
  CublasLtContender(const CublasLtContender&) = delete;
  CublasLtContender& operator=(const CublasLtContender&) = delete;

  Status create() {
    const CublasLtApi& api = library_.api();
    const GemmProblem& p = problem_;
    const int operand = kind_ == CublasLtKind::kBF16 ? kCudaBF16 : cuda_type(p.a_dtype);
    const auto m = static_cast<uint64_t>(operands_.layout().padded_m);
    const auto n = static_cast<uint64_t>(p.n);
    const auto k = static_cast<uint64_t>(p.k);
    const auto check = CublasLtApi::check;
    JITGEMM_TRY(check(api.layout_create(&weights_, operand, k, n, p.k), "layout of b"));
    JITGEMM_TRY(check(api.layout_create(&tokens_, operand, k, m, p.k), "layout of a"));
    JITGEMM_TRY(
        check(api.layout_create(&out_, cuda_type(p.out_dtype), n, m, p.n), "layout of out"));
    // A description holds its scales' addresses: one a set.
    for (const OperandSet& set : operands_.sets()) {
      CublasLtMatmulDesc desc = nullptr;
      JITGEMM_TRY(check(api.desc_create(&desc, kCublasCompute32F, kCudaF32), "description"));
      descs_.push_back(desc);
      JITGEMM_TRY(describe(desc, set));
    }
    CublasLtPreference preference = nullptr;
    JITGEMM_TRY(check(api.preference_create(&preference), "preference"));
    const size_t workspace = library_.workspace().bytes();
    int found = 0;
    int result =
        api.preference_set(preference, kPreferenceMaxWorkspace, &workspace, sizeof(workspace));
    if (result == kCublasSuccess) {
      result = api.heuristic(library_.handle(), descs_[0], weights_, tokens_, out_, out_,
                             preference, 1, &choice_, &found);
    }
    api.preference_destroy(preference);
    JITGEMM_TRY(check(result, "cublasLtMatmulAlgoGetHeuristic"));
    if (found == 0) return unsupported("cublasLtMatmulAlgoGetHeuristic: no algorithm");
    fill_info();
    return ok_status();
  }

  const ContenderInfo& info() const override { return info_; }

  Status launch(size_t index, CuStream stream) override {
    const OperandSet& set = operands_.sets()[index];
    const float alpha = 1;
    const float beta = 0;
    void* out = reinterpret_cast<void*>(set.out);
    return CublasLtApi::check(
        library_.api().matmul(library_.handle(), descs_[index], &alpha, pointer(set.b), weights_,
                              pointer(set.a), tokens_, &beta, out, out_, out, out_,
                              &choice_.algorithm,
                              reinterpret_cast<void*>(library_.workspace().address()),
                              library_.workspace().bytes(), stream),
        "cublasLtMatmul");
  }

 private:
  Status describe(CublasLtMatmulDesc desc, const OperandSet& set) {
    const auto put = [&](int attribute, const auto& value, const char* what) {
      return CublasLtApi::check(library_.api().desc_set(desc, attribute, &value, sizeof(value)),
                                what);
    };
    const int32_t transpose = kCublasOpTranspose;
    JITGEMM_TRY(put(kMatmulTransposeA, transpose, "transpose"));
    if (kind_ == CublasLtKind::kBF16) return ok_status();
    if (kind_ == CublasLtKind::kBlock) {
      JITGEMM_TRY(put(kMatmulScaleModeA, kScaleModeBlock128, "scale mode 128 x 128"));
      JITGEMM_TRY(put(kMatmulScaleModeB, kScaleModeVector128, "scale mode 1 x 128"));
      JITGEMM_TRY(put(kMatmulScaleA, pointer(set.b_scales_padded), "scales of b"));
      return put(kMatmulScaleB, pointer(set.a_scales_column_major), "scales of a");
    }
    const int8_t fast = kind_ == CublasLtKind::kTensorwise ? 1 : 0;
    JITGEMM_TRY(put(kMatmulFastAccumulation, fast, "fast accumulation"));
    JITGEMM_TRY(put(kMatmulScaleA, pointer(library_.tensorwise_scale()), "scale of b"));
    return put(kMatmulScaleB, pointer(library_.tensorwise_scale()), "scale of a");
  }

  void fill_info() {
    switch (kind_) {
      case CublasLtKind::kBlock: info_.name = "cublaslt_block"; break;
      case CublasLtKind::kTensorwise: info_.name = "cublaslt_tensorwise"; break;
      case CublasLtKind::kTensorwiseSlow: info_.name = "cublaslt_tensorwise_slow"; break;
      case CublasLtKind::kBF16: info_.name = "cublaslt_bf16"; break;
    }
    info_.variant = "cuBLASLt " + library_.version();
    info_.source = "peer";
    const bool block = kind_ == CublasLtKind::kBlock;
    info_.product = block ? Product::kBlockScaled : Product::kTensorwise;
    // Fast accumulation sums in the tensor core's short accumulator over all of k.
    info_.error_limit = block ? 5e-3 : 2e-2;
  }

  CublasLt& library_;
  CublasLtKind kind_;
  GemmProblem problem_;
  const Operands& operands_;
  ContenderInfo info_;
  CublasLtMatrixLayout weights_ = nullptr;
  CublasLtMatrixLayout tokens_ = nullptr;
  CublasLtMatrixLayout out_ = nullptr;
  std::vector<CublasLtMatmulDesc> descs_;
  CublasLtHeuristic choice_ = {};
};

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::create(GpuSession& session, const std::string& path) {
  JITGEMM_ASSIGN(CublasLtApi api, CublasLtApi::open(path));
  std::unique_ptr<CublasLt> library(new CublasLt(std::move(api)));
  JITGEMM_TRY(CublasLtApi::check(library->api_.create(&library->handle_), "cublasLtCreate"));
  JITGEMM_ASSIGN(library->workspace_, DeviceMemory::create(session, kWorkspaceBytes));
  JITGEMM_ASSIGN(library->scale_, DeviceMemory::create(session, sizeof(float)));
  JITGEMM_TRY(session.device().copy_to_device(library->scale_.address(), &kTensorwiseScale,
                                              sizeof(kTensorwiseScale)));
  return library;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) api_.destroy(handle_);
}

std::string CublasLt::version() const {
  // 130100 and so on; of 12 and older 120903.
  const size_t number = api_.version();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

Result<std::unique_ptr<Contender>> make_cublaslt_contender(CublasLt& library, CublasLtKind kind,
                                                           const GemmProblem& problem,
                                                           const Operands& operands) {
  auto contender = std::make_unique<CublasLtContender>(library, kind, problem, operands);
  JITGEMM_TRY(contender->create());
  return std::unique_ptr<Contender>(std::move(contender));
}

}  // namespace jitgemm::bench
