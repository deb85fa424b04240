// SPDX-License-Identifier: Apache-2.0
// The one parameter of quantize_rows.cu. The host's mirror is src/plan/quantize_params.h; both
// assert the same size.
#pragma once

struct QuantizeParams {
  const void* source;    // [m, k] of Spec::kSource, row stride source_ld
  unsigned char* codes;  // [m, k], row stride code_ld
  void* scales;          // [m, ceil(k / group_k)] of Spec::kScaleType, row stride scale_ld
  long long source_ld;   // all strides in elements
  long long code_ld;
  long long scale_ld;
  int m;
  int reserved;
};

static_assert(sizeof(QuantizeParams) == 56, "src/plan/quantize_params.h mirrors this struct");
