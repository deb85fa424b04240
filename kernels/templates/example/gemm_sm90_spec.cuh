// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open gemm_sm90.cu alone.
#pragma once

struct Spec {
  enum : int {
    kArch = 90,
    kM = 4096,
    kN = 4096,
    kK = 4096,
    kGroupN = 128,
    kGroupK = 128,
    kTypeA = 0,
    kTypeB = 0,
    kScaleType = 0,
    kOut = 1,
    kTileM = 256,
    kTileN = 128,
    kTileK = 128,
    kStages = 4,
    kThreads = 384,
    kFeedA = 0,
    kFeedB = 0,
    kStore = 0,
    kCluster = 2,
    kSplitK = 1,
    kSharedBytes = 205120,
    kSwap = 0,
    kWarpgroupRows = 2,
    kWarpgroupColumns = 1,
    kShare = 2,
    kScaleFeed = 0,
    kWalkColumns = 16,
    kStoreVector = 1,
    kScaled = 1,
    kPackedA = 0,
    kPackedB = 0,
    kGroupLayout = 0,
    kGroups = 0,
    kRowAlignment = 1,
    kZeroUngrouped = 0,
    kCountInvalid = 0,
  };
};
