// SPDX-License-Identifier: Apache-2.0
#include "disassembler.h"

#include "support/filesystem.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace jitgemm::cli {
namespace {

std::vector<std::string> search_folders(const std::string& nvrtc) {
  std::vector<std::string> folders;
  if (const char* path = std::getenv("PATH")) {
    const std::string text = path;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(':', at), text.size());
      if (end > at) folders.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  folders.insert(folders.end(), {"/usr/local/cuda/bin", "/usr/local/cuda-13/bin",
                                 "/usr/local/cuda-12/bin", "/opt/cuda/bin"});
  // .../lib64/libnvrtc.so.13 -> .../bin
  if (!nvrtc.empty()) {
    folders.push_back((std::filesystem::path(nvrtc).parent_path().parent_path() / "bin").string());
  }
  return folders;
}

// A file that goes with its scope.
class TemporaryFile {
 public:
  TemporaryFile() {
    const char* folder = std::getenv("TMPDIR");
    path_ = fmt::format("{}/jitgemm-XXXXXX", folder != nullptr ? folder : "/tmp");
    const int file = mkstemp(path_.data());
    created_ = file >= 0;
    if (created_) close(file);
  }
  ~TemporaryFile() {
    if (created_) std::remove(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool created() const { return created_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool created_ = false;
};

// Standard output of a program that must succeed; no shell in between.
Result<std::string> output_of(const std::vector<std::string>& command) {
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return io_error(fmt::format("pipe: {}", std::strerror(errno)));
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 1 << 16> buffer = {};
  for (ssize_t got = 0; child > 0 && (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int state = 0;
  if (child < 0 || waitpid(child, &state, 0) != child || !WIFEXITED(state) ||
      WEXITSTATUS(state) != 0) {
    return io_error(fmt::format("{} failed", command.front()));
  }
  return text;
}

}  // namespace

std::optional<Disassembler> find_disassembler(const std::string& nvrtc) {
  for (const std::string& folder : search_folders(nvrtc)) {
    for (const char* name : {"nvdisasm", "cuobjdump"}) {
      const std::string path = folder + "/" + name;
      if (access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path)) {
        return Disassembler{path, std::strcmp(name, "nvdisasm") == 0};
      }
    }
  }
  return std::nullopt;
}

Result<std::string> disassemble(const Disassembler& disassembler, const std::string& cubin) {
  const TemporaryFile file;
  if (!file.created()) return io_error(fmt::format("cannot create {}", file.path()));
  JITGEMM_TRY(write_file(file.path(), cubin));
  if (disassembler.is_nvdisasm) return output_of({disassembler.path, "-c", file.path()});
  return output_of({disassembler.path, "-sass", file.path()});
}

}  // namespace jitgemm::cli
