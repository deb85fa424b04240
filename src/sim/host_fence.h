// SPDX-License-Identifier: Apache-2.0
// A memory fence of the host thread that executes a fence of the program (PTX ISA 9.7.13.4), which
// orders the relaxed accesses around it for thread blocks on other host threads. It knows nothing
// of the program's own order, which sim/thread_order.h keeps.
#pragma once

#include <atomic>

namespace jitgemm::sim {

inline void host_fence(std::memory_order order) {
#ifdef __SANITIZE_THREAD__
  // The thread sanitizer does not see fences, but sees this, which orders no less.
  static std::atomic<int> all{0};
  (void)order;
  all.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(order);
#endif
}

}  // namespace jitgemm::sim
