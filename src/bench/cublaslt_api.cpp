// SPDX-License-Identifier: Apache-2.0
#include "bench/cublaslt_api.h"

#include "support/dynamic_library.h"

#include <fmt/format.h>

namespace jitgemm::bench {
namespace {

constexpr int kNotSupported = 15;

std::string_view cublas_status_name(int status) {
  switch (status) {
    case 1: return "not initialized";
    case 3: return "allocation failed";
    case 7: return "invalid value";
    case 8: return "architecture mismatch";
    case 13: return "execution failed";
    case 14: return "internal error";
    case kNotSupported: return "not supported";
    default: return "error";
  }
}

}  // namespace

Result<CublasLtApi> CublasLtApi::open(const std::string& path) {
  const std::vector<std::string> names =
      path.empty() ? std::vector<std::string>{"libcublasLt.so.13", "libcublasLt.so.12",
                                              "/usr/local/cuda/lib64/libcublasLt.so.13",
                                              "/usr/local/cuda/lib64/libcublasLt.so.12"}
                   : std::vector<std::string>{path};
  Result<DynamicLibrary> library = DynamicLibrary::open(names);
  if (!library) return unsupported("cuBLASLt: " + library.error().message());
  CublasLtApi api;
  api.path = library->path();
  std::string missing;
  const auto resolve = [&](auto& function, const char* symbol) {
    library->resolve(function, symbol, missing);
  };
  resolve(api.create, "cublasLtCreate");
  resolve(api.destroy, "cublasLtDestroy");
  resolve(api.version, "cublasLtGetVersion");
  resolve(api.desc_create, "cublasLtMatmulDescCreate");
  resolve(api.desc_destroy, "cublasLtMatmulDescDestroy");
  resolve(api.desc_set, "cublasLtMatmulDescSetAttribute");
  resolve(api.layout_create, "cublasLtMatrixLayoutCreate");
  resolve(api.layout_destroy, "cublasLtMatrixLayoutDestroy");
  resolve(api.preference_create, "cublasLtMatmulPreferenceCreate");
  resolve(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  resolve(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  resolve(api.heuristic, "cublasLtMatmulAlgoGetHeuristic");
  resolve(api.matmul, "cublasLtMatmul");
  if (missing.empty()) return api;
  return unsupported(fmt::format("cuBLASLt: {} lacks {}", api.path, missing));
}

Status CublasLtApi::check(int result, const char* what) {
  if (result == kCublasSuccess) return ok_status();
  const std::string text = fmt::format("{}: {} ({})", what, cublas_status_name(result), result);
  return result == kNotSupported ? unsupported(text) : Status(StatusCode::kDeviceError, text);
}

}  // namespace jitgemm::bench
