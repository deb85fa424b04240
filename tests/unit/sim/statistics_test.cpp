// SPDX-License-Identifier: Apache-2.0
// Statistics and traces of runs: bank conflicts, bytes by space, who waited for what.
#include "ptx_run.h"
#include "sim/models_bank_conflicts.h"

#include <algorithm>

namespace jitgemm::sim {
namespace {

std::vector<uint32_t> strided(uint32_t lanes, uint32_t stride) {
  std::vector<uint32_t> offsets(lanes);
  for (uint32_t i = 0; i < lanes; ++i) offsets[i] = i * stride;
  return offsets;
}

TEST(BankConflicts, WavefrontsOfPatterns) {
  struct Row {
    const char* pattern;
    std::vector<uint32_t> offsets;
    uint32_t bytes, needed, ideal;
  };
  const Row rows[] = {
      {"neighbouring words",        strided(32, 4),                              4,                      1,                                      1},
      {"one word for all",                           std::vector<uint32_t>(32,                    64), 4, 1,                                      1},
      {"every second word",                          strided(32,                                    8),                                                 4,                                    2,1},
      {"a column of 32 words",                          strided(32,                                   128),                                                                  4,                                32,                                    1},
      {"a padded column",                          strided(32,                                  132),4,1,1},
      {"bytes of the same words",                       strided(32,1),                               1,                                                               1,                                                                                                                             1},
      {"neighbouring double words",strided(32,     8),     8,2,2},
      {"neighbouring quads", strided(32,       16),                                16,                                                 4,                                                                                                                           4},
      {"quads of rows of 128 bytes",                           strided(32,                  128),                                       16,                                                    32,                                                         4},
      {"one lane",                          {12},                                    4,                                        1,                          1},
      {"nobody",                         {},                                  4,                                                                 0,                           0},
  };
  for (const Row& row : rows) {
    const Wavefronts w = count_wavefronts(row.offsets, row.bytes);
    EXPECT_EQ(w.needed, row.needed) << row.pattern;
    EXPECT_EQ(w.ideal, row.ideal) << row.pattern;
  }
}

// Warp 0 writes a column of 32 words, warp 1 reads it as a row after the barrier.
Runner handover() {
  Runner runner(kernel_text(".param .u64 out", R"(
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 31;
mov.u32 %r3, tile;
setp.ge.u32 %p1, %r1, 32;
@%p1 bra READ;
shl.b32 %r4, %r2, 7;
add.u32 %r5, %r3, %r4;
st.shared.u32 [%r5], %r2;
READ: bar.sync 0;
@!%p1 ret;
shl.b32 %r4, %r2, 7;
add.u32 %r5, %r3, %r4;
ld.shared.u32 %r6, [%r5];
mad.wide.u32 %rd2, %r2, 4, %rd1;
st.global.u32 [%rd2], %r6;
ret;)",
                            ".shared .align 4 .b8 tile[4096];"));
  runner.grid(2, 64);
  runner.options.races = false;  // both CTAs write the same words
  return runner;
}

TEST(Statistics, BytesConflictsAndWaitsOfAHandover) {
  Runner runner = handover();
  std::vector<uint32_t> out(32);
  runner.buffer(out);
  runner.options.statistics = true;
  const Result<Report> report = runner.run();
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  const Statistics& s = report->statistics;
  EXPECT_EQ(s.global.written, 2u * 32 * 4);
  EXPECT_EQ(s.global.read, 0u);
  EXPECT_EQ(s.shared.written, 2u * 32 * 4);
  EXPECT_EQ(s.shared.read, 2u * 32 * 4);
  EXPECT_EQ(s.parameter_bytes, 2u * 64 * 8);
  EXPECT_EQ(s.steps, report->instructions);
  ASSERT_EQ(s.shared_accesses.size(), 2u);
  for (const SharedAccesses& a : s.shared_accesses) {
    EXPECT_EQ(a.requests, 2u) << a.text;
    EXPECT_EQ(a.conflicts(), 2u * 31) << a.text;
  }
  ASSERT_EQ(s.warps.size(), 2u);
  EXPECT_EQ(s.warps[0].instructions + s.warps[1].instructions, report->instructions);
  uint64_t barrier_waits = 0;
  for (const WarpStatistics& warp : s.warps) {
    for (const WaitSite& site : warp.waits) {
      EXPECT_EQ(site.what, "named barrier");
      EXPECT_EQ(site.text, "READ: bar.sync 0;");
      barrier_waits += site.waits;
    }
  }
  // With seed 0 the first warp of each CTA comes to the barrier before the other.
  EXPECT_EQ(barrier_waits, 2u);
  EXPECT_GT(s.warps[0].waited_steps, 0u);
  EXPECT_EQ(s.warps[1].waited_steps, 0u);
}

TEST(Statistics, DoNotDependOnTheNumberOfHostThreads) {
  std::vector<uint64_t> steps;
  for (const uint32_t threads : {1u, 4u}) {
    Runner runner = handover();
    std::vector<uint32_t> out(32);
    runner.buffer(out);
    runner.options.statistics = true;
    runner.options.threads = threads;
    const Result<Report> report = runner.run();
    ASSERT_TRUE(report.has_value()) << report.error().to_string();
    steps.push_back(report->statistics.warps[0].waited_steps);
    steps.push_back(report->statistics.steps);
  }
  EXPECT_EQ(steps[0], steps[2]);
  EXPECT_EQ(steps[1], steps[3]);
}

TEST(Statistics, AreEmptyWhenNobodyAsked) {
  Runner runner = handover();
  std::vector<uint32_t> out(32);
  runner.buffer(out);
  const Result<Report> report = runner.run();
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_TRUE(report->statistics.warps.empty());
  EXPECT_EQ(report->statistics.steps, 0u);
  EXPECT_FALSE(report->groups.empty());
}

TEST(Trace, HasALineForEachInstructionWithItsResult) {
  Runner runner = handover();
  std::vector<uint32_t> out(32);
  runner.buffer(out);
  std::vector<std::string> lines;
  runner.options.trace = [&](std::string_view line) { lines.emplace_back(line); };
  runner.options.threads = 4;
  const Result<Report> report = runner.run();
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  const auto count = [&](std::string_view part) {
    return std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  };
  // Each warp of both CTAs; the result of the first active lane.
  EXPECT_EQ(count("and.b32 %r2, %r1, 31; -> 0x0"), 4);
  EXPECT_EQ(count("cta 1,0,0 warp 1"), count("cta 0,0,0 warp 1"));
  EXPECT_EQ(count("waits for named barrier"), 2);
  EXPECT_EQ(count("goes on after"), 2);
  EXPECT_EQ(count("has ended"), 2);
}

}  // namespace
}  // namespace jitgemm::sim
