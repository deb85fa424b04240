// SPDX-License-Identifier: Apache-2.0
#include "cache/key_lock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace jitgemm {

KeyLock::KeyLock(KeyLock&& other) noexcept = default;

KeyLock& KeyLock::operator=(KeyLock&& other) noexcept {
  if (this != &other) {
    release();
    ops_ = other.ops_;
    fd_ = std::move(other.fd_);
    offset_ = other.offset_;
    waited_ = other.waited_;
    problem_ = std::move(other.problem_);
  }
  return *this;
}

KeyLock::~KeyLock() {
  release();
}

void KeyLock::release() {
  if (!fd_.valid()) return;
  // Unlocked by name: a child forked meanwhile shares the description and would keep it locked.
  ops_->unlock(fd_.get(), offset_);
  fd_.close();
}

KeyLock KeyLock::failed(std::string problem) {
  KeyLock lock;
  lock.problem_ = std::move(problem);
  return lock;
}

KeyLock KeyLock::acquire(const FileOps* ops, int folder, int64_t offset,
                         std::chrono::steady_clock::time_point deadline) {
  constexpr auto kFirstPause = std::chrono::microseconds(500);
  constexpr auto kLongestPause = std::chrono::milliseconds(50);

  // A description of its own for each lock, so that threads of one process exclude each other too.
  const int fd = ops->open_at(
      folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
  if (fd < 0) return failed(fmt::format("cannot open the lock file: {}", std::strerror(-fd)));
  KeyLock lock;
  lock.ops_ = ops;
  lock.offset_ = offset;
  UniqueFd file(ops, fd);
  std::chrono::steady_clock::duration pause = kFirstPause;
  for (;;) {
    const int result = ops->try_lock(file.get(), offset);
    if (result >= 0) {
      lock.fd_ = std::move(file);
      return lock;
    }
    if (result != -EAGAIN && result != -EACCES) {
      lock.problem_ = fmt::format("cannot lock: {}", std::strerror(-result));
      return lock;
    }
    lock.waited_ = true;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) {  // compared, not subtracted: time_point::min() must not overflow
      lock.problem_ = "the deadline passed while another process held the lock";
      return lock;
    }
    std::this_thread::sleep_for(std::min(pause, deadline - now));
    pause = std::min<std::chrono::steady_clock::duration>(2 * pause, kLongestPause);
  }
}

int64_t lock_offset(const Sha256Digest& digest) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value = value << 8 | digest[i];
  return static_cast<int64_t>(value >> 2);
}

}  // namespace jitgemm
