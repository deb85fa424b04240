// SPDX-License-Identifier: Apache-2.0
#include "verify/quantize_file.h"

#include "verify/inputs.h"
#include "verify/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace jitgemm {
namespace {

class QuantizeFileTest : public testing::Test {
 protected:
  QuantizeFileTest() {
    folder_ = testing::TempDir() + "/quantize_file_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    input_ = folder_ + "/in";
    output_ = folder_ + "/out";
    std::vector<HostTensor> tensors;
    tensors.push_back(std::move(*make_normal_tensor("x", DType::kBF16, {5, 200}, 1, 1)));
    tensors.push_back(std::move(*make_normal_tensor("w", DType::kF32, {150, 200}, 1, 2)));
    tensors.push_back(make_host_tensor("bias", DType::kF32, {150}));
    tensors.push_back(make_host_tensor("ids", DType::kI32, {3, 3}));
    EXPECT_TRUE(write_safetensors(input_, tensors).ok());
  }
  ~QuantizeFileTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_, input_, output_;
};

TEST_F(QuantizeFileTest, WithoutANameEveryFloatMatrixIsConvertedAndTheRestListed) {
  const auto report = quantize_file(input_, output_, {});
  ASSERT_TRUE(report) << report.error().to_string();
  ASSERT_EQ(report->tensors.size(), 2U);
  EXPECT_EQ(report->left_out.size(), 2U);
  const auto file = SafetensorsFile::open(output_);
  ASSERT_TRUE(file);
  struct Case {
    const char* name;
    DType dtype;
    std::vector<int64_t> shape;
  };
  const Case cases[] = {
      {"x",        DType::kF8E4M3, {5, 200}  },
      {"x_scales", DType::kF32,    {1, 2}    },
      {"w",        DType::kF8E4M3, {150, 200}},
      {"w_scales", DType::kF32,    {2, 2}    },
  };
  EXPECT_EQ(file->header().entries.size(), std::size(cases));
  for (const Case& c : cases) {
    const SafetensorsEntry* entry = file->find(c.name);
    ASSERT_NE(entry, nullptr) << c.name;
    EXPECT_EQ(entry->dtype, c.dtype) << c.name;
    EXPECT_EQ(entry->shape, c.shape) << c.name;
  }
  for (const QuantizedTensorReport& tensor : report->tensors) {
    EXPECT_GT(tensor.relative_l2, 0.01);
    EXPECT_LT(tensor.relative_l2, 0.04);
  }
}

TEST_F(QuantizeFileTest, ItemsGiveTheOperandsOfAProduct) {
  QuantizeFileOptions options;
  options.items = {
      {"x", "a", OperandRole::kA},
      {"w", "b", OperandRole::kB},
  };
  options.group_n = 64;
  options.group_k = 32;
  options.scale_rule = ScaleRule::kPow2;
  options.scale_dtype = DType::kF8E8M0;
  options.code_dtype = DType::kF8E5M2;
  const auto report = quantize_file(input_, output_, options);
  ASSERT_TRUE(report) << report.error().to_string();
  const auto file = SafetensorsFile::open(output_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->find("a_scales")->shape, (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(file->find("b_scales")->shape, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(file->find("b_scales")->dtype, DType::kF8E8M0);
  EXPECT_EQ(file->find("b")->dtype, DType::kF8E5M2);
  EXPECT_EQ(file->header().metadata.at("scale_rule"), "pow2");
}

TEST_F(QuantizeFileTest, WhatCannotBeConvertedIsNamedAndNothingIsWritten) {
  struct Case {
    const char* source;
    const char* message;
  };
  const Case cases[] = {
      {"none", "no tensor 'none'"           },
      {"bias", "rank: expected 2, found 1"  },
      {"ids",  "dtype: expected F32, F16 or"},
  };
  for (const Case& c : cases) {
    QuantizeFileOptions options;
    options.items = {
        {c.source, "a", OperandRole::kA}
    };
    const auto report = quantize_file(input_, output_, options);
    ASSERT_FALSE(report) << c.source;
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument) << c.source;
    EXPECT_NE(report.error().message().find(c.message), std::string::npos)
        << report.error().message();
    EXPECT_FALSE(std::filesystem::exists(output_)) << c.source;
  }
  ASSERT_TRUE(write_safetensors(input_, {make_host_tensor("bias", DType::kF32, {4})}).ok());
  EXPECT_EQ(quantize_file(input_, output_, {}).error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace jitgemm
