// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's entry points, resolved at run time so that the library loads on a machine
// without a driver. Types, numbers and layouts are those of the driver's public interface (CUDA
// Driver API reference), declared here so that nobody needs CUDA headers.
#pragma once

#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace jitgemm {

using CuResult = int;
using CuDevice = int;
using CuContext = struct CuContextTag*;
using CuLibrary = struct CuLibraryTag*;
using CuKernel = struct CuKernelTag*;
using CuFunction = struct CuFunctionTag*;
using CuStream = struct CuStreamTag*;
using CuEvent = struct CuEventTag*;
using CuDeviceAddress = unsigned long long;

inline constexpr CuResult kCuSuccess = 0;
inline constexpr CuResult kCuErrorOutOfMemory = 2;

// CUdevice_attribute, CUfunction_attribute, CUpointer_attribute, CUlaunchAttributeID
inline constexpr int kCuDeviceMultiprocessorCount = 16;
inline constexpr int kCuDeviceCapabilityMajor = 75;
inline constexpr int kCuDeviceCapabilityMinor = 76;
inline constexpr int kCuFunctionMaxDynamicShared = 8;
inline constexpr int kCuFunctionNonPortableCluster = 14;
inline constexpr int kCuPointerDeviceOrdinal = 9;
inline constexpr int kCuLaunchClusterDimension = 4;
inline constexpr int kCuLaunchProgrammaticStreamSerialization = 6;

// CUlaunchAttribute: an id, then a 64-byte value at offset 8.
struct CuLaunchAttribute {
  int id;
  char pad[4];
  union Value {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int programmatic_serialization;
  } value;
};
static_assert(sizeof(CuLaunchAttribute) == 72);

// CUlaunchConfig
struct CuLaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CuStream stream;
  CuLaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(offsetof(CuLaunchConfig, stream) == 32 && sizeof(CuLaunchConfig) == 56);

struct CudaDriverApi {
  CuResult (*init)(unsigned flags) = nullptr;
  CuResult (*driver_version)(int* version) = nullptr;
  CuResult (*error_name)(CuResult result, const char** name) = nullptr;
  CuResult (*error_string)(CuResult result, const char** text) = nullptr;
  CuResult (*device_count)(int* count) = nullptr;
  CuResult (*device_get)(CuDevice* device, int ordinal) = nullptr;
  CuResult (*device_name)(char* name, int length, CuDevice device) = nullptr;
  CuResult (*device_attribute)(int* value, int attribute, CuDevice device) = nullptr;
  CuResult (*primary_context_retain)(CuContext* context, CuDevice device) = nullptr;
  CuResult (*primary_context_release)(CuDevice device) = nullptr;
  CuResult (*context_push)(CuContext context) = nullptr;
  CuResult (*context_pop)(CuContext* context) = nullptr;
  CuResult (*library_load_data)(CuLibrary* library, const void* code, int* jit_options,
                                void** jit_values, unsigned jit_count, int* options, void** values,
                                unsigned count) = nullptr;
  CuResult (*library_unload)(CuLibrary library) = nullptr;
  CuResult (*library_get_kernel)(CuKernel* kernel, CuLibrary library, const char* name) = nullptr;
  CuResult (*kernel_get_function)(CuFunction* function, CuKernel kernel) = nullptr;
  CuResult (*kernel_set_attribute)(int attribute, int value, CuKernel kernel,
                                   CuDevice device) = nullptr;
  CuResult (*function_load)(CuFunction function) = nullptr;
  CuResult (*launch_kernel_ex)(const CuLaunchConfig* config, CuFunction function, void** params,
                               void** extra) = nullptr;
  CuResult (*tensor_map_encode_tiled)(void* map, int type, uint32_t rank, void* address,
                                      const uint64_t* extents, const uint64_t* strides,
                                      const uint32_t* box, const uint32_t* element_strides,
                                      int interleave, int swizzle, int l2_promotion,
                                      int out_of_bounds_fill) = nullptr;
  CuResult (*tensor_map_encode_im2col)(void* map, int type, uint32_t rank, void* address,
                                       const uint64_t* extents, const uint64_t* strides,
                                       const int* lower_corner, const int* upper_corner,
                                       uint32_t channels, uint32_t pixels,
                                       const uint32_t* element_strides, int interleave, int swizzle,
                                       int l2_promotion, int out_of_bounds_fill) = nullptr;
  CuResult (*memory_allocate)(CuDeviceAddress* address, size_t bytes) = nullptr;
  CuResult (*memory_free)(CuDeviceAddress address) = nullptr;
  CuResult (*copy_host_to_device)(CuDeviceAddress destination, const void* source,
                                  size_t bytes) = nullptr;
  CuResult (*copy_device_to_host)(void* destination, CuDeviceAddress source,
                                  size_t bytes) = nullptr;
  CuResult (*fill_bytes)(CuDeviceAddress destination, unsigned char byte, size_t count) = nullptr;
  CuResult (*pointer_attribute)(void* value, int attribute, CuDeviceAddress address) = nullptr;
  CuResult (*stream_synchronize)(CuStream stream) = nullptr;
  CuResult (*stream_is_capturing)(CuStream stream, int* status) = nullptr;
  CuResult (*event_create)(CuEvent* event, unsigned flags) = nullptr;
  CuResult (*event_destroy)(CuEvent event) = nullptr;
  CuResult (*event_record)(CuEvent event, CuStream stream) = nullptr;
  CuResult (*event_synchronize)(CuEvent event) = nullptr;
  CuResult (*event_elapsed_ms)(float* milliseconds, CuEvent start, CuEvent end) = nullptr;

  std::string path;  // the library file

  // `path` empty: the loader's search for libcuda.so.1. Initialises the driver.
  static Result<CudaDriverApi> open(const std::string& path);
  // DEVICE_ERROR or OUT_OF_MEMORY with the driver's own name for the result; OK for success.
  Status check(CuResult result, const char* what) const;
};

}  // namespace jitgemm
