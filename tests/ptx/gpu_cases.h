// SPDX-License-Identifier: Apache-2.0
// Runs cases on a GPU through the driver: its compiler makes a cubin of the case's PTX, the entry
// is launched on copies of the bytes, the bytes come back. After an error of the device the
// process's context is lost for good; the caller ends the process.
#pragma once

#include "device/cuda_driver_api.h"
#include "ptx/instruction_cases.h"

#include <string>
#include <vector>

namespace jitgemm::ptx_cases {

struct GpuOutcome {
  enum class Kind : uint8_t {
    kRan,
    kRefused,  // the driver's compiler does not take the text for this GPU
    kFailed,   // the device or the driver reported an error; no more cases in this process
  };
  Kind kind = Kind::kRan;
  std::string message;
  std::vector<CaseBytes> left;  // by run
};

class GpuCases {
 public:
  // Device 0. NO_DRIVER, or UNSUPPORTED for a GPU that is no sm_90.
  static Result<GpuCases> open();

  const std::string& gpu() const { return gpu_; }
  const std::string& driver() const { return driver_; }
  GpuOutcome run(const Case& c);

 private:
  GpuCases() = default;
  Status run_once(const Case& c, const CaseRun& run, CuFunction function, CaseBytes& bytes);

  CudaDriverApi api_;
  std::string gpu_, driver_;
  CuDeviceAddress in_ = 0, out_ = 0, memory_ = 0;
};

// The target whose cases a GPU of compute capability 9.0 runs.
inline constexpr const char* kGpuTarget = "sm_90a";

}  // namespace jitgemm::ptx_cases
