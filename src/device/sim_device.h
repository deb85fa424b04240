// SPDX-License-Identifier: Apache-2.0
// The simulator as a device: loads the PTX of an image and executes it on the CPU. Host memory is
// device memory; a launch may touch exactly the ranges that it names, and runs to its end before it
// returns.
#pragma once

#include "device/device.h"
#include "sim/simulator.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace jitgemm {

struct SimDeviceOptions {
  std::optional<sim::Numerics> numerics;  // none: hopper for sm_90, exact otherwise
  uint64_t seed = 0;
  uint32_t threads = 0;  // 0: one a core
  bool sanitize = true;
  bool races = true;        // sim::Options
  bool strict = true;       // the same
  uint64_t step_limit = 0;  // warp instructions of a launch; 0: the simulator's default
  uint64_t last_warps = 0;  // sim::Options
  std::function<void(std::string_view line)> trace = {};  // the same
  std::function<void(const sim::Report&)> observe;        // called after each launch, if set
};

class SimDevice final : public Device {
 public:
  SimDevice(Arch arch, const SimDeviceOptions& options);

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

  sim::Numerics numerics() const { return options_.numerics; }

 private:
  DeviceInfo info_;
  sim::Options options_;
  std::function<void(const sim::Report&)> observe_;
  // What the last launch of each stream wrote, for one that may start before its end. Copies and
  // synchronisation wait for it.
  void forget_writes() const;
  mutable std::mutex writes_mutex_;
  mutable std::map<StreamHandle, std::vector<sim::WrittenRange>> last_writes_;
};

}  // namespace jitgemm
