// SPDX-License-Identifier: Apache-2.0
#include "device/open_device.h"

#include "device/cuda_device.h"

#include <fmt/format.h>

#include <charconv>

namespace jitgemm {

Result<std::unique_ptr<Device>> open_device(const std::string& name, std::optional<Arch> arch,
                                            const OpenDeviceOptions& options) {
  if (name == "sim") {
    return std::unique_ptr<Device>(new SimDevice(arch.value_or(Arch::kSm90a), options.sim));
  }
  int ordinal = 0;
  if (name.starts_with("cuda:")) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + 5, end, ordinal);
    if (error != std::errc() || stop != end) ordinal = -1;
  } else if (name != "cuda") {
    ordinal = -1;
  }
  if (ordinal < 0) {
    return invalid_argument(fmt::format("device: expected 'sim' or 'cuda:N', found '{}'", name));
  }
  JITGEMM_ASSIGN(const CudaDriverApi api, CudaDriverApi::open(options.driver));
  JITGEMM_ASSIGN(std::unique_ptr<CudaDevice> device, CudaDevice::open(api, ordinal, arch));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace jitgemm
