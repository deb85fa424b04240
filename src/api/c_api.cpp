// SPDX-License-Identifier: Apache-2.0
// The C ABI: handles and functions. Each checks what C lets through, converts (api/convert.h),
// forwards to the runtime and turns whatever happens into a status; nothing is thrown across.
#include "jitgemm/jitgemm.h"

#include "api/call_guard.h"
#include "api/convert.h"
#include "problem/gemm_limits.h"
#include "runtime/context.h"
#include "runtime/given_key.h"
#include "runtime/insert_only_map.h"
#include "runtime/prepared_key.h"
#include "runtime/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

// A context is counted by every handle that was made from it and goes with the last one.
// Operations live in it as long as it does: captured graphs may hold their kernels. So a handle to
// one is the table's own entry and a count, and looking it up allocates and locks nothing.
struct jitgemm_operation {
  jitgemm_context* context;
  std::shared_ptr<const jitgemm::GemmOperation> operation;
};
struct jitgemm_context {
  std::shared_ptr<jitgemm::Context> context;
  jitgemm::InsertOnlyMap<jitgemm::PreparedKey, jitgemm_operation, jitgemm::PreparedKeyHash>
      operations{};
  // The same operations under the bytes that prepare was given.
  template <typename Problem>
  using Given = jitgemm::InsertOnlyMap<jitgemm::GivenKey<Problem>, jitgemm_operation*,
                                       jitgemm::GivenKeyHash<Problem>>;
  Given<jitgemm_gemm_problem> given_problems{};
  Given<jitgemm_grouped_gemm_problem> given_grouped_problems{};
  std::atomic<size_t> handles = 1;

