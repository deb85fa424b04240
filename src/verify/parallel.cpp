// SPDX-License-Identifier: Apache-2.0
#include "verify/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace jitgemm {

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& task) {
  const int64_t wanted =
      threads > 0 ? threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        task(i);
      } catch (...) {
        next = count;
        const std::scoped_lock lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int64_t i = 1; i < std::min(wanted, count); ++i) workers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace jitgemm
