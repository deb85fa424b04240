// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_session.h"

#include <chrono>
#include <utility>

namespace jitgemm::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Five times the L2 of an H200.
constexpr size_t kFlushBytes = size_t{256} << 20;
// The host enqueues within this share of the spin, or the sample is taken anew behind a longer one.
constexpr double kSpinShare = 0.6;
constexpr double kLongestSpinUs = 20000;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

Result<std::unique_ptr<GpuSession>> GpuSession::create(Context& context, Device& device) {
  auto* gpu = dynamic_cast<CudaDevice*>(&device);
  if (gpu == nullptr) {
    return unsupported("--device: timing needs a GPU; found " + device.info().name);
  }
  JITGEMM_ASSIGN(const TimingApi timing, TimingApi::open(gpu->api().path));
  std::unique_ptr<GpuSession> session(new GpuSession(context, *gpu, timing));
  JITGEMM_TRY(session->set_up());
  return session;
}

Status GpuSession::set_up() {
  const CudaDriverApi& api = device_.api();
  // Peers and allocations go to the context that is current.
  JITGEMM_TRY(check(api.context_push(device_.context()), "cuCtxPushCurrent"));
  pushed_ = true;
  JITGEMM_TRY(check(timing_.stream_create(&stream_, kCuStreamNonBlocking), "cuStreamCreate"));
  JITGEMM_TRY(check(api.event_create(&start_, 0), "cuEventCreate"));
  JITGEMM_TRY(check(api.event_create(&stop_, 0), "cuEventCreate"));
  JITGEMM_ASSIGN(flush_, DeviceMemory::create(*this, kFlushBytes));
  JITGEMM_ASSIGN(kernels_, GpuKernels::create(context_, device_));
  char bus_id[32] = {};
  if (timing_.device_pci_bus_id(bus_id, sizeof(bus_id) - 1, device_.handle()) == kCuSuccess) {
    pci_bus_id_ = bus_id;
    if (Result<Nvml> nvml = Nvml::open(pci_bus_id_)) nvml_ = *nvml;
  }
  return ok_status();
}

GpuSession::~GpuSession() {
  flush_ = DeviceMemory();
  const CudaDriverApi& api = device_.api();
  if (start_ != nullptr) api.event_destroy(start_);
  if (stop_ != nullptr) api.event_destroy(stop_);
  if (stream_ != nullptr) timing_.stream_destroy(stream_);
  CuContext popped = nullptr;
  if (pushed_) api.context_pop(&popped);
}

DeviceState GpuSession::read_state() const {
  return nvml_ ? nvml_->read() : DeviceState{};
}

Status GpuSession::fill(uint64_t address, uint8_t byte, size_t bytes) {
  if (bytes == 0) return ok_status();
  return check(timing_.fill_bytes_async(address, byte, bytes, stream_), "cuMemsetD8Async");
}

Status GpuSession::synchronize() {
  return check(device_.api().stream_synchronize(stream_), "cuStreamSynchronize");
}

Result<Graph> GpuSession::capture(const std::function<Status(CuStream)>& launches) {
  JITGEMM_TRY(check(timing_.stream_begin_capture(stream_, kCuStreamCaptureModeThreadLocal),
                    "cuStreamBeginCapture"));
  const Status launched = launches(stream_);
  CuGraph graph = nullptr;
  // The capture must end whatever was launched.
  const Status ended = check(timing_.stream_end_capture(stream_, &graph), "cuStreamEndCapture");
  CuGraphExec exec = nullptr;
  Status made = launched.ok() ? ended : launched;
  if (made.ok()) {
    made = check(timing_.graph_instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  }
  if (graph != nullptr) timing_.graph_destroy(graph);
  JITGEMM_TRY(made);
  Graph captured(timing_, exec);
  JITGEMM_TRY(check(timing_.graph_upload(exec, stream_), "cuGraphUpload"));
  JITGEMM_TRY(synchronize());
  return captured;
}

Result<double> GpuSession::elapsed_us() {
  const CudaDriverApi& api = device_.api();
  JITGEMM_TRY(check(api.event_synchronize(stop_), "cuEventSynchronize"));
  float milliseconds = 0;
  JITGEMM_TRY(check(api.event_elapsed_ms(&milliseconds, start_, stop_), "cuEventElapsedTime"));
  return 1000.0 * static_cast<double>(milliseconds);
}

Result<double> GpuSession::time_shielded(const std::function<Status(CuStream)>& work) {
  const CudaDriverApi& api = device_.api();
  while (true) {
    JITGEMM_TRY(fill(flush_.address(), 0, flush_.bytes()));
    JITGEMM_TRY(kernels_->spin(spin_us_, stream_));
    const Clock::time_point spinning = Clock::now();
    JITGEMM_TRY(check(api.event_record(start_, stream_), "cuEventRecord"));
    JITGEMM_TRY(work(stream_));
    JITGEMM_TRY(check(api.event_record(stop_, stream_), "cuEventRecord"));
    const double enqueued_us = microseconds_since(spinning);
    JITGEMM_ASSIGN(const double elapsed, elapsed_us());
    if (enqueued_us < kSpinShare * spin_us_ || spin_us_ >= kLongestSpinUs) return elapsed;
    spin_us_ *= 2;
  }
}

Result<double> GpuSession::time_back_to_back(int64_t count,
                                             const std::function<Status(CuStream)>& work,
                                             const std::function<void()>& midway) {
  const CudaDriverApi& api = device_.api();
  JITGEMM_TRY(check(api.event_record(start_, stream_), "cuEventRecord"));
  for (int64_t i = 0; i < count; ++i) {
    JITGEMM_TRY(work(stream_));
    if (i == count / 2 && midway) midway();
  }
  JITGEMM_TRY(check(api.event_record(stop_, stream_), "cuEventRecord"));
  return elapsed_us();
}

}  // namespace jitgemm::bench
