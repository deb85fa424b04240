// SPDX-License-Identifier: Apache-2.0
// Binds the written operands of one instruction to the slots of a form: shapes, names, widths,
// vector counts, literal conversion. Part of the resolver; one binder serves one function.
#pragma once

#include "ptx/instruction_table.h"
#include "ptx/scope.h"
#include "ptx/syntax.h"
#include "support/status.h"

#include <string>
#include <vector>

namespace jitgemm::ptx {

class OperandBinder {
 public:
  OperandBinder(const ScopeTree& module_names, const ScopeTree& names, Function& function)
      : module_names_(module_names), names_(names), function_(function) {}

  // True when the operands fit the form; they are then appended to the function and the instruction
  // refers to them. Otherwise mismatch() says why, and the function is unchanged.
  bool bind(const SyntaxInstruction& syntax, uint32_t scope, const Form& form,
            const Modifiers& modifiers, Instruction& instruction);
  const std::string& mismatch() const { return mismatch_; }
  // A name that is declared nowhere: an error whatever the form.
  Status undeclared(const SyntaxInstruction& syntax, uint32_t scope) const;
  std::optional<Name> find(uint32_t scope, std::string_view name) const;

 private:
  struct Item;
  bool fits_shape(const Slot& slot, const Item& item, const Modifiers& modifiers) const;
  bool bind_item(const Slot& slot, const Item& item, Operand& out);
  bool bind_scalar(const Slot& slot, const SyntaxScalar& scalar, Operand& out);
  bool bind_name(const Slot& slot, const SyntaxScalar& scalar, Operand& out);
  bool bind_literal(const Slot& slot, const SyntaxScalar& scalar, Operand& out);
  bool bind_address(const SyntaxScalar& scalar, Operand& out);
  bool bind_vector(const Slot& slot, const std::vector<SyntaxScalar>& elements, Operand& out);
  bool bind_target(const Slot& slot, const SyntaxScalar& scalar, Operand& out);
  bool is_vector_register(const SyntaxScalar& scalar) const;
  bool fail(std::string_view slot, std::string_view why);

  const ScopeTree& module_names_;
  const ScopeTree& names_;
  Function& function_;
  uint32_t scope_ = 0;
  const Modifiers* modifiers_ = nullptr;
  int element_bits_ = 0;  // of the vector at hand under the rule "pack"
  std::string mismatch_;
};

}  // namespace jitgemm::ptx
