// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open draw_codes.cu alone.
#pragma once

struct Spec {
  enum : int {
    kThreads = 256,
    kKind = 0,
    kTypeA = 0,
    kScaleType = 0,
    kPowerOfTwo = 0,
  };
};
