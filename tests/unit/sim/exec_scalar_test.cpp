// SPDX-License-Identifier: Apache-2.0
// Scalar instructions against values known from the definition of each: one row a value. The kernel
// moves 64-bit words into registers of the needed width, executes the one instruction, and stores
// its result.
#include "unit/sim/ptx_run.h"

#include <bit>

namespace jitgemm::sim {
namespace {

uint32_t f32(float v) {
  return std::bit_cast<uint32_t>(v);
}
uint64_t f64(double v) {
  return std::bit_cast<uint64_t>(v);
}
constexpr uint32_t kNan = 0x7fffffff;

struct ScalarCase {
  // d, a, b, c are registers of the letters in `types`: h 16, r 32, d 64 bits, p predicate (bit 0).
  const char* instruction;
  const char* types;  // result first
  uint64_t a, b, c;
  uint64_t expected;
};

std::ostream& operator<<(std::ostream& os, const ScalarCase& s) {
  return os << s.instruction << " a=" << std::hex << s.a << " b=" << s.b << " c=" << s.c;
}

uint64_t execute(const ScalarCase& s) {
  std::string body = "ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1];\n";
  std::string text = s.instruction;
  const char letters[] = {'D', 'A', 'B', 'C'};
  for (size_t i = 0; s.types[i] != 0; ++i) {
    std::string name;
    const std::string n = std::to_string(10 + i);
    switch (s.types[i]) {
      case 'h': name = "%h" + n; break;
      case 'r': name = "%r" + n; break;
      case 'p': name = "%p" + n; break;
      default: name = "%rd" + n; break;
    }
    if (i > 0) {
      const std::string source = "ld.global.u64 %rd3, [%rd1+" + std::to_string(8 * (i - 1)) + "];";
      switch (s.types[i]) {
        case 'h': body += source + " cvt.u16.u64 " + name + ", %rd3;\n"; break;
        case 'r': body += source + " cvt.u32.u64 " + name + ", %rd3;\n"; break;
        case 'p': body += source + " setp.ne.u64 " + name + ", %rd3, 0;\n"; break;
        default: body += source + " mov.b64 " + name + ", %rd3;\n"; break;
      }
    }
    for (size_t at; (at = text.find(std::string("$") + letters[i])) != std::string::npos;)
      text.replace(at, 2, name);
  }
  body += text + ";\n";
  switch (s.types[0]) {
    case 'h': body += "cvt.u64.u16 %rd3, %h10;\n"; break;
    case 'r': body += "cvt.u64.u32 %rd3, %r10;\n"; break;
    case 'p': body += "selp.u64 %rd3, 1, 0, %p10;\n"; break;
    default: body += "mov.b64 %rd3, %rd10;\n"; break;
  }
  body += "st.global.u64 [%rd2], %rd3; ret;";
  std::vector<uint64_t> in = {s.a, s.b, s.c}, out(1, 0xdeadbeef);
  Runner runner(kernel_text(".param .u64 k_param_0, .param .u64 k_param_1", body));
  runner.grid(1, 1).buffer(in).buffer(out);
  const std::string problem = runner.outcome();
  EXPECT_EQ(problem, "");
  return out[0];
}

class Scalar : public ::testing::TestWithParam<ScalarCase> {};
TEST_P(Scalar, GivesTheDefinedValue) {
  EXPECT_EQ(execute(GetParam()), GetParam().expected) << std::hex << GetParam().expected;
}

const ScalarCase kInteger[] = {
    {"add.u16 $D, $A, $B",                                               "hhh",  0xffff,             2,          0,          1          },
    {"add.s32 $D, $A, $B",                                               "rrr",  0x7fffffff,         1,          0,          0x80000000 },
    {"add.sat.s32 $D, $A, $B",                                           "rrr",  0x7fffffff,         1,          0,          0x7fffffff },
    {"sub.sat.s32 $D, $A, $B",                                           "rrr",  0x80000000,         1,          0,          0x80000000 },
    {"add.u64 $D, $A, $B",                                               "ddd",  ~0ull,              3,          0,          2          },
    {"add.u16x2 $D, $A, $B",                                             "rrr",  0xffff0001,         0x00010001, 0,          2          },
    {"sub.s64 $D, $A, $B",                                               "ddd",  1,                  2,          0,          ~0ull      },
    {"mul.lo.s32 $D, $A, $B",                                            "rrr",  0xffffffff,         5,          0,          0xfffffffb },
    {"mul.hi.s32 $D, $A, $B",                                            "rrr",  0xffffffff,         5,          0,          0xffffffff },
    {"mul.hi.u32 $D, $A, $B",                                            "rrr",  0xffffffff,         5,          0,          4          },
    {"mul.wide.s32 $D, $A, $B",                                          "drr",  0xffffffff,         5,          0,          ~4ull      },
    {"mul.wide.u16 $D, $A, $B",                                          "rhh",  0xffff,             0xffff,     0,          0xfffe0001 },
    {"mul.hi.u64 $D, $A, $B",                                            "ddd",  ~0ull,              ~0ull,      0,          ~1ull      },
    {"mad.lo.s32 $D, $A, $B, $C",                                        "rrrr", 7,                  6,          5,          47         },
    {"mad.wide.u32 $D, $A, $B, $C",                                      "drrd", 0xffffffff,         2,          3,          0x200000001},
    {"mad.hi.sat.s32 $D, $A, $B, $C",                                    "rrrr", 0x40000000,         0x40000000, 0x7fffffff, 0x7fffffff },
    {"mul24.lo.u32 $D, $A, $B",                                          "rrr",  0xff000003,         0x01000005, 0,          15         },
    {"mul24.hi.s32 $D, $A, $B",                                          "rrr",  0x00ffffff,         0x00010000, 0,          0xffffffff },
    {"sad.s32 $D, $A, $B, $C",                                           "rrrr", 3,                  10,         100,        107        },
    {"sad.u32 $D, $A, $B, $C",                                           "rrrr", 0xffffffff,         1,          1,          0xffffffff },
    {"div.s32 $D, $A, $B",                                               "rrr",  0xfffffff9,         2,          0,          0xfffffffd },
    {"div.s32 $D, $A, $B",                                               "rrr",  0x80000000,         0xffffffff, 0,          0x80000000 },
    {"rem.s32 $D, $A, $B",                                               "rrr",  0xfffffff9,         2,          0,          0xffffffff },
    {"rem.u64 $D, $A, $B",                                               "ddd",  100,                7,          0,          2          },
    {"abs.s32 $D, $A",                                                   "rr",   0xfffffff9,         0,          0,          7          },
    {"neg.s16 $D, $A",                                                   "hh",   1,                  0,          0,          0xffff     },
    {"min.s32 $D, $A, $B",                                               "rrr",  0xffffffff,         1,          0,          0xffffffff },
    {"min.u32 $D, $A, $B",                                               "rrr",  0xffffffff,         1,          0,          1          },
    {"max.s16x2 $D, $A, $B",                                             "rrr",  0xffff0001,         0x00010000, 0,          0x00010001 },
    {"max.relu.s32 $D, $A, $B",                                          "rrr",  0xffffffff,         0xfffffffe, 0,          0          },
    {"popc.b64 $D, $A",                                                  "rd",   0xf0f0f0f0f0f0f0f0, 0,          0,          32         },
    {"clz.b32 $D, $A",                                                   "rr",   0x00010000,         0,          0,          15         },
    {"clz.b64 $D, $A",                                                   "rd",   0,                  0,          0,          64         },
    {"bfind.u32 $D, $A",                                                 "rr",   0x00010000,         0,          0,          16         },
    {"bfind.s32 $D, $A",                                                 "rr",   0xfffffff0,         0,          0,          3          },
    {"bfind.shiftamt.u32 $D, $A",                                        "rr",   0x00010000,         0,          0,          15         },
    {"bfind.u32 $D, $A",                                                 "rr",   0,                  0,          0,          0xffffffff },
    {"fns.b32 $D, $A, $B, $C",                                           "rrrr", 0xaaaaaaaa,         3,          1,          3          },
    {"fns.b32 $D, $A, $B, $C",                                           "rrrr", 0xaaaaaaaa,         3,          0xffffffff, 3          },
    {"fns.b32 $D, $A, $B, $C",                                           "rrrr", 0xaaaaaaaa,         3,          3,          7          },
    {"brev.b32 $D, $A",                                                  "rr",   1,                  0,          0,          0x80000000 },
    {"bfe.u32 $D, $A, $B, $C",                                           "rrrr", 0x12345678,         8,          8,          0x56       },
    {"bfe.s32 $D, $A, $B, $C",                                           "rrrr", 0x0000f000,         12,         4,          0xffffffff },
    {"bfe.s32 $D, $A, $B, $C",                                           "rrrr", 0x80000000,         28,         16,         0xfffffff8 },
    {"bfe.u64 $D, $A, $B, $C",                                           "ddrr", 0x123456789abcdef0, 60,         8,          1          },
    {"bfi.b32 $D, $A, $B, 8, 8",                                         "rrr",  0xab,               0x11111111, 0,          0x1111ab11 },
    {"szext.wrap.s32 $D, $A, $B",                                        "rrr",  0xff,               8,          0,          0xffffffff },
    {"szext.clamp.u32 $D, $A, $B",                                       "rrr",  0xffffffff,         8,          0,          0xff       },
    {"bmsk.clamp.b32 $D, $A, $B",                                        "rrr",  4,                  8,          0,          0xff0      },
    {"dp4a.s32.s32 $D, $A, $B, $C",                                      "rrrr", 0xff010203,         0x01010101, 10,         15         },
    {"dp2a.lo.u32.u32 $D, $A, $B, $C",                                   "rrrr", 0x00020003,         0x00000504, 1,          23         },
    {"add.cc.u32 %r5, $A, 1; addc.u32 $D, $B, 0",                        "rrr",  0xffffffff,         7,          0,          8          },
    {"sub.cc.u32 %r5, $A, 1; subc.u32 $D, $B, 0",                        "rrr",  0,                  7,          0,          6          },
    {"mad.lo.cc.u32 %r5, $A, $B, 1; madc.hi.u32 $D, $A, $B, 0",          "rrr",  0xffffffff,         0xffffffff, 0,
     0xfffffffe                                                                                                                         },
    {"mad.lo.cc.u32 %r5, $A, $B, 0xffffffff; madc.hi.u32 $D, $A, $B, 0", "rrr",  0xffffffff,
     0xffffffff,                                                                                                 0,          0xffffffff },
};
INSTANTIATE_TEST_SUITE_P(Integer, Scalar, ::testing::ValuesIn(kInteger));

const ScalarCase kLogic[] = {
    {"and.b32 $D, $A, $B",                     "rrr",  0xff00ff00,  0x0ff00ff0, 0,          0x0f000f00 },
    {"xor.b64 $D, $A, $B",                     "ddd",  ~0ull,       0xff,       0,          ~0xffull   },
    {"not.b16 $D, $A",                         "hh",   0x00ff,      0,          0,          0xff00     },
    {"cnot.b32 $D, $A",                        "rr",   0,           0,          0,          1          },
    {"and.pred $D, $A, $B",                    "ppp",  1,           0,          0,          0          },
    {"or.pred $D, $A, !$B",                    "ppp",  0,           0,          0,          1          },
    {"not.pred $D, $A",                        "pp",   0,           0,          0,          1          },
    {"lop3.b32 $D, $A, $B, $C, 0x96",          "rrrr", 0x0f,        0x33,       0x55,       0x69       },
    {"lop3.b32 $D, $A, $B, $C, 0xe8",          "rrrr", 0x0f,        0x33,       0x55,       0x17       },
    {"shl.b32 $D, $A, $B",                     "rrr",  1,           32,         0,          0          },
    {"shl.b64 $D, $A, $B",                     "ddr",  1,           40,         0,          1ull << 40 },
    {"shr.s32 $D, $A, $B",                     "rrr",  0x80000000,  99,         0,          0xffffffff },
    {"shr.u32 $D, $A, $B",                     "rrr",  0x80000000,  32,         0,          0          },
    {"shr.s16 $D, $A, $B",                     "hhr",  0x8000,      4,          0,          0xf800     },
    {"shf.l.wrap.b32 $D, $A, $B, $C",          "rrrr", 0x80000000,  1,          33,         3          },
    {"shf.r.clamp.b32 $D, $A, $B, $C",         "rrrr", 1,           0x80000001, 40,         0x80000001 },
    {"shf.r.wrap.b32 $D, $A, $B, $C",          "rrrr", 0xdeadbeef,  0x12345678, 16,         0x5678dead },
    {"prmt.b32 $D, $A, $B, $C",                "rrrr", 0x33221100,  0x77665544, 0x7531,     0x77553311 },
    {"prmt.b32 $D, $A, $B, $C",                "rrrr", 0x00008000,  0,          0x9999,     0xffffffff },
    {"prmt.b32.b4e $D, $A, $B, $C",            "rrrr", 0x33221100,  0x77665544, 1,          0x66770011 },
    {"setp.lt.s32 $D, $A, $B",                 "prr",  0xffffffff,  1,          0,          1          },
    {"setp.lo.u32 $D, $A, $B",                 "prr",  0xffffffff,  1,          0,          0          },
    {"setp.ge.and.s64 $D, $A, $B, $C",         "pddp", 5,           5,          1,          1          },
    {"setp.lt.xor.u32 $D, $A, $B, $C",         "prrp", 1,           2,          1,          0          },
    {"setp.lt.f32 $D, $A, $B",                 "prr",  f32(1),      kNan,       0,          0          },
    {"setp.ltu.f32 $D, $A, $B",                "prr",  f32(1),      kNan,       0,          1          },
    {"setp.nan.f32 $D, $A, $B",                "prr",  f32(1),      kNan,       0,          1          },
    {"setp.eq.ftz.f32 $D, $A, $B",             "prr",  1,           0x80000002, 0,          1          },
    {"setp.eq.f64 $D, $A, $B",                 "pdd",  f64(0.0),    f64(-0.0),  0,          1          },
    {"setp.gt.f16 $D, $A, $B",                 "phh",  0x3c00,      0xbc00,     0,          1          },
    {"setp.lt.s32 %p5|$D, $A, $B",             "prr",  1,           2,          0,          0          },
    {"set.lt.u32.s32 $D, $A, $B",              "rrr",  0xffffffff,  1,          0,          0xffffffff },
    {"set.gt.f32.u32 $D, $A, $B",              "rrr",  3,           1,          0,          0x3f800000 },
    {"selp.b64 $D, $A, $B, $C",                "dddp", 5,           6,          0,          6          },
    {"slct.b32.s32 $D, $A, $B, $C",            "rrrr", 5,           6,          0xffffffff, 6          },
    {"slct.u32.f32 $D, $A, $B, $C",            "rrrr", 5,           6,          f32(1),     5          },
    {"mov.b64 $D, {$A, $B}",                   "drr",  1,           2,          0,          0x200000001},
    {"mov.b64 {%r5, $D}, $A",                  "rd",   0x700000001, 0,          0,          7          },
    {"mov.b32 $D, {$A, $B}",                   "rhh",  0x1234,      0x5678,     0,          0x56781234 },
    {"cvt.pack.sat.u8.s32.b32 $D, $A, $B, $C", "rrrr", 300,         0xffffffff, 0x1234,     0x1234ff00 },
};
INSTANTIATE_TEST_SUITE_P(Logic, Scalar, ::testing::ValuesIn(kLogic));

const ScalarCase kFloat[] = {
    {"add.f32 $D, $A, $B",             "rrr",  f32(1),                          f32(0x1p-24f),     0,                               f32(1)                         },
    {"add.rp.f32 $D, $A, $B",          "rrr",  f32(1),                          f32(0x1p-40f),     0,                               0x3f800001                     },
    {"add.rm.f32 $D, $A, $B",          "rrr",  f32(1),                          f32(-0x1p-40f),    0,                               0x3f7fffff                     },
    {"sub.rz.f32 $D, $A, $B",          "rrr",  f32(1),                          f32(0x1p-40f),     0,                               0x3f7fffff                     },
    {"mul.f32 $D, $A, $B",             "rrr",  f32(0x1p-100f),                  f32(0x1p-40f),     0,                               f32(0x1p-140f)                 },
    {"mul.ftz.f32 $D, $A, $B",         "rrr",  f32(-0x1p-100f),                 f32(0x1p-40f),     0,                               0x80000000                     },
    {"add.sat.f32 $D, $A, $B",         "rrr",  f32(1),                          f32(1),            0,                               f32(1)                         },
    {"add.sat.f32 $D, $A, $B",         "rrr",  kNan,                            f32(1),            0,                               0                              },
    {"sub.f32 $D, $A, $B",             "rrr",  0x7f800000,                      0x7f800000,        0,                               kNan                           },
    {"fma.rn.f32 $D, $A, $B, $C",      "rrrr", f32(1 + 0x1p-12f),               f32(1 + 0x1p-12f), f32(-1),
     f32(0x1p-11f + 0x1p-24f)                                                                                                                                      },
    {"fma.rz.f32 $D, $A, $B, $C",      "rrrr", f32(1),                          f32(1),            f32(0x1p-60f),                   f32(1)                         },
    {"fma.rp.f32 $D, $A, $B, $C",      "rrrr", f32(1),                          f32(1),            f32(0x1p-60f),                   0x3f800001                     },
    {"add.f64 $D, $A, $B",             "ddd",  f64(0.1),                        f64(0.2),          0,                               f64(0.1 + 0.2)                 },
    {"fma.rp.f64 $D, $A, $B, $C",      "dddd", f64(1),                          f64(1),            f64(0x1p-100),                   0x3ff0000000000001             },
    {"div.rn.f32 $D, $A, $B",          "rrr",  f32(1),                          f32(3),            0,                               0x3eaaaaab                     },
    {"div.rz.f32 $D, $A, $B",          "rrr",  f32(1),                          f32(3),            0,                               0x3eaaaaaa                     },
    {"div.approx.f32 $D, $A, $B",      "rrr",  f32(1),                          f32(0x1p127f),     0,                               0                              },
    {"div.full.f32 $D, $A, $B",        "rrr",  f32(1),                          f32(0x1p127f),     0,                               f32(0x1p-127f)                 },
    {"rcp.rn.f64 $D, $A",              "dd",   f64(3),                          0,                 0,                               f64(1.0 / 3)                   },
    {"sqrt.rn.f32 $D, $A",             "rr",   f32(2),                          0,                 0,                               0x3fb504f3                     },
    {"sqrt.rp.f32 $D, $A",             "rr",   f32(2),                          0,                 0,                               0x3fb504f4                     },
    {"sqrt.rn.f32 $D, $A",             "rr",   f32(-1),                         0,                 0,                               kNan                           },
    {"rcp.approx.f32 $D, $A",          "rr",   f32(4),                          0,                 0,                               f32(0.25f)                     },
    {"rsqrt.approx.f32 $D, $A",        "rr",   f32(16),                         0,                 0,                               f32(0.25f)                     },
    {"ex2.approx.f32 $D, $A",          "rr",   f32(5),                          0,                 0,                               f32(32)                        },
    {"lg2.approx.f32 $D, $A",          "rr",   f32(8),                          0,                 0,                               f32(3)                         },
    {"sin.approx.f32 $D, $A",          "rr",   0x7f800000,                      0,                 0,                               kNan                           },
    {"tanh.approx.f32 $D, $A",         "rr",   f32(100),                        0,                 0,                               f32(1)                         },
    {"neg.f32 $D, $A",                 "rr",   f32(1),                          0,                 0,                               f32(-1)                        },
    {"abs.ftz.f32 $D, $A",             "rr",   0x80000001,                      0,                 0,                               0                              },
    {"min.f32 $D, $A, $B",             "rrr",  f32(-0.0f),                      f32(0.0f),         0,                               0x80000000                     },
    {"min.f32 $D, $A, $B",             "rrr",  kNan,                            f32(2),            0,                               f32(2)                         },
    {"max.NaN.f32 $D, $A, $B",         "rrr",  0xffc00000,                      f32(2),            0,                               kNan                           },
    {"max.xorsign.abs.f32 $D, $A, $B", "rrr",  f32(-3),                         f32(2),            0,                               f32(-3)                        },
    {"max.f32 $D, $A, $B, $C",         "rrrr", f32(1),                          f32(3),            f32(2),                          f32(3)                         },
    {"copysign.f32 $D, $A, $B",        "rrr",  f32(-1),                         f32(5),            0,                               f32(-5)                        },
    {"testp.subnormal.f32 $D, $A",     "pr",   1,                               0,                 0,                               1                              },
    {"testp.finite.f64 $D, $A",        "pd",   f64(1),                          0,                 0,                               1                              },
    {"add.f32x2 $D, $A, $B",           "ddd",  uint64_t{f32(1)} << 32 | f32(2),
     uint64_t{f32(3)} << 32 | f32(4),                                                              0,                               uint64_t{f32(4)} << 32 | f32(6)},
    {"fma.rn.f32x2 $D, $A, $B, $C",    "dddd", uint64_t{f32(1)} << 32 | f32(2),
     uint64_t{f32(3)} << 32 | f32(4),                                                              uint64_t{f32(1)} << 32 | f32(1),
     uint64_t{f32(4)} << 32 | f32(9)                                                                                                                               },
    {"add.f16 $D, $A, $B",             "hhh",  0x3c00,                          0x1000,            0,                               0x3c00                         },
    {"add.f16 $D, $A, $B",             "hhh",  0x7bff,                          0x4c00,            0,                               0x7c00                         },
    {"sub.f16 $D, $A, $B",             "hhh",  0x7c00,                          0x7c00,            0,                               0x7fff                         },
 // 2^-9 + 2^-20 is a tie.
    {"fma.rn.f16 $D, $A, $B, $C",      "hhhh", 0x3c01,                          0x3c01,            0xbc00,                          0x1800                         },
 // 1 + 2^-8 exactly half way between two bf16, and a product below that decides: one rounding.
    {"fma.rn.bf16 $D, $A, $B, $C",     "hhhh", 0x3b80,                          0x3f80,            0x3f80,                          0x3f80                         },
    {"fma.rn.bf16 $D, $A, $B, $C",     "hhhh", 0x3b81,                          0x3f80,            0x3f80,                          0x3f81                         },
    {"mul.f16x2 $D, $A, $B",           "rrr",  0x3c004000,                      0x40004000,        0,                               0x40004400                     },
    {"fma.rn.relu.f16 $D, $A, $B, $C", "hhhh", 0x3c00,                          0xbc00,            0,                               0                              },
    {"add.bf16x2 $D, $A, $B",          "rrr",  0x3f803f80,                      0x3f804000,        0,                               0x40004040                     },
    {"max.NaN.bf16 $D, $A, $B",        "hhh",  0x7fc0,                          0x3f80,            0,                               0x7fff                         },
    {"neg.f16x2 $D, $A",               "rr",   0x3c00bc00,                      0,                 0,                               0xbc003c00                     },
    {"add.f32.f16 $D, $A, $B",         "rhr",  0x3c00,                          f32(0.5f),         0,                               f32(1.5f)                      },
    {"fma.rn.f32.bf16 $D, $A, $B, $C", "rhhr", 0x4000,                          0x4040,            f32(1),                          f32(7)                         },
};
INSTANTIATE_TEST_SUITE_P(Float, Scalar, ::testing::ValuesIn(kFloat));

const ScalarCase kConvert[] = {
    {"cvt.s32.s8 $D, $A",                           "rr",  0x80,                       0,            0, 0xffffff80                    },
    {"cvt.u32.u8 $D, $A",                           "rr",  0x1ff,                      0,            0, 0xff                          },
    {"cvt.s64.s32 $D, $A",                          "dr",  0x80000000,                 0,            0, 0xffffffff80000000            },
    {"cvt.u64.u32 $D, $A",                          "dr",  0x80000000,                 0,            0, 0x80000000                    },
    {"cvt.sat.u8.s32 $D, $A",                       "rr",  0xffffffff,                 0,            0, 0                             },
    {"cvt.sat.s16.s32 $D, $A",                      "rr",  100000,                     0,            0, 0x7fff                        },
    {"cvt.u16.u64 $D, $A",                          "hd",  0x12345,                    0,            0, 0x2345                        },
    {"cvt.rn.f32.s32 $D, $A",                       "rr",  0x01000001,                 0,            0, f32(0x1000000)                },
    {"cvt.rp.f32.s32 $D, $A",                       "rr",  0x01000001,                 0,            0, f32(0x1000002)                },
    {"cvt.rz.f32.u64 $D, $A",                       "rd",  ~0ull,                      0,            0, 0x5f7fffff                    },
    {"cvt.rn.f32.u64 $D, $A",                       "rd",  ~0ull,                      0,            0, 0x5f800000                    },
    {"cvt.rn.f32.u64 $D, $A",                       "rd",  0x8000008000000001,         0,            0, 0x5f000001                    },
    {"cvt.rn.f64.u64 $D, $A",                       "dd",  0x20000000000001,           0,            0, f64(0x20000000000000)         },
    {"cvt.rp.f64.u64 $D, $A",                       "dd",  0x20000000000001,           0,            0, f64(0x20000000000002)         },
    {"cvt.rn.f16.s32 $D, $A",                       "hr",  70000,                      0,            0, 0x7c00                        },
    {"cvt.rzi.s32.f32 $D, $A",                      "rr",  f32(-1.9f),                 0,            0, 0xffffffff                    },
    {"cvt.rni.s32.f32 $D, $A",                      "rr",  f32(2.5f),                  0,            0, 2                             },
    {"cvt.rmi.s32.f32 $D, $A",                      "rr",  f32(-1.1f),                 0,            0, 0xfffffffe                    },
    {"cvt.rpi.u32.f32 $D, $A",                      "rr",  f32(1.1f),                  0,            0, 2                             },
    {"cvt.rzi.u32.f32 $D, $A",                      "rr",  f32(-3),                    0,            0, 0                             },
    {"cvt.rzi.s32.f32 $D, $A",                      "rr",  f32(1e20f),                 0,            0, 0x7fffffff                    },
    {"cvt.rzi.s32.f32 $D, $A",                      "rr",  kNan,                       0,            0, 0                             },
    {"cvt.rni.f32.f32 $D, $A",                      "rr",  f32(3.5f),                  0,            0, f32(4)                        },
    {"cvt.f64.f32 $D, $A",                          "dr",  f32(0.1f),                  0,            0, f64(static_cast<double>(0.1f))},
    {"cvt.rn.f32.f64 $D, $A",                       "rd",  f64(0.1),                   0,            0, f32(0.1f)                     },
    {"cvt.rz.f32.f64 $D, $A",                       "rd",  f64(1 + 0x1p-23 - 0x1p-40), 0,            0, f32(1)                        },
    {"cvt.rn.f16.f32 $D, $A",                       "hr",  f32(65520),                 0,            0, 0x7c00                        },
    {"cvt.rz.f16.f32 $D, $A",                       "hr",  f32(65535),                 0,            0, 0x7bff                        },
    {"cvt.rn.f16.f32 $D, $A",                       "hr",  f32(0x1p-25f),              0,            0, 0                             },
    {"cvt.rn.f16.f32 $D, $A",                       "hr",  f32(0x1.8p-24f),            0,            0, 2                             },
    {"cvt.f32.f16 $D, $A",                          "rh",  0x0001,                     0,            0, f32(0x1p-24f)                 },
    {"cvt.rn.bf16.f32 $D, $A",                      "hr",  0x3f808000,                 0,            0, 0x3f80                        },
    {"cvt.rn.bf16.f32 $D, $A",                      "hr",  0x3f818000,                 0,            0, 0x3f82                        },
    {"cvt.rn.relu.bf16.f32 $D, $A",                 "hr",  f32(-1),                    0,            0, 0                             },
    {"cvt.f32.bf16 $D, $A",                         "rh",  0x3f80,                     0,            0, f32(1)                        },
    {"cvt.sat.f32.f32 $D, $A",                      "rr",  f32(7),                     0,            0, f32(1)                        },
    {"cvt.rn.bf16x2.f32 $D, $A, $B",                "rrr", f32(1),                     f32(2),       0, 0x3f804000                    },
    {"cvt.rn.f16x2.f32 $D, $A, $B",                 "rrr", f32(1),                     f32(2),       0, 0x3c004000                    },
    {"cvt.rna.tf32.f32 $D, $A",                     "rr",  0x3f801000,                 0,            0, 0x3f802000                    },
    {"cvt.rn.satfinite.e4m3x2.f32 $D, $A, $B",      "hrr", f32(1),                     f32(1000),    0, 0x387e                        },
    {"cvt.rn.satfinite.e5m2x2.f32 $D, $A, $B",      "hrr", f32(-1),                    f32(1e9f),    0, 0xbc7b                        },
    {"cvt.rn.satfinite.e4m3x2.f32 $D, $A, $B",      "hrr", kNan,                       f32(0x1p-9f), 0, 0x7f01                        },
    {"cvt.rn.satfinite.relu.e4m3x2.f32 $D, $A, $B", "hrr", f32(-1),                    f32(1),       0, 0x0038                        },
    {"cvt.rn.satfinite.e4m3x2.f16x2 $D, $A",        "hr",  0x3c004000,                 0,            0, 0x3840                        },
    {"cvt.rn.f16x2.e4m3x2 $D, $A",                  "rh",  0x387e,                     0,            0, 0x3c005f00                    },
    {"cvt.rn.f16x2.e5m2x2 $D, $A",                  "rh",  0x7c3c,                     0,            0, 0x7c003c00                    },
    {"cvt.rn.satfinite.e2m3x2.f32 $D, $A, $B",      "hrr", f32(7.5f),                  f32(-0.125f), 0, 0x1f21                        },
    {"cvt.rn.satfinite.e3m2x2.f32 $D, $A, $B",      "hrr", f32(28),                    f32(0.0625f), 0, 0x1f01                        },
    {"cvt.rp.satfinite.ue8m0x2.f32 $D, $A, $B",     "hrr", f32(1.5f),                  f32(1),       0, 0x807f                        },
    {"cvt.rz.satfinite.ue8m0x2.f32 $D, $A, $B",     "hrr", f32(1.5f),                  f32(0),       0, 0x7f00                        },
    {"cvt.rn.bf16x2.ue8m0x2 $D, $A",                "rh",  0x807f,                     0,            0, 0x40003f80                    },
};
INSTANTIATE_TEST_SUITE_P(Convert, Scalar, ::testing::ValuesIn(kConvert));

}  // namespace
}  // namespace jitgemm::sim
