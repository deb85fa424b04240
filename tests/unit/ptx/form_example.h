// SPDX-License-Identifier: Apache-2.0
// Example texts of the instruction table's forms, made from their notation: the shortest text of a
// form, and one for every word that the form allows.
#pragma once

#include "ptx/fragment_size.h"
#include "ptx/instruction_table.h"
#include "ptx/load.h"
#include "ptx/modifier_words.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::ptx {

// Registers of every width, a symbol, a label, a function and the rest that an example may name.
inline constexpr std::string_view kExampleHead = R"(
.address_size 64
.global .align 16 .b8 data[64];
.extern .func (.param .b32 result) callee (.param .b64 argument);
.visible .entry example(.param .align 16 .b8 parameter[64])
{
.reg .pred %p<8>;
.reg .b8 %b<8>;
.reg .b16 %h<600>;
.reg .b32 %r<600>;
.reg .b64 %d<600>;
.reg .b128 %q<8>;
.param .b32 result;
.param .b64 argument;
label:
targets: .branchtargets label, label;
prototype: .callprototype (.param .b32 _) _ (.param .b64 _);
)";

struct FormExample {
  std::string instruction;  // without ';'
  size_t line_in_module = 19;
  std::string module(std::string_view target) const {
    return ".version 9.0\n.target " + std::string(target) + std::string(kExampleHead) +
           instruction + ";\nret;\n}\n";
  }
  // For a target that has it, else for the last asked.
  Result<Module> loaded() const {
    for (const char* target : {"sm_100a", "sm_90a", "sm_103a"}) {
      if (Result<Module> module = load_module(this->module(target))) return module;
    }
    return load_module(module("sm_120a"));
  }
};

namespace example_detail {

inline std::string register_of(int bits, size_t index) {
  switch (bits) {
    case 1: return "%p" + std::to_string(index % 8);
    case 8: return "%b" + std::to_string(index % 8);
    case 16: return "%h" + std::to_string(index);
    case 64: return "%d" + std::to_string(index);
    case 128: return "%q" + std::to_string(index % 8);
    default: return "%r" + std::to_string(index);
  }
}

inline int slot_bits(const Slot& slot, const Modifiers& modifiers, size_t elements) {
  std::string_view rule = slot.type;
  if (slot.count == "pack") return type_bits(modifiers.types[0]) / static_cast<int>(elements);
  if (rule == "any") return 64;
  if (rule == "2x") return 2 * type_bits(modifiers.types[0]);
  if (rule == "frag") return modifiers.types[0] == Type::kF64 ? 64 : 32;
  const bool wide_register = rule.starts_with("ge");
  if (wide_register) rule.remove_prefix(2);
  const Type type =
      rule.size() == 1 ? modifiers.types[static_cast<size_t>(rule[0] - '0')] : find_type(rule);
  if (type == Type::kPred) return 1;
  return std::max(type_bits(type), wide_register ? 16 : 8);
}

inline std::string slot_text(const Slot& slot, const Form& form, const Modifiers& modifiers,
                             size_t& next) {
  const bool tensor_memory = form.first_word == "tcgen05";
  switch (slot.shape) {
    case SlotShape::kLabel: return "label";
    case SlotShape::kTargets: return "targets";
    case SlotShape::kFunction: return "callee";
    case SlotShape::kPrototype: return "prototype";
    case SlotShape::kCallList: return slot.role == OperandRole::kWrite ? "(result)" : "(argument)";
    case SlotShape::kAddress:
      return tensor_memory ? "[%r" + std::to_string(next++) : "[%d" + std::to_string(next++);
    case SlotShape::kScalar:
    case SlotShape::kVector:
    case SlotShape::kScalarOrVector: break;
  }
  if (slot.immediate_only) return "1";
  if (slot.shape == SlotShape::kScalar ||
      (slot.shape == SlotShape::kScalarOrVector && modifiers.vector == 0)) {
    return register_of(slot_bits(slot, modifiers, 1), next++);
  }
  const size_t elements =
      vector_count(slot.count, modifiers).value_or(slot.count == "pack" ? 2 : 4);
  std::string text = "{";
  for (size_t i = 0; i < elements; ++i) {
    text += (i > 0 ? ", " : "") + register_of(slot_bits(slot, modifiers, elements), next++);
  }
  return text + "}";
}

}  // namespace example_detail

// The example with these words; every operand that may be left out is, unless with_optional.
inline FormExample make_example(const Form& form, const std::vector<std::string_view>& words,
                                bool with_optional) {
  Modifiers modifiers;
  for (const auto& match : InstructionTable::get().match(words)) {
    if (&InstructionTable::get().form(match.form) == &form) modifiers = match.modifiers;
  }
  FormExample example;
  for (size_t i = 0; i < words.size(); ++i)
    example.instruction += (i > 0 ? "." : "") + std::string(words[i]);
  size_t next = 0;
  bool first = true;
  bool open = false;
  for (const Slot& slot : form.slots) {
    if (open && !slot.inside_bracket) {
      example.instruction += "]";
      open = false;
    }
    const bool chosen = slot.only_with.empty()
                            ? !slot.optional || with_optional
                            : std::find(words.begin(), words.end(), slot.only_with) != words.end();
    if (!chosen) continue;
    example.instruction += first ? " " : slot.joined_by_bar ? "|" : ", ";
    first = false;
    example.instruction += example_detail::slot_text(slot, form, modifiers, next);
    open = open || slot.shape == SlotShape::kAddress;
  }
  if (open) example.instruction += "]";
  return example;
}

// The word that stands for a choice entry; a '#' becomes a number that every rule allows.
inline std::string_view example_word(std::string_view entry) {
  if (entry == "m64n#k16") return "m64n16k16";
  if (entry == "m64n#k8") return "m64n16k8";
  if (entry == "m64n#k32") return "m64n16k32";
  if (entry == "m64n#k64") return "m64n16k64";
  return entry;
}

inline std::vector<FormExample> examples_of(const Form& form) {
  const auto words_with = [&](size_t element, size_t place, size_t word, bool all_optional) {
    std::vector<std::string_view> words{form.first_word};
    for (size_t e = 0; e < form.mnemonic.size(); ++e) {
      const MnemonicElement& at = form.mnemonic[e];
      if (at.implied || (at.optional && !all_optional && e != element)) continue;
      for (size_t c = 0; c < at.sequence.size(); ++c) {
        words.push_back(example_word(at.sequence[c].words[e == element && c == place ? word : 0]));
      }
    }
    return words;
  };
  std::vector<FormExample> out;
  out.push_back(make_example(form, words_with(SIZE_MAX, 0, 0, false), false));
  out.push_back(make_example(form, words_with(SIZE_MAX, 0, 0, true), true));
  for (size_t e = 0; e < form.mnemonic.size(); ++e) {
    if (form.mnemonic[e].implied) continue;
    for (size_t c = 0; c < form.mnemonic[e].sequence.size(); ++c) {
      for (size_t w = 0; w < form.mnemonic[e].sequence[c].words.size(); ++w) {
        out.push_back(make_example(form, words_with(e, c, w, false), false));
      }
    }
  }
  return out;
}

}  // namespace jitgemm::ptx
