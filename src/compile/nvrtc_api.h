// SPDX-License-Identifier: Apache-2.0
// NVRTC's entry points, resolved at run time so that the library loads on a machine without it.
// Types and numbers are those of NVRTC's public interface (NVRTC documentation, "User Interface").
#pragma once

#include "support/dynamic_library.h"

#include <cstddef>
#include <string>
#include <vector>

namespace jitgemm {

using NvrtcProgram = struct NvrtcProgramTag*;
inline constexpr int kNvrtcSuccess = 0;

struct NvrtcApi {
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_string)(int result) = nullptr;
  int (*create_program)(NvrtcProgram* program, const char* source, const char* name,
                        int header_count, const char* const* headers,
                        const char* const* header_names) = nullptr;
  int (*destroy_program)(NvrtcProgram* program) = nullptr;
  int (*compile_program)(NvrtcProgram program, int option_count,
                         const char* const* options) = nullptr;
  int (*log_size)(NvrtcProgram program, size_t* size) = nullptr;
  int (*log)(NvrtcProgram program, char* text) = nullptr;
  int (*ptx_size)(NvrtcProgram program, size_t* size) = nullptr;
  int (*ptx)(NvrtcProgram program, char* text) = nullptr;
  int (*cubin_size)(NvrtcProgram program, size_t* size) = nullptr;
  int (*cubin)(NvrtcProgram program, char* bytes) = nullptr;
  int (*supported_arch_count)(int* count) = nullptr;
  int (*supported_archs)(int* archs) = nullptr;

  std::string path;  // the library file
  int major = 0;
  int minor = 0;

  // `path` empty: the loader's search, then the usual toolkit folders.
  static Result<NvrtcApi> open(const std::string& path);
};

}  // namespace jitgemm
