// SPDX-License-Identifier: Apache-2.0
#include "bench/cublaslt_contender.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

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

// One product's addresses, scales in the library's layouts.
struct Addresses {
  uint64_t a, b, a_scales, b_scales, out;
};

// Its matrices are column-major: out is the [n, m] product of b, transposed, with a.
class CublasLtContender final : public Contender {
 public:
  // `problem`: m as the library gets it. One launch for each of the addresses.
  CublasLtContender(CublasLt& library, CublasLtKind kind, const GemmProblem& problem,
                    std::vector<Addresses> products)
      : library_(library), kind_(kind), problem_(problem), products_(std::move(products)) {}
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
    const auto m = static_cast<uint64_t>(p.m);
    const auto n = static_cast<uint64_t>(p.n);
    const auto k = static_cast<uint64_t>(p.k);
    const auto check = CublasLtApi::check;
    JITGEMM_TRY(check(api.layout_create(&weights_, operand, k, n, p.k), "layout of b"));
    JITGEMM_TRY(check(api.layout_create(&tokens_, operand, k, m, p.k), "layout of a"));
    JITGEMM_TRY(
        check(api.layout_create(&out_, cuda_type(p.out_dtype), n, m, p.n), "layout of out"));
    // A description holds its scales' addresses: one a set.
    for (const Addresses& product : products_) {
      CublasLtMatmulDesc desc = nullptr;
      JITGEMM_TRY(check(api.desc_create(&desc, kCublasCompute32F, kCudaF32), "description"));
      descs_.push_back(desc);
      JITGEMM_TRY(describe(desc, product));
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
    const Addresses& product = products_[index];
    const float alpha = 1;
    const float beta = 0;
    void* out = reinterpret_cast<void*>(product.out);
    return CublasLtApi::check(
        library_.api().matmul(library_.handle(), descs_[index], &alpha, pointer(product.b),
                              weights_, pointer(product.a), tokens_, &beta, out, out_, out, out_,
                              &choice_.algorithm,
                              reinterpret_cast<void*>(library_.workspace().address()),
                              library_.workspace().bytes(), stream),
        "cublasLtMatmul");
  }

 private:
  Status describe(CublasLtMatmulDesc desc, const Addresses& product) {
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
      JITGEMM_TRY(put(kMatmulScaleA, pointer(product.b_scales), "scales of b"));
      return put(kMatmulScaleB, pointer(product.a_scales), "scales of a");
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
  std::vector<Addresses> products_;
  ContenderInfo info_;
  CublasLtMatrixLayout weights_ = nullptr;
  CublasLtMatrixLayout tokens_ = nullptr;
  CublasLtMatrixLayout out_ = nullptr;
  std::vector<CublasLtMatmulDesc> descs_;
  CublasLtHeuristic choice_ = {};
};

// A call for each group with rows: the library has no block-scaled product of groups. The counts
// are known to the host, which is more than ours is told.
class CublasLtLoop final : public Contender {
 public:
  const ContenderInfo& info() const override { return info_; }

  Status create(CublasLt& library, DType out_dtype, const GroupedOperands& operands) {
    const GroupedShape& shape = operands.shape();
    const GroupedForms& form = operands.form(peer_form(shape));
    info_.name = "cublaslt_loop";
    info_.source = "peer";
    info_.error_limit = 5e-3;
    info_.form = form.layout.form;
    if (shape.masked() && shape.rows % 4 != 0) {
      return unsupported("cuBLASLt: expected groups of a multiple of 4 rows");
    }
    GemmProblem problem;
    problem.n = shape.n;
    problem.k = shape.k;
    problem.out_dtype = out_dtype;
    std::map<int64_t, std::vector<Addresses>> products;
    calls_.resize(form.sets.size());
    for (size_t set = 0; set < form.sets.size(); ++set) {
      for (size_t group = 0; group < operands.counts().size(); ++group) {
        const int64_t rows = GroupedOperands::padded_count(operands.counts()[group]);
        if (rows == 0) continue;
        calls_[set].push_back({rows, products[rows].size()});
        products[rows].push_back(addresses(operands, form, set, group, out_dtype));
      }
    }
    for (auto& [rows, list] : products) {
      problem.m = rows;
      auto of_size = std::make_unique<CublasLtContender>(library, CublasLtKind::kBlock, problem,
                                                         std::move(list));
      JITGEMM_TRY(of_size->create());
      info_.variant = of_size->info().variant;
      of_rows_[rows] = std::move(of_size);
    }
    return ok_status();
  }

  Status launch(size_t index, CuStream stream) override {
    for (const auto& [rows, product] : calls_[index]) {
      JITGEMM_TRY(of_rows_.at(rows)->launch(product, stream));
    }
    return ok_status();
  }

 private:
  static Addresses addresses(const GroupedOperands& operands, const GroupedForms& form, size_t set,
                             size_t group, DType out_dtype) {
    const GroupedWeightSet& weights = operands.weights()[set];
    const auto n = static_cast<uint64_t>(operands.shape().n);
    const auto k = static_cast<uint64_t>(operands.shape().k);
    const auto begin = static_cast<uint64_t>(form.layout.begins[group]);
    const auto scales = static_cast<uint64_t>(operands.n_blocks() * operands.padded_k_blocks());
    const auto out_bytes = static_cast<uint64_t>(dtype_info(out_dtype).bytes);
    return {form.sets[set].a + begin * k, weights.b + group * n * k,
            weights.a_scales_of_group[group], weights.b_scales_padded + 4 * group * scales,
            form.sets[set].out + begin * n * out_bytes};
  }

  struct Call {
    int64_t rows;
    size_t product;
  };
  ContenderInfo info_;
  std::map<int64_t, std::unique_ptr<CublasLtContender>> of_rows_;
  std::vector<std::vector<Call>> calls_;  // of each set
};

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::create(Workbench& bench, const std::string& path) {
  JITGEMM_ASSIGN(CublasLtApi api, CublasLtApi::open(path));
  std::unique_ptr<CublasLt> library(new CublasLt(std::move(api)));
  JITGEMM_TRY(CublasLtApi::check(library->api_.create(&library->handle_), "cublasLtCreate"));
  JITGEMM_ASSIGN(library->workspace_, DeviceMemory::create(bench, kWorkspaceBytes));
  JITGEMM_ASSIGN(library->scale_, DeviceMemory::create(bench, sizeof(float)));
  JITGEMM_TRY(bench.device().copy_to_device(library->scale_.address(), &kTensorwiseScale,
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
  std::vector<Addresses> products;
  for (const OperandSet& set : operands.sets()) {
    products.push_back({set.a, set.b, set.a_scales_column_major, set.b_scales_padded, set.out});
  }
  GemmProblem padded = problem;
  padded.m = operands.layout().padded_m;
  auto contender = std::make_unique<CublasLtContender>(library, kind, padded, std::move(products));
  JITGEMM_TRY(contender->create());
  return std::unique_ptr<Contender>(std::move(contender));
}

Result<std::unique_ptr<Contender>> make_cublaslt_loop(CublasLt& library, DType out_dtype,
                                                      const GroupedOperands& operands) {
  auto contender = std::make_unique<CublasLtLoop>();
  JITGEMM_TRY(contender->create(library, out_dtype, operands));
  return std::unique_ptr<Contender>(std::move(contender));
}

}  // namespace jitgemm::bench
