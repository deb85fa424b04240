// SPDX-License-Identifier: Apache-2.0
// A captured grouped launch, replayed with other integers in the same device memory, must do what
// an ordinary launch with those integers does. Needs the GPU named in JITGEMM_TEST_DEVICE.
#include "device/cuda_device.h"
#include "selftest/device_buffer.h"
#include "selftest/grouped_case.h"
#include "support/dynamic_library.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace jitgemm {
namespace {

using CuGraph = struct CuGraphTag*;
using CuGraphExec = struct CuGraphExecTag*;

// What graphs need of the driver beyond what the library uses.
struct GraphApi {
  CuResult (*stream_create)(CuStream* stream, unsigned flags);
  CuResult (*stream_destroy)(CuStream stream);
  CuResult (*begin_capture)(CuStream stream, int mode);
  CuResult (*end_capture)(CuStream stream, CuGraph* graph);
  CuResult (*instantiate)(CuGraphExec* exec, CuGraph graph, unsigned long long flags);
  CuResult (*launch)(CuGraphExec exec, CuStream stream);
  CuResult (*destroy_exec)(CuGraphExec exec);
  CuResult (*destroy_graph)(CuGraph graph);

  explicit GraphApi(const DynamicLibrary& driver) {
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(driver.find(name));
    };
    find("cuStreamCreate", stream_create);
    find("cuStreamDestroy_v2", stream_destroy);
    find("cuStreamBeginCapture_v2", begin_capture);
    find("cuStreamEndCapture", end_capture);
    find("cuGraphInstantiateWithFlags", instantiate);
    find("cuGraphLaunch", launch);
    find("cuGraphExecDestroy", destroy_exec);
    find("cuGraphDestroy", destroy_graph);
  }
};

constexpr int kCaptureThreadLocal = 1;

struct Contents {
  GroupLayout layout;
  std::vector<std::vector<int32_t>> integers;  // captured with the first, replayed with each
};

std::vector<int32_t> names(std::initializer_list<std::pair<int, int>> runs) {
  std::vector<int32_t> rows;
  for (const auto& [group, count] : runs)
    rows.insert(rows.end(), static_cast<size_t>(count), group);
  return rows;
}

std::vector<Contents> all_contents() {
  return {
      {GroupLayout::kRowIndices,
       {names({{0, 100}, {1, 28}}), names({{-1, 128}}),
        names({{3, 1}, {2, 63}, {-1, 4}, {0, 60}})}                                        },
      {GroupLayout::kEndOffsets,  {{0, 128, 128, 128}, {0, 0, 0, 0}, {31, 31, 100, 128}}   },
      {GroupLayout::kRowPointers, {{0, 0, 0, 64, 128}, {5, 9, 9, 20, 127}, {0, 0, 0, 0, 0}}},
      {GroupLayout::kMasked,      {{128, 0, 0, 0}, {1, 2, 3, 4}, {0, 77, 0, 128}}          },
  };
}

GemmProblem problem_of(GroupLayout layout, Arch arch) {
  GemmProblem problem;
  problem.arch = arch;
  problem.m = 128;
  problem.n = 256;
  problem.k = 512;
  problem.grouping.layout = layout;
  problem.grouping.groups = 4;
  return problem;
}

class GroupedGraphReplay : public testing::TestWithParam<Contents> {};

// For machines with a GPU and no compiler: the kernels are in the cache that this fills.
TEST_P(GroupedGraphReplay, CompilesWithoutAGpu) {
  const Result<std::shared_ptr<Context>> context = Context::create({});
  ASSERT_TRUE(context) << context.error().to_string();
  const Result<GemmPlan> plan = plan_gemm(problem_of(GetParam().layout, Arch::kSm90a));
  ASSERT_TRUE(plan) << plan.error().to_string();
  const Result<BuiltKernel> built = (*context)->builder().build(*plan, BuildMode::kCached);
  ASSERT_TRUE(built) << built.error().to_string();
}

