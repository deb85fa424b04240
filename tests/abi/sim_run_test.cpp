// SPDX-License-Identifier: Apache-2.0
// jitgemm_sim_run as a C caller sees it: contents from memory, the report, statuses and messages.
#include "jitgemm/jitgemm.hpp"

#include "abi_fixture.h"

#include <array>
#include <string>

namespace {

// Adds 1 to the first word of x.
const char* const kIncrement = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x)
{
.reg .b32 %r<2>;
.reg .b64 %rd<2>;
ld.param.u64 %rd1, [x];
ld.global.u32 %r1, [%rd1];
add.u32 %r1, %r1, 1;
st.global.u32 [%rd1], %r1;
ret;
}
)";

const char* const kLaunch =
    R"({"schema": 1, "buffers": {"x": {"dtype": "U32", "shape": 2}},
        "launches": [{"entry": "k", "parameters": [{"buffer": "x"}]}]})";

jitgemm_sim_run_arguments arguments_of(const char* ptx, const char* launch) {
  jitgemm_sim_run_arguments arguments = JITGEMM_SIM_RUN_ARGUMENTS_INIT;
  arguments.ptx = ptx;
  arguments.launch_json = launch;
  return arguments;
}

void keep(const char* text, size_t length, void* user) {
  *static_cast<std::string*>(user) = std::string(text, length);
}

TEST(SimRun, ContentsComeFromMemoryAndGoBack) {
  std::array<uint32_t, 2> x = {41, 7};
  const jitgemm_sim_buffer buffer = {"x", x.data(), sizeof(x)};
  std::string report;
  jitgemm_sim_run_arguments arguments = arguments_of(kIncrement, kLaunch);
  arguments.buffers = &buffer;
  arguments.buffer_count = 1;
  arguments.report = keep;
  arguments.report_user = &report;
  ASSERT_EQ(jitgemm_sim_run(&arguments), JITGEMM_STATUS_OK) << jitgemm_last_error();
  EXPECT_EQ(x[0], 42u);
  EXPECT_EQ(x[1], 7u);
  EXPECT_NE(report.find("\"warp_instructions\": 5"), std::string::npos) << report;
}

TEST(SimRun, AFaultChangesNothingAndIsTheMessage) {
  jitgemm_sim_run_arguments arguments = arguments_of(kIncrement, kLaunch);
  EXPECT_EQ(jitgemm_sim_run(&arguments), JITGEMM_STATUS_SIMULATOR_FAULT);
  EXPECT_NE(std::string(jitgemm_last_error()).find("ld.global.u32"), std::string::npos);
}

TEST(SimRun, WrongCallsAreStatuses) {
  struct Row {
    const char* ptx;
    const char* launch;
    jitgemm_sim_buffer buffer;
    jitgemm_status expected;
    const char* message;
  };
  uint32_t word = 0;
  const jitgemm_sim_buffer none = {nullptr, nullptr, 0};
  const Row rows[] = {
      {nullptr,    kLaunch,           none,                JITGEMM_STATUS_INVALID_ARGUMENT, "ptx"                      },
      {kIncrement, nullptr,           none,                JITGEMM_STATUS_INVALID_ARGUMENT, "launch_json"              },
      {kIncrement, "{",               none,                JITGEMM_STATUS_CORRUPT_DATA,     "not JSON"                 },
      {kIncrement, "{\"schema\": 1}", none,                JITGEMM_STATUS_INVALID_ARGUMENT, "launches"                 },
      {"nonsense", kLaunch,           none,                JITGEMM_STATUS_INVALID_ARGUMENT, ""                         },
      {kIncrement, kLaunch,           {"y", &word, 4},     JITGEMM_STATUS_INVALID_ARGUMENT, "'y'"                      },
      {kIncrement,
       kLaunch,                       {"x", &word, 4},
       JITGEMM_STATUS_INVALID_ARGUMENT,                                                     "expected 8 bytes, found 4"},
      {kIncrement,
       kLaunch,                       {nullptr, &word, 4},
       JITGEMM_STATUS_INVALID_ARGUMENT,                                                     "buffers[0].name"          },
      {kIncrement, kLaunch,           {"x", nullptr, 8},   JITGEMM_STATUS_INVALID_ARGUMENT, "buffers[0].data"          },
  };
  for (const Row& row : rows) {
    jitgemm_sim_run_arguments arguments = arguments_of(row.ptx, row.launch);
    if (row.buffer.bytes != 0) {
      arguments.buffers = &row.buffer;
      arguments.buffer_count = 1;
    }
    EXPECT_EQ(jitgemm_sim_run(&arguments), row.expected) << row.message;
    EXPECT_NE(std::string(jitgemm_last_error()).find(row.message), std::string::npos)
        << jitgemm_last_error();
  }
  EXPECT_EQ(jitgemm_sim_run(nullptr), JITGEMM_STATUS_INVALID_ARGUMENT);
}

TEST(SimRun, BuffersHaveNamesAndMemoryOfTheirOwn) {
  uint32_t words[4] = {1, 2, 3, 4};
  const jitgemm_sim_buffer twice[2] = {
      {"x", words,     8},
      {"x", words + 2, 8}
  };
  const jitgemm_sim_buffer overlapping[2] = {
      {"x", words,     8},
      {"y", words + 1, 8}
  };
  for (const jitgemm_sim_buffer* buffers : {twice, overlapping}) {
    jitgemm_sim_run_arguments arguments = arguments_of(kIncrement, kLaunch);
    arguments.buffers = buffers;
    arguments.buffer_count = 2;
    EXPECT_EQ(jitgemm_sim_run(&arguments), JITGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(jitgemm_last_error()).find("buffers[1]."), std::string::npos);
    EXPECT_NE(std::string(jitgemm_last_error()).find("of its own"), std::string::npos);
  }
  EXPECT_EQ(words[0], 1u);
}

TEST(SimRun, TheClassOfTheCppHeaderRunsTheSame) {
  uint32_t words[2] = {41, 7};
  jitgemm::SimRun run(kIncrement, kLaunch);
  run.bind("x", words, sizeof(words));
  EXPECT_NE(run.run().find("\"warp_instructions\""), std::string::npos);
  EXPECT_EQ(words[0], 42u);
  jitgemm::SimRun wrong("nonsense", kLaunch);
  try {
    wrong.run();
    FAIL() << "expected an exception";
  } catch (const jitgemm::Error& error) {
    EXPECT_EQ(error.status(), JITGEMM_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(wrong.report(), "");
  }
}

TEST(SimRun, AnUnmetExpectationIsAStatusAndTheReportComesAllTheSame) {
  std::string report;
  jitgemm_sim_run_arguments arguments = arguments_of(kIncrement, R"({"schema": 1,
      "buffers": {"x": {"dtype": "U32", "shape": 1, "fill": {"value": 1}, "expect": {"value": 3}}},
      "launches": [{"entry": "k", "parameters": [{"buffer": "x"}]}]})");
  arguments.report = keep;
  arguments.report_user = &report;
  EXPECT_EQ(jitgemm_sim_run(&arguments), JITGEMM_STATUS_VERIFICATION_FAILED);
  EXPECT_NE(std::string(jitgemm_last_error()).find("expected 3, found 2"), std::string::npos);
  EXPECT_NE(report.find("\"mismatches\""), std::string::npos);
}

}  // namespace
