// SPDX-License-Identifier: Apache-2.0
// The instruction table tests itself: notation, sections, examples, and that no text has two
// readings.
#include "ptx/instruction_table.h"

#include "ptx/load.h"
#include "ptx/operand_binder.h"
#include "ptx/parser.h"
#include "ptx/printer.h"
#include "unit/ptx/form_example.h"

#include <gtest/gtest.h>

#include <set>

namespace jitgemm::ptx {
namespace {

const InstructionTable& table() {
  return InstructionTable::get();
}

TEST(InstructionTable, EveryRowIsWellFormedAndHasASection) {
  for (size_t i = 0; i < table().size(); ++i) {
    const Form& form = table().form(i);
    EXPECT_EQ(form.problem, "") << form.row->syntax;
    EXPECT_TRUE(std::string_view(form.row->section).starts_with("9.7.")) << form.row->syntax;
  }
}

TEST(InstructionTable, EveryFamilyHasARow) {
  std::set<Opcode> seen;
  for (size_t i = 0; i < table().size(); ++i) seen.insert(table().form(i).row->opcode);
  for (size_t i = 0; i <= static_cast<size_t>(Opcode::kSetmaxnreg); ++i) {
    EXPECT_TRUE(seen.contains(static_cast<Opcode>(i))) << opcode_name(static_cast<Opcode>(i));
  }
}

TEST(InstructionTable, ShortestExampleOfEveryRowLoadsAsThatRow) {
  for (size_t i = 0; i < table().size(); ++i) {
    const Form& form = table().form(i);
    const FormExample example = examples_of(form)[0];
    const auto module = example.loaded();
    if (form.row->unsupported[0] != '\0') {
      ASSERT_FALSE(module) << example.instruction;
      EXPECT_EQ(module.error().code(), StatusCode::kUnsupported) << example.instruction;
      EXPECT_NE(module.error().message().find(form.row->unsupported), std::string::npos)
          << module.error().message();
      continue;
    }
    // "call callee" leaves out what this callee needs; its full form is in the resolver's tests.
    if (form.row->opcode == Opcode::kCall) continue;
    ASSERT_TRUE(module) << example.instruction << ": " << module.error().message();
    const Function& function = module->functions[1];
    ASSERT_EQ(function.instructions.size(), 2u);
    EXPECT_EQ(function.instructions[0].form, i) << example.instruction;
    EXPECT_EQ(function.instructions[0].opcode, form.row->opcode);
    EXPECT_EQ(function.instructions[0].operand_count, form.slots.size());
  }
}

// The names that form_example.h declares, for binding without a module.
class ExampleNames {
 public:
  ExampleNames() {
    const auto range = [&](std::string_view prefix, Type type, uint32_t count) {
      names.declare_range(0, prefix, static_cast<uint32_t>(function.registers.size()), count);
      function.registers.resize(function.registers.size() + count, Register{type, ""});
    };
    range("%p", Type::kPred, 8);
    range("%b", Type::kB8, 8);
    range("%h", Type::kB16, 600);
    range("%r", Type::kB32, 600);
    range("%d", Type::kB64, 600);
    range("%q", Type::kB128, 8);
    names.declare(0, "label", {Name::Kind::kLabel, 0});
    names.declare(0, "targets", {Name::Kind::kTargets, 0});
    names.declare(0, "prototype", {Name::Kind::kPrototype, 0});
    names.declare(0, "callee", {Name::Kind::kFunction, 0});
    names.declare(0, "result", {Name::Kind::kSymbol, 0});
    names.declare(0, "argument", {Name::Kind::kSymbol, 1});
  }
  ScopeTree names;
  Function function;
};

TEST(InstructionTable, NoTextFitsTwoRows) {
  ExampleNames known;
  const ScopeTree empty;
  OperandBinder binder(empty, known.names, known.function);
  size_t texts = 0;
  for (size_t i = 0; i < table().size(); ++i) {
    for (const FormExample& example : examples_of(table().form(i))) {
      const std::string text = example.module("sm_100a");  // the syntax tree refers to it
      const auto syntax = parse(text);
      ASSERT_TRUE(syntax) << example.instruction << ": " << syntax.error().message();
      const SyntaxInstruction& instruction = syntax->functions[1].instructions[0];
      std::vector<size_t> readings;
      for (const MnemonicMatch& match : table().match(instruction.words)) {
        Instruction bound;
        if (binder.bind(instruction, 0, table().form(match.form), match.modifiers, bound))
          readings.push_back(match.form);
      }
      ++texts;
      // Some combinations of words have no fragment; none may have two readings.
      if (readings.empty()) continue;
      EXPECT_EQ(readings, std::vector<size_t>{i}) << example.instruction;
    }
  }
  EXPECT_GT(texts, 3000u);
}

// Of each row every `step`-th text, the first included.
void expect_texts_print_as_read(size_t step) {
  for (size_t i = 0; i < table().size(); ++i) {
    if (table().form(i).row->unsupported[0] != '\0') continue;
    const std::vector<FormExample> examples = examples_of(table().form(i));
    for (size_t k = 0; k < examples.size(); k += step) {
      const auto module = examples[k].loaded();
      if (!module) continue;
      const auto again = load_module(print_module(*module));
      ASSERT_TRUE(again) << examples[k].instruction << ": " << again.error().message();
      EXPECT_TRUE(equivalent(*module, *again)) << examples[k].instruction;
    }
  }
}

TEST(InstructionTable, SomeTextsOfEveryRowPrintAsTheyWereRead) {
  expect_texts_print_as_read(11);
}

// Minutes under a sanitizer: run by tools/check --all.
TEST(InstructionTable, EveryTextOfEveryRowPrintsAsItWasRead) {
  expect_texts_print_as_read(1);
}

Modifiers modifiers_of(const std::string& mnemonic) {
  std::vector<std::string_view> words;
  for (std::string_view rest = mnemonic; !rest.empty();) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    words.push_back(rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  const auto matches = table().match(words);
  EXPECT_FALSE(matches.empty()) << mnemonic;
  return matches.empty() ? Modifiers{} : matches[0].modifiers;
}

TEST(InstructionTable, DecodesModifiersIntoTheirFields) {
  const Modifiers copy = modifiers_of(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
      "multicast::cluster.cta_group::2.L2::cache_hint");
  EXPECT_EQ(copy.dim, 3);
  EXPECT_EQ(copy.space, Space::kSharedCluster);
  EXPECT_EQ(copy.space2, Space::kGlobal);
  EXPECT_EQ(copy.tensor_mode, TensorMode::kTile);
  EXPECT_EQ(copy.completion, Completion::kMbarrierCompleteTx);
  EXPECT_EQ(copy.cta_group, 2);
  EXPECT_TRUE(copy.has(Flag::kMulticastCluster));
  EXPECT_TRUE(copy.has(Flag::kCacheHint));

  const Modifiers mma = modifiers_of("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32");
  EXPECT_EQ(mma.m, 16);
  EXPECT_EQ(mma.n, 8);
  EXPECT_EQ(mma.k, 32);
  EXPECT_EQ(mma.layout, Layout::kRow);
  EXPECT_EQ(mma.layout2, Layout::kCol);
  EXPECT_EQ(mma.types, (std::array{Type::kF32, Type::kE4m3, Type::kE5m2, Type::kF32}));

  EXPECT_EQ(modifiers_of("setp.lo.u32").compare, Compare::kLo);
  EXPECT_EQ(modifiers_of("setp.lo.u32").part, Part::kNone);
  EXPECT_EQ(modifiers_of("mul.lo.u32").part, Part::kLo);
  EXPECT_EQ(modifiers_of("mul.lo.u32").compare, Compare::kNone);
  EXPECT_EQ(modifiers_of("setp.lt.and.f32").operation, Operation::kAnd);
  EXPECT_EQ(modifiers_of("cvt.rn.satfinite.e4m3x2.f32").types[1], Type::kF32);
  EXPECT_EQ(modifiers_of("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32").scale_vector,
            ScaleVector::kBlock32);
  EXPECT_EQ(modifiers_of("tcgen05.ld.sync.aligned.32x32b.x128.b32").count, 128);
  EXPECT_TRUE(modifiers_of("bar.sync").has(Flag::kAligned));
  EXPECT_FALSE(modifiers_of("barrier.sync").has(Flag::kAligned));
}

TEST(InstructionTable, ModifiersInAnotherOrderReadTheSame) {
  EXPECT_EQ(modifiers_of("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::"
                         "complete_tx::bytes"),
            modifiers_of("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
                         "bytes.cta_group::2"));
  EXPECT_EQ(modifiers_of("atom.add.release.gpu.global.u32"),
            modifiers_of("atom.release.gpu.global.add.u32"));
}

}  // namespace
}  // namespace jitgemm::ptx
