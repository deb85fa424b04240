// SPDX-License-Identifier: Apache-2.0
// The driver's entry points that timing needs and operations do not: streams, graphs, asynchronous
// fills and copies. Taken from the driver library that the device came from.
#pragma once

#include "device/cuda_driver_api.h"

namespace jitgemm::bench {

using CuGraph = struct CuGraphTag*;
using CuGraphExec = struct CuGraphExecTag*;

inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr int kCuStreamCaptureModeThreadLocal = 1;

struct TimingApi {
  CuResult (*stream_create)(CuStream* stream, unsigned flags) = nullptr;
  CuResult (*stream_destroy)(CuStream stream) = nullptr;
  CuResult (*stream_begin_capture)(CuStream stream, int mode) = nullptr;
  CuResult (*stream_end_capture)(CuStream stream, CuGraph* graph) = nullptr;
  CuResult (*graph_instantiate)(CuGraphExec* exec, CuGraph graph,
                                unsigned long long flags) = nullptr;
  CuResult (*graph_upload)(CuGraphExec exec, CuStream stream) = nullptr;
  CuResult (*graph_launch)(CuGraphExec exec, CuStream stream) = nullptr;
  CuResult (*graph_destroy)(CuGraph graph) = nullptr;
  CuResult (*graph_exec_destroy)(CuGraphExec exec) = nullptr;
  CuResult (*fill_bytes_async)(CuDeviceAddress destination, unsigned char byte, size_t count,
                               CuStream stream) = nullptr;
  CuResult (*copy_on_device_async)(CuDeviceAddress destination, CuDeviceAddress source,
                                   size_t bytes, CuStream stream) = nullptr;
  CuResult (*device_pci_bus_id)(char* text, int length, CuDevice device) = nullptr;

  // NO_DRIVER, naming what is missing.
  static Result<TimingApi> open(const std::string& driver_path);
};

}  // namespace jitgemm::bench
