// SPDX-License-Identifier: Apache-2.0
// Clocks and power of a GPU through NVML, where its library is there. Types and numbers are those
// of NVML's public interface, declared here so that nobody needs its header.
#pragma once

#include "bench/regimes.h"
#include "support/result.h"

#include <string>

namespace jitgemm::bench {

class Nvml {
 public:
  // `pci_bus_id` as the driver writes it. UNSUPPORTED where the library or the device is missing.
  static Result<Nvml> open(const std::string& pci_bus_id);

  DeviceState read() const;
  // The enforced limit in watts; 0 if it cannot be read.
  double power_limit_w() const;

 private:
  using DeviceHandle = struct NvmlDeviceTag*;

  int (*clock_info_)(DeviceHandle device, int type, unsigned* mhz) = nullptr;
  int (*power_usage_)(DeviceHandle device, unsigned* milliwatts) = nullptr;
  int (*power_limit_)(DeviceHandle device, unsigned* milliwatts) = nullptr;
  DeviceHandle device_ = nullptr;
};

}  // namespace jitgemm::bench
