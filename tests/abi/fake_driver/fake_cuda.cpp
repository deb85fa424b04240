// SPDX-License-Identifier: Apache-2.0
// The entry points of the CUDA driver that jitgemm resolves, for a machine without a GPU. Types are
// spelt as plain integers and addresses: nothing is shared with src/device, so that a wrong
// declaration there does not hide here. The launch itself allocates and locks nothing (a spin flag
// apart), so that callers can be counted.
#include "fake_cuda.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>

namespace {

using Result = int;  // CUresult
constexpr Result kSuccess = 0;
constexpr Result kInvalidValue = 1;
constexpr Result kOutOfMemory = 2;
constexpr Result kNotInitialized = 3;
constexpr Result kNoDevice = 100;
constexpr Result kInvalidDevice = 101;
constexpr Result kInvalidImage = 200;
constexpr Result kInvalidContext = 201;
constexpr Result kInvalidHandle = 400;
constexpr Result kNotFound = 500;

// clang-format off
#define FAKE_CUDA_CALLS(X)                                                                  \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) \
  X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain)     \
  X(cuDevicePrimaryCtxRelease_v2) X(cuCtxPushCurrent_v2) X(cuCtxPopCurrent_v2)              \
  X(cuLibraryLoadData) X(cuLibraryUnload) X(cuLibraryGetKernel) X(cuKernelGetFunction)      \
  X(cuKernelSetAttribute) X(cuFuncLoad) X(cuLaunchKernelEx) X(cuTensorMapEncodeTiled)       \
  X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemsetD8_v2)   \
  X(cuPointerGetAttribute) X(cuStreamSynchronize) X(cuStreamIsCapturing) X(cuEventCreate)   \
  X(cuEventDestroy_v2) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime)         \
  X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuStreamBeginCapture_v2) X(cuStreamEndCapture)  \
  X(cuGraphInstantiateWithFlags) X(cuGraphUpload) X(cuGraphLaunch) X(cuGraphDestroy)        \
  X(cuGraphExecDestroy) X(cuMemsetD8Async) X(cuMemcpyDtoDAsync_v2) X(cuDeviceGetPCIBusId)
// clang-format on

enum Call {
#define X(name) k_##name,
  FAKE_CUDA_CALLS(X)
#undef X
      kCalls
};
constexpr const char* kCallNames[] = {
#define X(name) #name,
    FAKE_CUDA_CALLS(X)
#undef X
};

struct ErrorText {
  Result result;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {kSuccess,        "CUDA_SUCCESS",               "no error"                                },
    {kInvalidValue,   "CUDA_ERROR_INVALID_VALUE",   "invalid argument"                        },
    {kOutOfMemory,    "CUDA_ERROR_OUT_OF_MEMORY",   "out of memory"                           },
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"                    },
    {kNoDevice,       "CUDA_ERROR_NO_DEVICE",       "no CUDA-capable device is detected"      },
    {kInvalidDevice,  "CUDA_ERROR_INVALID_DEVICE",  "invalid device ordinal"                  },
    {kInvalidImage,   "CUDA_ERROR_INVALID_IMAGE",   "device kernel image is invalid"          },
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"                  },
    {kInvalidHandle,  "CUDA_ERROR_INVALID_HANDLE",  "invalid resource handle"                 },
    {kNotFound,       "CUDA_ERROR_NOT_FOUND",       "named symbol not found"                  },
    {700,             "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {999,             "CUDA_ERROR_UNKNOWN",         "unknown error"                           },
};

class SpinScope {
 public:
  explicit SpinScope(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) sched_yield();
  }
  ~SpinScope() { flag_.clear(std::memory_order_release); }
  SpinScope(const SpinScope&) = delete;
  SpinScope& operator=(const SpinScope&) = delete;

 private:
  std::atomic_flag& flag_;
};

constexpr int kMaxDevices = 8;
constexpr uint64_t kKernelMagic = 0x6c656e72656b;

struct Kernel {
  uint64_t magic = kKernelMagic;
  std::atomic<int> max_dynamic_shared{48 * 1024};
  std::atomic<int> non_portable_cluster{0};
};
struct Library {
  const char* image;
  size_t bytes;
  Kernel kernel;
  Library* next;
};
struct Context {
  int device;
  std::atomic<int64_t> references{0};
};

