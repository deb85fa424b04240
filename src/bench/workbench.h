// SPDX-License-Identifier: Apache-2.0
// Where operands lie, contenders run and are checked: a GPU that is timed (GpuSession), or another
// device in a test. Knows nothing of products and of time.
#pragma once

#include "bench/gpu_kernels.h"
#include "device/cuda_driver_api.h"
#include "runtime/context.h"

#include <cstddef>
#include <cstdint>

namespace jitgemm::bench {

// Of everything that is drawn.
inline constexpr uint64_t kOperandAlignment = 1024;

class Workbench {
 public:
  virtual ~Workbench() = default;
  virtual Context& context() = 0;
  virtual Device& device() = 0;
  virtual const GpuKernels& kernels() const = 0;
  // That everything is put on.
  virtual CuStream stream() const = 0;
  virtual Status fill(uint64_t address, uint8_t byte, size_t bytes) = 0;
  virtual Status synchronize() = 0;
};

// Device memory, freed with its scope.
class DeviceMemory {
 public:
  static Result<DeviceMemory> create(Workbench& bench, size_t bytes);
  DeviceMemory() = default;
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  ~DeviceMemory();

  uint64_t address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  uint64_t address_ = 0;
  size_t bytes_ = 0;
};

}  // namespace jitgemm::bench
