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
  kScalar,   // register, immediate, special register or symbol address
  kVector,   // {..}
  kAddress,  // [..], or one part inside the brackets when it continues the slot before
  kLabel,
  kTargets,
  kFunction,
  kPrototype,
  kCallList,  // (a, b)
};

// One operand slot of a form.
struct Slot {
  std::string_view name;
  OperandRole role = OperandRole::kRead;
  SlotShape shape = SlotShape::kScalar;
  bool optional = false;
  bool immediate_only = false;
  bool register_only = false;
  bool joined_by_bar = false;   // p|q: this slot follows the one before after '|'
  bool opens_bracket = false;   // first part of [a, {c}]
  bool inside_bracket = false;  // a further part of it
  bool closes_bracket = false;
  std::string_view type;   // type rule, as in the row
  std::string_view count;  // vector count rule, as in the row
};

struct Form {
  const FormRow* row = nullptr;
  std::vector<Slot> slots;
};

class InstructionTable {
 public:
  // Compiled once from the rows; immutable afterwards.
  static const InstructionTable& get();

  size_t size() const { return forms_.size(); }
  const Form& form(size_t index) const { return forms_[index]; }
  const FormRow& row(const Instruction& instruction) const { return *forms_[instruction.form].row; }

 private:
  InstructionTable();
  std::vector<Form> forms_;
};

}  // namespace jitgemm::ptx
