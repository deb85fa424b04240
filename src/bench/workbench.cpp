// SPDX-License-Identifier: Apache-2.0
#include "bench/workbench.h"

#include <utility>

namespace jitgemm::bench {

Result<DeviceMemory> DeviceMemory::create(Workbench& bench, size_t bytes) {
  DeviceMemory memory;
  JITGEMM_ASSIGN(memory.address_, bench.device().allocate(bytes));
  memory.device_ = &bench.device();
  memory.bytes_ = bytes;
  return memory;
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      address_(other.address_),
      bytes_(other.bytes_) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  // What cannot be freed is lost with the process; a destructor has nobody to tell.
  if (device_ != nullptr) static_cast<void>(device_->free(address_));
}

}  // namespace jitgemm::bench
