// SPDX-License-Identifier: Apache-2.0
// One row for each condition that the C ABI checks of grouped products, beyond those of
// bad_input_test.cpp that both share: the call, the status and the message.
#include "abi_fixture.h"

#include <cstring>
#include <string>

namespace jitgemm_abi {
namespace {

using P = jitgemm_grouped_gemm_problem;
using A = jitgemm_grouped_gemm_arguments;
constexpr jitgemm_status kInvalid = JITGEMM_STATUS_INVALID_ARGUMENT;
constexpr jitgemm_status kUnsupported = JITGEMM_STATUS_UNSUPPORTED;
constexpr int64_t kM = 64;

P grouped_problem(int32_t layout) {
  P problem = JITGEMM_GROUPED_GEMM_PROBLEM_INIT;
  problem.m = kM;
  problem.n = 256;
  problem.k = 512;
  problem.groups = 4;
  problem.layout = layout;
  return problem;
}

A grouped_arguments(int64_t m) {
  A arguments = JITGEMM_GROUPED_GEMM_ARGUMENTS_INIT;
  arguments.a = address(0x10000000);
  arguments.b = address(0x20000000);
  arguments.a_scales = address(0x30000000);
  arguments.b_scales = address(0x40000000);
  arguments.out = address(0x50000000);
  arguments.group_rows = static_cast<const int32_t*>(address(0x60000000));
  arguments.m = m;
  return arguments;
}

class GroupedBadInput : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const jitgemm_context_options options = fake_options();
    JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
    JITGEMM_ASSERT_OK(jitgemm_device_open(context, "cuda:0", 0, &device));
    P problem = grouped_problem(JITGEMM_GROUPS_ROW_INDICES);
    JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_prepare(device, &problem, &indices));
    problem = grouped_problem(JITGEMM_GROUPS_MASKED);
    problem.m_policy = JITGEMM_M_ANY;
    problem.count_invalid = 1;
    problem.out_group_stride = kM * 256;
    JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_prepare(device, &problem, &masked));
    const jitgemm_gemm_problem dense_problem = small_problem(kM);
    JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(device, &dense_problem, &dense));
  }
  static void TearDownTestSuite() {
    jitgemm_operation_release(dense);
    jitgemm_operation_release(masked);
    jitgemm_operation_release(indices);
    jitgemm_device_release(device);
    jitgemm_context_release(context);
  }

  static jitgemm_context* context;
  static jitgemm_device* device;  // the fake driver's: launches are checked, not run
  static jitgemm_operation* indices;
  static jitgemm_operation* masked;
  static jitgemm_operation* dense;
};
jitgemm_context* GroupedBadInput::context;
jitgemm_device* GroupedBadInput::device;
jitgemm_operation* GroupedBadInput::indices;
jitgemm_operation* GroupedBadInput::masked;
jitgemm_operation* GroupedBadInput::dense;

void expect(jitgemm_status status, jitgemm_status expected, const char* message,
            const char* situation) {
  EXPECT_STREQ(jitgemm_status_name(status), jitgemm_status_name(expected)) << situation;
  if (status == JITGEMM_STATUS_OK) return;
  EXPECT_TRUE(std::strstr(jitgemm_last_error(), message) != nullptr)
      << situation << "\n  message:  " << jitgemm_last_error() << "\n  expected: " << message;
}

struct ProblemCase {
  const char* situation;
  int32_t layout;
  void (*change)(P& p);
  jitgemm_status status;
  const char* message;
};

constexpr int32_t kIndices = JITGEMM_GROUPS_ROW_INDICES;
constexpr int32_t kMaskedLayout = JITGEMM_GROUPS_MASKED;