  void retain() { handles.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};
struct jitgemm_device {
  jitgemm_context* context;
  jitgemm::Device* device;
};
struct jitgemm_buffer {
  jitgemm_context* context;
  jitgemm::Device* device;
  uint64_t address;
  size_t bytes;
};

namespace jitgemm {

// The message of the thread's last failure: the one piece of state outside of handles, as errno is.
std::string& last_error() {
  thread_local std::string message;
  return message;
}

namespace {

static_assert(JITGEMM_STATUS_INVALID_ARGUMENT == static_cast<int>(StatusCode::kInvalidArgument));
static_assert(JITGEMM_STATUS_UNSUPPORTED == static_cast<int>(StatusCode::kUnsupported));
static_assert(JITGEMM_STATUS_NOT_READY == static_cast<int>(StatusCode::kNotReady));
static_assert(JITGEMM_STATUS_CAPTURE_NOT_READY == static_cast<int>(StatusCode::kCaptureNotReady));
static_assert(JITGEMM_STATUS_COMPILE_FAILED == static_cast<int>(StatusCode::kCompileFailed));
static_assert(JITGEMM_STATUS_NO_COMPILER == static_cast<int>(StatusCode::kNoCompiler));
static_assert(JITGEMM_STATUS_NO_DRIVER == static_cast<int>(StatusCode::kNoDriver));
static_assert(JITGEMM_STATUS_DEVICE_ERROR == static_cast<int>(StatusCode::kDeviceError));
static_assert(JITGEMM_STATUS_OUT_OF_MEMORY == static_cast<int>(StatusCode::kOutOfMemory));
static_assert(JITGEMM_STATUS_SIMULATOR_FAULT == static_cast<int>(StatusCode::kSimulatorFault));
static_assert(JITGEMM_STATUS_IO_ERROR == static_cast<int>(StatusCode::kIoError));
static_assert(JITGEMM_STATUS_CORRUPT_DATA == static_cast<int>(StatusCode::kCorruptData));
static_assert(JITGEMM_STATUS_VERIFICATION_FAILED ==
              static_cast<int>(StatusCode::kVerificationFailed));
static_assert(JITGEMM_STATUS_INTERNAL == static_cast<int>(StatusCode::kInternal));
static_assert(sizeof(jitgemm_context_options) == 14 * 8);

Status copy_text(const std::string& text, char* out, size_t* length) {
  if (length == nullptr) return null_argument("length");
  if (out == nullptr && *length != 0) return null_argument("text");
  if (*length > 0) {
    const size_t copied = std::min(text.size(), *length - 1);
    std::memcpy(out, text.data(), copied);
    out[copied] = '\0';
  }
  *length = text.size() + 1;
  return ok_status();
}

// Arguments of one kind may not reach an operation of the other.
Status check_kind(const jitgemm_operation* operation, bool grouped) {
  if (operation == nullptr) return null_argument("operation");
  if (operation->operation->plan().problem.grouping.grouped() == grouped) return ok_status();
  return invalid_argument(grouped ? "operation: expected one of a grouped problem"
                                  : "operation: expected one of a problem that is not grouped");
}

Status plan_text(const Result<GemmProblem>& problem, char* text, size_t* length) {
  if (!problem) return problem.error();
  JITGEMM_ASSIGN(const TuningDatabase shipped, embedded_tuning());
  PlanRequest request;
  request.tuning = &shipped;
  JITGEMM_ASSIGN(const OperationPlan plan, plan_operation(*problem, request));
  return copy_text(to_string(plan, arch_info(problem->arch).default_sm_count), text, length);
}

template <typename Problem>
Status plan_problem(const Problem* problem, int32_t arch, char* text, size_t* length) {
  JITGEMM_ASSIGN(const Arch target, convert_arch(arch));
  return plan_text(convert(problem, target), text, length);
}

template <typename Problem>
Status compile_problem(jitgemm_context* context, const Problem* problem, int32_t arch) {
  if (context == nullptr) return null_argument("context");
  JITGEMM_ASSIGN(const Arch target, convert_arch(arch));
  JITGEMM_ASSIGN(const GemmProblem converted, convert(problem, target));
  JITGEMM_ASSIGN(const OperationPlan plan,
                 plan_operation(converted, context->context->plan_request({})));
  for (const LaunchPlan& launch : plan.launches) {
    JITGEMM_ASSIGN(const BuiltKernel kernel,
                   context->context->builder().build(launch, BuildMode::kCached));
  }
  return ok_status();
}

auto& given_in(jitgemm_context& context, const jitgemm_gemm_problem*) {
  return context.given_problems;
}
auto& given_in(jitgemm_context& context, const jitgemm_grouped_gemm_problem*) {
  return context.given_grouped_problems;
}

// Whether the caller's struct is of this version: shorter and longer ones are read field by field.
template <typename Problem>
bool is_whole(const Problem* problem) {
  size_t size = 0;
  if (problem != nullptr) std::memcpy(&size, problem, sizeof(size));
  return size == sizeof(Problem);
}

template <typename Problem>
Status prepare_problem(jitgemm_device* device, const Problem* problem,
                       jitgemm_operation** operation) {
  if (operation == nullptr) return null_argument("operation");
  *operation = nullptr;
  if (device == nullptr) return null_argument("device");
  jitgemm_context& context = *device->context;
  JITGEMM_ASSIGN(const GemmProblem converted, convert(problem, device->device->info().arch));
  const PreparedKey key{device->device, converted};
  jitgemm_operation* entry = context.operations.find(key);
  if (entry == nullptr) {
    JITGEMM_ASSIGN(PreparedGemm prepared, context.context->prepare(converted, {}, *device->device));
    entry = &context.operations.insert(key, {&context, std::move(prepared.operation)});
  }
  if (is_whole(problem)) given_in(context, problem).insert({device->device, *problem}, entry);
  context.retain();
  *operation = entry;
  return ok_status();
}

template <typename Problem>
Status find_problem(jitgemm_device* device, const Problem* problem, void* stream,
                    jitgemm_operation** operation) {
  if (operation == nullptr) return null_argument("operation");
  *operation = nullptr;
  if (device == nullptr) return null_argument("device");
  jitgemm_context& context = *device->context;
  if (is_whole(problem)) {
    if (jitgemm_operation** entry = given_in(context, problem).find({device->device, *problem})) {
      context.retain();
      *operation = *entry;
      return ok_status();
    }
  }
  PreparedKey key{device->device, {}};
  JITGEMM_TRY(convert_unchecked(problem, device->device->info().arch, key.problem));
  // Only valid problems are in the table: checks are for those that are not.
  if (jitgemm_operation* entry = context.operations.find(key)) {
    context.retain();
    *operation = entry;
    return ok_status();
  }
  JITGEMM_TRY(validate(key.problem));
  JITGEMM_ASSIGN(const bool capturing, device->device->is_capturing(stream));
  return Status(
      capturing ? StatusCode::kCaptureNotReady : StatusCode::kNotReady,
      "problem: expected one that was prepared on this device, found " + to_string(key.problem));
}

template <typename Arguments>
Status launch_operation(const jitgemm_operation* operation, const Arguments* arguments,
                        void* stream) {
  constexpr bool kGrouped = std::is_same_v<Arguments, jitgemm_grouped_gemm_arguments>;
  JITGEMM_TRY(check_kind(operation, kGrouped));
  Arguments c;
  JITGEMM_TRY(read_arguments(arguments, c));
  return operation->operation->launch(convert(c), stream);
}

template <typename Arguments>
Status check_operation_scales(const jitgemm_operation* operation, const Arguments* arguments) {
  constexpr bool kGrouped = std::is_same_v<Arguments, jitgemm_grouped_gemm_arguments>;
  JITGEMM_TRY(check_kind(operation, kGrouped));
  Arguments c;
  JITGEMM_TRY(read_arguments(arguments, c));
  return operation->operation->check_power_of_two_scales(convert(c));
}

}  // namespace
}  // namespace jitgemm

using namespace jitgemm;

const char* jitgemm_version(void) {
  return JITGEMM_VERSION_STRING;
}

const char* jitgemm_status_name(jitgemm_status status) {
  return status_name(static_cast<StatusCode>(status)).data();
}

const char* jitgemm_last_error(void) {
  return last_error().c_str();
}

jitgemm_status jitgemm_context_create(const jitgemm_context_options* options,
                                      jitgemm_context** context) {
  return guarded([&]() -> Status {
    if (context == nullptr) return null_argument("context");
    *context = nullptr;
    ContextOptions converted;
    if (options != nullptr) {
      jitgemm_context_options c;
      JITGEMM_TRY(read_struct("options", options, c));
      const auto text = [](const char* value) {
        return std::string(value != nullptr ? value : "");
      };
      converted.cache_folder = text(c.cache_folder);
      converted.cache_mode = text(c.cache_mode);
      converted.nvrtc = text(c.nvrtc_library);
      converted.driver = text(c.driver_library);
      converted.template_folder = text(c.template_folder);
      converted.log_level = text(c.log_level);
      converted.sim_numerics = text(c.sim_numerics);
      converted.sim_seed = text(c.sim_seed);
      converted.sim_threads = text(c.sim_threads);
      converted.sim_sanitize = text(c.sim_sanitize);
      converted.tuning_database = text(c.tuning_database);
      if (c.log != nullptr) {
        converted.log_sink = [log = c.log, user = c.log_user](LogLevel level,
                                                              std::string_view message) {
          log(static_cast<int32_t>(level), std::string(message).c_str(), user);
        };
      }
    }
    JITGEMM_ASSIGN(std::shared_ptr<Context> created, Context::create(converted));
    *context = new jitgemm_context{.context = std::move(created)};
    return ok_status();
  });
}

void jitgemm_context_release(jitgemm_context* context) {
  if (context != nullptr) context->release();
}

jitgemm_status jitgemm_device_open(jitgemm_context* context, const char* name, int32_t arch,
                                   jitgemm_device** device) {
  return guarded([&]() -> Status {
    if (device == nullptr) return null_argument("device");
    *device = nullptr;
    if (context == nullptr) return null_argument("context");
    if (name == nullptr) return null_argument("name");
    std::optional<Arch> wanted;
    if (arch != JITGEMM_ARCH_OF_DEVICE) {
      JITGEMM_ASSIGN(wanted, convert_arch(arch));
    }
    JITGEMM_ASSIGN(Device* const opened, context->context->device(name, wanted));
    *device = new jitgemm_device{context, opened};
    context->retain();
    return ok_status();
  });
}

void jitgemm_device_release(jitgemm_device* device) {
  if (device == nullptr) return;
  device->context->release();
  delete device;
}

int32_t jitgemm_device_arch(const jitgemm_device* device) {
  return device == nullptr ? 0 : static_cast<int32_t>(device->device->info().arch);
}

jitgemm_status jitgemm_device_synchronize(jitgemm_device* device, void* stream) {
  return guarded([&]() -> Status {
    if (device == nullptr) return null_argument("device");
    return device->device->synchronize(stream);
  });
}

jitgemm_status jitgemm_buffer_create(jitgemm_device* device, size_t bytes,
                                     jitgemm_buffer** buffer) {
  return guarded([&]() -> Status {
    if (buffer == nullptr) return null_argument("buffer");
    *buffer = nullptr;
    if (device == nullptr) return null_argument("device");
    auto created =
        std::make_unique<jitgemm_buffer>(jitgemm_buffer{device->context, device->device, 0, bytes});
    JITGEMM_ASSIGN(created->address, device->device->allocate(bytes));
    *buffer = created.release();
    device->context->retain();
    return ok_status();
  });
}

void jitgemm_buffer_release(jitgemm_buffer* buffer) {
  if (buffer == nullptr) return;
  guarded([&] { return buffer->device->free(buffer->address); });
  buffer->context->release();
  delete buffer;
}

void* jitgemm_buffer_address(const jitgemm_buffer* buffer) {
  return buffer == nullptr ? nullptr : reinterpret_cast<void*>(buffer->address);
}

namespace {

Status check_span(const jitgemm_buffer* buffer, size_t offset, const char* host_name,
                  const void* host, size_t bytes) {
  if (buffer == nullptr) return null_argument("buffer");
  if (host == nullptr && bytes != 0) return null_argument(host_name);
  if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
    return invalid_argument(fmt::format("bytes: {} at offset {} are beyond the buffer's {}", bytes,
                                        offset, buffer->bytes));
  }
  return ok_status();
}

}  // namespace

