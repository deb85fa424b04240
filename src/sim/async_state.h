// SPDX-License-Identifier: Apache-2.0
// State that the asynchronous and matrix instructions keep for a warp and a CTA (mbarrier objects,
// wgmma and tcgen05 order). Only the files that execute those instructions look inside.
#pragma once

namespace jitgemm::sim {

struct AsyncWarpState {};

struct AsyncCtaState {};

}  // namespace jitgemm::sim