const ProblemCase kProblemCases[] = {
    {"no layout",                           0,                           [](P&) {},                                                             kInvalid,     "layout: expected 1 to 4 (JITGEMM_GROUPS_*), found 0"                                },
    {"layout negative",                     -1,                          [](P&) {},                                                             kInvalid,     "layout: expected 1 to 4"                                                            },
    {"layout unknown",                      6,                           [](P&) {},                                                             kInvalid,     "layout: expected 1 to 4"                                                            },
    {"groups along k",                      JITGEMM_GROUPS_COLUMNS,      [](P&) {},                                                             kUnsupported, "layout: groups along k"                                                             },
    {"no groups",                           kIndices,                    [](P& p) { p.groups = 0; },                                            kInvalid,     "groups: expected 1 to 1048576"                                                      },
    {"groups negative",                     kIndices,                    [](P& p) { p.groups = -1; },                                           kInvalid,     "groups: expected 1"                                                                 },
    {"too many groups",                     kIndices,                    [](P& p) { p.groups = 1048577; },                                      kInvalid,     "groups: expected 1"                                                                 },
    {"expected_m negative",                 kIndices,                    [](P& p) { p.expected_m = -1; },                                       kInvalid,
     "expected_m: expected 0 to 2147482623, found -1"                                                                                                                                                                                              },
    {"expected_m too large",                kIndices,                    [](P& p) { p.expected_m = 2147482624; },                               kInvalid,
     "expected_m: expected 0 to 2147482623, found 2147482624"                                                                                                                                                                                      },
    {"m negative",                          kIndices,                    [](P& p) { p.m = -1; },                                                kInvalid,     "m: expected 0 to 2147482623"                                                        },
    {"b_group_stride short",                kIndices,                    [](P& p) { p.b_group_stride = 511; },                                  kInvalid,
     "b_group_stride: expected 0 (dense) or 512 to"                                                                                                                                                                                                },
    {"b_scale_group_stride negative",       kIndices,                    [](P& p) { p.b_scale_group_stride = -4; },                             kInvalid,
     "b_scale_group_stride: expected 0 (dense) or 1 to"                                                                                                                                                                                            },
    {"a_group_stride of shared rows",       kIndices,                    [](P& p) { p.a_group_stride = 65536; },                                kInvalid,
     "a_group_stride: expected 0, since groups of layout row_indices share all rows"                                                                                                                                                               },
    {"out_group_stride of shared rows",     JITGEMM_GROUPS_END_OFFSETS,
     [](P& p) { p.out_group_stride = 65536; },                                                                                                  kInvalid,     "out_group_stride: expected 0"                                                       },
    {"a_scale_group_stride of shared rows", JITGEMM_GROUPS_ROW_POINTERS,
     [](P& p) { p.a_scale_group_stride = 65536; },                                                                                              kInvalid,     "a_scale_group_stride: expected 0"                                                   },
    {"a_group_stride short",                kMaskedLayout,               [](P& p) { p.a_group_stride = 511; },                                  kInvalid,
     "a_group_stride: expected 0 (dense) or 512 to"                                                                                                                                                                                                },
    {"out_group_stride short",              kMaskedLayout,               [](P& p) { p.out_group_stride = 255; },                                kInvalid,
     "out_group_stride: expected 0 (dense) or 256 to"                                                                                                                                                                                              },
    {"out groups overlap",                  kMaskedLayout,               [](P& p) { p.out_group_stride = 63 * 256; },                           kInvalid,
     "out_group_stride: expected groups of 64 rows that do not overlap, found 16128"                                                                                                                                                               },
    {"a_scale_group_stride negative",       kMaskedLayout,               [](P& p) { p.a_scale_group_stride = -1; },
     kInvalid,                                                                                                                                                "a_scale_group_stride: expected 0 (dense) or 1 to"                                   },
    {"row_alignment negative",              kIndices,                    [](P& p) { p.row_alignment = -8; },                                    kInvalid,
     "row_alignment: expected 0 to 65536, found -8"                                                                                                                                                                                                },
    {"row_alignment too large",             kIndices,                    [](P& p) { p.row_alignment = 65537; },                                 kInvalid,
     "row_alignment: expected 0 to 65536, found 65537"                                                                                                                                                                                             },
    {"row_alignment of masked",             kMaskedLayout,               [](P& p) { p.row_alignment = 8; },                                     kInvalid,
     "row_alignment: expected 0 for layout masked, found 8"                                                                                                                                                                                        },
    {"zero_ungrouped no flag",              kIndices,                    [](P& p) { p.zero_ungrouped = 2; },                                    kInvalid,
     "zero_ungrouped: expected 0 or 1, found 2"                                                                                                                                                                                                    },
    {"count_invalid no flag",               kIndices,                    [](P& p) { p.count_invalid = -1; },                                    kInvalid,
     "count_invalid: expected 0 or 1, found -1"                                                                                                                                                                                                    },
    {"batch_invariant no flag",             kIndices,                    [](P& p) { p.batch_invariant = 3; },                                   kInvalid,
     "batch_invariant: expected 0 or 1, found 3"                                                                                                                                                                                                   },
    {"packed fp32 scales",                  kIndices,                    [](P& p) { p.a_scale_major = JITGEMM_SCALE_MAJOR_PACKED; },
     kInvalid,                                                                                                                                                "a_scale_major: packed scales are words of four F8_E8M0 bytes, found scale_dtype F32"},
    {"packed fp32 scales of b",             kIndices,
     [](P& p) { p.b_scale_major = JITGEMM_SCALE_MAJOR_PACKED; },                                                                                kInvalid,     "b_scale_major: packed"                                                              },
    {"a_dtype of scales",                   kIndices,                    [](P& p) { p.a_dtype = JITGEMM_F8_E8M0; },                             kUnsupported,
     "a_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, found F8_E8M0"                                                                                                                                                                            },
    {"a of 16 bits, b not",                 kIndices,                    [](P& p) { p.a_dtype = JITGEMM_BF16; },                                kUnsupported,
     "b_dtype: expected BF16 like a_dtype, found F8_E4M3"                                                                                                                                                                                          },
    {"b of other 16 bits",                  kIndices,
     [](P& p) { p.a_dtype = JITGEMM_BF16, p.b_dtype = JITGEMM_F16; },                                                                           kUnsupported,
     "b_dtype: expected BF16 like a_dtype, found F16"                                                                                                                                                                                              },
    {"b no dtype beside 16 bits",           kIndices,                    [](P& p) { p.a_dtype = JITGEMM_BF16, p.b_dtype = 99; },
     kInvalid,                                                                                                                                                "b_dtype: 99 is not a dtype"                                                         },
    {"k too large for 16 bits",             kIndices,
     [](P& p) { p.a_dtype = p.b_dtype = JITGEMM_BF16, p.k = 1073741312; },                                                                      kInvalid,
     "k: expected 1 to 1073741311 for operands of 16 bits"                                                                                                                                                                                         },
    {"b too large",                         kIndices,                    [](P& p) { p.groups = 1 << 20, p.b_group_stride = int64_t{1} << 50; },
     kInvalid,                                                                                                                                                "b: expected at most"                                                                },
    {"b_scales too large",                  kIndices,
     [](P& p) { p.groups = 1 << 20, p.b_scale_group_stride = int64_t{1} << 50; },                                                               kInvalid,
     "b_scales: expected at most"                                                                                                                                                                                                                  },
    {"a too large",                         kMaskedLayout,
     [](P& p) { p.groups = 1 << 20, p.a_group_stride = int64_t{1} << 50; },                                                                     kInvalid,
     "a: expected at most"                                                                                                                                                                                                                         },
    {"out too large",                       kMaskedLayout,
     [](P& p) { p.groups = 1 << 20, p.out_group_stride = int64_t{1} << 50; },                                                                   kInvalid,
     "out: expected at most"                                                                                                                                                                                                                       },
    {"a_scales too large",                  kMaskedLayout,
     [](P& p) { p.groups = 1 << 20, p.a_scale_group_stride = int64_t{1} << 50; },                                                               kInvalid,
     "a_scales: expected at most"                                                                                                                                                                                                                  },
    {"struct_size zero",                    kIndices,                    [](P& p) { p.struct_size = 0; },                                       kInvalid,
     "problem.struct_size: expected 192 (use the _INIT macro), found 0"                                                                                                                                                                            },
};

