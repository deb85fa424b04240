// SPDX-License-Identifier: Apache-2.0
// One device behind one interface: a GPU through the CUDA driver, or the simulator. It loads
// images, launches them and moves bytes; it knows nothing of products, tiles or plans beyond a
// geometry.
#pragma once

#include "compile/kernel_image.h"
#include "device/tensor_map.h"
#include "plan/gemm_params.h"
#include "plan/gemm_plan.h"
#include "problem/arch.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace jitgemm {

struct DeviceInfo {
  std::string name;  // "cuda:0", "sim"
  std::string description;
  Arch arch = Arch::kSm90a;
  int sm_count = 0;        // CTAs of a persistent grid
  int plan_sm_count = 0;   // what planners count with; differs from sm_count on the simulator
  int driver_version = 0;  // 13000 is 13.0; 0 on the simulator
};

// A CUstream, as an opaque pointer; null is the default stream.
using StreamHandle = void*;

// Memory that a launch may touch. The simulator allows exactly these ranges; a GPU ignores them.
struct MemoryRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool writable = false;
  // Of writable memory: whether the kernel may read what was there before.
  bool updated = false;
};

// A tensor map that lies inside the parameters.
struct TensorMapRequest {
  TensorMapSpec spec;
  EncodedTensorMap* map = nullptr;
};

struct LaunchRequest {
  LaunchGeometry geometry;
  const void* params = nullptr;
  size_t param_bytes = 0;
  std::span<const TensorMapRequest> maps;  // encoded by the launch, into the parameters
  std::span<const MemoryRange> ranges;
  // Programmatic dependent launch: the kernel may start before its predecessor on the stream ends.
  bool programmatic_dependence = false;
};

// A kernel in a form that its device can launch. Lives as long as the device.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
};

// Times what is put on a stream between start and stop, on the device's clock.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual Status start(StreamHandle stream) = 0;
  // Microseconds; waits for the work.
  virtual Result<double> stop(StreamHandle stream) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // May be slow and may allocate: belongs to preparation.
  virtual Result<std::unique_ptr<LoadedKernel>> load(const KernelImage& image,
                                                     const LaunchGeometry& geometry) = 0;
  // On a GPU: asynchronous, no allocation, no lock, no file. On the simulator: runs to the end.
  virtual Status launch(const LoadedKernel& kernel, const LaunchRequest& request,
                        StreamHandle stream) const = 0;

  virtual Result<uint64_t> allocate(size_t bytes) = 0;
  virtual Status free(uint64_t address) = 0;
  virtual Status copy_to_device(uint64_t destination, const void* source, size_t bytes) = 0;
  virtual Status copy_to_host(void* destination, uint64_t source, size_t bytes) = 0;
  virtual Status fill(uint64_t destination, uint8_t byte, size_t bytes) = 0;
  virtual Status synchronize(StreamHandle stream) = 0;
  // UNSUPPORTED on a device without time.
  virtual Result<std::unique_ptr<DeviceTimer>> make_timer() = 0;
  // Whether a graph is being captured on the stream.
  virtual Result<bool> is_capturing(StreamHandle stream) const = 0;
  // INVALID_ARGUMENT if the device cannot read the address (memory of the host, or of another
  // device).
  virtual Status check_address(uint64_t address) const = 0;
};

}  // namespace jitgemm