// Configuration. Written by cuInit, which callers may call from several threads.
std::atomic<bool> initialized{false};
std::atomic<int> capability_major{9};
std::atomic<int> capability_minor{0};
std::atomic<int> sm_count{132};
std::atomic<int> device_count{1};
std::atomic<int> capture_status{0};
std::atomic<int> failures[kCalls];

Context contexts[kMaxDevices] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
std::atomic<int64_t> allocations{0};

// As a driver's, libraries that are never unloaded are no leaks.
std::atomic_flag libraries_flag = ATOMIC_FLAG_INIT;
Library* libraries = nullptr;  // under libraries_flag

std::atomic_flag ring_flag = ATOMIC_FLAG_INIT;
uint64_t launch_count = 0;              // under ring_flag
fake_cuda_launch ring[FAKE_CUDA_RING];  // under ring_flag

constexpr int kStackDepth = 16;
thread_local Context* context_stack[kStackDepth];
thread_local int context_depth = 0;

// The default streams, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD among them, are the current
// context's.
Context* current_context();
bool needs_context(const void* stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2 && current_context() == nullptr;
}
Context* current_context() {
  return context_depth == 0 ? nullptr : context_stack[context_depth - 1];
}

Result enter(Call call) {
  if (!initialized.load(std::memory_order_acquire)) return kNotInitialized;
  return failures[call].load(std::memory_order_relaxed);
}

Result enter_with_context(Call call) {
  if (const Result result = enter(call); result != kSuccess) return result;
  return current_context() == nullptr ? kInvalidContext : kSuccess;
}

int environment_number(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::atoi(text) : fallback;
}

void read_failures() {
  for (std::atomic<int>& failure : failures) failure = kSuccess;
  const char* text = std::getenv("JITGEMM_FAKE_CUDA_FAIL");
  while (text != nullptr && *text != '\0') {
    const char* equals = std::strchr(text, '=');
    if (equals == nullptr) break;
    const auto length = static_cast<size_t>(equals - text);
    bool known = false;
    for (int call = 0; call < kCalls; ++call) {
      if (std::strlen(kCallNames[call]) != length ||
          std::strncmp(kCallNames[call], text, length) != 0)
        continue;
      failures[call] = std::atoi(equals + 1);
      known = true;
    }
    if (!known) std::abort();  // a test names a call that does not exist
    text = std::strchr(equals, ',');
    if (text != nullptr) ++text;
  }
}

// From the ELF header of a cubin: the offset behind its section headers.
size_t elf_bytes(const char* image) {
  uint64_t section_offset = 0;
  uint16_t entry_bytes = 0;
  uint16_t entries = 0;
  std::memcpy(&section_offset, image + 0x28, sizeof(section_offset));
  std::memcpy(&entry_bytes, image + 0x3a, sizeof(entry_bytes));
  std::memcpy(&entries, image + 0x3c, sizeof(entries));
  return section_offset + size_t{entry_bytes} * entries;
}

bool contains(const char* bytes, size_t count, const char* name) {
  const size_t length = std::strlen(name) + 1;  // with its terminating zero: a whole entry
  for (size_t i = 0; i + length <= count; ++i) {
    if (std::memcmp(bytes + i, name, length) == 0) return true;
  }
  return false;
}

// Elements of CUtensorMapDataType, in bytes.
uint64_t element_bytes(int type) {
  switch (type) {
    case 0: return 1;  // UINT8
    case 1:
    case 6:
    case 9: return 2;  // UINT16, FLOAT16, BFLOAT16
    case 2:
    case 3:
    case 7:
    case 10:  // UINT32, INT32, FLOAT32, FLOAT32_FTZ
    case 11:
    case 12: return 4;  // TFLOAT32, TFLOAT32_FTZ
    case 4:
    case 5:
    case 8: return 8;  // UINT64, INT64, FLOAT64
    default: return 0;
  }
}

