// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open align_rows.cu alone.
#pragma once

struct Spec {
  enum : int {
    kArch = 90,
    kRowBytes = 3884,
    kPitch = 3968,
    kUnit = 4,
    kScaleBytes = 124,
    kScalePitch = 128,
    kThreads = 256,
  };
};
