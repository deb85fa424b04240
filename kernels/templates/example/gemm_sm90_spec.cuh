// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open gemm_sm90.cu alone.
#pragma once

struct Spec {
  static constexpr int kArch = 90;
  static constexpr int kM = 4096;
  static constexpr int kN = 4096;
  static constexpr int kK = 4096;
  static constexpr int kGroupN = 128;
  static constexpr int kGroupK = 128;
  static constexpr int kTypeA = 0;
  static constexpr int kTypeB = 0;
  static constexpr int kScaleType = 0;
  static constexpr int kOut = 1;
  static constexpr int kTileM = 256;
  static constexpr int kTileN = 128;
  static constexpr int kTileK = 128;
  static constexpr int kStages = 4;
  static constexpr int kThreads = 384;
  static constexpr int kFeedA = 0;
  static constexpr int kFeedB = 0;
  static constexpr int kStore = 0;
  static constexpr int kCluster = 2;
  static constexpr int kSplitK = 1;
  static constexpr int kSharedBytes = 204928;
  static constexpr int kSwap = 0;
  static constexpr int kWarpgroupRows = 2;
  static constexpr int kWarpgroupColumns = 1;
  static constexpr int kShare = 2;
  static constexpr int kWalkColumns = 16;
  static constexpr int kStoreVector = 1;
  static constexpr int kScaled = 1;
  static constexpr int kPackedA = 0;
  static constexpr int kPackedB = 0;
  static constexpr int kGroupLayout = 0;
  static constexpr int kGroups = 0;
  static constexpr int kRowAlignment = 1;
  static constexpr int kZeroUngrouped = 0;
  static constexpr int kCountInvalid = 0;
};
