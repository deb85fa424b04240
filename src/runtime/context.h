// SPDX-License-Identifier: Apache-2.0
// Owns what outlives a call: settings, cache, compiler, devices, loaded kernels. The only place
// where the whole sentence problem -> plan -> specialise -> compile -> cache -> load is spoken. No
// globals: two contexts share nothing but the folder on disk.
#pragma once

#include "device/open_device.h"
#include "plan/operation_plan.h"
#include "runtime/gemm_operation.h"
#include "runtime/kernel_builder.h"
#include "runtime/options.h"
#include "runtime/tuning.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace jitgemm {

struct PreparedGemm {
  std::shared_ptr<GemmOperation> operation;
  std::vector<BuiltKernel> kernels;  // one a launch

  const BuiltKernel& product() const { return kernels.back(); }
};

class Context {
 public:
  static Result<std::shared_ptr<Context>> create(const ContextOptions& options);
  // What create() refuses of the settings alone: INVALID_ARGUMENT names the setting.
  static Status check(const Settings& settings);

  const Settings& settings() const { return settings_; }
  DiskCache& cache() { return *cache_; }
  KernelBuilder& builder() { return *builder_; }
  const Logger& log() const { return log_; }
  // Measured plans: those that the library ships, to be looked up alone, and those of the file.
  const TuningDatabase& tuning() const { return *tuning_; }
  // How problems are planned for a device; without one, for the arch's usual part.
  PlanRequest plan_request(const PlanOverrides& overrides, const Device* device = nullptr) const;

  // Opens the device at first use and keeps it. Null arch: the device's own, sm_90a for "sim".
  Result<Device*> device(const std::string& name, std::optional<Arch> arch);

  // Plans for the device's SM count, builds and loads. May compile. Thread-safe.
  Result<PreparedGemm> prepare(const GemmProblem& problem, const PlanOverrides& overrides,
                               Device& device, BuildMode mode = BuildMode::kCached);
  // The same for a plan that was made for that device.
  Result<PreparedGemm> prepare(OperationPlan plan, Device& device,
                               BuildMode mode = BuildMode::kCached);
  // Once for each device and kernel; it stays as long as the context.
  Result<std::shared_ptr<const LoadedKernel>> load(Device& device, const BuiltKernel& kernel,
                                                   const LaunchGeometry& geometry);

 private:
  Context() = default;

  Settings settings_;
  Logger log_;
  OpenDeviceOptions device_options_;
  std::shared_ptr<const TuningDatabase> tuning_;
  std::shared_ptr<DiskCache> cache_;
  std::unique_ptr<KernelBuilder> builder_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Device>> devices_;  // by name and arch as asked for
  // By device and key. Never dropped: captured graphs may hold a kernel, and kernels are small.
  std::map<std::pair<const Device*, std::string>, std::shared_ptr<const LoadedKernel>> kernels_;
};

}  // namespace jitgemm
