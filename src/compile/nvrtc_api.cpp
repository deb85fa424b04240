// SPDX-License-Identifier: Apache-2.0
#include "compile/nvrtc_api.h"

#include <fmt/format.h>

namespace jitgemm {
namespace {

std::vector<std::string> candidate_names(const std::string& path) {
  if (!path.empty()) return {path};
  return {"libnvrtc.so.13",
          "libnvrtc.so.12",
          "/usr/local/cuda/lib64/libnvrtc.so.13",
          "/usr/local/cuda/lib64/libnvrtc.so.12",
          "/usr/local/cuda-13/lib64/libnvrtc.so.13",
          "/usr/local/cuda-12/lib64/libnvrtc.so.12",
          "libnvrtc.so"};
}

std::string builtins_beside(const std::string& nvrtc, int major, int minor) {
  const size_t slash = nvrtc.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : nvrtc.substr(0, slash + 1);
  return fmt::format("{}libnvrtc-builtins.so.{}.{}", folder, major, minor);
}

template <typename Function>
bool resolve(const DynamicLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.find(name));
  return function != nullptr;
}

}  // namespace

Result<NvrtcApi> NvrtcApi::open(const std::string& path) {
  Result<DynamicLibrary> library = DynamicLibrary::open(candidate_names(path));
  if (!library) {
    return Status(StatusCode::kNoCompiler,
                  "NVRTC could not be opened; install a CUDA toolkit or the Python package "
                  "nvidia-cuda-nvrtc, or name the file in JITGEMM_NVRTC (" +
                      library.error().message() + ")");
  }
  NvrtcApi api;
  const bool complete = resolve(*library, "nvrtcVersion", api.version) &&
                        resolve(*library, "nvrtcGetErrorString", api.error_string) &&
                        resolve(*library, "nvrtcCreateProgram", api.create_program) &&
                        resolve(*library, "nvrtcDestroyProgram", api.destroy_program) &&
                        resolve(*library, "nvrtcCompileProgram", api.compile_program) &&
                        resolve(*library, "nvrtcGetProgramLogSize", api.log_size) &&
                        resolve(*library, "nvrtcGetProgramLog", api.log) &&
                        resolve(*library, "nvrtcGetPTXSize", api.ptx_size) &&
                        resolve(*library, "nvrtcGetPTX", api.ptx) &&
                        resolve(*library, "nvrtcGetCUBINSize", api.cubin_size) &&
                        resolve(*library, "nvrtcGetCUBIN", api.cubin) &&
                        resolve(*library, "nvrtcGetNumSupportedArchs", api.supported_arch_count) &&
                        resolve(*library, "nvrtcGetSupportedArchs", api.supported_archs);
  if (!complete) {
    return Status(StatusCode::kNoCompiler,
                  library->path() + " is not an NVRTC of version 11.2 or newer");
  }
  if (api.version(&api.major, &api.minor) != kNvrtcSuccess) {
    return Status(StatusCode::kNoCompiler, library->path() + " does not tell its version");
  }
  api.path = library->path();
  // At its first compilation NVRTC opens its built-ins by their bare name. A Python package has
  // them beside NVRTC, where the loader does not look; but what is open already it finds by name.
  // Where they lie elsewhere, NVRTC finds them or says so itself.
  static_cast<void>(DynamicLibrary::open({builtins_beside(api.path, api.major, api.minor)}));
  return api;
}

}  // namespace jitgemm
