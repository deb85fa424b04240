// SPDX-License-Identifier: Apache-2.0
#include "ptx/gpu_cases.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::ptx_cases {
namespace {

constexpr size_t kMaxThreads = 4096;  // of a case's grid
constexpr size_t kLogBytes = 4096;
// CUjit_option
constexpr int kCuJitErrorLogBuffer = 5;
constexpr int kCuJitErrorLogBufferSize = 6;
// The compiler's own results: the text is at fault, not the device.
constexpr CuResult kCuErrorNoBinaryForGpu = 209;
constexpr CuResult kCuErrorInvalidPtx = 218;
constexpr CuResult kCuErrorUnsupportedPtxVersion = 222;

// The first line of a compiler's log that says what is wrong.
std::string first_error(const std::string& log) {
  const size_t at = log.find("error");
  const std::string rest = at == std::string::npos ? log : log.substr(at);
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

Result<GpuCases> GpuCases::open() {
  GpuCases gpu;
  JITGEMM_ASSIGN(gpu.api_, CudaDriverApi::open(""));
  const CudaDriverApi& api = gpu.api_;
  CuDevice device = 0;
  JITGEMM_TRY(api.check(api.device_get(&device, 0), "cuDeviceGet"));
  int major = 0, minor = 0;
  JITGEMM_TRY(api.check(api.device_attribute(&major, kCuDeviceCapabilityMajor, device),
                        "cuDeviceGetAttribute"));
  JITGEMM_TRY(api.check(api.device_attribute(&minor, kCuDeviceCapabilityMinor, device),
                        "cuDeviceGetAttribute"));
  if (major != 9 || minor != 0) {
    return unsupported(
        fmt::format("the cases are for compute capability 9.0, found {}.{}", major, minor));
  }
  char name[256] = {};
  JITGEMM_TRY(api.check(api.device_name(name, sizeof(name) - 1, device), "cuDeviceGetName"));
  gpu.gpu_ = name;
  int version = 0;
  JITGEMM_TRY(api.check(api.driver_version(&version), "cuDriverGetVersion"));
  gpu.driver_ = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  CuContext context = nullptr;
  JITGEMM_TRY(api.check(api.primary_context_retain(&context, device), "cuDevicePrimaryCtxRetain"));
  JITGEMM_TRY(api.check(api.context_push(context), "cuCtxPushCurrent"));
  const size_t thread_bytes = kMaxThreads * kThreadBytes;
  JITGEMM_TRY(api.check(api.memory_allocate(&gpu.in_, thread_bytes), "cuMemAlloc"));
  JITGEMM_TRY(api.check(api.memory_allocate(&gpu.out_, thread_bytes), "cuMemAlloc"));
  JITGEMM_TRY(api.check(api.memory_allocate(&gpu.memory_, kMemoryBytes), "cuMemAlloc"));
  return gpu;
}

Status GpuCases::run_once(const Case& c, const CaseRun& run, CuFunction function,
                          CaseBytes& bytes) {
  bytes = initial_bytes(c, run);
  JITGEMM_TRY(
      api_.check(api_.copy_host_to_device(in_, bytes.in.data(), bytes.in.size()), "cuMemcpyHtoD"));
  JITGEMM_TRY(api_.check(api_.copy_host_to_device(out_, bytes.out.data(), bytes.out.size()),
                         "cuMemcpyHtoD"));
  JITGEMM_TRY(api_.check(api_.copy_host_to_device(memory_, bytes.memory.data(), kMemoryBytes),
                         "cuMemcpyHtoD"));
  alignas(64) std::byte map[128] = {};
  if (!c.map.empty()) {
    // The enumerators of the simulator's element types and swizzle modes are in the driver's order
    // (CUtensorMapDataType, CUtensorMapSwizzle).
    const sim::TensorMap m = case_map(c, memory_);
    if (m.im2col && api_.tensor_map_encode_im2col == nullptr) {
      return unsupported("the driver has no cuTensorMapEncodeIm2col");
    }
    const int lower[3] = {m.lower_corner[0], m.lower_corner[1], m.lower_corner[2]};
    const int upper[3] = {m.upper_corner[0], m.upper_corner[1], m.upper_corner[2]};
    JITGEMM_TRY(api_.check(
        m.im2col
            ? api_.tensor_map_encode_im2col(
                  map, static_cast<int>(m.element), m.rank, reinterpret_cast<void*>(memory_),
                  m.dims.data(), m.strides.data(), lower, upper, m.box[0], m.box[1],
                  m.element_strides.data(), 0, static_cast<int>(m.swizzle), 0, m.nan_fill ? 1 : 0)
            : api_.tensor_map_encode_tiled(map, static_cast<int>(m.element), m.rank,
                                           reinterpret_cast<void*>(memory_), m.dims.data(),
                                           m.strides.data(), m.box.data(), m.element_strides.data(),
                                           0, static_cast<int>(m.swizzle), 0, m.nan_fill ? 1 : 0),
        "cuTensorMapEncode"));
  }
  std::vector<std::byte> block = case_parameters(in_, out_, memory_, map);
  void* parameters[4] = {block.data(), block.data() + 8, block.data() + 16, map};
  CuLaunchAttribute attribute{};
  attribute.id = kCuLaunchClusterDimension;
  attribute.value.cluster = {c.cluster, 1, 1};
  CuLaunchConfig config{};
  config.grid_x = c.ctas;
  config.block_x = c.threads;
  config.grid_y = config.grid_z = config.block_y = config.block_z = 1;
  config.attributes = &attribute;
  config.attribute_count = c.cluster > 1 ? 1 : 0;
  JITGEMM_TRY(api_.check(api_.launch_kernel_ex(&config, function, parameters, nullptr),
                         "cuLaunchKernelEx"));
  JITGEMM_TRY(api_.check(api_.stream_synchronize(nullptr), "cuStreamSynchronize"));
  JITGEMM_TRY(api_.check(api_.copy_device_to_host(bytes.out.data(), out_, bytes.out.size()),
                         "cuMemcpyDtoH"));
  return api_.check(api_.copy_device_to_host(bytes.memory.data(), memory_, kMemoryBytes),
                    "cuMemcpyDtoH");
}

GpuOutcome GpuCases::run(const Case& c) {
  GpuOutcome outcome;
  const auto failed = [&](const Status& status) {
    outcome.kind = GpuOutcome::Kind::kFailed;
    outcome.message = status.message();
    return outcome;
  };
  if (size_t{c.threads} * c.ctas > kMaxThreads) {
    return failed(internal_error(fmt::format("more than {} threads", kMaxThreads)));
  }
  const std::string text = case_text(c, kGpuTarget);
  std::string log(kLogBytes, '\0');
  int options[2] = {kCuJitErrorLogBuffer, kCuJitErrorLogBufferSize};
  void* values[2] = {log.data(), reinterpret_cast<void*>(log.size())};
  CuLibrary library = nullptr;
  CuResult loaded =
      api_.library_load_data(&library, text.c_str(), options, values, 2, nullptr, nullptr, 0);
  // The driver may put compilation off until the kernel is asked for.
  CuKernel kernel = nullptr;
  if (loaded == kCuSuccess) loaded = api_.library_get_kernel(&kernel, library, "k");
  if (loaded == kCuErrorNoBinaryForGpu || loaded == kCuErrorInvalidPtx ||
      loaded == kCuErrorUnsupportedPtxVersion) {
    outcome.kind = GpuOutcome::Kind::kRefused;
    outcome.message = first_error(log.substr(0, log.find('\0')));
    if (outcome.message.empty())
      outcome.message = api_.check(loaded, "cuLibraryGetKernel").message();
    return outcome;
  }
  if (const Status s = api_.check(loaded, "cuLibraryGetKernel"); !s.ok()) return failed(s);
  CuFunction function = nullptr;
  Status status = api_.check(api_.kernel_get_function(&function, kernel), "cuKernelGetFunction");
  for (size_t i = 0; status.ok() && i < c.runs.size(); ++i) {
    outcome.left.emplace_back();
    status = run_once(c, c.runs[i], function, outcome.left.back());
  }
  if (!status.ok()) return failed(status);
  api_.library_unload(library);
  return outcome;
}

}  // namespace jitgemm::ptx_cases