// How long a kernel's parameters are only its code knows: as many bytes as a record holds, whatever
// lies behind them.
__attribute__((no_sanitize("address", "thread"))) void copy_parameters(unsigned char* to,
                                                                       const unsigned char* from) {
  for (int i = 0; i < FAKE_CUDA_PARAMETER_BYTES; ++i) to[i] = from[i];
}

struct Attribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    unsigned words[16];
  } value;
};
static_assert(sizeof(Attribute) == 72);
struct Config {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
  void* stream;
  Attribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(Config) == 56);

}  // namespace

#define FAKE_CUDA_API extern "C" __attribute__((visibility("default")))
#define ENTER(name)                                                                  \
  do {                                                                               \
    if (const Result entered = enter(k_##name); entered != kSuccess) return entered; \
  } while (false)
#define ENTER_WITH_CONTEXT(name)                                                                  \
  do {                                                                                            \
    if (const Result entered = enter_with_context(k_##name); entered != kSuccess) return entered; \
  } while (false)

FAKE_CUDA_API Result cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  const char* capability = std::getenv("JITGEMM_FAKE_CUDA_CAPABILITY");
  int major = 9;
  int minor = 0;
  if (capability != nullptr && std::sscanf(capability, "%d.%d", &major, &minor) != 2) std::abort();
  capability_major = major;
  capability_minor = minor;
  sm_count = environment_number("JITGEMM_FAKE_CUDA_SM_COUNT", 132);
  device_count = environment_number("JITGEMM_FAKE_CUDA_DEVICES", 1);
  if (device_count > kMaxDevices) std::abort();
  capture_status = environment_number("JITGEMM_FAKE_CUDA_CAPTURE", 0);
  read_failures();
  const Result result = failures[k_cuInit];
  if (result == kSuccess) initialized.store(true, std::memory_order_release);
  return result;
}

FAKE_CUDA_API Result cuDriverGetVersion(int* version) {
  if (const Result result = failures[k_cuDriverGetVersion]; result != kSuccess) return result;
  if (version == nullptr) return kInvalidValue;
  *version = 13000;
  return kSuccess;
}

FAKE_CUDA_API Result cuGetErrorName(Result result, const char** name) {
  for (const ErrorText& row : kErrors) {
    if (row.result == result) return *name = row.name, kSuccess;
  }
  *name = nullptr;
  return kInvalidValue;
}

FAKE_CUDA_API Result cuGetErrorString(Result result, const char** text) {
  for (const ErrorText& row : kErrors) {
    if (row.result == result) return *text = row.text, kSuccess;
  }
  *text = nullptr;
  return kInvalidValue;
}

FAKE_CUDA_API Result cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = device_count;
  return kSuccess;
}

FAKE_CUDA_API Result cuDeviceGet(int* device, int ordinal) {
  ENTER(cuDeviceGet);
  if (ordinal < 0 || ordinal >= device_count) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

FAKE_CUDA_API Result cuDeviceGetName(char* name, int length, int device) {
  ENTER(cuDeviceGetName);
  if (device < 0 || device >= device_count) return kInvalidDevice;
  if (length < 1) return kInvalidValue;
  std::snprintf(name, static_cast<size_t>(length), "Fake GPU");
  return kSuccess;
}

FAKE_CUDA_API Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER(cuDeviceGetAttribute);
  if (device < 0 || device >= device_count) return kInvalidDevice;
  switch (attribute) {
    case 16: return *value = sm_count, kSuccess;
    case 75: return *value = capability_major, kSuccess;
    case 76: return *value = capability_minor, kSuccess;
    default: return kInvalidValue;
  }
}

FAKE_CUDA_API Result cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER(cuDevicePrimaryCtxRetain);
  if (device < 0 || device >= device_count) return kInvalidDevice;
  contexts[device].references.fetch_add(1);
  *context = &contexts[device];
  return kSuccess;
}

FAKE_CUDA_API Result cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  if (device < 0 || device >= kMaxDevices) return kInvalidDevice;
  if (contexts[device].references.fetch_sub(1) <= 0) std::abort();
  return kSuccess;
}

