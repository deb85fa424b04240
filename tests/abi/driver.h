// SPDX-License-Identifier: Apache-2.0
// The few functions of the CUDA driver that tests on a GPU need beside jitgemm: streams, capture
// and graphs. Opened at run time; the tests need no CUDA headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlfcn.h>

namespace jitgemm_abi {

struct Driver {
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*context_retain)(void** context, int device) = nullptr;
  int (*context_set)(void* context) = nullptr;
  int (*stream_create)(void** stream, unsigned flags) = nullptr;
  int (*stream_destroy)(void* stream) = nullptr;
  int (*stream_synchronize)(void* stream) = nullptr;
  int (*capture_begin)(void* stream, int mode) = nullptr;
  int (*capture_end)(void* stream, void** graph) = nullptr;
  int (*graph_instantiate)(void** executable, void* graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(void* executable, void* stream) = nullptr;
  int (*graph_destroy)(void* graph) = nullptr;
  int (*executable_destroy)(void* executable) = nullptr;
  int (*fill_bytes)(unsigned long long address, unsigned char byte, size_t count) = nullptr;
  int (*fill_words)(unsigned long long address, unsigned word, size_t count) = nullptr;

  // Whether all were found; the first GPU's primary context is then current.
  bool open() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return false;
    const auto find = [library](const char* name, auto& function) {
      *reinterpret_cast<void**>(&function) = dlsym(library, name);
      return function != nullptr;
    };
    const bool complete =
        find("cuDeviceGet", device_get) && find("cuDevicePrimaryCtxRetain", context_retain) &&
        find("cuCtxSetCurrent", context_set) && find("cuStreamCreate", stream_create) &&
        find("cuStreamDestroy_v2", stream_destroy) &&
        find("cuStreamSynchronize", stream_synchronize) &&
        find("cuStreamBeginCapture_v2", capture_begin) && find("cuStreamEndCapture", capture_end) &&
        find("cuGraphInstantiateWithFlags", graph_instantiate) &&
        find("cuGraphLaunch", graph_launch) && find("cuGraphDestroy", graph_destroy) &&
        find("cuGraphExecDestroy", executable_destroy) && find("cuMemsetD8_v2", fill_bytes) &&
        find("cuMemsetD32_v2", fill_words);
    int device = 0;
    void* context = nullptr;
    return complete && device_get(&device, 0) == 0 && context_retain(&context, device) == 0 &&
           context_set(context) == 0;
  }
};

}  // namespace jitgemm_abi
