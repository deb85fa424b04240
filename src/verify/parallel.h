// SPDX-License-Identifier: Apache-2.0
// Independent tasks over a few threads, for the host-side work of verification.
#pragma once

#include <cstdint>
#include <functional>

namespace jitgemm {

// Calls task(0) ... task(count - 1), each once, on `threads` threads (0: one a processor). The
// first exception stops the handing out of tasks and is thrown again here.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& task);

}  // namespace jitgemm
