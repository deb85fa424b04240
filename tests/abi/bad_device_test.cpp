// SPDX-License-Identifier: Apache-2.0
// Devices, drivers and compilers that are missing, wrong or failing: each is named.
#include "bad_input.h"

namespace jitgemm_abi {
namespace {

// Environment of the fake driver for one scope; the driver reads it when a device is opened.
class FakeSetting {
 public:
  FakeSetting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~FakeSetting() { unsetenv(name_); }
  FakeSetting(const FakeSetting&) = delete;
  FakeSetting& operator=(const FakeSetting&) = delete;

 private:
  const char* name_;
};

jitgemm_status open_device(const jitgemm_context_options& options, const char* name, int32_t arch) {
  jitgemm_context* context = nullptr;
  EXPECT_EQ(jitgemm_context_create(&options, &context), JITGEMM_STATUS_OK);
  jitgemm_device* device = nullptr;
  const jitgemm_status status = jitgemm_device_open(context, name, arch, &device);
  EXPECT_EQ(device != nullptr, status == JITGEMM_STATUS_OK);
  jitgemm_device_release(device);
  jitgemm_context_release(context);
  return status;
}

TEST(BadDevice, NameIsRefused) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999999999",
                           "CUDA:0", "sim:0", "simulator"}) {
    const std::string message =
        std::string("device: expected 'sim' or 'cuda:N', found '") + name + "'";
    expect(open_device(fake_options(), name, 0), JITGEMM_STATUS_INVALID_ARGUMENT, message.c_str(),
           name);
  }
}

TEST(BadDevice, OrdinalBeyondTheDevicesIsRefused) {
  expect(open_device(fake_options(), "cuda:1", 0), JITGEMM_STATUS_INVALID_ARGUMENT,
         "device: expected cuda:0, the only one; found cuda:1", "cuda:1");
  {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_DEVICES", "3");
    expect(open_device(fake_options(), "cuda:3", 0), JITGEMM_STATUS_INVALID_ARGUMENT,
           "device: expected cuda:0 to cuda:2; found cuda:3", "cuda:3");
  }
  const FakeSetting setting("JITGEMM_FAKE_CUDA_DEVICES", "0");
  expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_INVALID_ARGUMENT,
         "device: expected a GPU, and the driver reports none; found cuda:0", "no GPU");
}

TEST(BadDevice, CapabilityWithoutKernelsIsUnsupported) {
  for (const char* capability : {"8.0", "8.9", "10.1", "11.0", "12.0"}) {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_CAPABILITY", capability);
    const std::string message =
        std::string("Fake GPU: arch: a device of compute capability ") + capability +
        " has no kernels; supported are sm_90a, sm_100a, sm_100f, sm_103a, sm_103f";
    expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_UNSUPPORTED, message.c_str(),
           capability);
  }
}

TEST(BadDevice, ArchThatIsNotTheDevicesOwnIsUnsupported) {
  expect(open_device(fake_options(), "cuda:0", JITGEMM_ARCH_SM_100A), JITGEMM_STATUS_UNSUPPORTED,
         "device: cuda:0 is sm_90a, a kernel for sm_100a does not run there", "sm_100a on sm_90");
  const FakeSetting setting("JITGEMM_FAKE_CUDA_CAPABILITY", "10.3");
  EXPECT_EQ(open_device(fake_options(), "cuda:0", JITGEMM_ARCH_SM_100F), JITGEMM_STATUS_OK)
      << "the family's code runs there";
  expect(open_device(fake_options(), "cuda:0", JITGEMM_ARCH_SM_100A), JITGEMM_STATUS_UNSUPPORTED,
         "device: cuda:0 is sm_103a, a kernel for sm_100a does not run there", "sm_100a on sm_103");
}

