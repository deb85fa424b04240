// SPDX-License-Identifier: Apache-2.0
// What each target has, against what ptxas accepted; and that a module is refused at load for what
// its target lacks.
#include "ptx/targets.h"

#include "ptx/load.h"
#include "unit/ptx/form_example.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace jitgemm::ptx {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTargets[] = {"sm_75",  "sm_80",   "sm_86",   "sm_89",  "sm_90",   "sm_90a",
                                    "sm_100", "sm_100f", "sm_100a", "sm_103", "sm_103f", "sm_103a",
                                    "sm_110", "sm_110f", "sm_110a", "sm_120", "sm_120f", "sm_120a"};

Opcode opcode_of(const std::string& mnemonic) {
  std::vector<std::string_view> words;
  for (std::string_view rest = mnemonic; !rest.empty();) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    words.push_back(rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  const auto matches = InstructionTable::get().match(words);
  EXPECT_FALSE(matches.empty()) << mnemonic;
  return InstructionTable::get().form(matches.at(0).form).row->opcode;
}

TEST(Targets, AreThoseThatPtxasAcceptsForEveryMnemonicOfTheTable) {
  std::ifstream file(JITGEMM_SOURCE_DIR "/tests/data/ptx_targets/accepted.txt");
  ASSERT_TRUE(file);
  std::set<std::string> accepted;
  size_t mnemonics = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("targets ")) {
      std::istringstream words(line.substr(8));
      accepted = {std::istream_iterator<std::string>(words), {}};
      continue;
    }
    const Opcode opcode = opcode_of(line);
    for (const char* target : kTargets) {
      EXPECT_EQ(target_problem(*parse_target(target), opcode, line).empty(),
                accepted.contains(target))
          << line << " on " << target;
    }
    ++mnemonics;
  }
  EXPECT_GT(mnemonics, 1900u);
}

// Every row of the table: on a target without it, its example is refused where it stands.
TEST(Targets, EveryRowIsRefusedAtLoadWhereItsTargetLacksIt) {
  const InstructionTable& table = InstructionTable::get();
  size_t refused = 0;
  for (size_t i = 0; i < table.size(); ++i) {
    const Form& form = table.form(i);
    if (form.row->unsupported[0] != '\0' || form.row->opcode == Opcode::kCall) continue;
    const FormExample example = examples_of(form)[0];
    const std::string mnemonic = example.instruction.substr(0, example.instruction.find(' '));
    for (const char* target : kTargets) {
      if (target_problem(*parse_target(target), form.row->opcode, mnemonic).empty()) continue;
      const auto module = load_module(example.module(target));
      ASSERT_FALSE(module) << example.instruction << " on " << target;
      EXPECT_EQ(module.error().code(), StatusCode::kUnsupported);
      EXPECT_THAT(module.error().message(),
                  HasSubstr(fmt::format("{}:1: {}: the module's target {} does not have it",
                                        example.line_in_module, mnemonic, target)));
      ++refused;
      break;
    }
  }
  EXPECT_GT(refused, 150u);
}

struct TargetCase {
  const char* instruction;
  const char* target;
  bool has;
};

TEST(Targets, ArchitecturesAndFamilies) {
  constexpr const char* kWgmma = "wgmma.fence.sync.aligned";
  constexpr const char* kAlloc = "tcgen05.alloc.cta_group::1.sync.aligned.b32";
  constexpr const char* kInt8 = "tcgen05.mma.cta_group::1.kind::i8";
  constexpr const char* kPacked =
      "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32";
  constexpr const char* kReducing = "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32";
  const TargetCase cases[] = {
      {kWgmma,    "sm_90a",  true },
      {kWgmma,    "sm_90",   false},
      {kWgmma,    "sm_100a", false},
      {kAlloc,    "sm_100a", true },
      {kAlloc,    "sm_100f", true },
      {kAlloc,    "sm_103f", true },
      {kAlloc,    "sm_100",  false},
      {kAlloc,    "sm_90a",  false},
      {kAlloc,    "sm_120a", false},
      {kAlloc,    "sm_101a", true },
      {kInt8,     "sm_100a", true },
      {kInt8,     "sm_100f", false},
      {kInt8,     "sm_103a", false},
      {kPacked,   "sm_120a", true },
      {kPacked,   "sm_121f", true },
      {kPacked,   "sm_100a", false},
      {kReducing, "sm_103a", true },
      {kReducing, "sm_100a", false},
  };
  for (const TargetCase& c : cases) {
    EXPECT_EQ(
        target_problem(*parse_target(c.target), opcode_of(c.instruction), c.instruction) == "",
        c.has)
        << c.instruction << " on " << c.target;
  }
}

TEST(Targets, ANameOfAnotherFormIsRefusedWithItsPlace) {
  for (const char* name : {"sm_", "sm_90b", "compute_90", "gfx942", "sm_9"}) {
    EXPECT_FALSE(parse_target(name)) << name;
    const auto module = load_module(fmt::format(
        ".version 9.0\n.target {}\n.address_size 64\n.visible .entry e() {{ ret; }}\n", name));
    ASSERT_FALSE(module) << name;
    EXPECT_THAT(module.error().message(), HasSubstr(fmt::format("2:9: .target {}", name)));
  }
}

}  // namespace
}  // namespace jitgemm::ptx