TEST_F(GroupedBadInput, ProblemsAreRefusedByEveryFunctionThatTakesOne) {
  for (const ProblemCase& row : kProblemCases) {
    P problem = grouped_problem(row.layout);
    row.change(problem);
    size_t length = 0;
    expect(jitgemm_grouped_gemm_plan(&problem, JITGEMM_ARCH_SM_90A, nullptr, &length), row.status,
           row.message, row.situation);
    expect(jitgemm_grouped_gemm_compile(context, &problem, JITGEMM_ARCH_SM_100A), row.status,
           row.message, row.situation);
    jitgemm_operation* operation = indices;
    expect(jitgemm_grouped_gemm_prepare(device, &problem, &operation), row.status, row.message,
           row.situation);
    EXPECT_EQ(operation, nullptr) << row.situation;
    expect(jitgemm_grouped_gemm_find(device, &problem, nullptr, &operation), row.status,
           row.message, row.situation);
  }
}

struct ArgumentsCase {
  const char* situation;
  bool of_masked;
  void (*change)(A& a);
  const char* message;
};

const ArgumentsCase kArgumentsCases[] = {
    {"m of another problem",                false, [](A& a) { a.m = 63; },                  "m: expected 64"                         },
    {"m negative",                          true,  [](A& a) { a.m = -1; },                  "m: expected 0 to 2147482623, found -1"  },
    {"m that makes groups overlap",         true,  [](A& a) { a.m = 65; },
     "out_group_stride: expected groups of 65 rows that do not overlap"                                                              },
    {"no a",                                false, [](A& a) { a.a = nullptr; },             "a: expected an address, found NULL"     },
    {"no b",                                false, [](A& a) { a.b = nullptr; },             "b: expected an address, found NULL"     },
    {"no a_scales",                         false, [](A& a) { a.a_scales = nullptr; },      "a_scales: expected an address"          },
    {"no b_scales",                         false, [](A& a) { a.b_scales = nullptr; },      "b_scales: expected an address"          },
    {"no out",                              false, [](A& a) { a.out = nullptr; },           "out: expected an address, found NULL"   },
    {"no group_rows",                       false, [](A& a) { a.group_rows = nullptr; },
     "group_rows: expected an address, found NULL"                                                                                   },
    {"group_rows misaligned",               false,
     [](A& a) { a.group_rows = static_cast<const int32_t*>(address(0x60000002)); },
     "group_rows: expected an address that is a multiple of 4"                                                                       },
    {"no invalid_count",                    true,  [](A& a) { a.invalid_count = nullptr; },
     "invalid_count: expected an address, found NULL"                                                                                },
    {"invalid_count misaligned",            true,
     [](A& a) { a.invalid_count = static_cast<uint32_t*>(address(0x70000001)); },
     "invalid_count: expected an address that is a multiple of 4"                                                                    },
    {"invalid_count that nobody asked for", false,
     [](A& a) { a.invalid_count = static_cast<uint32_t*>(address(0x70000000)); },
     "invalid_count: expected NULL without count_invalid"                                                                            },
    {"unknown flag",                        false, [](A& a) { a.flags = 4; },
     "arguments.flags: expected JITGEMM_LAUNCH_*"                                                                                    },
    {"reserved",                            false, [](A& a) { a.reserved = 1; },            "arguments.reserved: expected 0, found 1"},
    {"struct_size zero",                    false, [](A& a) { a.struct_size = 0; },
     "arguments.struct_size: expected 96 (use the _INIT macro), found 0"                                                             },
};

