// SPDX-License-Identifier: Apache-2.0
#include "selftest/device_buffer.h"

#include <fmt/format.h>

#include <utility>

namespace jitgemm {
namespace {

// Keeps the buffer's alignment at that of the allocation.
constexpr size_t kGuardBytes = 1024;
constexpr uint8_t kGuardByte = 0xa5;

}  // namespace

DeviceBuffer::DeviceBuffer(Device& device, uint64_t allocation, size_t shift, size_t bytes)
    : device_(&device),
      allocation_(allocation),
      address_(allocation + kGuardBytes + shift),
      bytes_(bytes) {}

Result<DeviceBuffer> DeviceBuffer::create(Device& device, size_t bytes, uint8_t fill_byte,
                                          size_t shift) {
  JITGEMM_ASSIGN(const uint64_t allocation, device.allocate(bytes + shift + 2 * kGuardBytes));
  DeviceBuffer buffer(device, allocation, shift, bytes);
  JITGEMM_TRY(device.fill(allocation, kGuardByte, kGuardBytes + shift));
  if (bytes > 0) JITGEMM_TRY(device.fill(buffer.address_, fill_byte, bytes));
  JITGEMM_TRY(device.fill(buffer.address_ + bytes, kGuardByte, kGuardBytes));
  return buffer;
}

Result<DeviceBuffer> DeviceBuffer::copy_of(Device& device, std::span<const std::byte> bytes,
                                           size_t shift) {
  JITGEMM_ASSIGN(DeviceBuffer buffer, create(device, bytes.size(), 0xff, shift));
  if (!bytes.empty())
    JITGEMM_TRY(device.copy_to_device(buffer.address_, bytes.data(), bytes.size()));
  return buffer;
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(other.device_),
      allocation_(std::exchange(other.allocation_, 0)),
      address_(other.address_),
      bytes_(other.bytes_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(allocation_, other.allocation_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  // Nobody is left to tell about a failure; the device reports it at its next call.
  if (allocation_ != 0) static_cast<void>(device_->free(allocation_).ok());
}

Result<std::vector<std::byte>> DeviceBuffer::read() const {
  std::vector<std::byte> bytes(bytes_);
  if (bytes_ > 0) JITGEMM_TRY(device_->copy_to_host(bytes.data(), address_, bytes_));
  return bytes;
}

Status DeviceBuffer::check_guards(const char* name) const {
  std::vector<std::byte> guard(kGuardBytes);
  for (const uint64_t start : {address_ - kGuardBytes, address_ + bytes_}) {
    JITGEMM_TRY(device_->copy_to_host(guard.data(), start, kGuardBytes));
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (guard[i] == std::byte{kGuardByte}) continue;
      return Status(StatusCode::kVerificationFailed,
                    fmt::format("the kernel wrote outside of '{}': byte {} {} the buffer", name,
                                start < address_ ? kGuardBytes - i : i,
                                start < address_ ? "before" : "after"));
    }
  }
  return ok_status();
}

}  // namespace jitgemm
