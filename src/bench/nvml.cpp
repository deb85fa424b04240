// SPDX-License-Identifier: Apache-2.0
#include "bench/nvml.h"

#include "support/dynamic_library.h"

#include <fmt/format.h>

namespace jitgemm::bench {
namespace {

constexpr int kSuccess = 0;
constexpr int kClockSm = 1;

}  // namespace

Result<Nvml> Nvml::open(const std::string& pci_bus_id) {
  Result<DynamicLibrary> library = DynamicLibrary::open({"libnvidia-ml.so.1"});
  if (!library) return unsupported("NVML: " + library.error().message());
  Nvml nvml;
  int (*init)() = nullptr;
  int (*handle)(const char* bus_id, DeviceHandle* device) = nullptr;
  bool complete = true;
  const auto resolve = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library->find(name));
    complete = complete && function != nullptr;
  };
  resolve(init, "nvmlInit_v2");
  resolve(handle, "nvmlDeviceGetHandleByPciBusId_v2");
  resolve(nvml.clock_info_, "nvmlDeviceGetClockInfo");
  resolve(nvml.power_usage_, "nvmlDeviceGetPowerUsage");
  resolve(nvml.power_limit_, "nvmlDeviceGetEnforcedPowerLimit");
  if (!complete) return unsupported("NVML: the library lacks a function");
  if (init() != kSuccess || handle(pci_bus_id.c_str(), &nvml.device_) != kSuccess) {
    return unsupported(fmt::format("NVML: no device at {}", pci_bus_id));
  }
  return nvml;
}

DeviceState Nvml::read() const {
  DeviceState state;
  unsigned value = 0;
  if (clock_info_(device_, kClockSm, &value) == kSuccess) state.sm_clock_mhz = value;
  if (power_usage_(device_, &value) == kSuccess) state.power_w = value / 1000.0;
  return state;
}

double Nvml::power_limit_w() const {
  unsigned value = 0;
  return power_limit_(device_, &value) == kSuccess ? value / 1000.0 : 0;
}

}  // namespace jitgemm::bench
