// SPDX-License-Identifier: Apache-2.0
// What a launch costs the host: the C interface's launch of a single and of a grouped product
// beside the driver's own launch of an empty kernel with the same grid, attributes and parameter
// bytes, in turns, in one process. Products are so small that the GPU keeps up; the queue is
// emptied between batches, untimed. Prints one JSON object. Usage: bench_host [DRIVER_LIBRARY]
#include "jitgemm/jitgemm.h"

#include "bench/statistics.h"
#include "device/cuda_device.h"
#include "plan/gemm_params.h"
#include "plan/operation_plan.h"
#include "runtime/context.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace jitgemm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBatches = 200;
constexpr int kLaunches = 50;
constexpr double kGoalNs = 1000;  // over the driver's launch

Status from_c(jitgemm_status status) {
  return status == JITGEMM_STATUS_OK ? ok_status() : internal_error(jitgemm_last_error());
}

// The driver's launch alone, of an empty kernel in the shape of a product's.
class RawLaunch {
 public:
  static Result<RawLaunch> create(Context& context, CudaDevice& device,
                                  const GemmProblem& problem) {
    JITGEMM_ASSIGN(const OperationPlan plan,
                   plan_operation(problem, context.plan_request({}, &device)));
    const GemmPlan& product = plan.product();
    constexpr int kWords = static_cast<int>(sizeof(GemmParams) / 8);
    JITGEMM_ASSIGN(
        const BuiltKernel floor,
        context.builder().build("measure_floor.cu", problem.arch,
                                {
                                    {"kThreads",    product.threads},
                                    {"kParamWords", kWords         }
    },
                                BuildMode::kCached));
    RawLaunch raw(device);
    raw.geometry_ = launch_geometry(product, problem.m, device.info().sm_count);
    const CudaDriverApi& api = device.api();
    CuLibrary library = nullptr;
    CuKernel kernel = nullptr;
    JITGEMM_TRY(api.check(api.library_load_data(&library, floor.image->cubin.data(), nullptr,
                                                nullptr, 0, nullptr, nullptr, 0),
                          "cuLibraryLoadData"));
    JITGEMM_TRY(api.check(api.library_get_kernel(&kernel, library, floor.image->entry.c_str()),
                          "cuLibraryGetKernel"));
    JITGEMM_TRY(api.check(api.kernel_get_function(&raw.function_, kernel), "cuKernelGetFunction"));
    return raw;
  }

  // As a caller would write it: everything made for this launch.
  Status operator()() const {
    CuLaunchAttribute attributes[1] = {};
    unsigned count = 0;
    if (geometry_.cluster.x > 1) {
      attributes[count].id = kCuLaunchClusterDimension;
      attributes[count].value.cluster = {geometry_.cluster.x, geometry_.cluster.y,
                                         geometry_.cluster.z};
      ++count;
    }
    const CuLaunchConfig config = {geometry_.grid.x,
                                   geometry_.grid.y,
                                   geometry_.grid.z,
                                   geometry_.block.x,
                                   geometry_.block.y,
                                   geometry_.block.z,
                                   0,
                                   nullptr,
                                   attributes,
                                   count};
    alignas(64) GemmParams params = {};
    void* pointers[] = {&params};
    const CudaDriverApi& api = device_->api();
    return api.check(api.launch_kernel_ex(&config, function_, pointers, nullptr),
                     "cuLaunchKernelEx");
  }

 private:
  explicit RawLaunch(CudaDevice& device) : device_(&device) {}

  CudaDevice* device_;
  CuFunction function_ = nullptr;
  LaunchGeometry geometry_;
};

struct Contender {
  std::string name;
  std::function<Status()> launch;
  std::vector<double> samples = {};  // nanoseconds a launch, of each batch
};

Status measure(CudaDevice& device, std::vector<Contender>& contenders) {
  using Clock = std::chrono::steady_clock;
  for (int batch = -2; batch < kBatches; ++batch) {
    for (Contender& contender : contenders) {
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < kLaunches; ++i) JITGEMM_TRY(contender.launch());
      const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;
      JITGEMM_TRY(device.synchronize(nullptr));
      if (batch >= 0) contender.samples.push_back(elapsed.count() / kLaunches);
    }
  }
  return ok_status();
}

