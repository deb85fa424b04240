// SPDX-License-Identifier: Apache-2.0
#include "support/filesystem.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace jitgemm {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

Result<std::string> read_file(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) return io_error(fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
  std::string bytes;
  char buffer[1 << 16];
  for (size_t got = 0; (got = std::fread(buffer, 1, sizeof(buffer), file.get())) > 0;) {
    bytes.append(buffer, got);
  }
  if (std::ferror(file.get())) {
    return io_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  return bytes;
}

Status write_file(const std::string& path, std::string_view bytes) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) return io_error(fmt::format("cannot create '{}': {}", path, std::strerror(errno)));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (!written || std::fflush(file.get()) != 0) {
    return io_error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  }
  return ok_status();
}

Status make_folders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return io_error(fmt::format("cannot create folder '{}': {}", path, code.message()));
  return ok_status();
}

}  // namespace jitgemm
