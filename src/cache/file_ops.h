// SPDX-License-Identifier: Apache-2.0
// The system calls of the cache as a struct of functions, so that a test can make any of them fail.
// Each returns a value >= 0, or -errno. Calls that the kernel may interrupt are repeated by
// real_file_ops(). Paths are relative to a held descriptor, except for the root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace jitgemm {

struct FileOps {
  std::function<int(int folder, const char* path, int flags, mode_t mode)> open_at;
  std::function<int(int fd)> close;
  std::function<int64_t(int fd, char* bytes, size_t count)> read;
  std::function<int64_t(int fd, const char* bytes, size_t count)> write;
  std::function<int(int fd)> sync;
  std::function<int(int fd, struct stat* info)> stat;
  std::function<int(int folder, const char* path, struct stat* info)> stat_at;  // of a link itself
  std::function<int(int fd)> touch;                                             // mtime = now
  std::function<int(int folder, const char* path, mode_t mode)> make_folder_at;
  std::function<int(int folder, const char* path)> unlink_at;
  std::function<int(int from, const char* source, int to, const char* target)> link_at;
  std::function<int(int from, const char* source, int to, const char* target)> rename_at;
  std::function<int(int from, const char* source, int to, const char* target)> rename_no_replace_at;
  std::function<int(int folder, std::vector<std::string>* names)> list_folder;  // without . and ..
  // Exclusive lock of the byte at `offset`, held by the open file description; does not wait.
  std::function<int(int fd, int64_t offset)> try_lock;
  std::function<int(int fd, int64_t offset)> unlock;
  std::function<int(char* bytes, size_t count)> random_bytes;
  std::function<int64_t()> unix_seconds;
  std::function<uid_t()> effective_uid;
};

FileOps real_file_ops();

// Owns one descriptor. `ops` outlives it.
class UniqueFd {
 public:
  UniqueFd() = default;
  UniqueFd(const FileOps* ops, int fd) : ops_(ops), fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : ops_(other.ops_), fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      close();
      ops_ = other.ops_;
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { close(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  // 0 or -errno of the close; closing nothing is 0.
  int close() { return fd_ < 0 ? 0 : ops_->close(std::exchange(fd_, -1)); }

 private:
  const FileOps* ops_ = nullptr;
  int fd_ = -1;
};

}  // namespace jitgemm
