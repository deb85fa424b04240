// SPDX-License-Identifier: Apache-2.0
// A GPU through the CUDA driver: the primary context of one device. Loads the cubin of an image.
#pragma once

#include "device/cuda_driver_api.h"
#include "device/device.h"

#include <memory>
#include <optional>

namespace jitgemm {

class CudaDevice final : public Device {
 public:
  // `arch`: for which target its kernels are compiled; none: the device's own.
  static Result<std::unique_ptr<CudaDevice>> open(const CudaDriverApi& api, int ordinal,
                                                  std::optional<Arch> arch);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const DeviceInfo& info() const override { return info_; }
  Result<std::unique_ptr<LoadedKernel>> load(const KernelImage& image,
                                             const LaunchGeometry& geometry) override;
  Status launch(const LoadedKernel& kernel, const LaunchRequest& request,
                StreamHandle stream) const override;
  Result<uint64_t> allocate(size_t bytes) override;
  Status free(uint64_t address) override;
  Status copy_to_device(uint64_t destination, const void* source, size_t bytes) override;
  Status copy_to_host(void* destination, uint64_t source, size_t bytes) override;
  Status fill(uint64_t destination, uint8_t byte, size_t bytes) override;
  Status synchronize(StreamHandle stream) override;
  Result<std::unique_ptr<DeviceTimer>> make_timer() override;
  Result<bool> is_capturing(StreamHandle stream) const override;
  Status check_address(uint64_t address) const override;

  const CudaDriverApi& api() const { return api_; }
  CuContext context() const { return context_; }
  CuDevice handle() const { return device_; }

 private:
  // The driver wants a current context for it, although it only computes.
  Status encode(const TensorMapSpec& spec, EncodedTensorMap& map) const;

  CudaDevice(const CudaDriverApi& api, int ordinal, CuDevice device, CuContext context,
             DeviceInfo info)
      : api_(api), ordinal_(ordinal), device_(device), context_(context), info_(std::move(info)) {}

  CudaDriverApi api_;
  int ordinal_;
  CuDevice device_;
  CuContext context_;
  DeviceInfo info_;
};

}  // namespace jitgemm
