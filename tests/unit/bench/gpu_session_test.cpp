// SPDX-License-Identifier: Apache-2.0
// The calls of a timed run, against a driver without a GPU: every unit takes 1 ms and no kernel
// runs, so that outputs keep the NaN that they were filled with.
#include "bench/gpu_session.h"

#include "bench/gpu_stage.h"
#include "bench/shape_run.h"

#include <gtest/gtest.h>

namespace jitgemm::bench {
namespace {

class GpuSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    ContextOptions options;
    options.driver = JITGEMM_FAKE_CUDA;
    context_ = std::move(*Context::create(options));
    device_ = *context_->device("cuda:0", std::nullopt);
    auto session = GpuSession::create(*context_, *device_);
    if (!session && session.error().code() == StatusCode::kNoCompiler) {
      GTEST_SKIP() << session.error().message();
    }
    ASSERT_TRUE(session) << session.error().to_string();
    session_ = std::move(*session);
  }

  std::shared_ptr<Context> context_;
  Device* device_ = nullptr;
  std::unique_ptr<GpuSession> session_;
};

TEST_F(GpuSessionTest, AGraphIsOneUnit) {
  GpuStage stage(*session_);
  int launches = 0;
  stage.add([&](CuStream) {
    ++launches;
    return ok_status();
  });
  const auto captured = session_->capture([&](CuStream) {
    launches += 100;
    return ok_status();
  });
  ASSERT_TRUE(captured) << captured.error().to_string();
  EXPECT_EQ(launches, 100);
  const auto one = stage.time_one(0);
  ASSERT_TRUE(one);
  EXPECT_EQ(*one, 1000);
  EXPECT_EQ(launches, 101);
}

TEST_F(GpuSessionTest, UnitsRunBackToBackAndTheStateIsReadOnce) {
  GpuStage stage(*session_);
  int launches = 0;
  stage.add([&](CuStream) {
    ++launches;
    return ok_status();
  });
  DeviceState state;
  ASSERT_TRUE(stage.time_many(0, 50, &state));
  EXPECT_EQ(launches, 50);
}

TEST_F(GpuSessionTest, AFailedLaunchEndsTheCaptureAndIsTheError) {
  const auto captured =
      session_->capture([](CuStream) { return Status(StatusCode::kDeviceError, "no launch"); });
  ASSERT_FALSE(captured);
  EXPECT_EQ(captured.error().message(), "no launch");
}

TEST_F(GpuSessionTest, AContenderThatWritesNothingIsFoundOutAndNotTimed) {
  GemmProblem problem;
  problem.m = 5;
  problem.n = 128;
  problem.k = 256;
  const auto plan = plan_operation(problem, {132, {}});
  ASSERT_TRUE(plan);
  const auto shape = run_shape(*session_, {*plan}, nullptr, {});
  ASSERT_TRUE(shape) << shape.error().to_string();
  ASSERT_EQ(shape->contenders.size(), 1u);
  const ContenderResult& ours = shape->contenders[0];
  EXPECT_EQ(ours.info.name, "jitgemm");
  ASSERT_TRUE(ours.check);
  EXPECT_FALSE(ours.check->passed);
  EXPECT_NE(ours.not_timed.find("wrong result"), std::string::npos);
  EXPECT_TRUE(ours.rested_us.empty());
  EXPECT_EQ(shape->sets, 20);
  EXPECT_FALSE(shape->single_call);
}

TEST_F(GpuSessionTest, AMissingLibraryIsUnsupported) {
  const auto library = CublasLt::create(*session_, "/nowhere/libcublasLt.so");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code(), StatusCode::kUnsupported);
}

TEST(GpuSessionAlone, TheSimulatorIsNoGpu) {
  const auto context = std::move(*Context::create({}));
  const auto session = GpuSession::create(*context, **context->device("sim", std::nullopt));
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace jitgemm::bench
