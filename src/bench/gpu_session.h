// SPDX-License-Identifier: Apache-2.0
// One GPU while it is timed: its context made current, a stream of its own, two events, the buffer
// that flushes L2, and the spin kernel that keeps the host's latency out of a sample. Knows nothing
// of products.
#pragma once

#include "bench/nvml.h"
#include "bench/regimes.h"
#include "bench/timing_api.h"
#include "bench/workbench.h"
#include "device/cuda_device.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace jitgemm::bench {

// A captured sequence of launches.
class Graph {
 public:
  Graph(const TimingApi& api, CuGraphExec exec) : api_(&api), exec_(exec) {}
  Graph(Graph&& other) noexcept : api_(other.api_), exec_(std::exchange(other.exec_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(exec_, other.exec_);
    return *this;
  }
  ~Graph() {
    if (exec_ != nullptr) api_->graph_exec_destroy(exec_);
  }
  CuGraphExec exec() const { return exec_; }

 private:
  const TimingApi* api_;
  CuGraphExec exec_;
};

class GpuSession final : public Workbench {
 public:
  // UNSUPPORTED for a device that is no GPU.
  static Result<std::unique_ptr<GpuSession>> create(Context& context, Device& device);
  ~GpuSession() override;
  GpuSession(const GpuSession&) = delete;
  GpuSession& operator=(const GpuSession&) = delete;

  Context& context() override { return context_; }
  CudaDevice& device() override { return device_; }
  CuStream stream() const override { return stream_; }
  const TimingApi& timing() const { return timing_; }
  const GpuKernels& kernels() const override { return *kernels_; }
  const std::string& pci_bus_id() const { return pci_bus_id_; }
  // Zeros where NVML is not there.
  DeviceState read_state() const;
  double power_limit_w() const { return nvml_ ? nvml_->power_limit_w() : 0; }

  Status check(CuResult result, const char* what) const {
    return device_.api().check(result, what);
  }
  Status fill(uint64_t address, uint8_t byte, size_t bytes) override;
  Status synchronize() override;
  Result<Graph> capture(const std::function<Status(CuStream)>& launches);

  // Microseconds of `work`, behind a flush of L2 and a spin; repeated where the host took longer to
  // enqueue than the spin lasted.
  Result<double> time_shielded(const std::function<Status(CuStream)>& work);
  // Microseconds of `count` times `work`, back to back; `midway` is called after half of them.
  Result<double> time_back_to_back(int64_t count, const std::function<Status(CuStream)>& work,
                                   const std::function<void()>& midway);

 private:
  GpuSession(Context& context, CudaDevice& device, TimingApi timing)
      : context_(context), device_(device), timing_(timing) {}
  Status set_up();
  Result<double> elapsed_us();

  Context& context_;
  CudaDevice& device_;
  TimingApi timing_;
  bool pushed_ = false;
  CuStream stream_ = nullptr;
  CuEvent start_ = nullptr;
  CuEvent stop_ = nullptr;
  DeviceMemory flush_;
  std::unique_ptr<GpuKernels> kernels_;
  std::optional<Nvml> nvml_;
  std::string pci_bus_id_;
  double spin_us_ = 200;
};

}  // namespace jitgemm::bench
