// SPDX-License-Identifier: Apache-2.0
// The one parameter of align_rows.cu. The host's mirror is src/plan/align_params.h; both assert the
// same size.
#pragma once

// Of two matrices with rows of Spec::kRowBytes; one without rows is not there.
struct AlignParams {
  const unsigned char* source[2];
  unsigned char* destination[2];
  long long source_pitch[2];  // bytes
  int rows[2];
};

static_assert(sizeof(AlignParams) == 56, "src/plan/align_params.h mirrors this struct");
