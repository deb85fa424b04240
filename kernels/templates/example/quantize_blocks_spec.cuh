// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open quantize_blocks.cu alone.
#pragma once

struct Spec {
  enum : int {
    kThreads = 256,
    kGroupRows = 128,
    kGroupCols = 128,
    kSigned = 0,
    kTypeA = 0,
    kScaleType = 0,
    kPowerOfTwo = 0,
  };
};
