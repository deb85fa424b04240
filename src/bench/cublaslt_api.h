// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's C interface, opened at run time. Types, numbers and layouts are those of its public
// header (cuBLAS documentation, "Using the cuBLASLt API"), declared here so that nobody needs it.
#pragma once

#include "device/cuda_driver_api.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace jitgemm::bench {

using CublasLtHandle = struct CublasLtHandleTag*;
using CublasLtMatmulDesc = struct CublasLtMatmulDescTag*;
using CublasLtMatrixLayout = struct CublasLtMatrixLayoutTag*;
using CublasLtPreference = struct CublasLtPreferenceTag*;

inline constexpr int kCublasSuccess = 0;
inline constexpr int kCublasCompute32F = 68;
inline constexpr int kCublasOpTranspose = 1;
// cudaDataType_t
inline constexpr int kCudaF32 = 0;
inline constexpr int kCudaF16 = 2;
inline constexpr int kCudaBF16 = 14;
inline constexpr int kCudaF8E4M3 = 28;
inline constexpr int kCudaF8E5M2 = 29;
// cublasLtMatmulDescAttributes_t
inline constexpr int kMatmulTransposeA = 3;
inline constexpr int kMatmulScaleA = 17;
inline constexpr int kMatmulScaleB = 18;
inline constexpr int kMatmulFastAccumulation = 25;
inline constexpr int kMatmulScaleModeA = 31;
inline constexpr int kMatmulScaleModeB = 32;
// cublasLtMatmulMatrixScale_t
inline constexpr int32_t kScaleModeVector128 = 4;
inline constexpr int32_t kScaleModeBlock128 = 5;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kPreferenceMaxWorkspace = 1;

struct CublasLtAlgorithm {
  uint64_t data[8];
};
struct CublasLtHeuristic {
  CublasLtAlgorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(CublasLtHeuristic) == 96);

struct CublasLtApi {
  int (*create)(CublasLtHandle* handle) = nullptr;
  int (*destroy)(CublasLtHandle handle) = nullptr;
  size_t (*version)() = nullptr;
  int (*desc_create)(CublasLtMatmulDesc* desc, int compute_type, int scale_type) = nullptr;
  int (*desc_destroy)(CublasLtMatmulDesc desc) = nullptr;
  int (*desc_set)(CublasLtMatmulDesc desc, int attribute, const void* value,
                  size_t bytes) = nullptr;
  int (*layout_create)(CublasLtMatrixLayout* layout, int type, uint64_t rows, uint64_t columns,
                       int64_t ld) = nullptr;
  int (*layout_destroy)(CublasLtMatrixLayout layout) = nullptr;
  int (*preference_create)(CublasLtPreference* preference) = nullptr;
  int (*preference_destroy)(CublasLtPreference preference) = nullptr;
  int (*preference_set)(CublasLtPreference preference, int attribute, const void* value,
                        size_t bytes) = nullptr;
  int (*heuristic)(CublasLtHandle handle, CublasLtMatmulDesc desc, CublasLtMatrixLayout a,
                   CublasLtMatrixLayout b, CublasLtMatrixLayout c, CublasLtMatrixLayout d,
                   CublasLtPreference preference, int wanted, CublasLtHeuristic* results,
                   int* found) = nullptr;
  int (*matmul)(CublasLtHandle handle, CublasLtMatmulDesc desc, const void* alpha, const void* a,
                CublasLtMatrixLayout a_layout, const void* b, CublasLtMatrixLayout b_layout,
                const void* beta, const void* c, CublasLtMatrixLayout c_layout, void* d,
                CublasLtMatrixLayout d_layout, const CublasLtAlgorithm* algorithm, void* workspace,
                size_t workspace_bytes, CuStream stream) = nullptr;

  std::string path;

  // `path` empty: the loader's search, then the usual folders of a CUDA toolkit. UNSUPPORTED where
  // there is none: a benchmark does without.
  static Result<CublasLtApi> open(const std::string& path);
  static Status check(int result, const char* what);
};

}  // namespace jitgemm::bench
