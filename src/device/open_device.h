// SPDX-License-Identifier: Apache-2.0
// name -> device: the one place that knows every kind.
#pragma once

#include "device/device.h"
#include "device/sim_device.h"

#include <memory>
#include <optional>
#include <string>

namespace jitgemm {

struct OpenDeviceOptions {
  std::string driver;  // file of the CUDA driver library; empty: the loader's search
  SimDeviceOptions sim;
};

// "cuda:N" (or "cuda", which is cuda:0), or "sim". The simulator is of the arch asked for; for a
// GPU an arch that is asked for must be its own.
Result<std::unique_ptr<Device>> open_device(const std::string& name, std::optional<Arch> arch,
                                            const OpenDeviceOptions& options);

}  // namespace jitgemm
