// SPDX-License-Identifier: Apache-2.0
// One row for each condition that the C ABI checks: the call, the status and the message, which
// names the parameter, what was expected and what was found.
#include "abi_fixture.h"

#include <cstring>
#include <string>

namespace jitgemm_abi {
namespace {

struct Handles {
  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;  // the fake driver's: launches are checked, not run
  jitgemm_operation* exact = nullptr;
  jitgemm_operation* any = nullptr;
  jitgemm_buffer* buffer = nullptr;
};

constexpr int64_t kM = 64;

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
Handles BadInput::handles;

void expect(jitgemm_status status, jitgemm_status expected, const char* message,
            const char* situation) {
  EXPECT_STREQ(jitgemm_status_name(status), jitgemm_status_name(expected)) << situation;
  if (status == JITGEMM_STATUS_OK) return;
  EXPECT_TRUE(std::strstr(jitgemm_last_error(), message) != nullptr)
      << situation << "\n  message:  " << jitgemm_last_error() << "\n  expected: " << message;
}

// ---- NULL, in every parameter that may not be -------------------------------------------------

struct NullCase {
  const char* parameter;
  jitgemm_status (*call)(const Handles& h);
};

TEST_F(BadInput, NullIsNamed) {
  static const jitgemm_gemm_problem problem = small_problem(kM);
  static const jitgemm_gemm_arguments arguments = arguments_for(kM);
  static jitgemm_device* device;
  static jitgemm_buffer* buffer;
  static jitgemm_operation* operation;
  static size_t length;
  static uint64_t number;
  static char byte;
  const NullCase cases[] = {
      {"context",     [](const Handles&) { return jitgemm_context_create(nullptr, nullptr); }          },
      {"device",
       [](const Handles& h) { return jitgemm_device_open(h.context, "sim", 0, nullptr); }              },
      {"context",     [](const Handles&) { return jitgemm_device_open(nullptr, "sim", 0, &device); }   },
      {"name",
       [](const Handles& h) { return jitgemm_device_open(h.context, nullptr, 0, &device); }            },
      {"device",      [](const Handles&) { return jitgemm_device_synchronize(nullptr, nullptr); }      },
      {"buffer",      [](const Handles& h) { return jitgemm_buffer_create(h.device, 1, nullptr); }     },
      {"device",      [](const Handles&) { return jitgemm_buffer_create(nullptr, 1, &buffer); }        },
      {"buffer",      [](const Handles&) { return jitgemm_buffer_write(nullptr, 0, &byte, 1); }        },
      {"source",      [](const Handles& h) { return jitgemm_buffer_write(h.buffer, 0, nullptr, 1); }   },
      {"buffer",      [](const Handles&) { return jitgemm_buffer_read(nullptr, 0, &byte, 1); }         },
      {"destination",
       [](const Handles& h) { return jitgemm_buffer_read(h.buffer, 0, nullptr, 1); }                   },
      {"problem",     [](const Handles&) { return jitgemm_gemm_plan(nullptr, 900, nullptr, &length); } },
      {"length",      [](const Handles&) { return jitgemm_gemm_plan(&problem, 900, nullptr, nullptr); }},
      {"text",
       [](const Handles&) {
         length = 10;
         return jitgemm_gemm_plan(&problem, 900, nullptr, &length);
       }                                                                                               },
      {"context",     [](const Handles&) { return jitgemm_gemm_compile(nullptr, &problem, 900); }      },
      {"problem",     [](const Handles& h) { return jitgemm_gemm_compile(h.context, nullptr, 900); }   },
      {"device",
       [](const Handles&) { return jitgemm_gemm_prepare(nullptr, &problem, &operation); }              },
      {"problem",
       [](const Handles& h) { return jitgemm_gemm_prepare(h.device, nullptr, &operation); }            },
      {"operation",
       [](const Handles& h) { return jitgemm_gemm_prepare(h.device, &problem, nullptr); }              },
      {"device",
       [](const Handles&) { return jitgemm_gemm_find(nullptr, &problem, nullptr, &operation); }        },
      {"problem",
       [](const Handles& h) { return jitgemm_gemm_find(h.device, nullptr, nullptr, &operation); }      },
      {"operation",
       [](const Handles& h) { return jitgemm_gemm_find(h.device, &problem, nullptr, nullptr); }        },
      {"operation",
       [](const Handles&) { return jitgemm_operation_workspace(nullptr, &number, &number); }           },
      {"bytes",
       [](const Handles& h) { return jitgemm_operation_workspace(h.exact, nullptr, &number); }         },
      {"alignment",
       [](const Handles& h) { return jitgemm_operation_workspace(h.exact, &number, nullptr); }         },
      {"operation",
       [](const Handles&) { return jitgemm_operation_describe(nullptr, nullptr, &length); }            },
      {"length",
       [](const Handles& h) { return jitgemm_operation_describe(h.exact, nullptr, nullptr); }          },
      {"operation",
       [](const Handles&) { return jitgemm_gemm_launch(nullptr, &arguments, nullptr); }                },
      {"arguments",
       [](const Handles& h) { return jitgemm_gemm_launch(h.exact, nullptr, nullptr); }                 },
      {"operation",   [](const Handles&) { return jitgemm_gemm_check_scales(nullptr, &arguments); }    },
      {"arguments",   [](const Handles& h) { return jitgemm_gemm_check_scales(h.exact, nullptr); }     },
  };
  int number_of_case = 0;
  for (const NullCase& row : cases) {
    const std::string message = std::string(row.parameter) + ": expected an address, found NULL";
    const std::string situation = "case " + std::to_string(number_of_case++);
    expect(row.call(handles), JITGEMM_STATUS_INVALID_ARGUMENT, message.c_str(), situation.c_str());
  }
}

TEST_F(BadInput, NullHandlesAreReleasedAndReadWithoutHarm) {
  jitgemm_context_release(nullptr);
  jitgemm_device_release(nullptr);
  jitgemm_buffer_release(nullptr);
  jitgemm_operation_release(nullptr);
  EXPECT_EQ(jitgemm_buffer_address(nullptr), nullptr);
  EXPECT_EQ(jitgemm_device_arch(nullptr), 0);
}

// ---- The problem ------------------------------------------------------------------------------

struct ProblemCase {
  const char* situation;
  void (*change)(jitgemm_gemm_problem& p);
  jitgemm_status status;
  const char* message;
};

constexpr jitgemm_status kInvalid = JITGEMM_STATUS_INVALID_ARGUMENT;
constexpr jitgemm_status kUnsupported = JITGEMM_STATUS_UNSUPPORTED;

using P = jitgemm_gemm_problem;
const ProblemCase kProblemCases[] = {
    {"m negative",                     [](P& p) { p.m = -1; },                                          kInvalid,     "m: expected 0 to 2147482623, found -1"},
    {"m too large",                    [](P& p) { p.m = 2147482624; },                                  kInvalid,
     "m: expected 0 to 2147482623, found 2147482624"                                                                                                         },
    {"n zero",                         [](P& p) { p.n = 0; },                                           kInvalid,     "n: expected 1 to 2147482623, found 0" },
    {"n negative",                     [](P& p) { p.n = -5; },                                          kInvalid,     "n: expected 1 to 2147482623, found -5"},
    {"n too large",                    [](P& p) { p.n = int64_t{1} << 40; },                            kInvalid,
     "n: expected 1 to 2147482623, found 1099511627776"                                                                                                      },
    {"k zero",                         [](P& p) { p.k = 0; },                                           kInvalid,     "k: expected 1 to 2147482623, found 0" },
    {"k negative",                     [](P& p) { p.k = INT64_MIN; },                                   kInvalid,
     "k: expected 1 to 2147482623, found -9223372036854775808"                                                                                               },
    {"k too large",                    [](P& p) { p.k = INT64_MAX; },                                   kInvalid,
     "k: expected 1 to 2147482623, found 9223372036854775807"                                                                                                },
    {"a_dtype no dtype",               [](P& p) { p.a_dtype = 77; },                                    kInvalid,     "a_dtype: 77 is not a dtype"           },
    {"a_dtype negative",               [](P& p) { p.a_dtype = -1; },                                    kInvalid,     "a_dtype: -1 is not a dtype"           },
    {"a_dtype not fp8",                [](P& p) { p.a_dtype = JITGEMM_BF16; },                          kUnsupported,
     "a_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, found BF16"                                                                                         },
    {"a_dtype e8m0",                   [](P& p) { p.a_dtype = JITGEMM_F8_E8M0; },                       kUnsupported,
     "a_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, found F8_E8M0"                                                                                      },
    {"b_dtype not fp8",                [](P& p) { p.b_dtype = JITGEMM_F32; },                           kUnsupported,
     "b_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, found F32"                                                                                          },
    {"b_dtype no dtype",               [](P& p) { p.b_dtype = 99; },                                    kInvalid,     "b_dtype: 99 is not a dtype"           },
    {"scale_dtype f16",                [](P& p) { p.scale_dtype = JITGEMM_F16; },                       kUnsupported,
     "scale_dtype: block_scaled_mm takes F32 or F8_E8M0, found F16"                                                                                          },
    {"scale_dtype no dtype",           [](P& p) { p.scale_dtype = 8; },                                 kInvalid,
     "scale_dtype: 8 is not a dtype"                                                                                                                         },
    {"out_dtype fp8",                  [](P& p) { p.out_dtype = JITGEMM_F8_E4M3; },                     kUnsupported,
     "out_dtype: block_scaled_mm takes F32, BF16 or F16, found F8_E4M3"                                                                                      },
    {"out_dtype no dtype",             [](P& p) { p.out_dtype = 1000; },                                kInvalid,
     "out_dtype: 1000 is not a dtype"                                                                                                                        },
    {"group_n negative",               [](P& p) { p.group_n = -1; },                                    kInvalid,
     "group_n: expected at least 1, found -1"                                                                                                                },
    {"group_k negative",               [](P& p) { p.group_k = -32; },                                   kInvalid,
     "group_k: expected at least 1, found -32"                                                                                                               },
    {"group_k odd",                    [](P& p) { p.group_k = 100; },                                   kUnsupported,
     "group_k: supported are the multiples of 32, found 100"                                                                                                 },
    {"a_scale_major",                  [](P& p) { p.a_scale_major = 3; },                               kInvalid,
     "a_scale_major: expected 0 to 2, found 3"                                                                                                               },
    {"b_scale_major",                  [](P& p) { p.b_scale_major = -1; },                              kInvalid,
     "b_scale_major: expected 0 to 2, found -1"                                                                                                              },
    {"scale_values",                   [](P& p) { p.scale_values = 9; },                                kInvalid,
     "scale_values: expected 0 to 1, found 9"                                                                                                                },
    {"m_policy",                       [](P& p) { p.m_policy = 3; },                                    kInvalid,     "m_policy: expected 0 to 2, found 3"   },
    {"lda short",                      [](P& p) { p.lda = 511; },                                       kInvalid,
     "lda: expected 0 (dense) or 512 (k) to 68719476736, found 511"                                                                                          },
    {"lda negative",                   [](P& p) { p.lda = -512; },                                      kInvalid,
     "lda: expected 0 (dense) or 512 (k) to 68719476736, found -512"                                                                                         },
    {"lda long",                       [](P& p) { p.lda = (int64_t{1} << 36) + 1; },                    kInvalid,
     "lda: expected 0 (dense) or 512 (k) to 68719476736, found 68719476737"                                                                                  },
    {"ldb short",                      [](P& p) { p.ldb = 1; },                                         kInvalid,
     "ldb: expected 0 (dense) or 512 (k) to 68719476736, found 1"                                                                                            },
    {"ldo short",                      [](P& p) { p.ldo = 255; },                                       kInvalid,
     "ldo: expected 0 (dense) or 256 (n) to 68719476736, found 255"                                                                                          },
    {"a_scale_ld short, row-major",    [](P& p) { p.a_scale_ld = 3; },                                  kInvalid,
     "a_scale_ld: expected 0 (dense) or 4 (ceil(k / group_k)) to 68719476736, found 3"                                                                       },
    {"a_scale_ld short, column-major",
     [](P& p) { p.a_scale_major = JITGEMM_SCALE_MAJOR_COLUMN, p.a_scale_ld = 63; },                     kInvalid,
     "a_scale_ld: expected 0 (dense) or 64 (m) to 68719476736, found 63"                                                                                     },
    {"b_scale_ld short, row-major",    [](P& p) { p.b_scale_ld = 3; },                                  kInvalid,
     "b_scale_ld: expected 0 (dense) or 4 (ceil(k / group_k)) to 68719476736, found 3"                                                                       },
    {"b_scale_ld short, column-major",
     [](P& p) { p.b_scale_major = JITGEMM_SCALE_MAJOR_COLUMN, p.b_scale_ld = 1; },                      kInvalid,
     "b_scale_ld: expected 0 (dense) or 2 (ceil(n / group_n)) to 68719476736, found 1"                                                                       },
    {"alignment negative",             [](P& p) { p.alignment = -16; },                                 kInvalid,
     "alignment: expected a power of two, found -16"                                                                                                         },
    {"alignment no power of two",      [](P& p) { p.alignment = 24; },                                  kInvalid,
     "alignment: expected a power of two, found 24"                                                                                                          },
    {"batch_invariant",                [](P& p) { p.batch_invariant = 2; },                             kInvalid,
     "batch_invariant: expected 0 or 1, found 2"                                                                                                             },
    {"a overflows",                    [](P& p) { p.m = 2000000000, p.lda = int64_t{1} << 36; },        kInvalid,
     "a: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                           },
    {"b overflows",                    [](P& p) { p.n = 2000000000, p.ldb = int64_t{1} << 36; },        kInvalid,
     "b: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                           },
    {"out overflows",                  [](P& p) { p.m = 2000000000, p.ldo = int64_t{1} << 36; },        kInvalid,
     "out: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                           },
    {"a_scales overflow",              [](P& p) { p.m = 2000000000, p.a_scale_ld = int64_t{1} << 36; }, kInvalid,
     "a_scales: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                           },
    {"b_scales overflow",
     [](P& p) { p.n = 2000000000, p.group_n = 1, p.b_scale_ld = int64_t{1} << 36; },                    kInvalid,
     "b_scales: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                           },
    {"struct_size zero",               [](P& p) { p.struct_size = 0; },                                 kInvalid,
     "problem.struct_size: expected 120 (use the _INIT macro), found 0"                                                                                      },
    {"struct_size tiny",               [](P& p) { p.struct_size = 7; },                                 kInvalid,
     "problem.struct_size: expected 120 (use the _INIT macro), found 7"                                                                                      },
    {"struct_size absurd",             [](P& p) { p.struct_size = 4097; },                              kInvalid,
     "problem.struct_size: expected 120 (use the _INIT macro), found 4097"                                                                                   },
    {"struct_size without a size",     [](P& p) { p.struct_size = 8; },                                 kInvalid,
     "n: expected 1 to 2147482623, found 0"                                                                                                                  },
};

TEST_F(BadInput, ProblemsAreRefusedByEveryFunctionThatTakesOne) {
  for (const ProblemCase& row : kProblemCases) {
    jitgemm_gemm_problem problem = small_problem(kM);
    row.change(problem);
    size_t length = 0;
    expect(jitgemm_gemm_plan(&problem, JITGEMM_ARCH_SM_90A, nullptr, &length), row.status,
           row.message, row.situation);
    expect(jitgemm_gemm_compile(handles.context, &problem, JITGEMM_ARCH_SM_100A), row.status,
           row.message, row.situation);
    jitgemm_operation* operation = handles.exact;
    expect(jitgemm_gemm_prepare(handles.device, &problem, &operation), row.status, row.message,
           row.situation);
    EXPECT_EQ(operation, nullptr) << row.situation;
    expect(jitgemm_gemm_find(handles.device, &problem, nullptr, &operation), row.status,
           row.message, row.situation);
  }
}

TEST(MClassBound, ClassesCoverEveryMOnce) {
  int64_t classes = 0;
  for (int64_t m = 1; m <= 16384; m = jitgemm_m_class_bound(m) + 1) {
    EXPECT_GE(jitgemm_m_class_bound(m), m);
    EXPECT_EQ(jitgemm_m_class_bound(jitgemm_m_class_bound(m)), jitgemm_m_class_bound(m));
    ++classes;
  }
  EXPECT_LE(classes, 32);
  EXPECT_EQ(jitgemm_m_class_bound(16384), 16384);
  for (const int64_t m : {INT64_MIN, int64_t{0}}) EXPECT_EQ(jitgemm_m_class_bound(m), 1);
  EXPECT_GE(jitgemm_m_class_bound(INT64_MAX), INT32_MAX);
}

TEST_F(BadInput, ShorterStructTakesDefaultsAndLongerOneMustBeZero) {
  jitgemm_gemm_problem problem = small_problem(kM);
  problem.m_policy = 55;  // beyond the size: not looked at
  problem.struct_size = offsetof(jitgemm_gemm_problem, m_policy);
  size_t length = 0;
  JITGEMM_ASSERT_OK(jitgemm_gemm_plan(&problem, JITGEMM_ARCH_SM_90A, nullptr, &length));

  struct {
    jitgemm_gemm_problem known;
    uint64_t unknown;
  } newer = {small_problem(kM), 0};
  newer.known.struct_size = sizeof(newer);
  length = 0;
  JITGEMM_ASSERT_OK(jitgemm_gemm_plan(&newer.known, JITGEMM_ARCH_SM_90A, nullptr, &length));
  newer.unknown = 1;
  length = 0;
  expect(jitgemm_gemm_plan(&newer.known, JITGEMM_ARCH_SM_90A, nullptr, &length),
         JITGEMM_STATUS_UNSUPPORTED,
         "problem: a field that this version (0.1.0) does not know is set", "longer struct");
}

TEST_F(BadInput, ArchWithoutKernelsIsUnsupported) {
  const jitgemm_gemm_problem problem = small_problem(kM);
  size_t length = 0;
  for (const int32_t arch : {-1, 0, 800, 890, 1100, 1200}) {
    const std::string message =
        "arch: " + std::to_string(arch) +
        " has no kernels; supported are 900 (sm_90a), 1000 (sm_100a), 1030 (sm_103a)";
    expect(jitgemm_gemm_plan(&problem, arch, nullptr, &length), JITGEMM_STATUS_UNSUPPORTED,
           message.c_str(), "plan");
    expect(jitgemm_gemm_compile(handles.context, &problem, arch), JITGEMM_STATUS_UNSUPPORTED,
           message.c_str(), "compile");
    if (arch == JITGEMM_ARCH_OF_DEVICE) continue;
    jitgemm_device* device = nullptr;
    expect(jitgemm_device_open(handles.context, "sim", arch, &device), JITGEMM_STATUS_UNSUPPORTED,
           message.c_str(), "device_open");
  }
}

// ---- The arguments of a launch ----------------------------------------------------------------

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
     "arguments.flags: expected JITGEMM_LAUNCH_* (1), found 0x6"                                                                         },
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
         "b_scales[1, 2]: expected a positive power of two, found 3", "b_scales");
  a_scales[3 * 4096 + 5] = -1.0F;
  expect(jitgemm_gemm_check_scales(handles.any, &arguments), JITGEMM_STATUS_INVALID_ARGUMENT,
         "a_scales[5, 3]: expected a positive power of two, found -1", "a_scales");
}

// ---- Buffers ----------------------------------------------------------------------------------

TEST_F(BadInput, BufferAccessBeyondTheEndIsRefused) {
  char bytes[128] = {};
  const struct {
    size_t offset;
    size_t bytes;
    const char* message;
  } cases[] = {
      {0,        101,      "bytes: 101 at offset 0 are beyond the buffer's 100"                 },
      {101,      0,        "bytes: 0 at offset 101 are beyond the buffer's 100"                 },
      {100,      1,        "bytes: 1 at offset 100 are beyond the buffer's 100"                 },
      {8,        SIZE_MAX, "bytes: 18446744073709551615 at offset 8 are beyond the buffer's 100"},
      {SIZE_MAX, 2,        "bytes: 2 at offset 18446744073709551615 are beyond the buffer's 100"},
  };
  for (const auto& row : cases) {
    expect(jitgemm_buffer_write(handles.buffer, row.offset, bytes, row.bytes),
           JITGEMM_STATUS_INVALID_ARGUMENT, row.message, "write");
    expect(jitgemm_buffer_read(handles.buffer, row.offset, bytes, row.bytes),
           JITGEMM_STATUS_INVALID_ARGUMENT, row.message, "read");
  }
  JITGEMM_ASSERT_OK(jitgemm_buffer_write(handles.buffer, 100, nullptr, 0));
}

TEST_F(BadInput, BufferThatNoHostHasIsOutOfMemory) {
  jitgemm_device* device = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_device_open(handles.context, "sim", 0, &device));
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2}) {
    jitgemm_buffer* buffer = nullptr;
    const std::string message =
        "the host has no " + std::to_string(bytes) + " bytes for a simulated buffer";
    expect(jitgemm_buffer_create(device, bytes, &buffer), JITGEMM_STATUS_OUT_OF_MEMORY,
           message.c_str(), "sim");
    EXPECT_EQ(buffer, nullptr);
  }
  jitgemm_device_release(device);
}

// ---- Options ----------------------------------------------------------------------------------

TEST(BadOptions, AreRefused) {
  using O = jitgemm_context_options;
  const struct {
    const char* situation;
    void (*change)(O& o);
    const char* message;
  } cases[] = {
      {"cache_mode",                [](O& o) { o.cache_mode = "sometimes"; },
       "cache_mode: expected rw, ro or memory, found 'sometimes'"                                                       },
      {"log_level",                 [](O& o) { o.log_level = "loud"; },
       "log level: expected off, error, warning, info, debug, found 'loud'"                                             },
      {"sim_numerics",              [](O& o) { o.sim_numerics = "ampere"; },
       "numerics: expected auto, exact, hopper or blackwell, found 'ampere'"                                            },
      {"sim_seed",                  [](O& o) { o.sim_seed = "12x"; },         "sim_seed: expected a number, found '12x'"},
      {"sim_threads",               [](O& o) { o.sim_threads = "-1"; },
       "sim_threads: expected a number, found '-1'"                                                                     },
      {"sim_sanitize",              [](O& o) { o.sim_sanitize = "yes"; },
       "sim_sanitize: expected 0 or 1, found 'yes'"                                                                     },
      {"sim_sanitize out of range", [](O& o) { o.sim_sanitize = "2"; },
       "sim_sanitize: expected 0 or 1, found '2'"                                                                       },
      {"struct_size",               [](O& o) { o.struct_size = 1; },
       "options.struct_size: expected 104 (use the _INIT macro), found 1"                                               },
  };
  for (const auto& row : cases) {
    jitgemm_context_options options = memory_options();
    row.change(options);
    jitgemm_context* context = nullptr;
    expect(jitgemm_context_create(&options, &context), JITGEMM_STATUS_INVALID_ARGUMENT, row.message,
           row.situation);
    EXPECT_EQ(context, nullptr) << row.situation;
  }
}

// ---- Devices, drivers and compilers -----------------------------------------------------------

// Environment of the fake driver for one scope; the driver reads it when a device is opened.
class FakeSetting {
 public:
  FakeSetting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~FakeSetting() { unsetenv(name_); }
  FakeSetting(const FakeSetting&) = delete;
  FakeSetting& operator=(const FakeSetting&) = delete;

