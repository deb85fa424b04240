// SPDX-License-Identifier: Apache-2.0
// The one parameter of every GEMM kernel. The host's mirror is src/plan/gemm_params.h; both assert
// the same size and offsets, so a field added on one side alone does not compile.
#pragma once

// A TMA descriptor: opaque to kernels, passed inside the parameters so that a captured graph owns
// its copy. PTX ISA, "Tensor-map": 128 bytes, 64-byte aligned.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

struct GemmParams {
  TensorMap a_map;  // used where the operand is fed by TMA
  TensorMap b_map;
  TensorMap out_map;      // used where the tile is stored by TMA
  TensorMap a_scale_map;  // used where scale_maps says so
  TensorMap b_scale_map;
  const unsigned char* a;  // [m, k] as bytes, row stride lda
  const unsigned char* b;  // [n, k] as bytes, row stride ldb
  const void* a_scales;    // [m, ceil(k / group_k)]; none of 16-bit operands
  const void* b_scales;    // [ceil(n / group_n), ceil(k / group_k)]
  void* out;               // [m, n], row stride ldo
  void* workspace;
  long long lda;  // strides of a and b in bytes, all others in elements
  long long ldb;
  long long ldo;
  long long a_scale_stride_m;
  long long a_scale_stride_k;
  long long b_scale_stride_n;
  long long b_scale_stride_k;
  int m;
  int a_group_rows;  // the same as a_group_stride, in rows of the tensor map
  // Grouped products only. Distances between the matrices of groups, counted like strides; those of
  // a, out and a_scales are 0 where groups share all rows.
  long long a_group_stride;
  long long b_group_stride;
  long long out_group_stride;
  long long a_scale_group_stride;
  long long b_scale_group_stride;
  const int* group_rows;    // which rows are in which group: see device/group_walk.cuh
  unsigned* invalid_count;  // where Spec::kCountInvalid asks for it
  int b_group_rows;
  int out_group_rows;
  int scale_maps;          // whether a_scale_map and b_scale_map are there
  int a_scale_group_rows;  // like a_group_rows, of the scales' maps
  int b_scale_group_rows;
};

static_assert(sizeof(TensorMap) == 128, "PTX ISA fixes the size of a tensor map");
static_assert(sizeof(GemmParams) == 832, "src/plan/gemm_params.h mirrors this struct");
