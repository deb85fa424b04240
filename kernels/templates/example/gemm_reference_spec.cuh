// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open gemm_reference.cu alone.
#pragma once

struct Spec {
  static constexpr int kM = 64;
  static constexpr int kN = 512;
  static constexpr int kK = 512;
  static constexpr int kGroupN = 128;
  static constexpr int kGroupK = 128;
  static constexpr int kTypeA = 0;
  static constexpr int kTypeB = 0;
  static constexpr int kScaleType = 0;
  static constexpr int kOut = 0;
  static constexpr int kTileM = 4;
  static constexpr int kTileN = 32;
  static constexpr int kThreads = 128;
};
