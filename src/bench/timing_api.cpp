// SPDX-License-Identifier: Apache-2.0
#include "bench/timing_api.h"

#include "support/dynamic_library.h"

#include <fmt/format.h>

namespace jitgemm::bench {

Result<TimingApi> TimingApi::open(const std::string& driver_path) {
  JITGEMM_ASSIGN(const DynamicLibrary library, DynamicLibrary::open({driver_path}));
  TimingApi api;
  std::string missing;
  const auto resolve = [&](auto& function, const char* symbol) {
    library.resolve(function, symbol, missing);
  };
  resolve(api.stream_create, "cuStreamCreate");
  resolve(api.stream_destroy, "cuStreamDestroy_v2");
  resolve(api.stream_begin_capture, "cuStreamBeginCapture_v2");
  resolve(api.stream_end_capture, "cuStreamEndCapture");
  resolve(api.graph_instantiate, "cuGraphInstantiateWithFlags");
  resolve(api.graph_upload, "cuGraphUpload");
  resolve(api.graph_launch, "cuGraphLaunch");
  resolve(api.graph_destroy, "cuGraphDestroy");
  resolve(api.graph_exec_destroy, "cuGraphExecDestroy");
  resolve(api.fill_bytes_async, "cuMemsetD8Async");
  resolve(api.copy_on_device_async, "cuMemcpyDtoDAsync_v2");
  resolve(api.device_pci_bus_id, "cuDeviceGetPCIBusId");
  if (missing.empty()) return api;
  return Status(StatusCode::kNoDriver,
                fmt::format("{} lacks {}, which timing needs", library.path(), missing));
}

}  // namespace jitgemm::bench
