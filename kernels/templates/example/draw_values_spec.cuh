// SPDX-License-Identifier: Apache-2.0
// A stand-in for the generated Spec, so that an editor or nvcc can open draw_values.cu alone.
#pragma once

struct Spec {
  enum : int {
    kThreads = 256,
    kKind = 0,
    kOut = 0,
    kPowerOfTwo = 0,
    kGroupCols = 128,
  };
};
