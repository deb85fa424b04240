// SPDX-License-Identifier: Apache-2.0
// Two launches over one workspace, as a user of the C ABI meets them: an `a` of bf16, on the
// simulator of both archs, with integer data whose result is exact.
#include "bad_input.h"

#include <cstring>
#include <vector>

namespace jitgemm_abi {
namespace {

constexpr int64_t kRows = 70;
constexpr int64_t kColumns = 24;
constexpr int64_t kDepth = 256;

uint16_t bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);  // integers up to 256 and 448 are exact
}

// e4m3 of -4..4.
uint8_t e4m3(int value) {
  constexpr uint8_t kCodes[] = {0x00, 0x38, 0x40, 0x44, 0x48};
  return static_cast<uint8_t>(kCodes[value < 0 ? -value : value] | (value < 0 ? 0x80 : 0));
}

struct Data {
  std::vector<uint16_t> a = std::vector<uint16_t>(kRows * kDepth);
  std::vector<uint8_t> b = std::vector<uint8_t>(kColumns * kDepth);
  std::vector<float> b_scales = {2.0F, 3.0F};
  std::vector<float> expected = std::vector<float>(kRows * kColumns);

  Data() {
    // The first of each block of 128 is 448, which makes its scale 1 and codes the integers.
    const auto a_at = [](int64_t row, int64_t k) {
      return k % 128 == 0 ? 448 : static_cast<int>((row * 7 + k * 3) % 9) - 4;
    };
    const auto b_at = [](int64_t row, int64_t k) {
      return static_cast<int>((row * 5 + k * 2) % 9) - 4;
    };
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t k = 0; k < kDepth; ++k) {
        a[static_cast<size_t>(row * kDepth + k)] = bf16(static_cast<float>(a_at(row, k)));
      }
    }
    for (int64_t row = 0; row < kColumns; ++row) {
      for (int64_t k = 0; k < kDepth; ++k) {
        b[static_cast<size_t>(row * kDepth + k)] = e4m3(b_at(row, k));
      }
    }
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kColumns; ++j) {
        int64_t sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) sum += a_at(i, k) * b_at(j, k) * (k < 128 ? 2 : 3);
        expected[static_cast<size_t>(i * kColumns + j)] = static_cast<float>(sum);
      }
    }
  }
};

class Quantize : public testing::TestWithParam<int32_t> {
 protected:
  void SetUp() override {
    const jitgemm_context_options options = memory_options();
    JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context_));
    JITGEMM_ASSERT_OK(jitgemm_device_open(context_, "sim", GetParam(), &device_));
    problem_.m = kRows;
    problem_.n = kColumns;
    problem_.k = kDepth;
    problem_.a_dtype = JITGEMM_BF16;
    problem_.out_dtype = JITGEMM_F32;
    JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(device_, &problem_, &operation_));
    JITGEMM_ASSERT_OK(jitgemm_operation_workspace(operation_, &bytes_, &alignment_));
    JITGEMM_ASSERT_OK(jitgemm_buffer_create(device_, bytes_, &workspace_));
    out_.assign(kRows * kColumns, -1.0F);
  }
  void TearDown() override {
    jitgemm_buffer_release(workspace_);
    jitgemm_operation_release(operation_);
    jitgemm_device_release(device_);
    jitgemm_context_release(context_);
  }

  jitgemm_gemm_arguments arguments() {
    jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
    arguments.a = data_.a.data();
    arguments.b = data_.b.data();
    arguments.b_scales = data_.b_scales.data();
    arguments.out = out_.data();
    arguments.m = kRows;
    arguments.workspace = jitgemm_buffer_address(workspace_);
    arguments.workspace_bytes = bytes_;
    return arguments;
  }

  jitgemm_context* context_ = nullptr;
  jitgemm_device* device_ = nullptr;
  jitgemm_operation* operation_ = nullptr;
  jitgemm_buffer* workspace_ = nullptr;
  jitgemm_gemm_problem problem_ = JITGEMM_GEMM_PROBLEM_INIT;
  uint64_t bytes_ = 0;
  uint64_t alignment_ = 0;
  Data data_;
  std::vector<float> out_;
};

TEST_P(Quantize, GivesTheProductWhateverTheWorkspaceHeld) {
  EXPECT_EQ(bytes_, 17920U + kRows * 2 * 4);  // codes to a multiple of 256, fp32 scales
  EXPECT_EQ(alignment_, 256U);
  for (const uint8_t poison : {0x00, 0xff, 0x7f, 0x5a}) {
    const std::vector<uint8_t> bytes(bytes_, poison);
    JITGEMM_ASSERT_OK(jitgemm_buffer_write(workspace_, 0, bytes.data(), bytes.size()));
    std::fill(out_.begin(), out_.end(), -1.0F);
    const jitgemm_gemm_arguments given = arguments();
    JITGEMM_ASSERT_OK(jitgemm_gemm_launch(operation_, &given, nullptr));
    EXPECT_EQ(out_, data_.expected) << static_cast<int>(poison);
  }
}

TEST_P(Quantize, WorkspaceIsCheckedBeforeAnythingIsLaunched) {
  const struct {
    void (*change)(jitgemm_gemm_arguments& a);
    std::string message;
  } cases[] = {
      {[](jitgemm_gemm_arguments& a) { a.workspace = nullptr; },
       "workspace: expected an address, found NULL"                        },
      {[](jitgemm_gemm_arguments& a) { a.workspace = static_cast<char*>(a.workspace) + 16; },
       "workspace: expected an address that is a multiple of 256, found 0x"},
      {[](jitgemm_gemm_arguments& a) { --a.workspace_bytes; },
       "workspace_bytes: expected at least " + std::to_string(bytes_) + ", found " +
           std::to_string(bytes_ - 1)                                      },
      {[](jitgemm_gemm_arguments& a) { a.a_scales = a.b_scales; },
       "a_scales: expected NULL, since the operation makes them, found 0x" },
      {[](jitgemm_gemm_arguments& a) { a.a = static_cast<const char*>(a.a) + 1; },
       "a: expected an address that is a multiple of 16, found 0x"         },
  };
  for (const auto& row : cases) {
    jitgemm_gemm_arguments given = arguments();
    row.change(given);
    expect(jitgemm_gemm_launch(operation_, &given, nullptr), kInvalid, row.message.c_str(),
           row.message.c_str());
  }
  EXPECT_EQ(out_, std::vector<float>(kRows * kColumns, -1.0F)) << "nothing ran";
}

TEST_P(Quantize, PlanAndDescriptionListBothLaunches) {
  size_t length = 0;
  JITGEMM_ASSERT_OK(jitgemm_operation_describe(operation_, nullptr, &length));
  std::string text(length, '\0');
  JITGEMM_ASSERT_OK(jitgemm_operation_describe(operation_, text.data(), &length));
  for (const char* part : {"launch 1", "quantize_rows", "launch 2", "workspace  18480 bytes"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  uint64_t bytes = 0;
  JITGEMM_ASSERT_OK(jitgemm_operation_workspace_for(operation_, 1, &bytes, &alignment_));
  EXPECT_EQ(bytes, 256U + 8U);
  expect(jitgemm_operation_workspace_for(operation_, -1, &bytes, &alignment_), kInvalid,
         "m: expected 0 to 2147482623, found -1", "m");
}

INSTANTIATE_TEST_SUITE_P(Archs, Quantize,
                         testing::Values(JITGEMM_ARCH_SM_90A, JITGEMM_ARCH_SM_100A));

}  // namespace
}  // namespace jitgemm_abi
