// SPDX-License-Identifier: Apache-2.0
// The one parameter of align_rows.cu. The host's mirror is src/plan/align_params.h; both assert the
// same size.
#pragma once

struct AlignedMatrix {
  const unsigned char* source;
  unsigned char* destination;
  long long source_pitch;  // bytes
  long long rows;          // 0: not there
};

struct AlignParams {
  AlignedMatrix a;  // rows of Spec::kRowBytes
  AlignedMatrix b;
  AlignedMatrix a_scales;  // rows of Spec::kScaleBytes
  AlignedMatrix b_scales;
};

static_assert(sizeof(AlignParams) == 128, "src/plan/align_params.h mirrors this struct");
