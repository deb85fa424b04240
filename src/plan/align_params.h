// SPDX-License-Identifier: Apache-2.0
// The host's mirror of kernels/templates/device/align_params.cuh: the one parameter of the kernel
// that copies rows apart. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitgemm {

struct AlignedMatrix {
  uint64_t source;
  uint64_t destination;
  int64_t source_pitch;
  int64_t rows;
};

struct AlignParams {
  AlignedMatrix a;
  AlignedMatrix b;
  AlignedMatrix a_scales;
  AlignedMatrix b_scales;
};

static_assert(sizeof(AlignParams) == 128 && offsetof(AlignParams, b_scales) == 96,
              "kernels/templates/device/align_params.cuh mirrors this struct");

}  // namespace jitgemm
