// SPDX-License-Identifier: Apache-2.0
// The instruction table: every form of every instruction that this front end knows, one row a form,
// in the notation explained at instruction_rows.h. The resolver matches text against it; the
// interpreter asks it for slot names, roles and the ISA section of a form. No execution here.
#pragma once

#include "ptx/module.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::ptx {

// One row as written.
struct FormRow {
  Opcode opcode;
  const char* syntax;
  const char* section;           // of the PTX ISA
  const char* unsupported = "";  // why no run can execute it; empty for all others
};

enum class SlotShape : uint8_t {
  kScalar,          // register, immediate, special register or symbol address
  kVector,          // {..}
  kScalarOrVector,  // a vector exactly when the mnemonic has .v2, .v4 or .v8
  kAddress,         // [..], or its first part
  kLabel,
  kTargets,
  kFunction,
  kPrototype,
  kCallList,  // (a, b)
};

// One operand slot of a form. A form's operands in Instruction have exactly these places.
struct Slot {
  std::string_view name;
  OperandRole role = OperandRole::kRead;
  SlotShape shape = SlotShape::kScalar;
  bool optional = false;       // may be left out at will
  std::string_view only_with;  // there exactly when this word is in the mnemonic
  bool immediate_only = false;
  bool register_only = false;
  bool joined_by_bar = false;   // q of p|q
  bool inside_bracket = false;  // a part of [a, {c}] after the first
  std::string_view type = "0";  // type rule, see instruction_rows.h
  std::string_view count;       // vector count rule
};

// One place of a mnemonic. Most hold one choice of words; {.a.b} holds two choices in sequence.
struct MnemonicElement {
  bool optional = false;
  bool implied = false;  // never written, always applied
  struct Choice {
    std::vector<std::string_view> words;
    bool comparison = false;  // words are of the field compare
  };
  std::vector<Choice> sequence;
};

struct Form {
  const FormRow* row = nullptr;
  std::string_view first_word;
  std::vector<MnemonicElement> mnemonic;  // after the first word
  std::vector<Slot> slots;
  std::string_view problem;  // what is wrong with the row's notation; empty (the tests see to it)
};

// A way to read a mnemonic.
struct MnemonicMatch {
  uint16_t form = 0;
  Modifiers modifiers;
};

class InstructionTable {
 public:
  // Compiled once from the rows; immutable afterwards.
  static const InstructionTable& get();

  size_t size() const { return forms_.size(); }
  const Form& form(size_t index) const { return forms_[index]; }
  const FormRow& row(const Instruction& instruction) const { return *forms_[instruction.form].row; }
  std::span<const Slot> slots(const Instruction& instruction) const {
    return forms_[instruction.form].slots;
  }

  // Every form that the words of a mnemonic fit, modifiers decoded; the operands choose among them.
  // Words in the manual's order come first; failing that, any order is tried, as ptxas accepts
  // some.
  std::vector<MnemonicMatch> match(std::span<const std::string_view> words) const;
  // True when any row starts with this word.
  bool knows(std::string_view first_word) const;

 private:
  InstructionTable();
  std::vector<Form> forms_;
};

// True when a word of a mnemonic fits a word of a choice; '#' of the choice stands for any number.
bool fits_word(std::string_view choice, std::string_view word);

}  // namespace jitgemm::ptx
