// SPDX-License-Identifier: Apache-2.0
// The host's mirror of kernels/templates/device/quantize_params.cuh: the one parameter of the
// kernel that quantises rows. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitgemm {

struct QuantizeParams {
  uint64_t source;
  uint64_t codes;
  uint64_t scales;
  int64_t source_ld;
  int64_t code_ld;
  int64_t scale_ld;
  int32_t m;
  int32_t reserved;
};

static_assert(sizeof(QuantizeParams) == 56 && offsetof(QuantizeParams, m) == 48,
              "kernels/templates/device/quantize_params.cuh mirrors this struct");

}  // namespace jitgemm
