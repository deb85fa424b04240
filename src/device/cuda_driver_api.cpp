// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_driver_api.h"

#include "support/dynamic_library.h"

#include <fmt/format.h>

namespace jitgemm {

Result<CudaDriverApi> CudaDriverApi::open(const std::string& path) {
  Result<DynamicLibrary> library = DynamicLibrary::open(
      path.empty() ? std::vector<std::string>{"libcuda.so.1"} : std::vector<std::string>{path});
  if (!library) {
    return Status(StatusCode::kNoDriver,
                  "the CUDA driver could not be opened (" + library.error().message() + ")");
  }
  CudaDriverApi api;
  api.path = library->path();
  std::string missing;
  const auto resolve = [&](auto& function, const char* symbol) {
    library->resolve(function, symbol, missing);
  };
  resolve(api.init, "cuInit");
  resolve(api.driver_version, "cuDriverGetVersion");
  resolve(api.error_name, "cuGetErrorName");
  resolve(api.error_string, "cuGetErrorString");
  resolve(api.device_count, "cuDeviceGetCount");
  resolve(api.device_get, "cuDeviceGet");
  resolve(api.device_name, "cuDeviceGetName");
  resolve(api.device_attribute, "cuDeviceGetAttribute");
  resolve(api.primary_context_retain, "cuDevicePrimaryCtxRetain");
  resolve(api.primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  resolve(api.context_push, "cuCtxPushCurrent_v2");
  resolve(api.context_pop, "cuCtxPopCurrent_v2");
  resolve(api.library_load_data, "cuLibraryLoadData");
  resolve(api.library_unload, "cuLibraryUnload");
  resolve(api.library_get_kernel, "cuLibraryGetKernel");
  resolve(api.kernel_get_function, "cuKernelGetFunction");
  resolve(api.kernel_set_attribute, "cuKernelSetAttribute");
  resolve(api.function_load, "cuFuncLoad");
  resolve(api.launch_kernel_ex, "cuLaunchKernelEx");
  resolve(api.tensor_map_encode_tiled, "cuTensorMapEncodeTiled");
  resolve(api.memory_allocate, "cuMemAlloc_v2");
  resolve(api.memory_free, "cuMemFree_v2");
  resolve(api.copy_host_to_device, "cuMemcpyHtoD_v2");
  resolve(api.copy_device_to_host, "cuMemcpyDtoH_v2");
  resolve(api.fill_bytes, "cuMemsetD8_v2");
  resolve(api.pointer_attribute, "cuPointerGetAttribute");
  resolve(api.stream_synchronize, "cuStreamSynchronize");
  resolve(api.stream_is_capturing, "cuStreamIsCapturing");
  resolve(api.event_create, "cuEventCreate");
  resolve(api.event_destroy, "cuEventDestroy_v2");
  resolve(api.event_record, "cuEventRecord");
  resolve(api.event_synchronize, "cuEventSynchronize");
  resolve(api.event_elapsed_ms, "cuEventElapsedTime");
  // No product needs it: null where a driver lacks it.
  std::string unneeded;
  library->resolve(api.tensor_map_encode_im2col, "cuTensorMapEncodeIm2col", unneeded);
  if (!missing.empty()) {
    return Status(StatusCode::kNoDriver,
                  fmt::format("{} is too old: it lacks {} (CUDA 12.4 or newer is needed)", api.path,
                              missing));
  }
  const CuResult result = api.init(0);
  if (result != kCuSuccess) {
    return Status(StatusCode::kNoDriver, api.check(result, "cuInit").message());
  }
  return api;
}

Status CudaDriverApi::check(CuResult result, const char* what) const {
  if (result == kCuSuccess) return ok_status();
  const char* name = nullptr;
  const char* text = nullptr;
  error_name(result, &name);
  error_string(result, &text);
  return Status(result == kCuErrorOutOfMemory ? StatusCode::kOutOfMemory : StatusCode::kDeviceError,
                fmt::format("{}: {} ({}): {}", what, name != nullptr ? name : "unknown error",
                            result, text != nullptr ? text : "no description"));
}

}  // namespace jitgemm