 private:
  const char* name_;
};

jitgemm_status open_device(const jitgemm_context_options& options, const char* name, int32_t arch) {
  jitgemm_context* context = nullptr;
  EXPECT_EQ(jitgemm_context_create(&options, &context), JITGEMM_STATUS_OK);
  jitgemm_device* device = nullptr;
  const jitgemm_status status = jitgemm_device_open(context, name, arch, &device);
  EXPECT_EQ(device != nullptr, status == JITGEMM_STATUS_OK);
  jitgemm_device_release(device);
  jitgemm_context_release(context);
  return status;
}

TEST(BadDevice, NameIsRefused) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:99999999999",
                           "CUDA:0", "sim:0", "simulator"}) {
    const std::string message =
        std::string("device: expected 'sim' or 'cuda:N', found '") + name + "'";
    expect(open_device(fake_options(), name, 0), JITGEMM_STATUS_INVALID_ARGUMENT, message.c_str(),
           name);
  }
}

TEST(BadDevice, OrdinalBeyondTheDevicesIsRefused) {
  expect(open_device(fake_options(), "cuda:1", 0), JITGEMM_STATUS_INVALID_ARGUMENT,
         "device: expected cuda:0 to cuda:0, found cuda:1 (1 devices)", "cuda:1");
}

TEST(BadDevice, CapabilityWithoutKernelsIsUnsupported) {
  for (const char* capability : {"8.0", "8.9", "10.1", "11.0", "12.0"}) {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_CAPABILITY", capability);
    const std::string message = std::string("Fake GPU: arch: a device of compute capability ") +
                                capability +
                                " has no kernels; supported are sm_90a, sm_100a, sm_103a";
    expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_UNSUPPORTED, message.c_str(),
           capability);
  }
}

