// SPDX-License-Identifier: Apache-2.0
// A simulated device that runs another text in place of one kernel, and can let that kernel follow
// a grid that writes all that it touches, which it may overtake (programmatic dependence).
#pragma once

#include "device/sim_device.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm {

class MutatingDevice final : public Device {
 public:
  MutatingDevice(Arch arch, const SimDeviceOptions& options) : simulator_(arch, options) {}

  // From now on `mutant` is loaded where `original` is asked for.
  void replace(std::string original, std::string mutant) {
    original_ = std::move(original);
    mutant_ = std::move(mutant);
  }
  // Asked of every kernel that is loaded.
  void set_rewriter(std::function<void(KernelImage&)> rewriter) {
    rewriter_of_all_ = std::move(rewriter);
  }
  // Launches of what stands in for `original` follow such a grid.
  void set_predecessor(bool on) { predecessor_ = on; }
  // The texts asked for, in order.
  const std::vector<std::string>& loaded() const { return loaded_; }

  const DeviceInfo& info() const override { return simulator_.info(); }
  Result<std::unique_ptr<LoadedKernel>> load(const KernelImage& image,
                                             const LaunchGeometry& geometry) override;
  Status launch(const LoadedKernel& kernel, const LaunchRequest& request,
                StreamHandle stream) const override;
  Result<uint64_t> allocate(size_t bytes) override { return simulator_.allocate(bytes); }
  Status free(uint64_t address) override { return simulator_.free(address); }
  Status copy_to_device(uint64_t destination, const void* source, size_t bytes) override {
    return simulator_.copy_to_device(destination, source, bytes);
  }
  Status copy_to_host(void* destination, uint64_t source, size_t bytes) override {
    return simulator_.copy_to_host(destination, source, bytes);
  }
  Status fill(uint64_t destination, uint8_t byte, size_t bytes) override {
    return simulator_.fill(destination, byte, bytes);
  }
  Status synchronize(StreamHandle stream) override { return simulator_.synchronize(stream); }
  Result<std::unique_ptr<DeviceTimer>> make_timer() override { return simulator_.make_timer(); }
  Result<bool> is_capturing(StreamHandle stream) const override {
    return simulator_.is_capturing(stream);
  }
  Status check_address(uint64_t address) const override {
    return simulator_.check_address(address);
  }

 private:
  Status rewrite(const LaunchRequest& request, StreamHandle stream) const;

  SimDevice simulator_;
  std::string original_, mutant_;
  std::function<void(KernelImage&)> rewriter_of_all_;
  bool predecessor_ = false;
  std::vector<std::string> loaded_;
  const LoadedKernel* replaced_ = nullptr;
  std::unique_ptr<LoadedKernel> rewriter_;
};

}  // namespace jitgemm