// Everything that the C interface's launches need.
class Products {
 public:
  Status create(const std::string& driver) {
    jitgemm_context_options options = JITGEMM_CONTEXT_OPTIONS_INIT;
    options.driver_library = driver.empty() ? nullptr : driver.c_str();
    JITGEMM_TRY(from_c(jitgemm_context_create(&options, &context_)));
    JITGEMM_TRY(from_c(jitgemm_device_open(context_, "cuda:0", 0, &device_)));
    jitgemm_gemm_problem single = JITGEMM_GEMM_PROBLEM_INIT;
    single.m = kM;
    single.n = kN;
    single.k = kK;
    JITGEMM_TRY(from_c(jitgemm_gemm_prepare(device_, &single, &single_)));
    jitgemm_grouped_gemm_problem grouped = JITGEMM_GROUPED_GEMM_PROBLEM_INIT;
    grouped.m = kM;
    grouped.n = kN;
    grouped.k = kK;
    grouped.groups = 1;
    grouped.layout = JITGEMM_GROUPS_ROW_INDICES;
    JITGEMM_TRY(from_c(jitgemm_grouped_gemm_prepare(device_, &grouped, &grouped_)));
    JITGEMM_ASSIGN(arguments_.a, zeros(kM * kK));
    JITGEMM_ASSIGN(arguments_.b, zeros(kN * kK));
    JITGEMM_ASSIGN(arguments_.a_scales, zeros(4 * kM));
    JITGEMM_ASSIGN(arguments_.b_scales, zeros(4));
    JITGEMM_ASSIGN(arguments_.out, zeros(2 * kM * kN));
    arguments_.m = kM;
    grouped_arguments_.a = arguments_.a;
    grouped_arguments_.b = arguments_.b;
    grouped_arguments_.a_scales = arguments_.a_scales;
    grouped_arguments_.b_scales = arguments_.b_scales;
    grouped_arguments_.out = arguments_.out;
    grouped_arguments_.m = kM;
    JITGEMM_ASSIGN(void* const indices, zeros(4 * kM));
    grouped_arguments_.group_rows = static_cast<const int32_t*>(indices);
    return ok_status();
  }
  ~Products() {
    for (jitgemm_buffer* buffer : buffers_) jitgemm_buffer_release(buffer);
    jitgemm_operation_release(single_);
    jitgemm_operation_release(grouped_);
    jitgemm_device_release(device_);
    jitgemm_context_release(context_);
  }
  Products() = default;
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  Status launch_single() const {
    return from_c(jitgemm_gemm_launch(single_, &arguments_, nullptr));
  }
  Status launch_grouped() const {
    return from_c(jitgemm_grouped_gemm_launch(grouped_, &grouped_arguments_, nullptr));
  }
  static GemmProblem problem(Arch arch) {
    GemmProblem p;
    p.arch = arch;
    p.m = kM;
    p.n = kN;
    p.k = kK;
    return p;
  }

 private:
  static constexpr int64_t kM = 16;
  static constexpr int64_t kN = 128;
  static constexpr int64_t kK = 128;

  Result<void*> zeros(size_t bytes) {
    jitgemm_buffer* buffer = nullptr;
    JITGEMM_TRY(from_c(jitgemm_buffer_create(device_, bytes, &buffer)));
    buffers_.push_back(buffer);
    const std::vector<char> values(bytes, 0);
    JITGEMM_TRY(from_c(jitgemm_buffer_write(buffer, 0, values.data(), bytes)));
    return jitgemm_buffer_address(buffer);
  }

  jitgemm_context* context_ = nullptr;
  jitgemm_device* device_ = nullptr;
  jitgemm_operation* single_ = nullptr;
  jitgemm_operation* grouped_ = nullptr;
  jitgemm_gemm_arguments arguments_ = JITGEMM_GEMM_ARGUMENTS_INIT;
  jitgemm_grouped_gemm_arguments grouped_arguments_ = JITGEMM_GROUPED_GEMM_ARGUMENTS_INIT;
  std::vector<jitgemm_buffer*> buffers_;
};

Status run(const std::string& driver) {
  ContextOptions options;
  options.driver = driver;
  JITGEMM_ASSIGN(const std::shared_ptr<Context> context, Context::create(options));
  JITGEMM_ASSIGN(Device* const opened, context->device("cuda:0", std::nullopt));
  auto& device = dynamic_cast<CudaDevice&>(*opened);
  const CudaDriverApi& api = device.api();
  JITGEMM_TRY(api.check(api.context_push(device.context()), "cuCtxPushCurrent"));
  Products products;
  JITGEMM_TRY(products.create(driver));
  JITGEMM_ASSIGN(const RawLaunch raw,
                 RawLaunch::create(*context, device, Products::problem(device.info().arch)));
  std::vector<Contender> contenders = {
      {"driver",                      [&] { return raw(); }                    },
      {"jitgemm_gemm_launch",         [&] { return products.launch_single(); } },
      {"jitgemm_grouped_gemm_launch", [&] { return products.launch_grouped(); }}
  };
  JITGEMM_TRY(measure(device, contenders));
  const double floor = bench::summarize(contenders[0].samples).median;
  Json launches = Json::array();
  for (const Contender& contender : contenders) {
    const bench::Summary summary = bench::summarize(contender.samples);
    launches.push_back({
        {"name",      contender.name                             },
        {"median_ns", summary.median                             },
        {"least_ns",  *std::min_element(contender.samples.begin(), contender.samples.end())},
        {"over_driver_ns",           summary.median - floor                                      }
    });
  }
  const Json document = {
      {"schema",              1                           },
      {"verb",                "host"                      },
      {"device",              device.info().description   },
      {"driver_version",      device.info().driver_version},
      {"goal_over_driver_ns", kGoalNs                     },
      {"launches",            launches                    }
  };
  std::printf("%s\n", document.dump(1).c_str());
  CuContext popped = nullptr;
  return api.check(api.context_pop(&popped), "cuCtxPopCurrent");
}

}  // namespace
}  // namespace jitgemm

int main(int argc, char** argv) {
  const jitgemm::Status status = jitgemm::run(argc > 1 ? argv[1] : "");
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_host: %s\n", status.to_string().c_str());
  return 1;
}
