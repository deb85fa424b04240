// SPDX-License-Identifier: Apache-2.0
// That the tests commit every fault of faults.h: asked when they are run in one process with
// JITGEMM_EVERY_FAULT set, as the test sim.every_fault_is_committed does.
#include "sim/faults.h"
#include "unit/sim/ptx_run.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace jitgemm::sim::every_fault_test {
namespace {

class EveryFault : public testing::Environment {
 public:
  void TearDown() override {
    if (std::getenv("JITGEMM_EVERY_FAULT") == nullptr) return;
#define JITGEMM_EXPECT_FAULT(enumerator, name, rule, section) \
  EXPECT_TRUE(reported_faults().contains(name)) << "no kernel of a test commits: " << (name);
    JITGEMM_SIM_FAULTS(JITGEMM_EXPECT_FAULT)
#undef JITGEMM_EXPECT_FAULT
  }
};

const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new EveryFault);

const char* const kLoad = "ld.param.u64 %rd1, [k_param_0];\nld.global.u32 %r1, [%rd1];\nret;";
const char* const kStore = "ld.param.u64 %rd1, [k_param_0];\nst.global.u32 [%rd1], 1;\nret;";

TEST(EveryFault, ReadOfWriteOnlyMemory) {
  std::vector<uint32_t> words(4, 1);
  Runner bad(kernel_text(".param .u64 k_param_0", kLoad));
  bad.buffer(words).launch.memory[0].readable = false;
  EXPECT_TRUE(bad.outcome().starts_with("read of write-only memory"));
  Runner good(kernel_text(".param .u64 k_param_0", kStore));
  good.buffer(words).launch.memory[0].readable = false;
  EXPECT_EQ(good.outcome(), "");
}

TEST(EveryFault, WhatTheGridBeforeWroteBeforeTheWait) {
  std::vector<uint32_t> words(4, 1);
  for (const bool waits : {false, true}) {
    Runner runner(kernel_text(".param .u64 k_param_0",
                              (waits ? "griddepcontrol.wait;\n" : "") + std::string(kLoad)));
    runner.buffer(words).launch.programmatic_dependent = true;
    WrittenBits written = make_written_bits(16);
    written[0] = ~uint64_t{0};
    runner.launch.predecessor_writes = {
        {words.data(), 16, written}
    };
    EXPECT_EQ(runner.outcome().starts_with("access that may overtake the grid before"), !waits);
    if (waits) {
      EXPECT_EQ(runner.outcome(), "");
    }
  }
}

TEST(EveryFault, LimitsOfTimeAndMemory) {
  const std::string endless = kernel_text("", "$L1: bra $L1;");
  const std::string finite = kernel_text("", "mov.u32 %r1, 0;\nret;");
  Runner slow(endless), fast(finite);
  slow.options.time_limit_ms = fast.options.time_limit_ms = 50;
  EXPECT_TRUE(slow.outcome().starts_with("time limit reached"));
  fast.options.time_limit_ms = 60'000;
  EXPECT_EQ(fast.outcome(), "");
  Runner large(finite), small(finite);
  large.options.memory_limit = 1000;
  EXPECT_TRUE(large.outcome().starts_with("memory limit reached"));
  small.options.memory_limit = 100 << 20;
  EXPECT_EQ(small.outcome(), "");
}

TEST(EveryFault, HasANameARuleAndASectionOfItsOwn) {
  std::set<std::string> names;
  size_t faults = 0;
#define JITGEMM_COUNT_FAULT(enumerator, name, rule, section) \
  ++faults;                                                  \
  names.insert(name);                                        \
  EXPECT_FALSE(fault_rule(FaultKind::enumerator).empty());   \
  EXPECT_FALSE(fault_section(FaultKind::enumerator).empty());
  JITGEMM_SIM_FAULTS(JITGEMM_COUNT_FAULT)
#undef JITGEMM_COUNT_FAULT
  EXPECT_EQ(names.size(), faults);
}

}  // namespace
}  // namespace jitgemm::sim::every_fault_test
