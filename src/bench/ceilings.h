// SPDX-License-Identifier: Apache-2.0
// What the device gives at most: memory copied, read and filled, and matrix rates of a library. In
// the same run as the products, since a card's limits move with its temperature.
#pragma once

#include "bench/cublaslt_contender.h"
#include "bench/gpu_session.h"
#include "bench/result.h"

#include <vector>

namespace jitgemm::bench {

// `peers` may be null: then without matrix rates.
Result<std::vector<Ceiling>> measure_ceilings(GpuSession& session, CublasLt* peers);

}  // namespace jitgemm::bench
