// SPDX-License-Identifier: Apache-2.0
#include "simrun/named_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace jitgemm::simrun {
namespace {

constexpr int kPipeWaitMs = 10'000;

Status system_error(const char* what, const std::string& path, int number) {
  return io_error(fmt::format("cannot {} '{}': {}", what, path, std::strerror(number)));
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int get() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

void make_blocking(int descriptor) {
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
}

}  // namespace

Result<std::string> read_text(const std::string& path, uint64_t most) {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return system_error("open", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error("read", path, errno);
  if (S_ISFIFO(info.st_mode)) {
    pollfd wait = {file.get(), POLLIN, 0};
    if (::poll(&wait, 1, kPipeWaitMs) == 0) {
      return io_error(fmt::format("cannot read '{}': nobody has written to the pipe for {} s", path,
                                  kPipeWaitMs / 1000));
    }
  }
  make_blocking(file.get());
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path, errno);
    if (got == 0) return text;
    if (static_cast<uint64_t>(got) > most - text.size()) {
      return invalid_argument(
          fmt::format("'{}': expected a file of at most {} bytes, found more", path, most));
    }
    text.append(buffer, static_cast<size_t>(got));
  }
}

Result<OutputFile> create_file(const std::string& path) {
  Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666));
  if (file.get() < 0 && errno == ENXIO)
    return io_error(fmt::format("cannot write '{}': nobody reads the pipe", path));
  if (file.get() < 0) return system_error("create", path, errno);
  make_blocking(file.get());
  OutputFile stream(::fdopen(file.get(), "w"));
  if (stream == nullptr) return system_error("create", path, errno);
  file.release();
  return stream;
}

Status finish_file(OutputFile file, const std::string& path) {
  const bool written = std::ferror(file.get()) == 0;
  errno = 0;
  const bool closed = std::fclose(file.release()) == 0;
  if (written && closed) return ok_status();
  return system_error("write", path, errno == 0 ? EIO : errno);
}

Status check_target(const std::string& path, bool regular) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_status target = fs::status(path, code);
  if (fs::is_directory(target)) return system_error("create", path, EISDIR);
  if (fs::exists(target)) {
    if (regular && !fs::is_regular_file(target))
      return io_error(fmt::format("cannot replace '{}': it is no regular file", path));
    return ok_status();
  }
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, code))
    return system_error("create", path, ENOENT);
  return ok_status();
}

}  // namespace jitgemm::simrun
