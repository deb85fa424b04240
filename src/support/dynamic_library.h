// SPDX-License-Identifier: Apache-2.0
// A shared library that is opened at run time, with errors that name what was tried.
#pragma once

#include "support/result.h"

#include <string>
#include <vector>

namespace jitgemm {

class DynamicLibrary {
 public:
  // Opens the first name that loads; the error lists each name with the loader's reason. The
  // library stays loaded for the life of the process: CUDA libraries do not survive being unloaded.
  static Result<DynamicLibrary> open(const std::vector<std::string>& names);

  // Null if the library has no such symbol.
  void* find(const char* symbol) const;
  // The same as a function pointer; the names of symbols that are not there gather in `missing`.
  template <class Function>
  void resolve(Function& function, const char* symbol, std::string& missing) const {
    function = reinterpret_cast<Function>(find(symbol));
    if (function == nullptr) missing += std::string(missing.empty() ? "" : ", ") + symbol;
  }
  // The file that the loader chose, as an absolute path where it says so.
  const std::string& path() const { return path_; }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace jitgemm
