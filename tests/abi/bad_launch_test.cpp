// SPDX-License-Identifier: Apache-2.0
// One row for each condition on the arguments of a launch.
#include "bad_input.h"

namespace jitgemm_abi {
namespace {

struct LaunchCase {
  const char* situation;
  bool any;  // m at run time, a_scales column-major with a_scale_ld 4096
  void (*change)(jitgemm_gemm_arguments& a);
  const char* message;
};

using A = jitgemm_gemm_arguments;
const LaunchCase kLaunchCases[] = {
    {"a missing",                        false, [](A& a) { a.a = nullptr; },                    "a: expected an address, found NULL"     },
    {"b missing",                        false, [](A& a) { a.b = nullptr; },                    "b: expected an address, found NULL"     },
    {"a_scales missing",                 false, [](A& a) { a.a_scales = nullptr; },
     "a_scales: expected an address, found NULL"                                                                                         },
    {"b_scales missing",                 false, [](A& a) { a.b_scales = nullptr; },
     "b_scales: expected an address, found NULL"                                                                                         },
    {"out missing",                      false, [](A& a) { a.out = nullptr; },                  "out: expected an address, found NULL"   },
    {"a misaligned",                     false, [](A& a) { a.a = address(0x10000008); },
     "a: expected an address that is a multiple of 16, found 0x10000008"                                                                 },
    {"b misaligned",                     false, [](A& a) { a.b = address(0x20000001); },
     "b: expected an address that is a multiple of 16, found 0x20000001"                                                                 },
    {"a_scales misaligned",              false, [](A& a) { a.a_scales = address(0x30000002); },
     "a_scales: expected an address that is a multiple of 4, found 0x30000002"                                                           },
    {"b_scales misaligned",              false, [](A& a) { a.b_scales = address(0x40000001); },
     "b_scales: expected an address that is a multiple of 4, found 0x40000001"                                                           },
    {"out misaligned",                   false, [](A& a) { a.out = address(0x50000004); },
     "out: expected an address that is a multiple of 16, found 0x50000004"                                                               },
    {"m smaller",                        false, [](A& a) { a.m = 63; },
     "m: expected 64 (the kernel is exact in m), found 63"                                                                               },
    {"m zero under exact",               false, [](A& a) { a.m = 0; },
     "m: expected 64 (the kernel is exact in m), found 0"                                                                                },
    {"m larger",                         false, [](A& a) { a.m = 65; },
     "m: expected 64 (the kernel is exact in m), found 65"                                                                               },
    {"m negative",                       true,  [](A& a) { a.m = -1; },                         "m: expected 0 to 2147482623, found -1"  },
    {"m beyond 32 bits",                 true,  [](A& a) { a.m = (int64_t{1} << 32) + 64; },
     "m: expected 0 to 2147482623, found 4294967360"                                                                                     },
    {"m beyond a_scale_ld",              true,  [](A& a) { a.m = 4097; },
     "m: expected at most a_scale_ld = 4096, found 4097"                                                                                 },
    {"unknown flag",                     false, [](A& a) { a.flags = 6; },
     "arguments.flags: expected JITGEMM_LAUNCH_* (1, 2), found 0x6"                                                                      },
    {"reserved",                         false, [](A& a) { a.reserved = 3; },                   "arguments.reserved: expected 0, found 3"},
    {"struct_size zero",                 false, [](A& a) { a.struct_size = 0; },
     "arguments.struct_size: expected 80 (use the _INIT macro), found 0"                                                                 },
    {"struct_size absurd",               false, [](A& a) { a.struct_size = SIZE_MAX; },
     "arguments.struct_size: expected 80 (use the _INIT macro), found 18446744073709551615"                                              },
    {"struct_size before the addresses", false, [](A& a) { a.struct_size = 8; },
     "m: expected 64 (the kernel is exact in m), found 0"                                                                                },
};

TEST_F(BadInput, LaunchArgumentsAreRefused) {
  for (const LaunchCase& row : kLaunchCases) {
    jitgemm_gemm_arguments arguments = arguments_for(kM);
    row.change(arguments);
    const jitgemm_operation* operation = row.any ? handles.any : handles.exact;
    expect(jitgemm_gemm_launch(operation, &arguments, address(0x70)),
           JITGEMM_STATUS_INVALID_ARGUMENT, row.message, row.situation);
    expect(jitgemm_gemm_check_scales(operation, &arguments), JITGEMM_STATUS_INVALID_ARGUMENT,
           row.message, row.situation);
  }
}

TEST_F(BadInput, AddressesThatAreNotTheDevicesAreRefusedOnRequest) {
  const struct {
    void* a;
    void* out;
    const char* message;
  } cases[] = {
      {address(0x7f0000000000), address(0x50000000),
       "a: 0x7f0000000000 is not an address that cuda:0 knows; is it host memory?"},
      {address(0x10000000),     address(0x66000000),
       "out: 0x66000000 is memory of cuda:1, expected cuda:0"                     },
  };
  for (const auto& row : cases) {
    jitgemm_gemm_arguments arguments = arguments_for(kM);
    arguments.a = row.a;
    arguments.out = row.out;
    EXPECT_EQ(jitgemm_gemm_launch(handles.exact, &arguments, nullptr), JITGEMM_STATUS_OK)
        << "nobody asked";
    arguments.flags = JITGEMM_LAUNCH_CHECK_ADDRESSES;
    expect(jitgemm_gemm_launch(handles.exact, &arguments, nullptr), kInvalid, row.message,
           "checked");
  }
  jitgemm_gemm_arguments arguments = arguments_for(kM);
  arguments.flags = JITGEMM_LAUNCH_CHECK_ADDRESSES;
  JITGEMM_ASSERT_OK(jitgemm_gemm_launch(handles.exact, &arguments, nullptr));
}

TEST_F(BadInput, NothingIsLaunchedForNoRows) {
  jitgemm_gemm_arguments arguments = JITGEMM_GEMM_ARGUMENTS_INIT;
  EXPECT_EQ(jitgemm_gemm_launch(handles.any, &arguments, nullptr), JITGEMM_STATUS_OK);
}

TEST_F(BadInput, ScaleThatBreaksThePromiseIsNamed) {
  float a_scales[4 * 4096];
  float b_scales[2 * 4];
  for (float& scale : a_scales) scale = 0.25F;
  for (float& scale : b_scales) scale = 2.0F;
  jitgemm_gemm_arguments arguments = arguments_for(kM);
  arguments.a_scales = a_scales;
  arguments.b_scales = b_scales;
  JITGEMM_ASSERT_OK(jitgemm_gemm_check_scales(handles.any, &arguments));
  b_scales[1 * 4 + 2] = 3.0F;
  expect(jitgemm_gemm_check_scales(handles.any, &arguments), JITGEMM_STATUS_INVALID_ARGUMENT,
         "b_scales[1, 2]: expected a power of two from 2^-127 to 2^127, found 3", "b_scales");
  a_scales[3 * 4096 + 5] = -1.0F;
  expect(jitgemm_gemm_check_scales(handles.any, &arguments), JITGEMM_STATUS_INVALID_ARGUMENT,
         "a_scales[5, 3]: expected a power of two from 2^-127 to 2^127, found -1", "a_scales");
}

}  // namespace
}  // namespace jitgemm_abi