TEST_F(GroupedBadInput, ArgumentsAreRefused) {
  for (const ArgumentsCase& row : kArgumentsCases) {
    A arguments = grouped_arguments(kM);
    if (row.of_masked) arguments.invalid_count = static_cast<uint32_t*>(address(0x70000000));
    row.change(arguments);
    expect(jitgemm_grouped_gemm_launch(row.of_masked ? masked : indices, &arguments, nullptr),
           kInvalid, row.message, row.situation);
  }
}

TEST_F(GroupedBadInput, ScalesOf16BitOperandsAreRefused) {
  P problem = grouped_problem(kIndices);
  problem.a_dtype = problem.b_dtype = JITGEMM_BF16;
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_prepare(device, &problem, &operation));
  A arguments = grouped_arguments(kM);
  expect(jitgemm_grouped_gemm_launch(operation, &arguments, nullptr), kInvalid,
         "a_scales: expected NULL, since operands of 16 bits have no scales", "a_scales");
  arguments.a_scales = nullptr;
  expect(jitgemm_grouped_gemm_launch(operation, &arguments, nullptr), kInvalid,
         "b_scales: expected NULL, since operands of 16 bits have no scales", "b_scales");
  arguments.b_scales = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_launch(operation, &arguments, nullptr));
  jitgemm_operation_release(operation);
}

TEST_F(GroupedBadInput, GoodArgumentsAreLaunched) {
  A arguments = grouped_arguments(kM);
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_launch(indices, &arguments, nullptr));
  arguments.invalid_count = static_cast<uint32_t*>(address(0x70000000));
  for (const int64_t m : {int64_t{0}, int64_t{1}, kM}) {
    arguments.m = m;
    JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_launch(masked, &arguments, nullptr));
  }
}

TEST_F(GroupedBadInput, OperationsOfTheOtherKindAreRefused) {
  const A arguments = grouped_arguments(kM);
  const jitgemm_gemm_arguments dense_arguments = arguments_for(kM);
  expect(jitgemm_grouped_gemm_launch(dense, &arguments, nullptr), kInvalid,
         "operation: expected one of a grouped problem", "launch");
  expect(jitgemm_grouped_gemm_check_scales(dense, &arguments), kInvalid,
         "operation: expected one of a grouped problem", "check_scales");
  expect(jitgemm_gemm_launch(indices, &dense_arguments, nullptr), kInvalid,
         "operation: expected one of a problem that is not grouped", "dense launch");
  expect(jitgemm_gemm_check_scales(indices, &dense_arguments), kInvalid,
         "operation: expected one of a problem that is not grouped", "dense check_scales");
}

