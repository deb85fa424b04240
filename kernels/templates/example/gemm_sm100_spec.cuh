// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec of gemm_sm100.cu, so that the template can be opened and
// compiled alone. The specializer writes the real one.
#pragma once

struct Spec {
  static constexpr int kArch = 100;
  static constexpr int kM = 4096;
  static constexpr int kN = 4096;
  static constexpr int kK = 7168;
  static constexpr int kGroupN = 128;
  static constexpr int kGroupK = 128;
  static constexpr int kTypeA = 0;
  static constexpr int kTypeB = 0;
  static constexpr int kScaleType = 0;
  static constexpr int kOut = 1;
  static constexpr int kTileM = 128;
  static constexpr int kTileN = 128;
  static constexpr int kTileK = 128;
  static constexpr int kStages = 5;
  static constexpr int kCluster = 1;
  static constexpr int kSplitK = 1;
  static constexpr int kFeedA = 0;
  static constexpr int kFeedB = 0;
  static constexpr int kStore = 1;
  static constexpr int kSwap = 0;
  static constexpr int kPair = 1;
  static constexpr int kEpilogueWarps = 8;
  static constexpr int kAccumulators = 4;
  static constexpr int kScaleStages = 8;
  static constexpr int kThreads = 384;
  static constexpr int kSharedBytes = 233904;
  static constexpr int kScheduleWarp = -1;
  static constexpr int kScaled = 1;
  static constexpr int kPackedA = 0;
  static constexpr int kPackedB = 0;
  static constexpr int kGroupLayout = 0;
  static constexpr int kGroups = 0;
  static constexpr int kRowAlignment = 1;
  static constexpr int kZeroUngrouped = 0;
  static constexpr int kCountInvalid = 0;
};