FAKE_CUDA_API Result cuCtxPushCurrent_v2(void* context) {
  ENTER(cuCtxPushCurrent_v2);
  if (context == nullptr) return kInvalidContext;
  if (context_depth == kStackDepth) std::abort();  // pushed and never popped
  context_stack[context_depth++] = static_cast<Context*>(context);
  return kSuccess;
}

FAKE_CUDA_API Result cuCtxPopCurrent_v2(void** context) {
  ENTER(cuCtxPopCurrent_v2);
  if (context_depth == 0) return kInvalidContext;
  *context = context_stack[--context_depth];
  return kSuccess;
}

FAKE_CUDA_API Result cuLibraryLoadData(void** library, const void* code, int* /*jit_options*/,
                                       void** /*jit_values*/, unsigned /*jit_count*/,
                                       int* /*options*/, void** /*values*/, unsigned /*count*/) {
  ENTER(cuLibraryLoadData);
  if (library == nullptr || code == nullptr) return kInvalidValue;
  const char* image = static_cast<const char*>(code);
  uint16_t machine = 0;
  std::memcpy(&machine, image + 0x12, sizeof(machine));
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) != 0 ||
      machine != 190)
    return kInvalidImage;  // EM_CUDA
  auto* loaded = new Library();
  loaded->bytes = elf_bytes(image);
  auto* copy = new char[loaded->bytes];  // as the driver does without BINARY_IS_PRESERVED
  std::memcpy(copy, image, loaded->bytes);
  loaded->image = copy;
  *library = loaded;
  const SpinScope scope(libraries_flag);
  loaded->next = libraries;
  libraries = loaded;
  return kSuccess;
}

FAKE_CUDA_API Result cuLibraryUnload(void* library) {
  ENTER(cuLibraryUnload);
  auto* loaded = static_cast<Library*>(library);
  {
    const SpinScope scope(libraries_flag);
    Library** link = &libraries;
    while (*link != nullptr && *link != loaded) link = &(*link)->next;
    if (*link == nullptr) return kInvalidHandle;
    *link = loaded->next;
  }
  loaded->kernel.magic = 0;
  delete[] loaded->image;
  delete loaded;
  return kSuccess;
}

FAKE_CUDA_API Result cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  ENTER(cuLibraryGetKernel);
  auto* loaded = static_cast<Library*>(library);
  if (!contains(loaded->image, loaded->bytes, name)) return kNotFound;
  *kernel = &loaded->kernel;
  return kSuccess;
}

FAKE_CUDA_API Result cuKernelGetFunction(void** function, void* kernel) {
  ENTER_WITH_CONTEXT(cuKernelGetFunction);
  *function = kernel;
  return kSuccess;
}

FAKE_CUDA_API Result cuKernelSetAttribute(int attribute, int value, void* kernel, int device) {
  ENTER(cuKernelSetAttribute);
  auto* set = static_cast<Kernel*>(kernel);
  if (set->magic != kKernelMagic) return kInvalidHandle;
  if (device < 0 || device >= device_count) return kInvalidDevice;
  if (attribute == 8) {  // MAX_DYNAMIC_SHARED_SIZE_BYTES
    if (value < 0 || value > 232448) return kInvalidValue;
    set->max_dynamic_shared = value;
    return kSuccess;
  }
  if (attribute == 14) {  // NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    set->non_portable_cluster = value;
    return kSuccess;
  }
  return kInvalidValue;
}

FAKE_CUDA_API Result cuFuncLoad(void* function) {
  ENTER_WITH_CONTEXT(cuFuncLoad);
  return static_cast<Kernel*>(function)->magic == kKernelMagic ? kSuccess : kInvalidHandle;
}

