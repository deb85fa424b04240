// SPDX-License-Identifier: Apache-2.0
// Costs on the host, inside one process: compiling with a warm compiler (front end and ptxas
// apart), a kernel from the disk cache, finding a prepared problem, launching. Each beside its
// floor in the same run: an empty kernel, the driver's own launch. Prints one JSON object;
// bench/jit.py adds what needs processes of its own. Usage: bench_jit wall|cpu
// [DRIVER_LIBRARY]
#include "jitgemm/jitgemm.h"

#include "bench/statistics.h"
#include "compile/nvrtc_compiler.h"
#include "device/cuda_device.h"
#include "plan/gemm_params.h"
#include "runtime/context.h"
#include "specialize/kernel_source.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

namespace jitgemm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSamples = 9;
constexpr int kLookups = 20000;
constexpr int kLaunches = 200;

Json row(const std::string& what, const char* unit, int digits,
         const std::vector<double>& samples) {
  const bench::Summary summary = bench::summarize(samples);
  return {
      {"what",    what            },
      {"unit",    unit            },
      {"median",  summary.median  },
      {"spread",  summary.spread()},
      {"digits",  digits          },
      {"samples", samples         }
  };
}

// Seconds since some start: of the wall, or of the processor time that this process has used, which
// other work on the machine hardly moves.
using Now = double (*)();
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_of(Now now, const std::function<Status()>& work, Status& status) {
  const double start = now();
  if (Status done = work(); !done.ok()) status = std::move(done);
  return now() - start;
}

// `count` times `work`, as `scale` units a second and call.
Result<std::vector<double>> sample(Now now, int count, double scale,
                                   const std::function<Status()>& work) {
  std::vector<double> samples;
  Status status;
  for (int i = 0; i < kSamples; ++i) {
    const double seconds = seconds_of(
        now,
        [&] {
          for (int call = 0; call < count; ++call) JITGEMM_TRY(work());
          return ok_status();
        },
        status);
    JITGEMM_TRY(status);
    samples.push_back(scale * seconds / count);
  }
  return samples;
}

