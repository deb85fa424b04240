// SPDX-License-Identifier: Apache-2.0
#include "device/sim_device.h"

#include "sim/models_tensor_map.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace jitgemm {
namespace {

// Few CTAs, so that a persistent kernel's loop over tiles is exercised by small problems too.
constexpr int kSimulatedSmCount = 4;
constexpr size_t kAllocationAlignment = 256;

class SimKernel final : public LoadedKernel {
 public:
  SimKernel(sim::Program program, std::string entry)
      : program_(std::move(program)), entry_(std::move(entry)) {}
  const sim::Program& program() const { return program_; }
  const std::string& entry() const { return entry_; }

 private:
  sim::Program program_;
  std::string entry_;
};

// A device address of the simulator is a host address.
void* host_pointer(uint64_t address) {
  return reinterpret_cast<void*>(address);
}

sim::TensorElement simulated_element(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0: return sim::TensorElement::kU8;
    case DType::kF16: return sim::TensorElement::kF16;
    case DType::kBF16: return sim::TensorElement::kBf16;
    case DType::kF32: return sim::TensorElement::kF32;
    case DType::kI32: return sim::TensorElement::kS32;
  }
  return sim::TensorElement::kU8;
}

sim::SwizzleMode simulated_swizzle(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return sim::SwizzleMode::kNone;
    case Swizzle::k32B: return sim::SwizzleMode::k32B;
    case Swizzle::k64B: return sim::SwizzleMode::k64B;
    case Swizzle::k128B: return sim::SwizzleMode::k128B;
  }
  return sim::SwizzleMode::kNone;
}

std::array<uint32_t, 3> extents(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}

Status encode(const TensorMapSpec& spec, EncodedTensorMap& map) {
  JITGEMM_TRY(validate(spec));
  sim::TensorMap tensor_map;
  tensor_map.element = simulated_element(spec.dtype);
  tensor_map.rank = spec.rank;
  tensor_map.address = spec.address;
  for (uint32_t i = 0; i < spec.rank; ++i) {
    tensor_map.dims[i] = spec.extents[i];
    tensor_map.box[i] = spec.box[i];
    if (i > 0) tensor_map.strides[i - 1] = spec.strides[i - 1];
  }
  tensor_map.swizzle = simulated_swizzle(spec.swizzle);
  if (const std::string error = sim::tensor_map_error(tensor_map); !error.empty()) {
    return invalid_argument("tensor map: " + error);
  }
  const sim::EncodedMap encoded = sim::encode_tensor_map(tensor_map);
  std::memcpy(map.bytes, encoded.data(), sizeof(map.bytes));
  return ok_status();
}

}  // namespace

SimDevice::SimDevice(Arch arch, const SimDeviceOptions& options) {
  const bool hopper = arch_info(arch).compute_capability < 100;
  options_.numerics =
      options.numerics.value_or(hopper ? sim::Numerics::kHopper : sim::Numerics::kExact);
  options_.seed = options.seed;
  observe_ = options.observe;
  options_.sanitize = options.sanitize;
  options_.races = options.races;
  options_.strict = options.strict;
  options_.last_warps = options.last_warps;
  options_.trace = options.trace;
  if (options.step_limit != 0) options_.step_limit = options.step_limit;
  options_.threads =
      options.threads != 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  info_.name = "sim";
  info_.description = fmt::format("simulated {}, numerics {}", arch_info(arch).target,
                                  sim::numerics_name(options_.numerics));
  info_.arch = arch;
  info_.sm_count = kSimulatedSmCount;
  // The kernel under test is the one that a real part would get.
  info_.plan_sm_count = arch_info(arch).default_sm_count;
}

Result<std::unique_ptr<LoadedKernel>> SimDevice::load(const KernelImage& image,
                                                      const LaunchGeometry&) {
  if (image.target != arch_info(info_.arch).target) {
    return unsupported(fmt::format("the simulator was opened as {}, the kernel was compiled for {}",
                                   arch_info(info_.arch).target, image.target));
  }
  JITGEMM_ASSIGN(sim::Program program, sim::Program::load(image.ptx));
  return std::unique_ptr<LoadedKernel>(new SimKernel(std::move(program), image.entry));
}

Status SimDevice::launch(const LoadedKernel& kernel, const LaunchRequest& request,
                         StreamHandle stream) const {
  for (const TensorMapRequest& map : request.maps) JITGEMM_TRY(encode(map.spec, *map.map));
  const auto& sim_kernel = static_cast<const SimKernel&>(kernel);
  sim::Launch launch;
  launch.entry = sim_kernel.entry();
  launch.grid = extents(request.geometry.grid);
  launch.block = extents(request.geometry.block);
  launch.cluster = extents(request.geometry.cluster);
  launch.dynamic_shared_bytes = request.geometry.shared_bytes;
  launch.parameters = std::span(static_cast<const std::byte*>(request.params), request.param_bytes);
  launch.programmatic_dependent = request.programmatic_dependence;
  std::vector<sim::WrittenRange> writes;
  for (const MemoryRange& range : request.ranges) {
    launch.memory.push_back({host_pointer(range.address), range.bytes, /*readable=*/true,
                             range.writable,
                             /*initialised=*/!range.writable || range.updated});
    if (!range.writable) continue;
    sim::MemoryRange& last = launch.memory.back();
    last.log = sim::make_written_bits(last.bytes);
    writes.push_back({last.base, last.bytes, last.log});
  }
  {
    const std::lock_guard lock(writes_mutex_);
    launch.predecessor_writes = std::exchange(last_writes_[stream], std::move(writes));
  }
  const Result<sim::Report> report = sim::run(sim_kernel.program(), launch, options_);
  if (!report) return report.error();
  if (observe_) observe_(*report);
  return ok_status();
}

Result<uint64_t> SimDevice::allocate(size_t bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAllocationAlignment - 1) /
                         kAllocationAlignment * kAllocationAlignment;
  void* memory = rounded < bytes ? nullptr : std::aligned_alloc(kAllocationAlignment, rounded);
  if (memory == nullptr) {
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("the host has no {} bytes for a simulated buffer", bytes));
  }
  return reinterpret_cast<uint64_t>(memory);
}

void SimDevice::forget_writes() const {
  const std::lock_guard lock(writes_mutex_);
  last_writes_.clear();
}

Status SimDevice::free(uint64_t address) {
  forget_writes();
  std::free(host_pointer(address));
  return ok_status();
}

Status SimDevice::copy_to_device(uint64_t destination, const void* source, size_t bytes) {
  forget_writes();
  std::memcpy(host_pointer(destination), source, bytes);
  return ok_status();
}

Status SimDevice::copy_to_host(void* destination, uint64_t source, size_t bytes) {
  forget_writes();
  std::memcpy(destination, host_pointer(source), bytes);
  return ok_status();
}

Status SimDevice::fill(uint64_t destination, uint8_t byte, size_t bytes) {
  forget_writes();
  std::memset(host_pointer(destination), byte, bytes);
  return ok_status();
}

Status SimDevice::synchronize(StreamHandle) {
  forget_writes();
  return ok_status();
}

Result<std::unique_ptr<DeviceTimer>> SimDevice::make_timer() {
  return unsupported("the simulator does not model time");
}

Result<bool> SimDevice::is_capturing(StreamHandle) const {
  return false;
}

Status SimDevice::check_address(uint64_t) const {
  return ok_status();
}

}  // namespace jitgemm
