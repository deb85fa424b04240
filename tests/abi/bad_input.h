// SPDX-License-Identifier: Apache-2.0
// What the tests of refused calls share: handles of the fake driver, whose launches are checked and
// not run, and the comparison of a status and its message.
#pragma once

#include "abi_fixture.h"

#include <cstring>
#include <string>

namespace jitgemm_abi {

struct Handles {
  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;  // the fake driver's: launches are checked, not run
  jitgemm_operation* exact = nullptr;
  jitgemm_operation* any = nullptr;
  jitgemm_buffer* buffer = nullptr;
};

inline constexpr int64_t kM = 64;

class BadInput : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const jitgemm_context_options options = fake_options();
    JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &handles.context));
    JITGEMM_ASSERT_OK(jitgemm_device_open(handles.context, "cuda:0", 0, &handles.device));
    jitgemm_gemm_problem problem = small_problem(kM);
    JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(handles.device, &problem, &handles.exact));
    problem.m_policy = JITGEMM_M_ANY;
    problem.a_scale_major = JITGEMM_SCALE_MAJOR_COLUMN;
    problem.a_scale_ld = 4096;
    JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(handles.device, &problem, &handles.any));
    JITGEMM_ASSERT_OK(jitgemm_buffer_create(handles.device, 100, &handles.buffer));
  }
  static void TearDownTestSuite() {
    jitgemm_buffer_release(handles.buffer);
    jitgemm_operation_release(handles.any);
    jitgemm_operation_release(handles.exact);
    jitgemm_device_release(handles.device);
    jitgemm_context_release(handles.context);
  }
  static Handles handles;
};
inline Handles BadInput::handles;

inline void expect(jitgemm_status status, jitgemm_status expected, const char* message,
                   const char* situation) {
  EXPECT_STREQ(jitgemm_status_name(status), jitgemm_status_name(expected)) << situation;
  if (status == JITGEMM_STATUS_OK) return;
  EXPECT_TRUE(std::strstr(jitgemm_last_error(), message) != nullptr)
      << situation << "\n  message:  " << jitgemm_last_error() << "\n  expected: " << message;
}

inline constexpr jitgemm_status kInvalid = JITGEMM_STATUS_INVALID_ARGUMENT;
inline constexpr jitgemm_status kUnsupported = JITGEMM_STATUS_UNSUPPORTED;

}  // namespace jitgemm_abi