GemmProblem problem(Arch arch, int64_t m, int64_t n, int64_t k) {
  GemmProblem p;
  p.arch = arch;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

// PTX alone: what is left of a compile without ptxas.
Status front_end(const NvrtcApi& api, const KernelSource& source) {
  std::vector<const char*> names = {source.files.root.name.c_str()};
  std::vector<const char*> texts = {source.files.root.text.c_str()};
  for (const SourceFile& header : source.files.headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  NvrtcProgram program = nullptr;
  const std::string name = "specialized_" + source.name;
  int result = api.create_program(&program, source.text.c_str(), name.c_str(),
                                  static_cast<int>(names.size()), texts.data(), names.data());
  if (result == kNvrtcSuccess) {
    const std::string target = "--gpu-architecture=compute_" + source.target.substr(3);
    const char* options[] = {target.c_str(), "--std=c++20", "-default-device"};
    result = api.compile_program(program, 3, options);
    api.destroy_program(&program);
  }
  if (result == kNvrtcSuccess) return ok_status();
  return Status(StatusCode::kCompileFailed, api.error_string(result));
}

Status compile_rows(Now now, Json& rows) {
  const TemplateStore store;
  JITGEMM_ASSIGN(const std::unique_ptr<NvrtcCompiler> compiler, NvrtcCompiler::open(""));
  JITGEMM_ASSIGN(const NvrtcApi api, NvrtcApi::open(""));
  const auto add = [&](const std::string& what, const KernelSource& source) -> Status {
    JITGEMM_TRY(compiler->compile(source) ? ok_status() : internal_error("does not compile"));
    JITGEMM_ASSIGN(const auto whole, sample(now, 1, 1e3, [&]() -> Status {
                     JITGEMM_ASSIGN(const KernelImage image, compiler->compile(source));
                     return ok_status();
                   }));
    JITGEMM_ASSIGN(const auto front, sample(now, 1, 1e3, [&] { return front_end(api, source); }));
    rows.push_back(row("compile, warm: " + what, "ms", 1, whole));
    rows.push_back(row("of it the front end (PTX alone)", "ms", 1, front));
    return ok_status();
  };
  JITGEMM_ASSIGN(const KernelSource floor, specialize("measure_floor.cu", Arch::kSm90a,
                                                      {
                                                          {"kThreads",    384},
                                                          {"kParamWords", 72 }
  },
                                                      store));
  JITGEMM_TRY(add("the empty kernel, sm_90a", floor));
  const struct {
    const char* what;
    GemmProblem problem;
  } products[] = {
      {"4096 x 4096 x 4096, sm_90a",  problem(Arch::kSm90a,  4096, 4096, 4096)},
      {"64 x 2112 x 7168, sm_90a",    problem(Arch::kSm90a,  64,   2112, 7168)},
      {"4096 x 4096 x 4096, sm_100a", problem(Arch::kSm100a, 4096, 4096, 4096)}
  };
  for (const auto& product : products) {
    JITGEMM_ASSIGN(const GemmPlan plan, plan_gemm(product.problem));
    JITGEMM_ASSIGN(const KernelSource source, specialize(plan, store));
    JITGEMM_TRY(add(product.what, source));
  }
  return ok_status();
}

Status cache_rows(Now now, const ContextOptions& options, Json& rows) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> first, Context::create(options));
  const GemmProblem wanted = problem(Arch::kSm90a, 64, 2112, 7168);
  const GemmProblem other = problem(Arch::kSm90a, 64, 256, 512);
  for (const GemmProblem& p : {wanted, other}) {
    JITGEMM_ASSIGN(Device* const device, first->device("cuda:0", std::nullopt));
    JITGEMM_ASSIGN(const PreparedGemm prepared, first->prepare(p, {}, *device));
  }
  std::vector<double> planning;
  std::vector<double> specialising;
  std::vector<double> building;
  for (int i = 0; i < kSamples; ++i) {
    JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
    JITGEMM_ASSIGN(Device* const device, context->device("cuda:0", std::nullopt));
    // Another problem first, so that the compiler's identity is known.
    JITGEMM_ASSIGN(const PreparedGemm before, context->prepare(other, {}, *device));
    const double start = now();
    JITGEMM_ASSIGN(const OperationPlan plan,
                   plan_operation(wanted, context->plan_request({}, device)));
    const double planned = now();
    JITGEMM_ASSIGN(const KernelSource source, context->builder().source(plan.launches.back()));
    const double specialised = now();
    JITGEMM_ASSIGN(const BuiltKernel kernel,
                   context->builder().build(plan.launches.back(), BuildMode::kCached));
    const double built = now();
    if (!kernel.from_cache) return internal_error("not from the cache");
    planning.push_back(1e3 * (planned - start));
    specialising.push_back(1e3 * (specialised - planned));
    building.push_back(1e3 * (built - specialised));
  }
  rows.push_back(row("disk hit, up to the driver's load: planned", "ms", 2, planning));
  rows.push_back(
      row("specialised, keyed (SHA-256 of every file), read, checked", "ms", 2, building));
  rows.push_back(row("of it specialised", "ms", 2, specialising));
  return ok_status();
}

Status from_c(jitgemm_status status) {
  if (status == JITGEMM_STATUS_OK) return ok_status();
  return Status(static_cast<StatusCode>(status), jitgemm_last_error());
}

// The driver's own call with the operation's geometry, on an empty kernel.
Status raw_launch_row(Now now, const ContextOptions& options, const GemmProblem& p, Json& rows) {
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  JITGEMM_ASSIGN(Device* const device, context->device("cuda:0", std::nullopt));
  JITGEMM_ASSIGN(const OperationPlan plan, plan_operation(p, context->plan_request({}, device)));
  const GemmPlan& product = plan.product();
  constexpr int kWords = static_cast<int>(sizeof(GemmParams) / 8);
  JITGEMM_ASSIGN(
      const BuiltKernel floor,
      context->builder().build("measure_floor.cu", p.arch,
                               {
                                   {"kThreads",    product.threads},
                                   {"kParamWords", kWords         }
  },
                               BuildMode::kCached));
  const LaunchGeometry geometry = launch_geometry(product, p.m, device->info().sm_count);
  JITGEMM_ASSIGN(const std::shared_ptr<const LoadedKernel> kernel,
                 context->load(*device, floor, geometry));
  std::vector<uint64_t> params(512, 0);  // at least what any parameter struct holds
  LaunchRequest request;
  request.geometry = geometry;
  request.params = params.data();
  request.param_bytes = sizeof(GemmParams);
  JITGEMM_ASSIGN(const auto samples, sample(now, kLaunches, 1e9, [&] {
                   return device->launch(*kernel, request, nullptr);
                 }));
  JITGEMM_TRY(device->synchronize(nullptr));
  rows.push_back(row("launch of an empty kernel with the same geometry, through the device alone",
                     "ns", 0, samples));
  return ok_status();
}