TEST(BadDevice, DriverThatCannotBeOpenedIsNamed) {
  jitgemm_context_options options = memory_options();
  options.driver_library = "/nonexistent/libcuda.so.1";
  expect(open_device(options, "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER,
         "the CUDA driver could not be opened (no library could be loaded: "
         "/nonexistent/libcuda.so.1: cannot open shared object file",
         "no such file");
  options.driver_library = "libm.so.6";
  expect(open_device(options, "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER,
         "is too old: it lacks cuInit, cuDriverGetVersion", "not a driver");
  const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", "cuInit=100");
  expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER,
         "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected", "no device");
}

TEST(Environment, NamesTheDriverUnlessAnOptionDoes) {
  setenv("JITGEMM_DRIVER", JITGEMM_FAKE_CUDA, 1);
  jitgemm_context_options options = memory_options();
  EXPECT_EQ(open_device(options, "cuda:0", JITGEMM_ARCH_SM_90A), JITGEMM_STATUS_OK);
  options.driver_library = "/nonexistent/libcuda.so.1";
  EXPECT_EQ(open_device(options, "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER);
  unsetenv("JITGEMM_DRIVER");
}

TEST(BadDevice, FailuresWhileOpeningNameTheCall) {
  const struct {
    const char* fail;
    const char* message;
  } cases[] = {
      {"cuDeviceGetCount=999",         "cuDeviceGetCount: CUDA_ERROR_UNKNOWN (999): unknown error"},
      {"cuDeviceGet=101",              "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"             },
      {"cuDeviceGetName=1",            "cuDeviceGetName: CUDA_ERROR_INVALID_VALUE (1)"            },
      {"cuDeviceGetAttribute=1",       "cuDeviceGetAttribute: CUDA_ERROR_INVALID_VALUE (1)"       },
      {"cuDriverGetVersion=1",         "cuDriverGetVersion: CUDA_ERROR_INVALID_VALUE (1)"         },
      {"cuDevicePrimaryCtxRetain=777",
       "cuDevicePrimaryCtxRetain: unknown error (777): no description"                            },
  };
  for (const auto& row : cases) {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", row.fail);
    expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_DEVICE_ERROR, row.message,
           row.fail);
  }
}

// A context and device of the fake driver under one setting.
class FakeDevice {
 public:
  FakeDevice() {
    const jitgemm_context_options options = fake_options();
    EXPECT_EQ(jitgemm_context_create(&options, &context), JITGEMM_STATUS_OK);
    EXPECT_EQ(jitgemm_device_open(context, "cuda:0", 0, &device), JITGEMM_STATUS_OK)
        << jitgemm_last_error();
  }
  ~FakeDevice() {
    jitgemm_device_release(device);
    jitgemm_context_release(context);
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;
};

TEST(DriverFailure, OfMemoryAndStreamsIsReported) {
  const FakeSetting setting(
      "JITGEMM_FAKE_CUDA_FAIL",
      "cuMemcpyHtoD_v2=700,cuMemcpyDtoH_v2=700,cuStreamSynchronize=700,cuStreamIsCapturing=400");
  const FakeDevice fake;
  jitgemm_buffer* buffer = nullptr;
  char byte = 0;
  JITGEMM_ASSERT_OK(jitgemm_buffer_create(fake.device, 1, &buffer));
  expect(jitgemm_buffer_write(buffer, 0, &byte, 1), JITGEMM_STATUS_DEVICE_ERROR,
         "cuMemcpyHtoD: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "write");
  expect(jitgemm_buffer_read(buffer, 0, &byte, 1), JITGEMM_STATUS_DEVICE_ERROR,
         "cuMemcpyDtoH: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "read");
  expect(jitgemm_device_synchronize(fake.device, nullptr), JITGEMM_STATUS_DEVICE_ERROR,
         "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "synchronize");
  jitgemm_buffer_release(buffer);
  const jitgemm_gemm_problem problem = small_problem(kM);
  jitgemm_operation* operation = nullptr;
  expect(jitgemm_gemm_find(fake.device, &problem, address(0x70), &operation),
         JITGEMM_STATUS_DEVICE_ERROR, "cuStreamIsCapturing: CUDA_ERROR_INVALID_HANDLE (400)",
         "find");
}

TEST(DriverFailure, OfAllocationIsOutOfMemory) {
  const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", "cuMemAlloc_v2=2");
  const FakeDevice fake;
  jitgemm_buffer* buffer = nullptr;
  expect(jitgemm_buffer_create(fake.device, 16, &buffer), JITGEMM_STATUS_OUT_OF_MEMORY,
         "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", "buffer_create");
  EXPECT_EQ(buffer, nullptr);
}

TEST(DriverFailure, OfLoadingIsReportedByPrepareAndLeavesNothingPrepared) {
  const struct {
    const char* fail;
    const char* message;
  } cases[] = {
      {"cuLibraryLoadData=200",   "cuLibraryLoadData: CUDA_ERROR_INVALID_IMAGE (200)"    },
      {"cuLibraryGetKernel=500",  "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND (500)"       },
      {"cuKernelSetAttribute=1",
       "cuKernelSetAttribute(max dynamic shared size): "
       "CUDA_ERROR_INVALID_VALUE (1)"                                                    },
      {"cuKernelGetFunction=201", "cuKernelGetFunction: CUDA_ERROR_INVALID_CONTEXT (201)"},
      {"cuFuncLoad=999",          "cuFuncLoad: CUDA_ERROR_UNKNOWN (999)"                 },
  };
  char folder[] = "/tmp/jitgemm_abi_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  jitgemm_context_options options = fake_options();
  options.cache_mode = "rw";
  options.cache_folder = folder;  // one compile for all rows
  for (const auto& row : cases) {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", row.fail);
    jitgemm_context* context = nullptr;
    jitgemm_device* device = nullptr;
    jitgemm_operation* operation = nullptr;
    JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
    JITGEMM_ASSERT_OK(jitgemm_device_open(context, "cuda:0", 0, &device));
    const jitgemm_gemm_problem problem = small_problem(kM);
    expect(jitgemm_gemm_prepare(device, &problem, &operation), JITGEMM_STATUS_DEVICE_ERROR,
           row.message, row.fail);
    expect(jitgemm_gemm_find(device, &problem, nullptr, &operation), JITGEMM_STATUS_NOT_READY,
           "problem: expected one that was prepared on this device, found block_scaled_mm sm_90a "
           "m=64 n=256 k=512",
           row.fail);
    jitgemm_device_release(device);
    jitgemm_context_release(context);
  }
  const std::string remove = std::string("rm -rf ") + folder;
  EXPECT_EQ(std::system(remove.c_str()), 0);
}

TEST(DriverFailure, OfLaunchIsReported) {
  const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", "cuLaunchKernelEx=700");
  const FakeDevice fake;
  const jitgemm_gemm_problem problem = small_problem(kM);
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(fake.device, &problem, &operation));
  const jitgemm_gemm_arguments arguments = arguments_for(kM);
  expect(jitgemm_gemm_launch(operation, &arguments, nullptr), JITGEMM_STATUS_DEVICE_ERROR,
         "cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "launch");
  jitgemm_operation_release(operation);
}

TEST(DefaultStreams, UnderEachOfTheirHandlesAreThoseOfTheOperationsDevice) {
  const FakeDevice fake;
  jitgemm_gemm_problem problem = small_problem(kM);
  problem.a_dtype = JITGEMM_BF16;  // the launch that quantises has no tensor map
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(fake.device, &problem, &operation));
  jitgemm_gemm_arguments arguments = arguments_for(kM);
  arguments.a_scales = nullptr;
  arguments.workspace = address(0x60000000);
  uint64_t alignment = 0;
  JITGEMM_ASSERT_OK(jitgemm_operation_workspace(operation, &arguments.workspace_bytes, &alignment));
  for (const uint64_t stream : {0, 1, 2}) {
    JITGEMM_ASSERT_OK(jitgemm_gemm_launch(operation, &arguments, address(stream)));
    jitgemm_gemm_problem other = small_problem(kM + 1);
    jitgemm_operation* none = nullptr;
    EXPECT_EQ(jitgemm_gemm_find(fake.device, &other, address(stream), &none),
              JITGEMM_STATUS_NOT_READY)
        << jitgemm_last_error();
  }
  jitgemm_operation_release(operation);
}

TEST(Device, UnderAnotherNameIsTheSame) {
  const FakeDevice fake;
  jitgemm_device* named = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_device_open(fake.context, "cuda:0", JITGEMM_ARCH_SM_90A, &named));
  const jitgemm_gemm_problem problem = small_problem(kM);
  jitgemm_operation* operation = nullptr;
  jitgemm_operation* found = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(fake.device, &problem, &operation));
  JITGEMM_ASSERT_OK(jitgemm_gemm_find(named, &problem, nullptr, &found));
  jitgemm_operation_release(found);
  jitgemm_operation_release(operation);
  jitgemm_device_release(named);
}

TEST(NotReady, FindSaysWhetherTheStreamIsBeingCaptured) {
  const jitgemm_gemm_problem problem = small_problem(kM);
  const char* message =
      "problem: expected one that was prepared on this device, found block_scaled_mm sm_90a m=64 "
      "n=256 k=512";
  jitgemm_operation* operation = nullptr;
  {
    const FakeDevice fake;
    expect(jitgemm_gemm_find(fake.device, &problem, address(0x70), &operation),
           JITGEMM_STATUS_NOT_READY, message, "not capturing");
  }
  const FakeSetting setting("JITGEMM_FAKE_CUDA_CAPTURE", "1");
  const FakeDevice fake;
  expect(jitgemm_gemm_find(fake.device, &problem, address(0x70), &operation),
         JITGEMM_STATUS_CAPTURE_NOT_READY, message, "capturing");
  expect(jitgemm_gemm_find(fake.device, &problem, nullptr, &operation), JITGEMM_STATUS_NOT_READY,
         message, "the default stream is never captured");
  EXPECT_EQ(operation, nullptr);
}

TEST(NoCompiler, IsNamedWhenAKernelIsNeededAndNotBefore) {
  jitgemm_context_options options = fake_options();
  options.nvrtc_library = "/nonexistent/libnvrtc.so";
  jitgemm_context* context = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
  const jitgemm_gemm_problem problem = small_problem(kM);
  size_t length = 0;
  JITGEMM_ASSERT_OK(jitgemm_gemm_plan(&problem, JITGEMM_ARCH_SM_90A, nullptr, &length));
  expect(jitgemm_gemm_compile(context, &problem, JITGEMM_ARCH_SM_90A), JITGEMM_STATUS_NO_COMPILER,
         "/nonexistent/libnvrtc.so", "compile");
  jitgemm_context_release(context);
}

TEST(StatusNames, AreThoseOfTheHeader) {
  EXPECT_STREQ(jitgemm_status_name(JITGEMM_STATUS_OK), "OK");
  EXPECT_STREQ(jitgemm_status_name(JITGEMM_STATUS_CAPTURE_NOT_READY), "CAPTURE_NOT_READY");
  EXPECT_STREQ(jitgemm_status_name(JITGEMM_STATUS_INTERNAL), "INTERNAL");
  EXPECT_STREQ(jitgemm_status_name(-7), "UNKNOWN");
}

}  // namespace
}  // namespace jitgemm_abi
