// SPDX-License-Identifier: Apache-2.0
// Runs the programs of tests/ptx/cases, a smallest one for each row of the
// instruction table, and checks what they leave in registers and memory. A row
// that no case executes must say in the table why the simulator refuses it, or
// the test fails. What a GPU left (tests/ptx/confirmations.json) the simulator
// must leave too.
#include "ptx/instruction_cases.h"

#include "ptx/confirmations.h"
#include "ptx/instruction_table.h"
#include "sim/program.h"
#include "support/sha256.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace jitgemm::sim::instruction_cases_test {
namespace {

using ptx_cases::Case;
using ptx_cases::CaseBytes;
using ptx_cases::CaseRun;

std::string source_path(const std::string& name) {
  return std::string(JITGEMM_SOURCE_DIR) + "/tests/ptx/" + name;
}

void expect_run(const Case& c, const Program& program, const CaseRun& run) {
  CaseBytes bytes = initial_bytes(c, run);
  Options options;
  options.strict = true;
  const Result<Report> report = run_on_simulator(c, program, options, bytes);
  ASSERT_TRUE(report.has_value()) << c.place() << ": " << report.error().to_string() << c.body;
  EXPECT_EQ(difference(c, run, bytes), "") << c.place() << "\n" << c.body;
}

TEST(InstructionCases, EveryRowOfTheTableIsExecutedToTheExpectedResult) {
  const ptx::InstructionTable& table = ptx::InstructionTable::get();
  std::set<size_t> executed;
  size_t runs = 0;
  for (const Case& c : ptx_cases::read_cases(source_path("cases"))) {
    const Result<Program> program = Program::load(case_text(c, case_target(c)));
    EXPECT_TRUE(program.has_value()) << c.place() << ": " << program.error().to_string() << "\n"
                                     << c.body;
    if (!program) continue;
    for (const ptx::Function& function : program->decoded().module.functions) {
      for (const ptx::Instruction& i : function.instructions) executed.insert(i.form);
    }
    for (const CaseRun& run : c.runs) {
      expect_run(c, *program, run);
      ++runs;
    }
  }
  for (size_t i = 0; i < table.size(); ++i) {
    const ptx::FormRow& row = *table.form(i).row;
    if (row.unsupported[0] != '\0') {
      EXPECT_FALSE(executed.contains(i)) << row.syntax << " is executed and marked as refused";
    } else {
      EXPECT_TRUE(executed.contains(i))
          << "no case for " << row.syntax << " (" << row.section << ")";
    }
  }
  EXPECT_GT(runs, 1000u);
}

TEST(InstructionCases, TheSimulatorLeavesWhatAGpuLeft) {
  const Result<ptx_cases::Confirmations> records =
      ptx_cases::read_confirmations(source_path("confirmations.json"));
  ASSERT_TRUE(records.has_value()) << records.error().to_string();
  for (const Case& c : ptx_cases::read_cases(source_path("cases"))) {
    const auto record = records->find(case_digest(c, "sm_90a"));
    if (record == records->end() || record->second.result != "confirmed") continue;
    const Result<Program> program = Program::load(case_text(c, "sm_90a"));
    ASSERT_TRUE(program.has_value()) << c.place() << ": " << program.error().to_string();
    Options options;
    options.numerics = Numerics::kHopper;
    Sha256 output;
    for (const CaseRun& run : c.runs) {
      CaseBytes bytes = initial_bytes(c, run);
      const Result<Report> report = run_on_simulator(c, *program, options, bytes);
      ASSERT_TRUE(report.has_value()) << c.place() << ": " << report.error().to_string();
      output.update(comparable_bytes(c, bytes));
    }
    EXPECT_EQ(to_hex(output.finish()), record->second.output) << c.place() << "\n" << c.body;
  }
}

}  // namespace
}  // namespace jitgemm::sim::instruction_cases_test