Status api_rows(Now now, const ContextOptions& options, const GemmProblem& p, Json& rows) {
  jitgemm_context_options c = JITGEMM_CONTEXT_OPTIONS_INIT;
  c.cache_folder = options.cache_folder.c_str();
  c.driver_library = options.driver.empty() ? nullptr : options.driver.c_str();
  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;
  JITGEMM_TRY(from_c(jitgemm_context_create(&c, &context)));
  JITGEMM_TRY(from_c(jitgemm_device_open(context, "cuda:0", 0, &device)));
  jitgemm_gemm_problem problem = JITGEMM_GEMM_PROBLEM_INIT;
  problem.m = p.m;
  problem.n = p.n;
  problem.k = p.k;
  jitgemm_operation* operation = nullptr;
  JITGEMM_TRY(from_c(jitgemm_gemm_prepare(device, &problem, &operation)));
  JITGEMM_ASSIGN(const auto lookups, sample(now, kLookups, 1e9, [&]() -> Status {
                   jitgemm_operation* found = nullptr;
                   if (jitgemm_gemm_find(device, &problem, nullptr, &found) != JITGEMM_STATUS_OK) {
                     return internal_error("not found");
                   }
                   jitgemm_operation_release(found);
                   return ok_status();
                 }));
  rows.push_back(row("find a prepared problem (jitgemm_gemm_find and release)", "ns", 0, lookups));

  std::vector<jitgemm_buffer*> buffers;
  const auto memory = [&](size_t bytes) -> Result<void*> {
    jitgemm_buffer* buffer = nullptr;
    JITGEMM_TRY(from_c(jitgemm_buffer_create(device, bytes, &buffer)));
    buffers.push_back(buffer);
    return jitgemm_buffer_address(buffer);
  };
  const auto m = static_cast<size_t>(p.m);
  const auto n = static_cast<size_t>(p.n);
  const auto k = static_cast<size_t>(p.k);
  jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
  arguments.m = p.m;
  JITGEMM_ASSIGN(arguments.a, memory(m * k));
  JITGEMM_ASSIGN(arguments.b, memory(n * k));
  JITGEMM_ASSIGN(arguments.a_scales, memory(4 * m * (k / 128)));
  JITGEMM_ASSIGN(arguments.b_scales, memory(4 * ((n + 127) / 128) * (k / 128)));
  JITGEMM_ASSIGN(arguments.out, memory(2 * m * n));
  JITGEMM_ASSIGN(const auto launches, sample(now, kLaunches, 1e9, [&] {
                   return from_c(jitgemm_gemm_launch(operation, &arguments, nullptr));
                 }));
  JITGEMM_TRY(from_c(jitgemm_device_synchronize(device, nullptr)));
  rows.push_back(row("launch (jitgemm_gemm_launch): arguments checked, tensor maps encoded", "ns",
                     0, launches));
  for (jitgemm_buffer* buffer : buffers) jitgemm_buffer_release(buffer);
  jitgemm_operation_release(operation);
  jitgemm_device_release(device);
  jitgemm_context_release(context);
  return ok_status();
}

Status run(const std::string& driver, Now now) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("jitgemm_bench_jit_{}", getpid());
  ContextOptions options;
  options.cache_folder = folder.string();
  options.driver = driver;
  Json rows = Json::array();
  const GemmProblem p = problem(Arch::kSm90a, 64, 2112, 7168);
  Status status = compile_rows(now, rows);
  // Without a GPU and without a fake driver there is nothing to load on.
  std::string device_name = "no driver";
  if (status.ok()) {
    JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
    const Result<Device*> device = context->device("cuda:0", std::nullopt);
    if (device) {
      device_name = (*device)->info().description;
      status = cache_rows(now, options, rows);
      if (status.ok()) status = api_rows(now, options, p, rows);
      if (status.ok()) status = raw_launch_row(now, options, p, rows);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  JITGEMM_TRY(status);
  const Json document = {
      {"device", device_name},
      {"rows",   rows       }
  };
  std::printf("%s\n", document.dump(1).c_str());
  return ok_status();
}

}  // namespace
}  // namespace jitgemm

int main(int argc, char** argv) {
  const bool cpu = argc > 1 && std::string(argv[1]) == "cpu";
  const jitgemm::Status status = jitgemm::run(
      argc > 2 ? argv[2] : "", cpu ? jitgemm::processor_seconds : jitgemm::wall_seconds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_jit: %s\n", status.to_string().c_str());
  return 1;
}