FAKE_CUDA_API Result cuLaunchKernelEx(const void* config_given, void* function, void** params,
                                      void** extra) {
  ENTER(cuLaunchKernelEx);
  const auto& config = *static_cast<const Config*>(config_given);
  const auto* kernel = static_cast<const Kernel*>(function);
  if (kernel == nullptr || kernel->magic != kKernelMagic) return kInvalidHandle;
  if (params == nullptr || params[0] == nullptr || extra != nullptr) return kInvalidValue;
  if (needs_context(config.stream)) return kInvalidContext;

  unsigned cluster[3] = {1, 1, 1};
  unsigned programmatic = 0;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const Attribute& attribute = config.attributes[i];
    if (attribute.id == 4) {  // CLUSTER_DIMENSION
      std::memcpy(cluster, attribute.value.words, sizeof(cluster));
    } else if (attribute.id == 6) {  // PROGRAMMATIC_STREAM_SERIALIZATION
      programmatic = attribute.value.words[0];
    } else {
      return kInvalidValue;
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (config.grid[i] == 0 || config.block[i] == 0 || cluster[i] == 0) return kInvalidValue;
    if (config.grid[i] % cluster[i] != 0) return kInvalidValue;
  }
  if (config.grid[0] > 0x7fffffffu || config.grid[1] > 65535 || config.grid[2] > 65535)
    return kInvalidValue;
  if (uint64_t{config.block[0]} * config.block[1] * config.block[2] > 1024) return kInvalidValue;
  if (config.shared_bytes > static_cast<unsigned>(kernel->max_dynamic_shared.load()))
    return kInvalidValue;
  if (cluster[0] * cluster[1] * cluster[2] > (kernel->non_portable_cluster != 0 ? 16u : 8u))
    return kInvalidValue;

  const SpinScope scope(ring_flag);
  fake_cuda_launch& record = ring[launch_count % FAKE_CUDA_RING];
  record.index = launch_count++;
  std::memcpy(record.grid, config.grid, sizeof(record.grid));
  std::memcpy(record.block, config.block, sizeof(record.block));
  std::memcpy(record.cluster, cluster, sizeof(record.cluster));
  record.shared_bytes = config.shared_bytes;
  record.programmatic_serialization = programmatic;
  record.stream = config.stream;
  record.kernel = kernel;
  record.context = current_context();
  copy_parameters(record.parameters, static_cast<const unsigned char*>(params[0]));
  return kSuccess;
}

// CUDA Driver API, cuTensorMapEncodeTiled: each rule of its description, in its order.
FAKE_CUDA_API Result cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address,
                                            const uint64_t* extents, const uint64_t* strides,
                                            const uint32_t* box, const uint32_t* element_strides,
                                            int interleave, int swizzle, int l2_promotion,
                                            int out_of_bounds_fill) {
  ENTER_WITH_CONTEXT(cuTensorMapEncodeTiled);
  if (map == nullptr || reinterpret_cast<uintptr_t>(map) % 64 != 0) return kInvalidValue;
  const uint64_t element = element_bytes(type);
  if (element == 0 || rank < 1 || rank > 5) return kInvalidValue;
  if (interleave < 0 || interleave > 2 || (interleave != 0 && rank < 3)) return kInvalidValue;
  const uint64_t granule = interleave == 2 ? 32 : 16;
  if (address == nullptr || reinterpret_cast<uintptr_t>(address) % granule != 0)
    return kInvalidValue;
  for (uint32_t i = 0; i < rank; ++i) {
    if (extents[i] == 0 || extents[i] > (uint64_t{1} << 32)) return kInvalidValue;
    if (box[i] == 0 || box[i] > 256) return kInvalidValue;
    if (element_strides[i] == 0 || element_strides[i] > 8) return kInvalidValue;
    if (i == 0) continue;
    if (strides[i - 1] % granule != 0 || strides[i - 1] >= (uint64_t{1} << 40))
      return kInvalidValue;
    if (strides[i - 1] < extents[i - 1]) return kInvalidValue;
  }
  if (interleave == 0 && box[0] * element % 16 != 0) return kInvalidValue;
  if (swizzle < 0 || swizzle > 3) return kInvalidValue;
  if (interleave == 0 && swizzle != 0 && box[0] * element > (uint64_t{16} << swizzle))
    return kInvalidValue;
  if (l2_promotion < 0 || l2_promotion > 3) return kInvalidValue;
  if (out_of_bounds_fill != 0 && (out_of_bounds_fill != 1 || type < 6)) return kInvalidValue;

  fake_cuda_tensor_map encoded = {};
  encoded.magic = FAKE_CUDA_TENSOR_MAP_MAGIC;
  encoded.type = static_cast<uint8_t>(type);
  encoded.rank = static_cast<uint8_t>(rank);
  encoded.interleave = static_cast<uint8_t>(interleave);
  encoded.swizzle = static_cast<uint8_t>(swizzle);
  encoded.l2_promotion = static_cast<uint8_t>(l2_promotion);
  encoded.out_of_bounds_fill = static_cast<uint8_t>(out_of_bounds_fill);
  encoded.address = reinterpret_cast<uintptr_t>(address);
  for (uint32_t i = 0; i < rank; ++i) {
    encoded.extents[i] = extents[i];
    encoded.box[i] = static_cast<uint16_t>(box[i]);
    encoded.element_strides[i] = static_cast<uint8_t>(element_strides[i]);
    if (i > 0) encoded.strides[i - 1] = strides[i - 1];
  }
  std::memset(map, 0, 128);
  std::memcpy(map, &encoded, sizeof(encoded));
  return kSuccess;
}

