// SPDX-License-Identifier: Apache-2.0
// Small file operations with errors that name the path.
#pragma once

#include "support/result.h"

#include <string>
#include <string_view>

namespace jitgemm {

Result<std::string> read_file(const std::string& path);
// Creates or replaces the file; not atomic. The cache has its own, stricter writer.
Status write_file(const std::string& path, std::string_view bytes);
// Creates the folder and its parents; an existing folder is success.
Status make_folders(const std::string& path);

}  // namespace jitgemm
