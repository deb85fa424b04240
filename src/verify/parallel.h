// SPDX-License-Identifier: Apache-2.0
// Independent tasks over a few threads, for the host-side work of verification.
#pragma once

#include <cstdint>
#include <functional>

namespace jitgemm {

// Calls task(0) ... task(count - 1), each once, on `threads` threads (0: one a processor). The
// first exception stops the handing out of tasks and is thrown again here.
void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& task);

// Calls body(first, last) over pieces of [0, count) that are long enough to be worth a task.
template <typename Body>
void parallel_pieces(int64_t count, int threads, const Body& body) {
  constexpr int64_t kPiece = 1 << 16;
  parallel_for((count + kPiece - 1) / kPiece, threads, [&](int64_t piece) {
    body(piece * kPiece, (piece + 1) * kPiece < count ? (piece + 1) * kPiece : count);
  });
}

}  // namespace jitgemm
