// SPDX-License-Identifier: Apache-2.0
// Files that a user of the simulator names: texts that are read, results that are written. A name
// may lead to anything, so texts have a limit, a pipe without another end is an error and not a
// wait for ever, and nothing but a regular file is replaced. It knows nothing of their contents.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace jitgemm::simrun {

constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

// All of a file, at most `most` bytes. A named pipe is waited for, 10 s long, until somebody
// writes.
Result<std::string> read_text(const std::string& path, uint64_t most = kMaxTextBytes);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OutputFile = std::unique_ptr<std::FILE, CloseFile>;

// Creates or empties a file. A named pipe must have a reader.
Result<OutputFile> create_file(const std::string& path);
// IO_ERROR if something that was written did not arrive.
Status finish_file(OutputFile file, const std::string& path);

// Whether a file could be written there, as far as that can be known without doing it.
Status check_target(const std::string& path, bool regular);

}  // namespace jitgemm::simrun