FAKE_CUDA_API Result cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemAlloc_v2);
  if (bytes == 0) return kInvalidValue;
  if (bytes > (size_t{1} << 40)) return kOutOfMemory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return kOutOfMemory;
  allocations.fetch_add(1);
  *address = reinterpret_cast<uintptr_t>(memory);
  return kSuccess;
}

FAKE_CUDA_API Result cuMemFree_v2(unsigned long long address) {
  ENTER_WITH_CONTEXT(cuMemFree_v2);
  if (address == 0) return kSuccess;
  allocations.fetch_sub(1);
  std::free(reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
  return kSuccess;
}

FAKE_CUDA_API Result cuMemcpyHtoD_v2(unsigned long long destination, const void* source,
                                     size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemcpyHtoD_v2);
  std::memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(destination)), source, bytes);
  return kSuccess;
}

FAKE_CUDA_API Result cuMemcpyDtoH_v2(void* destination, unsigned long long source, size_t bytes) {
  ENTER_WITH_CONTEXT(cuMemcpyDtoH_v2);
  std::memcpy(destination, reinterpret_cast<void*>(static_cast<uintptr_t>(source)), bytes);
  return kSuccess;
}

FAKE_CUDA_API Result cuMemsetD8_v2(unsigned long long destination, unsigned char byte,
                                   size_t count) {
  ENTER_WITH_CONTEXT(cuMemsetD8_v2);
  std::memset(reinterpret_cast<void*>(static_cast<uintptr_t>(destination)), byte, count);
  return kSuccess;
}

FAKE_CUDA_API Result cuPointerGetAttribute(void* value, int attribute, unsigned long long address) {
  ENTER_WITH_CONTEXT(cuPointerGetAttribute);
  // Only DEVICE_ORDINAL. High addresses are the host's; those from 0x66000000 another device's.
  if (attribute != 9 || address == 0 || address >= 0x550000000000) return kInvalidValue;
  const bool other = address >> 24 == 0x66;
  *static_cast<int*>(value) = current_context()->device + (other ? 1 : 0);
  return kSuccess;
}

FAKE_CUDA_API Result cuStreamSynchronize(void* stream) {
  ENTER(cuStreamSynchronize);
  return needs_context(stream) ? kInvalidContext : kSuccess;
}

FAKE_CUDA_API Result cuStreamIsCapturing(void* stream, int* status) {
  ENTER(cuStreamIsCapturing);
  if (needs_context(stream)) return kInvalidContext;
  *status = capture_status;
  return kSuccess;
}

FAKE_CUDA_API Result cuEventCreate(void** event, unsigned /*flags*/) {
  ENTER_WITH_CONTEXT(cuEventCreate);
  *event = new char;
  return kSuccess;
}

FAKE_CUDA_API Result cuEventDestroy_v2(void* event) {
  ENTER(cuEventDestroy_v2);
  delete static_cast<char*>(event);
  return kSuccess;
}

FAKE_CUDA_API Result cuEventRecord(void* event, void* /*stream*/) {
  ENTER(cuEventRecord);
  return event == nullptr ? kInvalidHandle : kSuccess;
}

FAKE_CUDA_API Result cuEventSynchronize(void* event) {
  ENTER(cuEventSynchronize);
  return event == nullptr ? kInvalidHandle : kSuccess;
}