jitgemm_status jitgemm_buffer_write(jitgemm_buffer* buffer, size_t offset, const void* source,
                                    size_t bytes) {
  return guarded([&]() -> Status {
    JITGEMM_TRY(check_span(buffer, offset, "source", source, bytes));
    return bytes == 0 ? ok_status()
                      : buffer->device->copy_to_device(buffer->address + offset, source, bytes);
  });
}

jitgemm_status jitgemm_buffer_read(const jitgemm_buffer* buffer, size_t offset, void* destination,
                                   size_t bytes) {
  return guarded([&]() -> Status {
    JITGEMM_TRY(check_span(buffer, offset, "destination", destination, bytes));
    return bytes == 0 ? ok_status()
                      : buffer->device->copy_to_host(destination, buffer->address + offset, bytes);
  });
}

int64_t jitgemm_m_class_bound(int64_t m) {
  return m_class_bound(std::min<int64_t>(m, INT32_MAX));
}

jitgemm_status jitgemm_gemm_plan(const jitgemm_gemm_problem* problem, int32_t arch, char* text,
                                 size_t* length) {
  return guarded([&] { return plan_problem(problem, arch, text, length); });
}

jitgemm_status jitgemm_gemm_compile(jitgemm_context* context, const jitgemm_gemm_problem* problem,
                                    int32_t arch) {
  return guarded([&] { return compile_problem(context, problem, arch); });
}

