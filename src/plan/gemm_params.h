// SPDX-License-Identifier: Apache-2.0
// The host's mirror of kernels/templates/device/params.cuh: the one parameter of every GEMM kernel.
// Plain data; nothing here knows how a tensor map is encoded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitgemm {

// A TMA descriptor as its device encodes it: the driver's format on a GPU, our own in the
// simulator.
struct alignas(64) EncodedTensorMap {
  unsigned char bytes[128];
};

struct GemmParams {
  EncodedTensorMap a_map;
  EncodedTensorMap b_map;
  EncodedTensorMap out_map;
  EncodedTensorMap a_scale_map;
  EncodedTensorMap b_scale_map;
  uint64_t a;
  uint64_t b;
  uint64_t a_scales;
  uint64_t b_scales;
  uint64_t out;
  uint64_t workspace;
  int64_t lda;
  int64_t ldb;
  int64_t ldo;
  int64_t a_scale_stride_m;
  int64_t a_scale_stride_k;
  int64_t b_scale_stride_n;
  int64_t b_scale_stride_k;
  int32_t m;
  int32_t a_group_rows;
  int64_t a_group_stride;
  int64_t b_group_stride;
  int64_t out_group_stride;
  int64_t a_scale_group_stride;
  int64_t b_scale_group_stride;
  uint64_t group_rows;
  uint64_t invalid_count;
  int32_t b_group_rows;
  int32_t out_group_rows;
  int32_t scale_maps;
  int32_t a_scale_group_rows;
  int32_t b_scale_group_rows;
};

static_assert(sizeof(EncodedTensorMap) == 128);
static_assert(sizeof(GemmParams) == 832, "kernels/templates/device/params.cuh mirrors this struct");
static_assert(offsetof(GemmParams, a) == 640 && offsetof(GemmParams, m) == 744);
static_assert(offsetof(GemmParams, a_group_stride) == 752 &&
              offsetof(GemmParams, b_group_rows) == 808);

}  // namespace jitgemm