TEST_P(GroupedGraphReplay, ReadsTheIntegersThatAreThere) {
  const char* gpu = std::getenv("JITGEMM_TEST_DEVICE");
  if (gpu == nullptr) GTEST_SKIP() << "needs a GPU: JITGEMM_TEST_DEVICE is not set";
  const Result<std::shared_ptr<Context>> context = Context::create({});
  ASSERT_TRUE(context) << context.error().to_string();
  const Result<Device*> opened = (*context)->device(gpu, std::nullopt);
  ASSERT_TRUE(opened) << opened.error().to_string();
  auto* device = dynamic_cast<CudaDevice*>(*opened);
  ASSERT_NE(device, nullptr) << "JITGEMM_TEST_DEVICE is no GPU";
  const Result<DynamicLibrary> driver = DynamicLibrary::open({device->api().path});
  ASSERT_TRUE(driver) << driver.error().to_string();
  const GraphApi graphs(*driver);
  ASSERT_EQ(device->api().context_push(device->context()), kCuSuccess);

  const Contents& contents = GetParam();
  const GemmProblem problem = problem_of(contents.layout, device->info().arch);
  const GroupedTensors tensors = *make_grouped_tensors(problem, InputKind::kUniformCodes, 1);
  const BlockScaledStorage storage = *lay_out(problem, tensors);
  const DeviceBuffer a = *DeviceBuffer::copy_of(*device, storage.a);
  const DeviceBuffer b = *DeviceBuffer::copy_of(*device, storage.b);
  const DeviceBuffer a_scales = *DeviceBuffer::copy_of(*device, storage.a_scales);
  const DeviceBuffer b_scales = *DeviceBuffer::copy_of(*device, storage.b_scales);
  const size_t integer_bytes = contents.integers[0].size() * sizeof(int32_t);
  const DeviceBuffer integers = *DeviceBuffer::create(*device, integer_bytes, 0);
  const size_t out_bytes = static_cast<size_t>(all_rows(problem) * problem.n) * 2;
  const DeviceBuffer out = *DeviceBuffer::create(*device, out_bytes, 0xff);
  const DeviceBuffer expected = *DeviceBuffer::create(*device, out_bytes, 0xff);
  GemmArguments arguments;
  arguments.a = a.address();
  arguments.b = b.address();
  arguments.a_scales = a_scales.address();
  arguments.b_scales = b_scales.address();
  arguments.group_rows = integers.address();
  arguments.out = out.address();
  arguments.m = problem.m;
  const auto prepared = (*context)->prepare(problem, {}, *device);
  ASSERT_TRUE(prepared) << prepared.error().to_string();
  const auto put_integers = [&](const std::vector<int32_t>& values) {
    ASSERT_TRUE(device->copy_to_device(integers.address(), values.data(), integer_bytes).ok());
  };

  put_integers(contents.integers[0]);
  CuStream stream = nullptr;
  CuGraph graph = nullptr;
  CuGraphExec exec = nullptr;
  ASSERT_EQ(graphs.stream_create(&stream, 0), kCuSuccess);
  ASSERT_EQ(graphs.begin_capture(stream, kCaptureThreadLocal), kCuSuccess);
  const Status launched = prepared->operation->launch(arguments, stream);
  ASSERT_EQ(graphs.end_capture(stream, &graph), kCuSuccess);
  ASSERT_TRUE(launched.ok()) << launched.message();
  ASSERT_EQ(graphs.instantiate(&exec, graph, 0), kCuSuccess);
  for (const std::vector<int32_t>& values : contents.integers) {
    put_integers(values);
    ASSERT_TRUE(device->fill(out.address(), 0xff, out_bytes).ok());
    ASSERT_TRUE(device->fill(expected.address(), 0xff, out_bytes).ok());
    ASSERT_TRUE(device->synchronize(nullptr).ok());
    ASSERT_EQ(graphs.launch(exec, stream), kCuSuccess);
    ASSERT_TRUE(device->synchronize(stream).ok());
    GemmArguments eager = arguments;
    eager.out = expected.address();
    ASSERT_TRUE(prepared->operation->launch(eager, nullptr).ok());
    ASSERT_TRUE(device->synchronize(nullptr).ok());
    const BitComparison bits = compare_bits(*out.read(), *expected.read(), 2);
    EXPECT_EQ(bits.differences, 0) << fmt::format("first integer {}", values[0]);
    EXPECT_TRUE(out.check_guards("out").ok());
  }
  graphs.destroy_exec(exec);
  graphs.destroy_graph(graph);
  graphs.stream_destroy(stream);
  CuContext popped = nullptr;
  device->api().context_pop(&popped);
}

INSTANTIATE_TEST_SUITE_P(Layouts, GroupedGraphReplay, testing::ValuesIn(all_contents()),
                         [](const auto& layout) {
                           return std::string(group_layout_name(layout.param.layout));
                         });

}  // namespace
}  // namespace jitgemm