jitgemm_status jitgemm_gemm_prepare(jitgemm_device* device, const jitgemm_gemm_problem* problem,
                                    jitgemm_operation** operation) {
  return guarded([&] { return prepare_problem(device, problem, operation); });
}

jitgemm_status jitgemm_gemm_find(jitgemm_device* device, const jitgemm_gemm_problem* problem,
                                 void* stream, jitgemm_operation** operation) {
  return guarded([&] { return find_problem(device, problem, stream, operation); });
}

void jitgemm_operation_release(jitgemm_operation* operation) {
  if (operation != nullptr) operation->context->release();
}

namespace {

Status report_workspace(const GemmOperation& operation, int64_t m, uint64_t* bytes,
                        uint64_t* alignment) {
  if (bytes == nullptr) return null_argument("bytes");
  if (alignment == nullptr) return null_argument("alignment");
  *bytes = operation.workspace_bytes(m);
  *alignment = kWorkspaceAlignment;
  return ok_status();
}

}  // namespace

jitgemm_status jitgemm_operation_workspace(const jitgemm_operation* operation, uint64_t* bytes,
                                           uint64_t* alignment) {
  return guarded([&]() -> Status {
    if (operation == nullptr) return null_argument("operation");
    return report_workspace(*operation->operation, operation->operation->plan().problem.m, bytes,
                            alignment);
  });
}