FAKE_CUDA_API Result cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  ENTER(cuEventElapsedTime);
  if (start == nullptr || end == nullptr) return kInvalidHandle;
  *milliseconds = 1.0F;
  return kSuccess;
}

FAKE_CUDA_API Result cuStreamCreate(void** stream, unsigned /*flags*/) {
  ENTER_WITH_CONTEXT(cuStreamCreate);
  *stream = new char;
  return kSuccess;
}

FAKE_CUDA_API Result cuStreamDestroy_v2(void* stream) {
  ENTER(cuStreamDestroy_v2);
  delete static_cast<char*>(stream);
  return kSuccess;
}

// Launches are recorded whether or not a stream is captured; a graph's launch records nothing.
FAKE_CUDA_API Result cuStreamBeginCapture_v2(void* stream, int /*mode*/) {
  ENTER(cuStreamBeginCapture_v2);
  return stream == nullptr ? kInvalidHandle : kSuccess;
}

FAKE_CUDA_API Result cuStreamEndCapture(void* stream, void** graph) {
  ENTER(cuStreamEndCapture);
  if (stream == nullptr) return kInvalidHandle;
  *graph = new char;
  return kSuccess;
}

FAKE_CUDA_API Result cuGraphInstantiateWithFlags(void** exec, void* graph,
                                                 unsigned long long /*flags*/) {
  ENTER(cuGraphInstantiateWithFlags);
  if (graph == nullptr) return kInvalidHandle;
  *exec = new char;
  return kSuccess;
}

FAKE_CUDA_API Result cuGraphUpload(void* exec, void* /*stream*/) {
  ENTER(cuGraphUpload);
  return exec == nullptr ? kInvalidHandle : kSuccess;
}

FAKE_CUDA_API Result cuGraphLaunch(void* exec, void* /*stream*/) {
  ENTER(cuGraphLaunch);
  return exec == nullptr ? kInvalidHandle : kSuccess;
}

FAKE_CUDA_API Result cuGraphDestroy(void* graph) {
  ENTER(cuGraphDestroy);
  delete static_cast<char*>(graph);
  return kSuccess;
}

FAKE_CUDA_API Result cuGraphExecDestroy(void* exec) {
  ENTER(cuGraphExecDestroy);
  delete static_cast<char*>(exec);
  return kSuccess;
}

FAKE_CUDA_API Result cuMemsetD8Async(unsigned long long destination, unsigned char byte,
                                     size_t count, void* /*stream*/) {
  ENTER_WITH_CONTEXT(cuMemsetD8Async);
  std::memset(reinterpret_cast<void*>(static_cast<uintptr_t>(destination)), byte, count);
  return kSuccess;
}

FAKE_CUDA_API Result cuMemcpyDtoDAsync_v2(unsigned long long destination, unsigned long long source,
                                          size_t bytes, void* /*stream*/) {
  ENTER_WITH_CONTEXT(cuMemcpyDtoDAsync_v2);
  std::memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(destination)),
              reinterpret_cast<void*>(static_cast<uintptr_t>(source)), bytes);
  return kSuccess;
}

FAKE_CUDA_API Result cuDeviceGetPCIBusId(char* text, int length, int device) {
  ENTER(cuDeviceGetPCIBusId);
  if (device < 0 || device >= device_count) return kInvalidDevice;
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device + 1);
  return kSuccess;
}

FAKE_CUDA_API uint64_t jitgemm_fake_cuda_launches(void) {
  const SpinScope scope(ring_flag);
  return launch_count;
}

FAKE_CUDA_API int jitgemm_fake_cuda_launch(uint64_t index, fake_cuda_launch* launch) {
  const SpinScope scope(ring_flag);
  if (index >= launch_count || launch_count - index > FAKE_CUDA_RING) return 0;
  *launch = ring[index % FAKE_CUDA_RING];
  return 1;
}

FAKE_CUDA_API int64_t jitgemm_fake_cuda_allocations(void) {
  return allocations;
}

FAKE_CUDA_API int64_t jitgemm_fake_cuda_contexts(void) {
  int64_t held = 0;
  for (const Context& context : contexts) held += context.references;
  return held;
}
