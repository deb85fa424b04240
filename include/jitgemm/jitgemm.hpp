// SPDX-License-Identifier: Apache-2.0
// jitgemm for C++17: owners for the handles of jitgemm.h, and exceptions in place of statuses. It
// calls the C functions of that header and nothing else, so what each of them does, and what it may
// fail with, is said there.
//
//   jitgemm::Context context;
//   jitgemm::Device device(context, "sim", JITGEMM_ARCH_SM_100A);
//   jitgemm::GemmProblem problem;
//   problem.m = 256, problem.n = 512, problem.k = 1024;
//   jitgemm::Operation operation(device, problem);
//   jitgemm::GemmArguments arguments;  // set a, b, a_scales, b_scales, out and m
//   operation.launch(arguments);
//
// Owners move and do not copy. A moved-from owner may be destroyed or assigned to, nothing else. An
// owner keeps what it was made from alive, so they may be destroyed in any order.
#ifndef JITGEMM_JITGEMM_HPP
#define JITGEMM_JITGEMM_HPP

#include "jitgemm/jitgemm.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace jitgemm {

// Inline, so that users write jitgemm::Context while the symbols differ from those of the library's
// own classes, which the static library contains.
inline namespace handles {

// A status that is not JITGEMM_STATUS_OK. what() is "NAME: message".
class Error : public std::runtime_error {
 public:
  Error(jitgemm_status status, const std::string& message)
      : std::runtime_error(std::string(jitgemm_status_name(status)) + ": " + message),
        status_(status),
        message_(message) {}

  jitgemm_status status() const noexcept { return status_; }
  // What jitgemm_last_error() said: the parameter, what was expected, what was found.
  const std::string& message() const noexcept { return message_; }

 private:
  jitgemm_status status_;
  std::string message_;
};

// Throws Error unless the status is OK. For calls of the C functions themselves.
inline void check(jitgemm_status status) {
  if (status != JITGEMM_STATUS_OK) throw Error(status, jitgemm_last_error());
}

// The structs of the C header with struct_size set and every other field at its default.
struct ContextOptions : jitgemm_context_options {
  ContextOptions() : jitgemm_context_options() { struct_size = sizeof(jitgemm_context_options); }
};
struct GemmProblem : jitgemm_gemm_problem {
  GemmProblem() : jitgemm_gemm_problem() { struct_size = sizeof(jitgemm_gemm_problem); }
};
struct GemmArguments : jitgemm_gemm_arguments {
  GemmArguments() : jitgemm_gemm_arguments() { struct_size = sizeof(jitgemm_gemm_arguments); }
};
struct GroupedGemmProblem : jitgemm_grouped_gemm_problem {
  GroupedGemmProblem() : jitgemm_grouped_gemm_problem() {
    struct_size = sizeof(jitgemm_grouped_gemm_problem);
  }
};
struct GroupedGemmArguments : jitgemm_grouped_gemm_arguments {
  GroupedGemmArguments() : jitgemm_grouped_gemm_arguments() {
    struct_size = sizeof(jitgemm_grouped_gemm_arguments);
  }
};

namespace detail {

template <auto release>
struct Release {
  template <typename Handle>
  void operator()(Handle* handle) const noexcept {
    release(handle);
  }
};

// Runs a C function that fills a text of unknown length.
template <typename Fill>
std::string read_text(Fill fill) {
  std::size_t length = 0;
  check(fill(nullptr, &length));
  std::string text(length, '\0');
  check(fill(text.data(), &length));
  text.resize(length - 1);  // without the terminating zero
  return text;
}

}  // namespace detail

// Settings, the cache of compiled kernels and the compiler.
class Context {
 public:
  // Every setting from the environment or its default.
  Context() : Context(nullptr) {}
  explicit Context(const jitgemm_context_options& options) : Context(&options) {}

  // Compiles the problem's kernel into the cache, unless it is there. Needs no device.
  void compile(const jitgemm_gemm_problem& problem, std::int32_t arch) const {
    check(jitgemm_gemm_compile(get(), &problem, arch));
  }
  void compile(const jitgemm_grouped_gemm_problem& problem, std::int32_t arch) const {
    check(jitgemm_grouped_gemm_compile(get(), &problem, arch));
  }

  jitgemm_context* get() const noexcept { return handle_.get(); }

 private:
  explicit Context(const jitgemm_context_options* options) {
    jitgemm_context* handle = nullptr;
    check(jitgemm_context_create(options, &handle));
    handle_.reset(handle);
  }

  std::unique_ptr<jitgemm_context, detail::Release<&jitgemm_context_release>> handle_;
};

// One GPU ("cuda:N"), or the simulator ("sim").
class Device {
 public:
  Device(const Context& context, const char* name, std::int32_t arch = JITGEMM_ARCH_OF_DEVICE) {
    jitgemm_device* handle = nullptr;
    check(jitgemm_device_open(context.get(), name, arch, &handle));
    handle_.reset(handle);
  }

  // One of JITGEMM_ARCH_*.
  std::int32_t arch() const noexcept { return jitgemm_device_arch(get()); }
  void synchronize(void* stream = nullptr) const {
    check(jitgemm_device_synchronize(get(), stream));
  }

  jitgemm_device* get() const noexcept { return handle_.get(); }

 private:
  std::unique_ptr<jitgemm_device, detail::Release<&jitgemm_device_release>> handle_;
};

// Memory of a device: uninitialised, aligned to 256 bytes.
class Buffer {
 public:
  Buffer(const Device& device, std::size_t bytes) : bytes_(bytes) {
    jitgemm_buffer* handle = nullptr;
    check(jitgemm_buffer_create(device.get(), bytes, &handle));
    handle_.reset(handle);
  }

  // The address to put into arguments.
  void* address() const noexcept { return jitgemm_buffer_address(get()); }
  std::size_t bytes() const noexcept { return bytes_; }
  // Both wait for the device's default stream.
  void write(const void* source, std::size_t bytes, std::size_t offset = 0) {
    check(jitgemm_buffer_write(get(), offset, source, bytes));
  }
  void read(void* destination, std::size_t bytes, std::size_t offset = 0) const {
    check(jitgemm_buffer_read(get(), offset, destination, bytes));
  }

  jitgemm_buffer* get() const noexcept { return handle_.get(); }

 private:
  std::size_t bytes_ = 0;
  std::unique_ptr<jitgemm_buffer, detail::Release<&jitgemm_buffer_release>> handle_;
};

struct Workspace {
  std::uint64_t bytes = 0;
  std::uint64_t alignment = 0;
};

// A problem prepared for a device.
class Operation {
 public:
  // Plans, compiles if the cache has no such kernel, and loads.
  Operation(const Device& device, const jitgemm_gemm_problem& problem) {
    jitgemm_operation* handle = nullptr;
    check(jitgemm_gemm_prepare(device.get(), &problem, &handle));
    handle_.reset(handle);
  }
  Operation(const Device& device, const jitgemm_grouped_gemm_problem& problem) {
    jitgemm_operation* handle = nullptr;
    check(jitgemm_grouped_gemm_prepare(device.get(), &problem, &handle));
    handle_.reset(handle);
  }

  // The operation that was prepared for this problem on this device. If there is none, the error's
  // status is CAPTURE_NOT_READY when the stream is being captured, else NOT_READY.
  static Operation find(const Device& device, const jitgemm_gemm_problem& problem,
                        void* stream = nullptr) {
    jitgemm_operation* handle = nullptr;
    check(jitgemm_gemm_find(device.get(), &problem, stream, &handle));
    return Operation(handle);
  }
  static Operation find(const Device& device, const jitgemm_grouped_gemm_problem& problem,
                        void* stream = nullptr) {
    jitgemm_operation* handle = nullptr;
    check(jitgemm_grouped_gemm_find(device.get(), &problem, stream, &handle));
    return Operation(handle);
  }

  Workspace workspace() const {
    Workspace needed;
    check(jitgemm_operation_workspace(get(), &needed.bytes, &needed.alignment));
    return needed;
  }
  // Of a launch with another m, where the kernel takes m at run time.
  Workspace workspace(std::int64_t m) const {
    Workspace needed;
    check(jitgemm_operation_workspace_for(get(), m, &needed.bytes, &needed.alignment));
    return needed;
  }
  // The problem and the plan in a few lines.
  std::string describe() const {
    return detail::read_text([this](char* text, std::size_t* length) {
      return jitgemm_operation_describe(get(), text, length);
    });
  }
  // Puts the operation on the stream. Throws only when the launch is refused or has failed.
  void launch(const jitgemm_gemm_arguments& arguments, void* stream = nullptr) const {
    check(jitgemm_gemm_launch(get(), &arguments, stream));
  }
  void launch(const jitgemm_grouped_gemm_arguments& arguments, void* stream = nullptr) const {
    check(jitgemm_grouped_gemm_launch(get(), &arguments, stream));
  }
  // A debugging aid: copies fp32 scales to the host and looks at each.
  void check_scales(const jitgemm_gemm_arguments& arguments) const {
    check(jitgemm_gemm_check_scales(get(), &arguments));
  }
  void check_scales(const jitgemm_grouped_gemm_arguments& arguments) const {
    check(jitgemm_grouped_gemm_check_scales(get(), &arguments));
  }

  jitgemm_operation* get() const noexcept { return handle_.get(); }

 private:
  explicit Operation(jitgemm_operation* handle) noexcept : handle_(handle) {}

  std::unique_ptr<jitgemm_operation, detail::Release<&jitgemm_operation_release>> handle_;
};

// Which kernel the problem would get on that arch, and why. Needs neither context nor device.
inline std::string plan(const jitgemm_gemm_problem& problem, std::int32_t arch) {
  return detail::read_text([&problem, arch](char* text, std::size_t* length) {
    return jitgemm_gemm_plan(&problem, arch, text, length);
  });
}
inline std::string plan(const jitgemm_grouped_gemm_problem& problem, std::int32_t arch) {
  return detail::read_text([&problem, arch](char* text, std::size_t* length) {
    return jitgemm_grouped_gemm_plan(&problem, arch, text, length);
  });
}

// Launches of any PTX module on the simulator: its text, and the description that docs/simulator.md
// documents. Needs neither context nor device.
class SimRun {
 public:
  // `folder` is that of the files which the description names; "" is the current one.
  SimRun(std::string ptx, std::string launch_json, std::string folder = std::string())
      : ptx_(std::move(ptx)), launch_json_(std::move(launch_json)), folder_(std::move(folder)) {}

  // What a buffer of the description holds before a run and, unless its access is "in", after it.
  // The memory is the caller's and exactly as large as the buffer.
  void bind(const std::string& name, void* data, std::size_t bytes) {
    bindings_.push_back({name, data, bytes});
  }
  // Runs all launches and returns the report, a JSON document. Throws Error; after
  // JITGEMM_STATUS_VERIFICATION_FAILED the buffers and report() are there all the same.
  const std::string& run() {
    std::vector<jitgemm_sim_buffer> buffers;
    for (const Binding& b : bindings_) buffers.push_back({b.name.c_str(), b.data, b.bytes});
    jitgemm_sim_run_arguments arguments = JITGEMM_SIM_RUN_ARGUMENTS_INIT;
    arguments.ptx = ptx_.c_str();
    arguments.launch_json = launch_json_.c_str();
    arguments.folder = folder_.c_str();
    arguments.buffers = buffers.data();
    arguments.buffer_count = buffers.size();
    arguments.report = [](const char* text, std::size_t length, void* user) {
      static_cast<std::string*>(user)->assign(text, length);
    };
    arguments.report_user = &report_;
    report_.clear();
    check(jitgemm_sim_run(&arguments));
    return report_;
  }
  const std::string& report() const noexcept { return report_; }

 private:
  struct Binding {
    std::string name;
    void* data;
    std::size_t bytes;
  };

  std::string ptx_, launch_json_, folder_, report_;
  std::vector<Binding> bindings_;
};

}  // namespace handles
}  // namespace jitgemm

#endif  // JITGEMM_JITGEMM_HPP