TEST(BadDevice, ArchThatIsNotTheDevicesOwnIsUnsupported) {
  expect(open_device(fake_options(), "cuda:0", JITGEMM_ARCH_SM_100A), JITGEMM_STATUS_UNSUPPORTED,
         "device: cuda:0 is sm_90a, a kernel for sm_100a does not run there", "sm_100a on sm_90");
  const FakeSetting setting("JITGEMM_FAKE_CUDA_CAPABILITY", "10.3");
  expect(open_device(fake_options(), "cuda:0", JITGEMM_ARCH_SM_100A), JITGEMM_STATUS_UNSUPPORTED,
         "device: cuda:0 is sm_103a, a kernel for sm_100a does not run there", "sm_100a on sm_103");
}

TEST(BadDevice, DriverThatCannotBeOpenedIsNamed) {
  jitgemm_context_options options = memory_options();
  options.driver_library = "/nonexistent/libcuda.so.1";
  expect(open_device(options, "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER,
         "the CUDA driver could not be opened (no library could be loaded: "
         "/nonexistent/libcuda.so.1: cannot open shared object file",
         "no such file");
  options.driver_library = "libm.so.6";
  expect(open_device(options, "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER,
         "is too old: it lacks cuInit, cuDriverGetVersion", "not a driver");
  const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", "cuInit=100");
  expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER,
         "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected", "no device");
}

TEST(Environment, NamesTheDriverUnlessAnOptionDoes) {
  setenv("JITGEMM_DRIVER", JITGEMM_FAKE_CUDA, 1);
  jitgemm_context_options options = memory_options();
  EXPECT_EQ(open_device(options, "cuda:0", JITGEMM_ARCH_SM_90A), JITGEMM_STATUS_OK);
  options.driver_library = "/nonexistent/libcuda.so.1";
  EXPECT_EQ(open_device(options, "cuda:0", 0), JITGEMM_STATUS_NO_DRIVER);
  unsetenv("JITGEMM_DRIVER");
}

TEST(BadDevice, FailuresWhileOpeningNameTheCall) {
  const struct {
    const char* fail;
    const char* message;
  } cases[] = {
      {"cuDeviceGetCount=999",         "cuDeviceGetCount: CUDA_ERROR_UNKNOWN (999): unknown error"},
      {"cuDeviceGet=101",              "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"             },
      {"cuDeviceGetName=1",            "cuDeviceGetName: CUDA_ERROR_INVALID_VALUE (1)"            },
      {"cuDeviceGetAttribute=1",       "cuDeviceGetAttribute: CUDA_ERROR_INVALID_VALUE (1)"       },
      {"cuDriverGetVersion=1",         "cuDriverGetVersion: CUDA_ERROR_INVALID_VALUE (1)"         },
      {"cuDevicePrimaryCtxRetain=777",
       "cuDevicePrimaryCtxRetain: unknown error (777): no description"                            },
  };
  for (const auto& row : cases) {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", row.fail);
    expect(open_device(fake_options(), "cuda:0", 0), JITGEMM_STATUS_DEVICE_ERROR, row.message,
           row.fail);
  }
}

// A context and device of the fake driver under one setting.
class FakeDevice {
 public:
  FakeDevice() {
    const jitgemm_context_options options = fake_options();
    EXPECT_EQ(jitgemm_context_create(&options, &context), JITGEMM_STATUS_OK);
    EXPECT_EQ(jitgemm_device_open(context, "cuda:0", 0, &device), JITGEMM_STATUS_OK)
        << jitgemm_last_error();
  }
  ~FakeDevice() {
    jitgemm_device_release(device);
    jitgemm_context_release(context);
  }
  FakeDevice(const FakeDevice&) = delete;
  FakeDevice& operator=(const FakeDevice&) = delete;

  jitgemm_context* context = nullptr;
  jitgemm_device* device = nullptr;
};

TEST(DriverFailure, OfMemoryAndStreamsIsReported) {
  const FakeSetting setting(
      "JITGEMM_FAKE_CUDA_FAIL",
      "cuMemcpyHtoD_v2=700,cuMemcpyDtoH_v2=700,cuStreamSynchronize=700,cuStreamIsCapturing=400");
  const FakeDevice fake;
  jitgemm_buffer* buffer = nullptr;
  char byte = 0;
  JITGEMM_ASSERT_OK(jitgemm_buffer_create(fake.device, 1, &buffer));
  expect(jitgemm_buffer_write(buffer, 0, &byte, 1), JITGEMM_STATUS_DEVICE_ERROR,
         "cuMemcpyHtoD: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "write");
  expect(jitgemm_buffer_read(buffer, 0, &byte, 1), JITGEMM_STATUS_DEVICE_ERROR,
         "cuMemcpyDtoH: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "read");
  expect(jitgemm_device_synchronize(fake.device, nullptr), JITGEMM_STATUS_DEVICE_ERROR,
         "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "synchronize");
  jitgemm_buffer_release(buffer);
  const jitgemm_gemm_problem problem = small_problem(kM);
  jitgemm_operation* operation = nullptr;
  expect(jitgemm_gemm_find(fake.device, &problem, address(0x70), &operation),
         JITGEMM_STATUS_DEVICE_ERROR, "cuStreamIsCapturing: CUDA_ERROR_INVALID_HANDLE (400)",
         "find");
}

TEST(DriverFailure, OfAllocationIsOutOfMemory) {
  const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", "cuMemAlloc_v2=2");
  const FakeDevice fake;
  jitgemm_buffer* buffer = nullptr;
  expect(jitgemm_buffer_create(fake.device, 16, &buffer), JITGEMM_STATUS_OUT_OF_MEMORY,
         "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory", "buffer_create");
  EXPECT_EQ(buffer, nullptr);
}

TEST(DriverFailure, OfLoadingIsReportedByPrepareAndLeavesNothingPrepared) {
  const struct {
    const char* fail;
    const char* message;
  } cases[] = {
      {"cuLibraryLoadData=200",   "cuLibraryLoadData: CUDA_ERROR_INVALID_IMAGE (200)"    },
      {"cuLibraryGetKernel=500",  "cuLibraryGetKernel: CUDA_ERROR_NOT_FOUND (500)"       },
      {"cuKernelSetAttribute=1",
       "cuKernelSetAttribute(max dynamic shared size): "
       "CUDA_ERROR_INVALID_VALUE (1)"                                                    },
      {"cuKernelGetFunction=201", "cuKernelGetFunction: CUDA_ERROR_INVALID_CONTEXT (201)"},
      {"cuFuncLoad=999",          "cuFuncLoad: CUDA_ERROR_UNKNOWN (999)"                 },
  };
  char folder[] = "/tmp/jitgemm_abi_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  jitgemm_context_options options = fake_options();
  options.cache_mode = "rw";
  options.cache_folder = folder;  // one compile for all rows
  for (const auto& row : cases) {
    const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", row.fail);
    jitgemm_context* context = nullptr;
    jitgemm_device* device = nullptr;
    jitgemm_operation* operation = nullptr;
    JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
    JITGEMM_ASSERT_OK(jitgemm_device_open(context, "cuda:0", 0, &device));
    const jitgemm_gemm_problem problem = small_problem(kM);
    expect(jitgemm_gemm_prepare(device, &problem, &operation), JITGEMM_STATUS_DEVICE_ERROR,
           row.message, row.fail);
    expect(jitgemm_gemm_find(device, &problem, nullptr, &operation), JITGEMM_STATUS_NOT_READY,
           "problem: expected one that was prepared on this device, found block_scaled_mm sm_90a "
           "m=64 n=256 k=512",
           row.fail);
    jitgemm_device_release(device);
    jitgemm_context_release(context);
  }
  const std::string remove = std::string("rm -rf ") + folder;
  EXPECT_EQ(std::system(remove.c_str()), 0);
}

TEST(DriverFailure, OfLaunchIsReported) {
  const FakeSetting setting("JITGEMM_FAKE_CUDA_FAIL", "cuLaunchKernelEx=700");
  const FakeDevice fake;
  const jitgemm_gemm_problem problem = small_problem(kM);
  jitgemm_operation* operation = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_gemm_prepare(fake.device, &problem, &operation));
  const jitgemm_gemm_arguments arguments = arguments_for(kM);
  expect(jitgemm_gemm_launch(operation, &arguments, nullptr), JITGEMM_STATUS_DEVICE_ERROR,
         "cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "launch");
  jitgemm_operation_release(operation);
}

TEST(NotReady, FindSaysWhetherTheStreamIsBeingCaptured) {
  const jitgemm_gemm_problem problem = small_problem(kM);
  const char* message =
      "problem: expected one that was prepared on this device, found block_scaled_mm sm_90a m=64 "
      "n=256 k=512";
  jitgemm_operation* operation = nullptr;
  {
    const FakeDevice fake;
    expect(jitgemm_gemm_find(fake.device, &problem, address(0x70), &operation),
           JITGEMM_STATUS_NOT_READY, message, "not capturing");
  }
  const FakeSetting setting("JITGEMM_FAKE_CUDA_CAPTURE", "1");
  const FakeDevice fake;
  expect(jitgemm_gemm_find(fake.device, &problem, address(0x70), &operation),
         JITGEMM_STATUS_CAPTURE_NOT_READY, message, "capturing");
  expect(jitgemm_gemm_find(fake.device, &problem, nullptr, &operation), JITGEMM_STATUS_NOT_READY,
         message, "the default stream is never captured");
  EXPECT_EQ(operation, nullptr);
}

TEST(NoCompiler, IsNamedWhenAKernelIsNeededAndNotBefore) {
  jitgemm_context_options options = fake_options();
  options.nvrtc_library = "/nonexistent/libnvrtc.so";
  jitgemm_context* context = nullptr;
  JITGEMM_ASSERT_OK(jitgemm_context_create(&options, &context));
  const jitgemm_gemm_problem problem = small_problem(kM);
  size_t length = 0;
  JITGEMM_ASSERT_OK(jitgemm_gemm_plan(&problem, JITGEMM_ARCH_SM_90A, nullptr, &length));
  expect(jitgemm_gemm_compile(context, &problem, JITGEMM_ARCH_SM_90A), JITGEMM_STATUS_NO_COMPILER,
         "/nonexistent/libnvrtc.so", "compile");
  jitgemm_context_release(context);
}

TEST(StatusNames, AreThoseOfTheHeader) {
  EXPECT_STREQ(jitgemm_status_name(JITGEMM_STATUS_OK), "OK");
  EXPECT_STREQ(jitgemm_status_name(JITGEMM_STATUS_CAPTURE_NOT_READY), "CAPTURE_NOT_READY");
  EXPECT_STREQ(jitgemm_status_name(JITGEMM_STATUS_INTERNAL), "INTERNAL");
  EXPECT_STREQ(jitgemm_status_name(-7), "UNKNOWN");
}

}  // namespace
}  // namespace jitgemm_abi
