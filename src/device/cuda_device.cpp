// SPDX-License-Identifier: Apache-2.0
#include "device/cuda_device.h"

#include <fmt/format.h>

#include <optional>

namespace jitgemm {
namespace {

// Makes the device's context current for one scope and puts the caller's back.
class ContextScope {
 public:
  ContextScope(const CudaDriverApi& api, CuContext context) : api_(api) {
    pushed_ = api.context_push(context) == kCuSuccess;
  }
  ~ContextScope() {
    CuContext popped = nullptr;
    if (pushed_) api_.context_pop(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const CudaDriverApi& api_;
  bool pushed_ = false;
};

// The handles that stand for the default stream of whichever context is current: NULL,
// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD (CUDA Driver API, "Stream synchronization behavior").
bool of_current_context(StreamHandle stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2;
}

// Never unloaded: a captured graph may hold the kernel longer than any handle of ours.
class CudaKernel final : public LoadedKernel {
 public:
  explicit CudaKernel(CuKernel kernel) : kernel_(kernel) {}
  // A CUkernel may be launched as it is; the driver takes the context from the stream.
  CuFunction function() const { return reinterpret_cast<CuFunction>(kernel_); }

 private:
  CuKernel kernel_;
};

class CudaTimer final : public DeviceTimer {
 public:
  CudaTimer(const CudaDriverApi& api, CuContext context) : api_(api), context_(context) {}
  ~CudaTimer() override {
    ContextScope scope(api_, context_);
    if (start_ != nullptr) api_.event_destroy(start_);
    if (stop_ != nullptr) api_.event_destroy(stop_);
  }
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  Status create() {
    ContextScope scope(api_, context_);
    JITGEMM_TRY(api_.check(api_.event_create(&start_, 0), "cuEventCreate"));
    return api_.check(api_.event_create(&stop_, 0), "cuEventCreate");
  }
  Status start(StreamHandle stream) override {
    ContextScope scope(api_, context_);
    return api_.check(api_.event_record(start_, static_cast<CuStream>(stream)), "cuEventRecord");
  }
  Result<double> stop(StreamHandle stream) override {
    ContextScope scope(api_, context_);
    JITGEMM_TRY(
        api_.check(api_.event_record(stop_, static_cast<CuStream>(stream)), "cuEventRecord"));
    JITGEMM_TRY(api_.check(api_.event_synchronize(stop_), "cuEventSynchronize"));
    float milliseconds = 0;
    JITGEMM_TRY(
        api_.check(api_.event_elapsed_ms(&milliseconds, start_, stop_), "cuEventElapsedTime"));
    return 1000.0 * static_cast<double>(milliseconds);
  }

 private:
  const CudaDriverApi& api_;
  CuContext context_;
  CuEvent start_ = nullptr;
  CuEvent stop_ = nullptr;
};

// CUtensorMapDataType and CUtensorMapSwizzle of the driver's public interface.
int tensor_map_type(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0: return 0;  // UINT8
    case DType::kF16: return 6;
    case DType::kF32: return 7;
    case DType::kBF16: return 9;
    case DType::kI32: return 4;
  }
  return 0;
}

int tensor_map_swizzle(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::kNone: return 0;
    case Swizzle::k32B: return 1;
    case Swizzle::k64B: return 2;
    case Swizzle::k128B: return 3;
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaDriverApi& api, int ordinal,
                                                     std::optional<Arch> wanted) {
  int count = 0;
  JITGEMM_TRY(api.check(api.device_count(&count), "cuDeviceGetCount"));
  if (ordinal < 0 || ordinal >= count) {
    const std::string expected = count == 0   ? "a GPU, and the driver reports none"
                                 : count == 1 ? "cuda:0, the only one"
                                              : fmt::format("cuda:0 to cuda:{}", count - 1);
    return invalid_argument(fmt::format("device: expected {}; found cuda:{}", expected, ordinal));
  }
  CuDevice device = 0;
  int major = 0;
  int minor = 0;
  DeviceInfo info;
  char name[256] = {};
  JITGEMM_TRY(api.check(api.device_get(&device, ordinal), "cuDeviceGet"));
  JITGEMM_TRY(api.check(api.device_name(name, sizeof(name) - 1, device), "cuDeviceGetName"));
  JITGEMM_TRY(api.check(api.device_attribute(&major, kCuDeviceCapabilityMajor, device),
                        "cuDeviceGetAttribute"));
  JITGEMM_TRY(api.check(api.device_attribute(&minor, kCuDeviceCapabilityMinor, device),
                        "cuDeviceGetAttribute"));
  JITGEMM_TRY(api.check(api.device_attribute(&info.sm_count, kCuDeviceMultiprocessorCount, device),
                        "cuDeviceGetAttribute"));
  JITGEMM_TRY(api.check(api.driver_version(&info.driver_version), "cuDriverGetVersion"));
  Result<Arch> arch = arch_for_compute_capability(major, minor);
  if (!arch) return arch.error().with_context(name);
  info.arch = wanted.value_or(*arch);
  if (!runs_on(info.arch, *arch)) {
    return unsupported(fmt::format("device: cuda:{} is {}, a kernel for {} does not run there",
                                   ordinal, arch_info(*arch).target, arch_info(info.arch).target));
  }
  info.plan_sm_count = info.sm_count;
  info.name = fmt::format("cuda:{}", ordinal);
  info.description = name;
  CuContext context = nullptr;
  JITGEMM_TRY(api.check(api.primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  return std::unique_ptr<CudaDevice>(
      new CudaDevice(api, ordinal, device, context, std::move(info)));
}

CudaDevice::~CudaDevice() {
  api_.primary_context_release(device_);
}

Result<std::unique_ptr<LoadedKernel>> CudaDevice::load(const KernelImage& image,
                                                       const LaunchGeometry& geometry) {
  if (image.target != arch_info(info_.arch).target) {
    return unsupported(fmt::format("{} ({}) runs {}, the kernel was compiled for {}", info_.name,
                                   info_.description, arch_info(info_.arch).target, image.target));
  }
  ContextScope scope(api_, context_);
  CuLibrary library = nullptr;
  JITGEMM_TRY(api_.check(api_.library_load_data(&library, image.cubin.data(), nullptr, nullptr, 0,
                                                nullptr, nullptr, 0),
                         "cuLibraryLoadData"));
  CuKernel kernel = nullptr;
  CuFunction function = nullptr;
  const auto prepare = [&]() -> Status {
    JITGEMM_TRY(api_.check(api_.library_get_kernel(&kernel, library, image.entry.c_str()),
                           "cuLibraryGetKernel"));
    JITGEMM_TRY(api_.check(
        api_.kernel_set_attribute(kCuFunctionMaxDynamicShared,
                                  static_cast<int>(geometry.shared_bytes), kernel, device_),
        "cuKernelSetAttribute(max dynamic shared size)"));
    const uint32_t cluster = geometry.cluster.x * geometry.cluster.y * geometry.cluster.z;
    // Above 8 CTAs a cluster is not portable (CUDA C++ Programming Guide, "Thread Block Clusters").
    if (cluster > 8) {
      JITGEMM_TRY(
          api_.check(api_.kernel_set_attribute(kCuFunctionNonPortableCluster, 1, kernel, device_),
                     "cuKernelSetAttribute(non-portable cluster)"));
    }
    JITGEMM_TRY(api_.check(api_.kernel_get_function(&function, kernel), "cuKernelGetFunction"));
    // With lazy loading the code would otherwise be placed at the first launch.
    return api_.check(api_.function_load(function), "cuFuncLoad");
  };
  if (Status status = prepare(); !status.ok()) {
    api_.library_unload(library);
    return status;
  }
  return std::unique_ptr<LoadedKernel>(new CudaKernel(kernel));
}

Status CudaDevice::launch(const LoadedKernel& kernel, const LaunchRequest& request,
                          StreamHandle stream) const {
  const LaunchGeometry& geometry = request.geometry;
  CuLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (geometry.cluster != Dim3{1, 1, 1}) {
    attributes[count].id = kCuLaunchClusterDimension;
    attributes[count].value.cluster = {geometry.cluster.x, geometry.cluster.y, geometry.cluster.z};
    ++count;
  }
  if (request.programmatic_dependence) {
    attributes[count].id = kCuLaunchProgrammaticStreamSerialization;
    attributes[count].value.programmatic_serialization = 1;
    ++count;
  }
  const CuLaunchConfig config = {geometry.grid.x,
                                 geometry.grid.y,
                                 geometry.grid.z,
                                 geometry.block.x,
                                 geometry.block.y,
                                 geometry.block.z,
                                 geometry.shared_bytes,
                                 static_cast<CuStream>(stream),
                                 attributes,
                                 count};
  void* params[] = {const_cast<void*>(request.params)};
  const auto& cuda_kernel = static_cast<const CudaKernel&>(kernel);
  std::optional<ContextScope> scope;
  if (of_current_context(stream) || !request.maps.empty()) scope.emplace(api_, context_);
  for (const TensorMapRequest& map : request.maps) JITGEMM_TRY(encode(map.spec, *map.map));
  return api_.check(api_.launch_kernel_ex(&config, cuda_kernel.function(), params, nullptr),
                    "cuLaunchKernelEx");
}

Status CudaDevice::encode(const TensorMapSpec& spec, EncodedTensorMap& map) const {
  const uint32_t element_strides[5] = {1, 1, 1, 1, 1};
  const CuResult result = api_.tensor_map_encode_tiled(
      map.bytes, tensor_map_type(spec.dtype), spec.rank, reinterpret_cast<void*>(spec.address),
      spec.extents.data(), spec.strides.data(), spec.box.data(), element_strides, /*interleave=*/0,
      tensor_map_swizzle(spec.swizzle),
      /*l2_promotion: 256 bytes=*/3, /*out_of_bounds_fill: zeros=*/0);
  if (result == kCuSuccess) return ok_status();
  // The driver only says "invalid value"; say which.
  JITGEMM_TRY(validate(spec));
  return api_.check(result, "cuTensorMapEncodeTiled");
}

Result<uint64_t> CudaDevice::allocate(size_t bytes) {
  ContextScope scope(api_, context_);
  CuDeviceAddress address = 0;
  JITGEMM_TRY(api_.check(api_.memory_allocate(&address, bytes == 0 ? 1 : bytes), "cuMemAlloc"));
  return uint64_t{address};
}

Status CudaDevice::free(uint64_t address) {
  ContextScope scope(api_, context_);
  return api_.check(api_.memory_free(address), "cuMemFree");
}

Status CudaDevice::copy_to_device(uint64_t destination, const void* source, size_t bytes) {
  ContextScope scope(api_, context_);
  return api_.check(api_.copy_host_to_device(destination, source, bytes), "cuMemcpyHtoD");
}

Status CudaDevice::copy_to_host(void* destination, uint64_t source, size_t bytes) {
  ContextScope scope(api_, context_);
  return api_.check(api_.copy_device_to_host(destination, source, bytes), "cuMemcpyDtoH");
}

Status CudaDevice::fill(uint64_t destination, uint8_t byte, size_t bytes) {
  ContextScope scope(api_, context_);
  return api_.check(api_.fill_bytes(destination, byte, bytes), "cuMemsetD8");
}

Status CudaDevice::synchronize(StreamHandle stream) {
  ContextScope scope(api_, context_);
  return api_.check(api_.stream_synchronize(static_cast<CuStream>(stream)), "cuStreamSynchronize");
}

Result<std::unique_ptr<DeviceTimer>> CudaDevice::make_timer() {
  auto timer = std::make_unique<CudaTimer>(api_, context_);
  JITGEMM_TRY(timer->create());
  return std::unique_ptr<DeviceTimer>(std::move(timer));
}

Result<bool> CudaDevice::is_capturing(StreamHandle stream) const {
  if (stream == nullptr) return false;  // the legacy stream cannot be captured
  std::optional<ContextScope> scope;
  if (of_current_context(stream)) scope.emplace(api_, context_);
  int status = 0;
  JITGEMM_TRY(api_.check(api_.stream_is_capturing(static_cast<CuStream>(stream), &status),
                         "cuStreamIsCapturing"));
  return status != 0;
}

Status CudaDevice::check_address(uint64_t address) const {
  ContextScope scope(api_, context_);
  int ordinal = -1;
  const CuResult result = api_.pointer_attribute(&ordinal, kCuPointerDeviceOrdinal, address);
  if (result != kCuSuccess) {
    return invalid_argument(fmt::format("{:#x} is not an address that {} knows; is it host memory?",
                                        address, info_.name));
  }
  if (ordinal != ordinal_) {
    return invalid_argument(
        fmt::format("{:#x} is memory of cuda:{}, expected {}", address, ordinal, info_.name));
  }
  return ok_status();
}

}  // namespace jitgemm
