// SPDX-License-Identifier: Apache-2.0
// A machine without a compiler: the cache answers with what a compiler elsewhere has made.
#include "runtime/context.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace jitgemm {
namespace {

class WithoutCompiler : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "jitgemm-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    problem_.m = 7;
    problem_.n = 64;
    problem_.k = 128;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<Context> context(const std::string& nvrtc) const {
    ContextOptions options;
    options.cache_folder = folder_;
    options.nvrtc = nvrtc;
    Result<std::shared_ptr<Context>> made = Context::create(options);
    return made ? *made : nullptr;
  }
  Result<BuiltKernel> build(Context& context, BuildMode mode = BuildMode::kCached) const {
    return context.builder().build(plan_gemm(problem_).value(), mode);
  }

  std::string folder_;
  GemmProblem problem_;
};

TEST_F(WithoutCompiler, AKernelOfTheCacheIsAHit) {
  const Result<BuiltKernel> made = build(*context(""));
  ASSERT_TRUE(made) << made.error().to_string();
  const auto other = context("/nowhere/libnvrtc.so");
  const Result<BuiltKernel> found = build(*other);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_TRUE(found->from_cache);
  EXPECT_EQ(found->key, made->key);
  EXPECT_EQ(found->image->cubin, made->image->cubin);
  EXPECT_EQ(found->image->ptx, made->image->ptx);
}

TEST_F(WithoutCompiler, WhatTheCacheLacksNeedsACompiler) {
  ASSERT_TRUE(build(*context("")));
  const auto other = context("/nowhere/libnvrtc.so");
  problem_.k = 256;
  const Result<BuiltKernel> missing = build(*other);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), StatusCode::kNoCompiler);
  EXPECT_NE(missing.error().message().find("the cache has no sm_90a kernel"), std::string::npos)
      << missing.error().message();
  problem_.k = 128;
  EXPECT_EQ(build(*other, BuildMode::kCompile).error().code(), StatusCode::kNoCompiler)
      << "compiling is what was asked for";
}

}  // namespace
}  // namespace jitgemm
