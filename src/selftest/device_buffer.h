// SPDX-License-Identifier: Apache-2.0
// A buffer on a device between two guards whose bytes must survive, freed with its scope.
#pragma once

#include "device/device.h"
#include "support/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jitgemm {

class DeviceBuffer {
 public:
  // The buffer's own bytes are set to `fill_byte`; 0xff is a NaN in every floating-point type here.
  static Result<DeviceBuffer> create(Device& device, size_t bytes, uint8_t fill_byte,
                                     size_t shift = 0);
  static Result<DeviceBuffer> copy_of(Device& device, std::span<const std::byte> bytes,
                                      size_t shift = 0);

  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  uint64_t address() const { return address_; }
  size_t bytes() const { return bytes_; }
  Result<std::vector<std::byte>> read() const;
  // VERIFICATION_FAILED if a byte of a guard has changed.
  Status check_guards(const char* name) const;

 private:
  DeviceBuffer(Device& device, uint64_t allocation, size_t shift, size_t bytes);

  Device* device_;
  uint64_t allocation_;
  uint64_t address_;
  size_t bytes_;
};

}  // namespace jitgemm
