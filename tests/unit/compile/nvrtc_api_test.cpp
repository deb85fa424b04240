// SPDX-License-Identifier: Apache-2.0
#include "compile/nvrtc_api.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <string>

namespace jitgemm {
namespace {

TEST(NvrtcApi, TheBuiltInsBesideItAreOpenSoThatNoLoaderPathIsNeeded) {
  const char* path = std::getenv("JITGEMM_NVRTC");
  const Result<NvrtcApi> api = NvrtcApi::open(path != nullptr ? path : "");
  ASSERT_TRUE(api) << api.error().message();
  const std::string name = fmt::format("libnvrtc-builtins.so.{}.{}", api->major, api->minor);
  const auto beside = std::filesystem::path(api->path).parent_path() / name;
  if (!std::filesystem::exists(beside)) GTEST_SKIP() << "there is no " << beside;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(handle, nullptr) << "NVRTC would look for " << name << " where the loader looks";
  if (handle != nullptr) dlclose(handle);
}

TEST(NvrtcApi, AMissingFileIsNoCompilerAndSaysWhatToDo) {
  const Result<NvrtcApi> api = NvrtcApi::open("/nowhere/libnvrtc.so.13");
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code(), StatusCode::kNoCompiler);
  EXPECT_NE(api.error().message().find("/nowhere/libnvrtc.so.13"), std::string::npos);
  EXPECT_NE(api.error().message().find("JITGEMM_NVRTC"), std::string::npos);
}

}  // namespace
}  // namespace jitgemm
