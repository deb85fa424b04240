// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec of gemm_sm100_mx.cu, so that the template can be opened and
// compiled alone. The specializer writes the real one.
#pragma once

struct Spec {
  enum : int {
    kArch = 100,
    kM = 4096,
    kN = 4096,
    kK = 7168,
    kGroupN = 128,
    kGroupK = 128,
    kTypeA = 0,
    kTypeB = 0,
    kScaleType = 0,
    kOut = 1,
    kTileM = 128,
    kTileN = 128,
    kTileK = 128,
    kStages = 5,
    kCluster = 1,
    kSplitK = 1,
    kFeedA = 0,
    kFeedB = 0,
    kStore = 1,
    kSwap = 0,
    kShare = 1,
    kPair = 1,
    kEpilogueWarps = 4,
    kAccumulatorStride = 128,
    kAccumulators = 2,
    kScaleStages = 1,
    kThreads = 256,
    kSharedBytes = 201872,
    kScheduleWarp = -1,
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