TEST_F(GroupedBadInput, NullIsNamed) {
  const P problem = grouped_problem(kIndices);
  const A arguments = grouped_arguments(kM);
  jitgemm_operation* operation = nullptr;
  size_t length = 0;
  const char* const null = "expected an address, found NULL";
  expect(jitgemm_grouped_gemm_plan(nullptr, 900, nullptr, &length), kInvalid, null, "plan");
  expect(jitgemm_grouped_gemm_plan(&problem, 900, nullptr, nullptr), kInvalid, null, "length");
  expect(jitgemm_grouped_gemm_compile(nullptr, &problem, 900), kInvalid, null, "context");
  expect(jitgemm_grouped_gemm_compile(context, nullptr, 900), kInvalid, null, "compile");
  expect(jitgemm_grouped_gemm_prepare(nullptr, &problem, &operation), kInvalid, null, "device");
  expect(jitgemm_grouped_gemm_prepare(device, nullptr, &operation), kInvalid, null, "prepare");
  expect(jitgemm_grouped_gemm_prepare(device, &problem, nullptr), kInvalid, null, "operation");
  expect(jitgemm_grouped_gemm_find(nullptr, &problem, nullptr, &operation), kInvalid, null, "find");
  expect(jitgemm_grouped_gemm_find(device, nullptr, nullptr, &operation), kInvalid, null, "find");
  expect(jitgemm_grouped_gemm_find(device, &problem, nullptr, nullptr), kInvalid, null, "find");
  expect(jitgemm_grouped_gemm_launch(nullptr, &arguments, nullptr), kInvalid, null, "launch");
  expect(jitgemm_grouped_gemm_launch(indices, nullptr, nullptr), kInvalid, null, "arguments");
  expect(jitgemm_grouped_gemm_check_scales(nullptr, &arguments), kInvalid, null, "check_scales");
  expect(jitgemm_grouped_gemm_check_scales(indices, nullptr), kInvalid, null, "arguments");
}

TEST_F(GroupedBadInput, WhatWasNotPreparedIsNotFound) {
  P problem = grouped_problem(kIndices);
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_find(device, &problem, nullptr, &operation));
  EXPECT_EQ(operation, indices);
  jitgemm_operation_release(operation);
  problem.groups = 5;
  expect(jitgemm_grouped_gemm_find(device, &problem, nullptr, &operation), JITGEMM_STATUS_NOT_READY,
         "layout=row_indices groups=5", "other groups");
}

TEST_F(GroupedBadInput, ScalesThatBreakThePromiseAreNamedWithTheirGroup) {
  P problem = grouped_problem(kMaskedLayout);
  problem.m = 3;
  problem.scale_values = JITGEMM_SCALE_VALUES_POWER_OF_TWO;
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_prepare(device, &problem, &operation));
  float a_scales[4 * 3 * 4];
  float b_scales[4 * 2 * 4];
  for (float& scale : a_scales) scale = 0.5F;
  for (float& scale : b_scales) scale = 4.0F;
  A arguments = grouped_arguments(3);
  arguments.a_scales = a_scales;
  arguments.b_scales = b_scales;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_check_scales(operation, &arguments));
  b_scales[3 * 8 + 1 * 4 + 2] = 3.0F;
  expect(jitgemm_grouped_gemm_check_scales(operation, &arguments), kInvalid,
         "b_scales of group 3[1, 2]: expected a power of two from 2^-127 to 2^127, found 3",
         "b_scales");
  a_scales[2 * 12 + 1 * 4 + 3] = -1.0F;
  expect(jitgemm_grouped_gemm_check_scales(operation, &arguments), kInvalid,
         "a_scales of group 2[1, 3]: expected a power of two from 2^-127 to 2^127, found -1",
         "a_scales");
  a_scales[2 * 12 + 1 * 4 + 3] = 0x1p-127F;
  b_scales[3 * 8 + 1 * 4 + 2] = 0x1p127F;
  JITGEMM_ASSERT_OK(jitgemm_grouped_gemm_check_scales(operation, &arguments));
  a_scales[2 * 12 + 1 * 4 + 3] = 0x1p-128F;  // no E8M0 byte stands for it
  expect(jitgemm_grouped_gemm_check_scales(operation, &arguments), kInvalid,
         "a_scales of group 2[1, 3]: expected a power of two from 2^-127 to 2^127, found", "small");
  jitgemm_operation_release(operation);
}

}  // namespace
}  // namespace jitgemm_abi
