// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_stage.h"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace jitgemm::bench {

Status GpuStage::add(Contender& contender, int sets, bool single_call) {
  if (single_call) {
    add([&contender](CuStream stream) { return contender.launch(0, stream); });
    return ok_status();
  }
  JITGEMM_ASSIGN(Graph captured, session_.capture([&](CuStream stream) -> Status {
    for (int i = 0; i < sets; ++i) {
      JITGEMM_TRY(contender.launch(static_cast<size_t>(i), stream));
    }
    return ok_status();
  }));
  const auto graph = std::make_shared<Graph>(std::move(captured));
  add([this, graph](CuStream stream) {
    return session_.check(session_.timing().graph_launch(graph->exec(), stream), "cuGraphLaunch");
  });
  return ok_status();
}

void GpuStage::rest(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

Result<double> GpuStage::time_one(size_t contender) {
  return session_.time_shielded(units_[contender]);
}

Result<double> GpuStage::time_many(size_t contender, int64_t units, DeviceState* state) {
  return session_.time_back_to_back(units, units_[contender], [&] {
    if (state != nullptr) *state = session_.read_state();
  });
}

}  // namespace jitgemm::bench
