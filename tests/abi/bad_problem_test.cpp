// SPDX-License-Identifier: Apache-2.0
// One row for each condition on a problem and its struct: the status and the message, which names
// the field, what was expected and what was found.
#include "bad_input.h"

namespace jitgemm_abi {
namespace {

struct ProblemCase {
  const char* situation;
  void (*change)(jitgemm_gemm_problem& p);
  jitgemm_status status;
  const char* message;
};

using P = jitgemm_gemm_problem;
const ProblemCase kProblemCases[] = {
    {"m negative",                           [](P& p) { p.m = -1; },                                              kInvalid,     "m: expected 0 to 2147482623, found -1"                            },
    {"m too large",                          [](P& p) { p.m = 2147482624; },                                      kInvalid,
     "m: expected 0 to 2147482623, found 2147482624"                                                                                                                                               },
    {"n zero",                               [](P& p) { p.n = 0; },                                               kInvalid,     "n: expected 1 to 2147482623, found 0"                             },
    {"n negative",                           [](P& p) { p.n = -5; },                                              kInvalid,     "n: expected 1 to 2147482623, found -5"                            },
    {"n too large",                          [](P& p) { p.n = int64_t{1} << 40; },                                kInvalid,
     "n: expected 1 to 2147482623, found 1099511627776"                                                                                                                                            },
    {"k zero",                               [](P& p) { p.k = 0; },                                               kInvalid,     "k: expected 1 to 2147482623, found 0"                             },
    {"k negative",                           [](P& p) { p.k = INT64_MIN; },                                       kInvalid,
     "k: expected 1 to 2147482623, found -9223372036854775808"                                                                                                                                     },
    {"k too large",                          [](P& p) { p.k = INT64_MAX; },                                       kInvalid,
     "k: expected 1 to 2147482623, found 9223372036854775807"                                                                                                                                      },
    {"a_dtype no dtype",                     [](P& p) { p.a_dtype = 77; },                                        kInvalid,     "a_dtype: 77 is not a dtype"                                       },
    {"a_dtype negative",                     [](P& p) { p.a_dtype = -1; },                                        kInvalid,     "a_dtype: -1 is not a dtype"                                       },
    {"a_dtype e8m0",                         [](P& p) { p.a_dtype = JITGEMM_F8_E8M0; },                           kUnsupported,
     "a_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, or F32, BF16 or F16 to be quantised, "
     "found F8_E8M0"                                                                                                                                                                               },
    {"b_dtype not fp8",                      [](P& p) { p.b_dtype = JITGEMM_F32; },                               kUnsupported,
     "b_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, found F32"                                                                                                                                },
    {"b_dtype no dtype",                     [](P& p) { p.b_dtype = 99; },                                        kInvalid,     "b_dtype: 99 is not a dtype"                                       },
    {"scale_dtype f16",                      [](P& p) { p.scale_dtype = JITGEMM_F16; },                           kUnsupported,
     "scale_dtype: block_scaled_mm takes F32 or F8_E8M0, found F16"                                                                                                                                },
    {"scale_dtype no dtype",                 [](P& p) { p.scale_dtype = 8; },                                     kInvalid,
     "scale_dtype: 8 is not a dtype"                                                                                                                                                               },
    {"out_dtype fp8",                        [](P& p) { p.out_dtype = JITGEMM_F8_E4M3; },                         kUnsupported,
     "out_dtype: block_scaled_mm takes F32, BF16 or F16, found F8_E4M3"                                                                                                                            },
    {"out_dtype no dtype",                   [](P& p) { p.out_dtype = 1000; },                                    kInvalid,
     "out_dtype: 1000 is not a dtype"                                                                                                                                                              },
    {"group_n negative",                     [](P& p) { p.group_n = -1; },                                        kInvalid,
     "group_n: expected at least 1, found -1"                                                                                                                                                      },
    {"group_k negative",                     [](P& p) { p.group_k = -32; },                                       kInvalid,
     "group_k: expected at least 1, found -32"                                                                                                                                                     },
    {"group_k odd",                          [](P& p) { p.group_k = 100; },                                       kUnsupported,
     "group_k: supported are the multiples of 32, found 100"                                                                                                                                       },
    {"a_scale_major",                        [](P& p) { p.a_scale_major = 3; },                                   kInvalid,
     "a_scale_major: expected 0 to 2, found 3"                                                                                                                                                     },
    {"b_scale_major",                        [](P& p) { p.b_scale_major = -1; },                                  kInvalid,
     "b_scale_major: expected 0 to 2, found -1"                                                                                                                                                    },
    {"scale_values",                         [](P& p) { p.scale_values = 9; },                                    kInvalid,
     "scale_values: expected 0 to 1, found 9"                                                                                                                                                      },
    {"m_policy",                             [](P& p) { p.m_policy = 3; },                                        kInvalid,     "m_policy: expected 0 to 2, found 3"                               },
    {"lda short",                            [](P& p) { p.lda = 511; },                                           kInvalid,
     "lda: expected 0 (dense) or 512 (k) to 68719476736, found 511"                                                                                                                                },
    {"lda negative",                         [](P& p) { p.lda = -512; },                                          kInvalid,
     "lda: expected 0 (dense) or 512 (k) to 68719476736, found -512"                                                                                                                               },
    {"lda long",                             [](P& p) { p.lda = (int64_t{1} << 36) + 1; },                        kInvalid,
     "lda: expected 0 (dense) or 512 (k) to 68719476736, found 68719476737"                                                                                                                        },
    {"ldb short",                            [](P& p) { p.ldb = 1; },                                             kInvalid,
     "ldb: expected 0 (dense) or 512 (k) to 68719476736, found 1"                                                                                                                                  },
    {"ldo short",                            [](P& p) { p.ldo = 255; },                                           kInvalid,
     "ldo: expected 0 (dense) or 256 (n) to 68719476736, found 255"                                                                                                                                },
    {"a_scale_ld short, row-major",          [](P& p) { p.a_scale_ld = 3; },                                      kInvalid,
     "a_scale_ld: expected 0 (dense) or 4 (ceil(k / group_k)) to 68719476736, found 3"                                                                                                             },
    {"a_scale_ld short, column-major",
     [](P& p) { p.a_scale_major = JITGEMM_SCALE_MAJOR_COLUMN, p.a_scale_ld = 63; },                               kInvalid,
     "a_scale_ld: expected 0 (dense) or 64 (m) to 68719476736, found 63"                                                                                                                           },
    {"b_scale_ld short, row-major",          [](P& p) { p.b_scale_ld = 3; },                                      kInvalid,
     "b_scale_ld: expected 0 (dense) or 4 (ceil(k / group_k)) to 68719476736, found 3"                                                                                                             },
    {"b_scale_ld short, column-major",
     [](P& p) { p.b_scale_major = JITGEMM_SCALE_MAJOR_COLUMN, p.b_scale_ld = 1; },                                kInvalid,
     "b_scale_ld: expected 0 (dense) or 2 (ceil(n / group_n)) to 68719476736, found 1"                                                                                                             },
    {"alignment negative",                   [](P& p) { p.alignment = -16; },                                     kInvalid,
     "alignment: expected a power of two, found -16"                                                                                                                                               },
    {"alignment no power of two",            [](P& p) { p.alignment = 24; },                                      kInvalid,
     "alignment: expected a power of two, found 24"                                                                                                                                                },
    {"a_code_dtype of an a of FP8",          [](P& p) { p.a_code_dtype = JITGEMM_F8_E5M2; },                      kInvalid,
     "a_code_dtype: expected the default, since a is F8_E4M3 already, found F8_E5M2"                                                                                                               },
    {"a_code_dtype not fp8",                 [](P& p) { p.a_dtype = JITGEMM_F32, p.a_code_dtype = JITGEMM_F16; },
     kUnsupported,                                                                                                              "a_code_dtype: block_scaled_mm takes F8_E4M3 or F8_E5M2, found F16"},
    {"a_scale_ld of an a that is quantised",
     [](P& p) { p.a_dtype = JITGEMM_BF16, p.a_scale_ld = 9; },                                                    kInvalid,
     "a_scale_major, a_scale_ld: expected the defaults, since the operation makes the scales of an "
     "a of BF16, found 0 and 9"                                                                                                                                                                    },
    {"reserved",                             [](P& p) { p.reserved = 1; },                                        kInvalid,     "problem.reserved: expected 0, found 1"                            },
    {"batch_invariant",                      [](P& p) { p.batch_invariant = 2; },                                 kInvalid,
     "batch_invariant: expected 0 or 1, found 2"                                                                                                                                                   },
    {"a overflows",                          [](P& p) { p.m = 2000000000, p.lda = int64_t{1} << 36; },            kInvalid,
     "a: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                                                                 },
    {"b overflows",                          [](P& p) { p.n = 2000000000, p.ldb = int64_t{1} << 36; },            kInvalid,
     "b: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                                                                 },
    {"out overflows",                        [](P& p) { p.m = 2000000000, p.ldo = int64_t{1} << 36; },            kInvalid,
     "out: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                                                                 },
    {"a_scales overflow",                    [](P& p) { p.m = 2000000000, p.a_scale_ld = int64_t{1} << 36; },     kInvalid,
     "a_scales: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                                                                 },
    {"b_scales overflow",
     [](P& p) { p.n = 2000000000, p.group_n = 1, p.b_scale_ld = int64_t{1} << 36; },                              kInvalid,
     "b_scales: expected at most 1152921504606846976 elements, found 2000000000 times a stride of "
     "68719476736"                                                                                                                                                                                 },
    {"struct_size zero",                     [](P& p) { p.struct_size = 0; },                                     kInvalid,
     "problem.struct_size: expected 128 (use the _INIT macro), found 0"                                                                                                                            },
    {"struct_size tiny",                     [](P& p) { p.struct_size = 7; },                                     kInvalid,
     "problem.struct_size: expected 128 (use the _INIT macro), found 7"                                                                                                                            },
    {"struct_size absurd",                   [](P& p) { p.struct_size = 4097; },                                  kInvalid,
     "problem.struct_size: expected 128 (use the _INIT macro), found 4097"                                                                                                                         },
    {"struct_size without a size",           [](P& p) { p.struct_size = 8; },                                     kInvalid,
     "n: expected 1 to 2147482623, found 0"                                                                                                                                                        },
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
    const std::string message = "arch: " + std::to_string(arch) +
                                " has no kernels; supported are 900 (sm_90a), 1000 (sm_100a), 1001 "
                                "(sm_100f), 1030 (sm_103a), "
                                "1031 (sm_103f)";
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

}  // namespace
}  // namespace jitgemm_abi
