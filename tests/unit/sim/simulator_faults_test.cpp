// SPDX-License-Identifier: Apache-2.0
// For each rule of the core a kernel that breaks it and a twin that keeps it: the first must be
// reported under the rule's name with its line, the second must run clean.
#include "unit/sim/ptx_run.h"

#include <gmock/gmock.h>

namespace jitgemm::sim::simulator_faults_test {
namespace {

using ::testing::HasSubstr;

struct FaultCase {
  const char* name;
  const char* fault;  // short name in the report
  const char* bad;
  const char* good;
  uint32_t block = 32;
  uint32_t grid = 1;
  uint32_t cluster = 1;
  const char* globals = "";
};

std::ostream& operator<<(std::ostream& os, const FaultCase& c) {
  return os << c.name;
}

// The kernel gets one pointer to 64 words: readable, writable, and written from the start; a second
// one to 64 words never written; a third to read-only words.
const char* const kPrologue = R"(
  ld.param.u64 %rd1, [k_param_0];
  ld.param.u64 %rd2, [k_param_1];
  ld.param.u64 %rd3, [k_param_2];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
)";
const char* const kShared = ".shared .align 1024 .b8 buffer[1024];";

class SimulatorFault : public ::testing::TestWithParam<FaultCase> {};

std::string outcome(const FaultCase& c, const char* body) {
  std::vector<uint32_t> written(64, 7), fresh(64), constant(64, 9);
  Runner runner(kernel_text(".param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2",
                            std::string(kPrologue) + body + "\nret;", c.globals));
  runner.grid(c.grid, c.block, c.cluster)
      .buffer(written)
      .buffer(fresh, false)
      .buffer(constant, true, false);
  runner.options.step_limit = 2'000'000;
  return runner.outcome();
}

TEST_P(SimulatorFault, IsReportedAndItsTwinIsClean) {
  const FaultCase& c = GetParam();
  const std::string bad = outcome(c, c.bad);
  EXPECT_EQ(bad.substr(0, bad.find('\n')), c.fault) << bad;
  EXPECT_THAT(bad, HasSubstr("line:"));
  EXPECT_EQ(outcome(c, c.good), "");
}

const FaultCase kCases[] = {
    {"global_past_the_end",                                                                         "out of bounds",                                                                   "ld.global.u32 %r2, [%rd5+1048576];",
     "ld.global.u32 %r2, [%rd5+128];"                                                                                                                                                                                                                                                                                                                                                                                                                                                        },
    {"global_before_the_start",                                                                     "out of bounds",                                                                   "st.global.u32 [%rd5+-4], %r1;",
     "st.global.u32 [%rd5], %r1;"                                                                                                                                                                                                                                                                                                                                                                                                                                                            },
    {"generic_null",                                                                                "out of bounds",                                                                   "mov.u64 %rd8, 0; ld.u32 %r2, [%rd8];",
     "ld.u32 %r2, [%rd5];"                                                                                                                                                                                                                                                                                                                                                                                                                                                                   },
    {"shared_past_the_end",                                                                         "out of bounds",                                                                   "mov.u32 %r3, buffer; st.shared.u32 [%r3+1024], %r1;",
     "mov.u32 %r3, buffer; st.shared.u32 [%r3+1020], %r1;",                                                                                                                                                                                                                                                                                                                                                                                                                                    32, 1, 1, kShared},
    {"local_past_the_end",                                                                                            "out of bounds",
     ".local .align 4 .b8 mine[8]; st.local.u32 [mine+16], %r1;",                                                                                                                                                                                                                                                                                                                                            ".local .align 4 .b8 mine[8]; st.local.u32 [mine+4], %r1;"                                                                                                                                                                                                                                                                                                                                                                                                                                                                        },
    {"misaligned_global","misaligned access",                                                                                                                      "ld.global.u32 %r2, [%rd5+2];",
     "ld.global.u16 %h2, [%rd5+2];"},
    {"misaligned_vector",                                                                                        "misaligned access",                      "ld.global.v2.u32 {%r2, %r3}, [%rd1+4];",
     "ld.global.v2.u32 {%r2, %r3}, [%rd1+8];"                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            },
    {"misaligned_shared","misaligned access",       "mov.u32 %r3, buffer; st.shared.u64 [%r3+4], %rd1;",
     "mov.u32 %r3, buffer; st.shared.u64 [%r3+8], %rd1;",32, 1, 1, kShared},
    {"write_to_read_only",                                                                                        "write to read-only memory",                                                                                                                "st.global.u32 [%rd7], %r1;",
     "ld.global.u32 %r2, [%rd7];"                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               },
    {"atomic_on_read_only",                                                                                            "write to read-only memory",                                                                                                                                                                      "red.global.add.u32 [%rd7], 1;",
     "red.global.add.u32 [%rd5], 1;"                                                                                                                                                                                                                                                                                                                                                                                                                                                      },
    {"wrong_space",                                                                 "address outside its state space",
     "mov.u64 %rd8, buffer; cvta.shared.u64 %rd8, %rd8; ld.global.u32 %r2, [%rd8];",                                                                                                                                                                                                                                                                                                                            "mov.u64 %rd8, buffer; st.shared.u32 [%rd8], %r1; bar.warp.sync -1; cvta.shared.u64 %rd8, "
     "%rd8; ld.u32 %r2, "
     "[%rd8];",32, 1, 1, kShared},
    {"global_never_written",                                                              "read of memory never written",                                                                                                                                                  "ld.global.u32 %r2, [%rd6];",
     "st.global.u32 [%rd6], %r1; ld.global.u32 %r2, [%rd6];"},
    {"shared_never_written",                "read of memory never written",
     "mov.u32 %r3, buffer; ld.shared.u32 %r2, [%r3];",                                                                                                                                                                                                                                                         "mov.u32 %r3, buffer; st.shared.u32 [%r3], %r1; bar.warp.sync -1; ld.shared.u32 %r2, [%r3];",
     32, 1, 1, kShared},
    {"shared_partly_written",                                                                                      "read of memory never written",
     "mov.u32 %r3, buffer; st.shared.u16 [%r3], 1; ld.shared.u32 %r2, [%r3];",                                                                                                                                                                                                                                                                                                                         "mov.u32 %r3, buffer; st.shared.u16 [%r3], 1; st.shared.u16 [%r3+2], 1; bar.warp.sync -1; "
     "ld.shared.u32 %r2, "
     "[%r3];",                                                                                                                                                                                                                                                                                                                                                           32, 1, 1, kShared},
    {"local_never_written",                                       "read of memory never written",
     ".local .align 4 .b8 mine[8]; ld.local.u32 %r2, [mine];",                                                                                                                                                                                                                                                                          ".local .align 4 .b8 mine[8]; st.local.u32 [mine], 1; ld.local.u32 %r2, [mine];"                                                                                                                                                                                                                                                                                                                                                                      },
    {"stored_register_never_written", "use of a register never written",
     "st.global.u32 [%rd5], %r9;",                                                                                                                                                                                                                                                                                                                                                     "mov.u32 %r9, 1; st.global.u32 [%rd5], %r9;"                                                                                                                                                                                                                                                                                                                                                                                                                                                                                },
    {"undefined_passes_through_arithmetic",                                                                                             "use of a register never written",
     "add.u32 %r8, %r9, 1; st.global.u32 [%rd5], %r8;",                                                                                                                                                                                                            "add.u32 %r8, %r9, 1; mov.u32 %r8, 2; st.global.u32 [%rd5], %r8;"                                                                                                                                                                                                                                                                                                                                                                                                                },
    {"undefined_address",                                                                                           "use of a register never written",                                                                                                                                                                           "ld.global.u32 %r2, [%rd30];",
     "mov.u64 %rd30, %rd5; ld.global.u32 %r2, [%rd30];"                                                                                                            },
    {"undefined_guard",                                                                         "use of a register never written",                                                                                      "@%p9 st.global.u32 [%rd5], 1;",
     "setp.eq.u32 %p9, %r1, 3; @%p9 st.global.u32 [%rd5], 1;"                                                                     },
    {"undefined_in_some_lanes",                                                               "use of a register never written",
     "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r9, 1; st.global.u32 [%rd5], %r9;",                                                                                                                                                                                                                                                                                                                              "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r9, 1; @%p1 st.global.u32 [%rd5], %r9;"                                                          },
    {"undefined_chosen_by_selp",                                                         "use of a register never written",
     "setp.lt.u32 %p1, %r1, 40; selp.b32 %r8, %r9, %r1, %p1; st.global.u32 [%rd5], %r8;",                                                                                                                                                                                                                                                                                                         "setp.lt.u32 %p1, %r1, 40; selp.b32 %r8, %r1, %r9, %p1; st.global.u32 [%rd5], %r8;"                                                                                                                                                         },
    {"aligned_barrier_in_a_branch",                                                                           "divergence at an .aligned instruction",
     "setp.lt.u32 %p1, %r1, 5; @!%p1 bra $L1; bar.sync 0;\n$L1: st.global.u32 [%rd5], 1;", "setp.lt.u32 %p1, %r1, 5; @!%p1 bra $L1; st.global.u32 [%rd5], 1;\n$L1: bar.sync 0;"                                                                                                                                                                                                                                                                                                                                                                                                                                      },
    {"aligned_barriers_in_both_branches",                                                                             "divergence at an .aligned instruction",
     "setp.lt.u32 %p1, %r1, 5; @!%p1 bra $L1; bar.sync 0; bra $L2;\n$L1: bar.sync 0;\n$L2: "
     "st.global.u32 [%rd5], 1;",                                                                                                        "setp.lt.u32 %p1, %r1, 5; @!%p1 bra $L1; barrier.sync 0; bra $L2;\n$L1: barrier.sync 0;\n$L2: "
     "st.global.u32 [%rd5], 1;"                                                                                                                                                                                                                                                                                                                                                                                                                                },
    {"aligned_under_a_divergent_guard",                                                                     "divergence at an .aligned instruction",
     "setp.lt.u32 %p1, %r1, 5; @%p1 bar.sync 0;",                                                                                                                                                                                                                                                                                "setp.lt.u32 %p1, %r1, 50; @%p1 bar.sync 0;"},
    {"member_mask_without_the_lane",                                                                    "illegal member mask",
     "vote.sync.ballot.b32 %r2, 1, 0xfffffffe;",                                                                                                                                                                                                                                                                       "vote.sync.ballot.b32 %r2, 1, 0xffffffff;"        },
    {"barrier_number",                                                                 "illegal use of a CTA or cluster barrier",                                 "bar.sync 16;",                                                                                                                                                                                                                                                                      "bar.sync 15;"                                                                                                                                                                                                                                                                                                              },
    {"barrier_count_not_a_multiple",                                                           "illegal use of a CTA or cluster barrier",                         "bar.sync 1, 33;",
     "bar.sync 1, 32;"                                                                                                                                                                                                                                                                                                                                                                                                                              },
    {"barrier_with_two_counts",                                                             "illegal use of a CTA or cluster barrier",
     "setp.ge.u32 %p1, %r1, 32; @%p1 bra $L1; bar.sync 1, 64; bra $L2;\n$L1: bar.sync 1, 32;\n$L2: "
     "bar.sync 0;",                                                                                                                                                                                                                                                                                                               "setp.ge.u32 %p1, %r1, 32; @%p1 bra $L1; bar.sync 1, 64; bra $L2;\n$L1: bar.sync 1, 64;\n$L2: "
     "bar.sync 0;",                                                                                                                 64},
    {"cluster_wait_without_arrival",                                                                "illegal use of a CTA or cluster barrier",
     "barrier.cluster.wait.aligned;",                                                                                                                                                                                                                                                                                                                "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",                                                                                                                             32, 2, 2},
    {"cluster_arrival_twice",                                                                              "illegal use of a CTA or cluster barrier",
     "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned; "
     "barrier.cluster.wait.aligned;",                                                                                                                                                                               "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; "
     "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",                         32, 2, 2},
    {"shared_cta_address_of_another_cta",                                                                "address outside its state space",
     "mov.u32 %r3, buffer; mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1; "
     "mapa.shared::cluster.u32 %r3, %r3, %r4; "
     "st.shared.u32 [%r3], %r1;",                                                                                                                                                                            "mov.u32 %r3, buffer; mov.u32 %r4, %cluster_ctarank; xor.b32 %r4, %r4, 1; "
     "mapa.shared::cluster.u32 %r3, %r3, %r4; "
     "st.shared::cluster.u32 [%r3], %r1; barrier.cluster.arrive.aligned; "
     "barrier.cluster.wait.aligned;",                                                                                                                                                                                                                                                                                                                                                                                                                                                                        32, 2, 2, kShared},
    {"rank_out_of_range",                                                                     "illegal operand value",
     "mov.u32 %r3, buffer; mapa.shared::cluster.u32 %r3, %r3, 2;",                                                                                                                                                                                                                                                                                                                                             "mov.u32 %r3, buffer; mapa.shared::cluster.u32 %r3, %r3, 1;",                                                                                                                                                                                                                                                                                                                                                                                                                                                         32, 2, 2, kShared},
    {"shared_memory_of_a_finished_cta",                                                                                             "access to shared memory of a CTA that has ended",
     "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r4, 1; @%p1 exit; mov.u32 %r5, 0;\n"
     "$L1: add.u32 %r5, %r5, 1; nanosleep.u32 20; setp.lt.u32 %p2, %r5, 100; @%p2 bra $L1;\n"
     "mov.u32 %r3, buffer; mapa.shared::cluster.u32 %r3, %r3, 1; st.shared::cluster.u32 [%r3], 1;",                                                                                                                                                                                                                "mov.u32 %r4, %cluster_ctarank; setp.eq.u32 %p1, %r4, 1; @%p1 bra $L1;\n"
     "mov.u32 %r3, buffer; mapa.shared::cluster.u32 %r3, %r3, 1; st.shared::cluster.u32 [%r3], 1;\n"
     "$L1: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",                                                                                                                                                                                                                                                                                                                                                                                                                                                          32, 2, 2, kShared},
    {"setmaxnreg_count",                                                                                           "illegal setmaxnreg",                                                                                                                                                                           "setmaxnreg.dec.sync.aligned.u32 20;",
     "setmaxnreg.dec.sync.aligned.u32 24;"                                                                                                                                                                                                                                                                                                                                                 },
    {"cp_async_read_before_wait","read of memory that an asynchronous write has not completed",
     "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global "
     "[%r3], [%rd5], 4; "
     "cp.async.commit_group; ld.shared.u32 %r2, [%r3];",                                                                                                                                                                                                                                                      "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global "
     "[%r3], [%rd5], 4; "
     "cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %r2, [%r3];",                                                                                                                                                                                                                                                                                                                                                         32, 1, 1, kShared},
    {"cp_async_wait_leaves_the_newest_group",
     "read of memory that an asynchronous write has not completed",                                                                                                                                                                             "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global "
     "[%r3], [%rd5], 4; "
     "cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r2, [%r3];",                                                                                                                                                                                                                                                                                                                  "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global "
     "[%r3], [%rd5], 4; "
     "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r2, "
     "[%r3];",                                                                                                                                                                                                                                                                                                                                               32, 1, 1, kShared},
    {"cp_async_overwritten",                                                          "write to memory that an asynchronous operation still uses",
     "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global "
     "[%r3], [%rd5], 4; "
     "st.shared.u32 [%r3], 1; cp.async.wait_all;",                                                                                                                                                                                                                                                                                                               "mov.u32 %r3, buffer; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4; cp.async.ca.shared.global "
     "[%r3], [%rd5], 4; "
     "cp.async.wait_all; st.shared.u32 [%r3], 1;",32, 1, 1, kShared},
    {"trap",                                                                                             "trap",                                                                                                                                                            "setp.eq.u32 %p1, %r1, 3; @%p1 trap;",                                                                                                                                                                                                                                        "setp.eq.u32 %p1, %r1, 33; @%p1 trap;"                                                                                                                                                                                                                                                                                                                                                                                                                            },
    {"barrier_that_nobody_else_reaches",                                                                                           "deadlock",
     "setp.lt.u32 %p1, %r1, 32; @%p1 bra $L1; bar.sync 1, 64;\n$L1: bar.sync 0;",                                                                                                                                                                                                                                                                                                                                                 "setp.lt.u32 %p1, %r1, 32; @%p1 bra $L1; bar.sync 1, 64; bra $L2;\n$L1: bar.arrive 1, "
     "64;\n$L2: bar.sync 0;",               64},
    {"lanes_that_never_come",                                                             "deadlock",
     "setp.lt.u32 %p1, %r1, 5; @%p1 bra $L1; bar.warp.sync 0xffffffff; bra $L2;\n$L1: barrier.sync "
     "1, 64;\n$L2: barrier.sync 0;",                                                                                                                                                                                                                                                             "setp.lt.u32 %p1, %r1, 5; @%p1 bra $L1; bar.warp.sync 0xffffffff; bra $L2;\n$L1: "
     "bar.warp.sync 0xffffffff;\n$L2: barrier.sync 0;",                                                                                                                                                                                                                                                                                                                  64},
    {"endless_loop",                                                                                            "step limit reached",                                                                                                                                                                            "$L1: bra $L1;",
     "bra $L1;\n$L1: st.global.u32 [%rd5], 1;"                                                                                                                                                                                                                                                                                                                                                                                                                                                                        },
    {"brx_idx_out_of_range","illegal operand value",
     "add.u32 %r2, %r1, 0;\n$T: .branchtargets $L1, $L2;\nbrx.idx %r2, $T;\n$L1: bra $L2;\n$L2: "
     "st.global.u32 [%rd5], 1;",                                                                                                                                                                                                                                                                                                                     "and.b32 %r2, %r1, 1;\n$T: .branchtargets $L1, $L2;\nbrx.idx %r2, $T;\n$L1: bra $L2;\n$L2: "
     "st.global.u32 [%rd5], 1;"                                                                                                },
};

INSTANTIATE_TEST_SUITE_P(Rules, SimulatorFault, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SimulatorFaultReport, NamesKernelLineTextCtaWarpLaneOperandsRuleAndSection) {
  std::vector<uint32_t> words(64, 7);
  Runner runner(kernel_text(".param .u64 k_param_0", R"(
  ld.param.u64 %rd1, [k_param_0];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r2, [%rd5];
  ret;)"));
  runner.grid(1, 96).buffer(words);
  const std::string report = runner.outcome();
  for (const char* part : {"out of bounds", "kernel:   k", "ld.global.u32 %r2, [%rd5];",
                           "CTA (0, 0, 0), warp 2, lane 0",
                           "operands:", "past the end of memory range 0", "rule:", "PTX ISA 5.1"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
}

TEST(SimulatorFaultReport, DeadlockSaysWhoWaitsForWhichBarrier) {
  Runner runner(kernel_text("",
                            "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra $L1; bar.sync "
                            "1, 64;\n$L1: bar.sync 0; ret;"));
  runner.grid(1, 64);
  const std::string report = runner.outcome();
  EXPECT_THAT(
      report,
      HasSubstr("warp 0, lanes 0xffffffff wait for named barrier 0 (1 of all warps have arrived)"));
  EXPECT_THAT(
      report,
      HasSubstr("warp 1, lanes 0xffffffff wait for named barrier 1 (1 of 2 warps have arrived)"));
}

}  // namespace
}  // namespace jitgemm::sim::simulator_faults_test