jitgemm_status jitgemm_operation_workspace_for(const jitgemm_operation* operation, int64_t m,
                                               uint64_t* bytes, uint64_t* alignment) {
  return guarded([&]() -> Status {
    if (operation == nullptr) return null_argument("operation");
    JITGEMM_TRY(check_rows(operation->operation->plan().problem, m));
    return report_workspace(*operation->operation, m, bytes, alignment);
  });
}

jitgemm_status jitgemm_operation_describe(const jitgemm_operation* operation, char* text,
                                          size_t* length) {
  return guarded([&]() -> Status {
    if (operation == nullptr) return null_argument("operation");
    const GemmOperation& described = *operation->operation;
    return copy_text(to_string(described.plan(), described.device().info().sm_count), text, length);
  });
}

jitgemm_status jitgemm_gemm_launch(const jitgemm_operation* operation,
                                   const jitgemm_gemm_arguments* arguments, void* stream) {
  return guarded([&] { return launch_operation(operation, arguments, stream); });
}

jitgemm_status jitgemm_gemm_check_scales(const jitgemm_operation* operation,
                                         const jitgemm_gemm_arguments* arguments) {
  return guarded([&] { return check_operation_scales(operation, arguments); });
}

jitgemm_status jitgemm_grouped_gemm_plan(const jitgemm_grouped_gemm_problem* problem, int32_t arch,
                                         char* text, size_t* length) {
  return guarded([&] { return plan_problem(problem, arch, text, length); });
}

jitgemm_status jitgemm_grouped_gemm_compile(jitgemm_context* context,
                                            const jitgemm_grouped_gemm_problem* problem,
                                            int32_t arch) {
  return guarded([&] { return compile_problem(context, problem, arch); });
}

jitgemm_status jitgemm_grouped_gemm_prepare(jitgemm_device* device,
                                            const jitgemm_grouped_gemm_problem* problem,
                                            jitgemm_operation** operation) {
  return guarded([&] { return prepare_problem(device, problem, operation); });
}

jitgemm_status jitgemm_grouped_gemm_find(jitgemm_device* device,
                                         const jitgemm_grouped_gemm_problem* problem, void* stream,
                                         jitgemm_operation** operation) {
  return guarded([&] { return find_problem(device, problem, stream, operation); });
}

jitgemm_status jitgemm_grouped_gemm_launch(const jitgemm_operation* operation,
                                           const jitgemm_grouped_gemm_arguments* arguments,
                                           void* stream) {
  return guarded([&] { return launch_operation(operation, arguments, stream); });
}

jitgemm_status jitgemm_grouped_gemm_check_scales(const jitgemm_operation* operation,
                                                 const jitgemm_grouped_gemm_arguments* arguments) {
  return guarded([&] { return check_operation_scales(operation, arguments); });
}
