// SPDX-License-Identifier: Apache-2.0
#include "cache/file_ops.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <linux/fs.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace jitgemm {
namespace {

template <typename Call>
auto repeat_while_interrupted(Call call) -> decltype(call()) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

int list_folder(int folder, std::vector<std::string>* names) {
  // A fresh description: the position of `folder` itself is shared by all who hold it.
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    const int error = errno;
    ::close(fd);
    return -error;
  }
  int result = 0;
  for (;;) {
    errno = 0;
    const dirent* item = ::readdir(stream);  // its own stream: no other thread uses it
    if (item == nullptr) {
      result = -errno;
      break;
    }
    if (std::strcmp(item->d_name, ".") != 0 && std::strcmp(item->d_name, "..") != 0) {
      names->emplace_back(item->d_name);
    }
  }
  ::closedir(stream);
  return result;
}

int set_lock(int fd, int64_t offset, short type) {
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = offset;
  range.l_len = 1;
  return repeat_while_interrupted([&] { return ::fcntl(fd, F_OFD_SETLK, &range); });
}

int fill_random(char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = ::getrandom(bytes, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return 0;
}

}  // namespace

FileOps real_file_ops() {
  FileOps ops;
  ops.open_at = [](int folder, const char* path, int flags, mode_t mode) {
    return repeat_while_interrupted([&] { return ::openat(folder, path, flags, mode); });
  };
  ops.close = [](int fd) {
    // Never repeated: Linux has released the descriptor even when it reports EINTR.
    return ::close(fd) == 0 || errno == EINTR ? 0 : -errno;
  };
  ops.read = [](int fd, char* bytes, size_t count) -> int64_t {
    return repeat_while_interrupted([&] { return ::read(fd, bytes, count); });
  };
  ops.write = [](int fd, const char* bytes, size_t count) -> int64_t {
    return repeat_while_interrupted([&] { return ::write(fd, bytes, count); });
  };
  ops.sync = [](int fd) { return repeat_while_interrupted([&] { return ::fsync(fd); }); };
  ops.stat = [](int fd, struct stat* info) { return ::fstat(fd, info) == 0 ? 0 : -errno; };
  ops.stat_at = [](int folder, const char* path, struct stat* info) {
    return ::fstatat(folder, path, info, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
  };
  ops.touch = [](int fd) { return ::futimens(fd, nullptr) == 0 ? 0 : -errno; };
  ops.make_folder_at = [](int folder, const char* path, mode_t mode) {
    return ::mkdirat(folder, path, mode) == 0 ? 0 : -errno;
  };
  ops.unlink_at = [](int folder, const char* path) {
    return ::unlinkat(folder, path, 0) == 0 ? 0 : -errno;
  };
  ops.link_at = [](int from, const char* source, int to, const char* target) {
    return ::linkat(from, source, to, target, 0) == 0 ? 0 : -errno;
  };
  ops.rename_at = [](int from, const char* source, int to, const char* target) {
    return ::renameat(from, source, to, target) == 0 ? 0 : -errno;
  };
  ops.rename_no_replace_at = [](int from, const char* source, int to, const char* target) {
    // By number: some C libraries lack the wrapper.
    return ::syscall(SYS_renameat2, from, source, to, target, RENAME_NOREPLACE) == 0 ? 0 : -errno;
  };
  ops.list_folder = list_folder;
  ops.try_lock = [](int fd, int64_t offset) { return set_lock(fd, offset, F_WRLCK); };
  ops.unlock = [](int fd, int64_t offset) { return set_lock(fd, offset, F_UNLCK); };
  ops.random_bytes = fill_random;
  ops.unix_seconds = [] { return static_cast<int64_t>(::time(nullptr)); };
  ops.effective_uid = [] { return ::geteuid(); };
  return ops;
}

}  // namespace jitgemm
