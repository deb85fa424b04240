// SPDX-License-Identifier: Apache-2.0
// One lock a key across processes, without a file a key: a byte of one lock file, at an offset
// taken from the key's digest, locked by open file description (fcntl F_OFD_SETLK). The kernel lets
// go when the holder dies. Two keys share a byte with a probability of 2^-62, and would then only
// wait.
#pragma once

#include "cache/file_ops.h"
#include "support/sha256.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace jitgemm {

class KeyLock {
 public:
  KeyLock() = default;  // holds nothing
  KeyLock(KeyLock&& other) noexcept;
  KeyLock& operator=(KeyLock&& other) noexcept;
  ~KeyLock();

  bool held() const { return fd_.valid(); }
  // Whether another holder was seen: then the entry may exist by now.
  bool waited() const { return waited_; }
  // Why it is not held; empty when it is.
  const std::string& problem() const { return problem_; }
  void release();

  // `folder` is the descriptor of the folder that holds the lock file.
  static KeyLock acquire(const FileOps* ops, int folder, int64_t offset,
                         std::chrono::steady_clock::time_point deadline);

 private:
  friend class DiskCache;
  static KeyLock failed(std::string problem);

  const FileOps* ops_ = nullptr;
  UniqueFd fd_;
  int64_t offset_ = 0;
  bool waited_ = false;
  std::string problem_;
};

// 0 .. 2^62 - 1.
int64_t lock_offset(const Sha256Digest& digest);
// Beyond every key's offset: taken while evicting.
inline constexpr int64_t kEvictionLockOffset = int64_t{1} << 62;

}  // namespace jitgemm
