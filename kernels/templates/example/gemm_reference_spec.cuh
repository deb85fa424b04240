// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open gemm_reference.cu alone.
#pragma once

struct Spec {
  enum : int {
    kArch = 90,
    kM = 64,
    kN = 512,
    kK = 512,
    kGroupN = 128,
    kGroupK = 128,
    kTypeA = 0,
    kTypeB = 0,
    kScaleType = 0,
    kOut = 0,
    kTileM = 4,
    kTileN = 32,
    kThreads = 128,
  };
};
