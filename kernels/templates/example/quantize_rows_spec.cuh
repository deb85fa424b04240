// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open quantize_rows.cu alone.
#pragma once

struct Spec {
  enum : int {
    kArch = 90,
    kK = 512,
    kGroupK = 128,
    kSource = 1,
    kTypeA = 0,
    kScaleType = 0,
    kPowerOfTwo = 0,
    kVector = 4,
    kBlocks = 4,
    kThreads = 256,
  };
};
