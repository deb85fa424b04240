// SPDX-License-Identifier: Apache-2.0
// The host's mirror of kernels/templates/device/align_params.cuh: the one parameter of the kernel
// that copies rows apart. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitgemm {

struct AlignParams {
  uint64_t source[2];
  uint64_t destination[2];
  int64_t source_pitch[2];
  int32_t rows[2];
};

static_assert(sizeof(AlignParams) == 56 && offsetof(AlignParams, rows) == 48,
              "kernels/templates/device/align_params.cuh mirrors this struct");

}  // namespace jitgemm
