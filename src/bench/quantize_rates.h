// SPDX-License-Identifier: Apache-2.0
// How fast the launch that quantises A moves its bytes, source in and codes and scales out: to be
// read beside the rates of memory of the same run.
#pragma once

#include "bench/gpu_session.h"
#include "bench/result.h"

#include <vector>

namespace jitgemm::bench {

// One rate a source type: GB/s of a matrix that is much larger than L2.
Result<std::vector<Ceiling>> measure_quantizing(GpuSession& session);

// Into the cache, for a machine without a compiler.
Status compile_quantizing(Context& context, Arch arch);

}  // namespace jitgemm::bench
