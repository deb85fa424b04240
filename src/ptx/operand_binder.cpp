// SPDX-License-Identifier: Apache-2.0
// Width rules are those of PTX ISA 9.4: a register must have the operand's width, except where a
// form says "that width or wider" (loads, stores, conversions). Signedness and kind never matter.
#include "ptx/operand_binder.h"

#include "ptx/fragment_size.h"
#include "ptx/special_register.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>

namespace jitgemm::ptx {
namespace {

// What a slot's type rule asks of an operand.
struct Width {
  Type type = Type::kNone;  // for literals
  int bits = 0;             // 0: any
  bool or_wider = false;
};

Width width_of(const Slot& slot, const Modifiers& modifiers, int element_bits) {
  const std::string_view rule = slot.type;
  if (element_bits != 0) return {Type::kNone, element_bits, false};
  if (rule == "any") return {};
  if (rule == "2x") return {Type::kNone, 2 * type_bits(modifiers.types[0]), false};
  if (rule == "frag") {
    return modifiers.types[0] == Type::kF64 ? Width{Type::kF64, 64, false}
                                            : Width{Type::kNone, 32, false};
  }
  const bool or_wider = rule.starts_with("ge");
  const std::string_view index = or_wider ? rule.substr(2) : rule;
  const Type type = index.size() == 1 && index[0] >= '0' && index[0] <= '3'
                        ? modifiers.types[static_cast<size_t>(index[0] - '0')]
                        : find_type(rule);
  // Registers are at least a byte; .u4 and its like only name what a wider register holds.
  return {type, type == Type::kPred ? 1 : std::max(type_bits(type), 8), or_wider};
}

// A float literal takes the type of the operand (PTX ISA 4.5.2); bits stay bits.
bool convert_literal(const SyntaxLiteral& literal, const Width& width, Operand& out) {
  out.kind = OperandKind::kImmediate;
  out.type = literal.type;
  out.value = literal.bits;
  const bool is_float = type_kind(literal.type) == TypeKind::kFloat;
  if (width.type == Type::kPred) {
    out.value = literal.bits != 0 ? 1 : 0;
    out.type = Type::kU64;
    return !is_float;
  }
  // Zero is the one integer that is the same as a float.
  const bool wants_float = width.type == Type::kF32 || width.type == Type::kF64;
  if (!is_float) return !wants_float || literal.bits == 0;
  if (width.type == Type::kF32 && literal.type == Type::kF64) {
    out.type = Type::kF32;
    out.value = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(literal.bits)));
    return true;
  }
  if (width.type == Type::kF64 && literal.type == Type::kF32) {
    out.type = Type::kF64;
    out.value = std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(literal.bits))));
    return true;
  }
  return width.bits == 0 || width.bits == type_bits(literal.type) || width.or_wider;
}

constexpr std::string_view kComponents[] = {"x", "y", "z", "w"};
constexpr std::string_view kColours[] = {"r", "g", "b", "a"};

// The element of a vector register that v.x or v.r names; its number of elements if none.
uint32_t component_index(std::string_view component, uint32_t elements) {
  for (uint32_t i = 0; i < elements; ++i) {
    if (component == kComponents[i] || component == kColours[i]) return i;
  }
  return elements;
}

}  // namespace

// One operand as the slots see it: p|q is two, [a, {b}] is two.
struct OperandBinder::Item {
  SyntaxShape shape;
  const std::vector<SyntaxScalar>* elements;
  const SyntaxScalar* scalar;
  bool joined = false;
  bool inside = false;
};

bool OperandBinder::fail(std::string_view slot, std::string_view why) {
  mismatch_ = fmt::format("operand '{}': {}", slot, why);
  return false;
}

std::optional<Name> OperandBinder::find(uint32_t scope, std::string_view name) const {
  if (auto found = names_.find(scope, name)) return found;
  return module_names_.find(0, name);
}

bool OperandBinder::fits_shape(const Slot& slot, const Item& item,
                               const Modifiers& modifiers) const {
  if (slot.joined_by_bar != item.joined || slot.inside_bracket != item.inside) return false;
  switch (slot.shape) {
    case SlotShape::kScalar:
    case SlotShape::kLabel:
    case SlotShape::kTargets:
    case SlotShape::kFunction:
    case SlotShape::kPrototype: return item.shape == SyntaxShape::kScalar;
    case SlotShape::kVector: return item.shape == SyntaxShape::kVector;
    case SlotShape::kScalarOrVector:
      return item.shape == (modifiers.vector > 0 ? SyntaxShape::kVector : SyntaxShape::kScalar);
    case SlotShape::kAddress: return item.shape == SyntaxShape::kAddress;
    case SlotShape::kCallList: return item.shape == SyntaxShape::kCallList;
  }
  return false;
}

bool OperandBinder::bind(const SyntaxInstruction& syntax, uint32_t scope, const Form& form,
                         const Modifiers& modifiers, Instruction& instruction) {
  scope_ = scope;
  modifiers_ = &modifiers;
  mismatch_.clear();
  std::vector<Item> items;
  std::deque<std::vector<SyntaxScalar>> vectors;  // the elements of vector registers
  for (const SyntaxOperand& operand : syntax.operands) {
    if (operand.shape == SyntaxShape::kAddress) {
      for (size_t i = 0; i < operand.parts.size(); ++i) {
        const SyntaxOperand& part = operand.parts[i];
        const SyntaxScalar* scalar =
            part.shape == SyntaxShape::kScalar ? &part.elements[0] : nullptr;
        // A vector cannot come first: it has no address to offer, and no slot takes it there.
        items.push_back({i == 0 && scalar != nullptr ? SyntaxShape::kAddress : part.shape,
                         &part.elements, scalar, false, i > 0});
      }
      continue;
    }
    const bool scalar = operand.shape == SyntaxShape::kScalar;
    if (scalar && is_vector_register(operand.elements[0])) {
      const SyntaxScalar& name = operand.elements[0];
      std::vector<SyntaxScalar>& elements = vectors.emplace_back();
      for (uint32_t i = 0; i < find(scope, name.name)->elements; ++i) {
        elements.push_back(name);
        elements.back().component = kComponents[i];
      }
      items.push_back({SyntaxShape::kVector, &elements, nullptr});
      continue;
    }
    items.push_back({operand.shape, &operand.elements, scalar ? &operand.elements[0] : nullptr});
    if (operand.after_bar)
      items.push_back({SyntaxShape::kScalar, nullptr, &*operand.after_bar, true});
  }
  const auto demanded = [&](const Slot& slot) {
    if (slot.only_with.empty()) return !slot.optional;
    return std::find(syntax.words.begin(), syntax.words.end(), slot.only_with) !=
           syntax.words.end();
  };
  auto required =
      static_cast<size_t>(std::count_if(form.slots.begin(), form.slots.end(), demanded));

  const size_t first = function_.operands.size();
  function_.operands.resize(first + form.slots.size());
  const auto undo = [&] { function_.operands.resize(first); };
  size_t at = 0;
  for (size_t i = 0; i < form.slots.size(); ++i) {
    const Slot& slot = form.slots[i];
    const size_t left = items.size() - at;
    // LLVM writes "st.b32 [a], {r};": a scalar in braces.
    if (left > 0 && slot.shape == SlotShape::kScalarOrVector && modifiers.vector == 0 &&
        items[at].shape == SyntaxShape::kVector && items[at].elements->size() == 1) {
      items[at].shape = SyntaxShape::kScalar;
      items[at].scalar = &(*items[at].elements)[0];
    }
    const bool fits = left > 0 && fits_shape(slot, items[at], modifiers);
    if (demanded(slot)) {
      --required;
      if (!fits) {
        undo();
        return fail(slot.name, left == 0 ? "is missing" : "is of another shape");
      }
    } else if (!fits || !slot.optional || left <= required) {
      continue;
    }
    Operand bound;
    if (!bind_item(slot, items[at], bound)) {
      undo();
      return false;
    }
    function_.operands[first + i] = bound;
    ++at;
  }
  if (at != items.size()) {
    undo();
    return fail(fmt::format("{}", at + 1), "is one too many or of another shape");
  }
  instruction.first_operand = static_cast<uint32_t>(first);
  instruction.operand_count = static_cast<uint16_t>(form.slots.size());
  return true;
}

bool OperandBinder::bind_item(const Slot& slot, const Item& item, Operand& out) {
  element_bits_ = 0;
  if (slot.shape == SlotShape::kAddress) return bind_address(*item.scalar, out);
  if (item.scalar == nullptr) return bind_vector(slot, *item.elements, out);
  if (slot.shape == SlotShape::kScalar || slot.shape == SlotShape::kScalarOrVector) {
    return bind_scalar(slot, *item.scalar, out);
  }
  return bind_target(slot, *item.scalar, out);
}

bool OperandBinder::bind_target(const Slot& slot, const SyntaxScalar& scalar, Operand& out) {
  if (!scalar.is_name || scalar.negated || scalar.offset || !scalar.component.empty()) {
    return fail(slot.name, "must be a name");
  }
  const std::optional<Name> name = find(scope_, scalar.name);
  if (!name) return fail(slot.name, fmt::format("'{}' is not declared", scalar.name));
  out.index = name->index;
  const auto kind = name->kind;
  if (slot.shape == SlotShape::kLabel && kind == Name::Kind::kLabel) out.kind = OperandKind::kLabel;
  if (slot.shape == SlotShape::kTargets && kind == Name::Kind::kTargets)
    out.kind = OperandKind::kTargets;
  if (slot.shape == SlotShape::kPrototype && kind == Name::Kind::kPrototype)
    out.kind = OperandKind::kPrototype;
  if (slot.shape == SlotShape::kPrototype && kind == Name::Kind::kCallTargets)
    out.kind = OperandKind::kCallTargets;
  if (slot.shape == SlotShape::kFunction && kind == Name::Kind::kFunction)
    out.kind = OperandKind::kFunction;
  if (slot.shape == SlotShape::kFunction && kind == Name::Kind::kRegister && name->elements == 1) {
    out.kind = OperandKind::kRegister;  // an indirect call
    out.type = function_.registers[name->index].type;
    if (type_bits(out.type) != 64) return fail(slot.name, "a function's address has 64 bits");
  }
  return out.kind != OperandKind::kNone ||
         fail(slot.name, fmt::format("'{}' names something else", scalar.name));
}

bool OperandBinder::is_vector_register(const SyntaxScalar& scalar) const {
  if (!scalar.is_name || scalar.negated || scalar.offset || !scalar.component.empty()) return false;
  const std::optional<Name> name = find(scope_, scalar.name);
  return name && name->kind == Name::Kind::kRegister && name->elements > 1;
}

bool OperandBinder::bind_address(const SyntaxScalar& scalar, Operand& out) {
  out.kind = OperandKind::kAddress;
  if (scalar.negated || !scalar.component.empty())
    return fail("address", "must be a register, a symbol or a number");
  if (!scalar.is_name) {
    if (type_kind(scalar.literal.type) == TypeKind::kFloat)
      return fail("address", "must not be a float");
    out.base = AddressBase::kAbsolute;
    out.value = scalar.literal.bits;
    return true;
  }
  const std::optional<Name> name = find(scope_, scalar.name);
  if (!name) return fail("address", fmt::format("'{}' is not declared", scalar.name));
  out.index = name->index;
  out.value = scalar.offset.value_or(0);
  if (name->kind == Name::Kind::kSymbol) {
    out.base = AddressBase::kSymbol;
    return true;
  }
  if (name->kind != Name::Kind::kRegister)
    return fail("address", fmt::format("'{}' has no address in memory", scalar.name));
  if (name->elements > 1) return fail("address", "must not be a vector register");
  out.base = AddressBase::kRegister;
  out.type = function_.registers[name->index].type;
  const int bits = type_bits(out.type);
  return bits == 32 || bits == 64 || fail("address", "a base register has 32 or 64 bits");
}

bool OperandBinder::bind_vector(const Slot& slot, const std::vector<SyntaxScalar>& elements,
                                Operand& out) {
  if (const auto count = vector_count(slot.count, *modifiers_)) {
    if (*count == 0) return fail(slot.name, "this shape has no such fragment");
    if (*count != elements.size()) {
      return fail(slot.name,
                  fmt::format("expected {} elements, found {}", *count, elements.size()));
    }
  }
  int element_bits = 0;
  if (slot.count == "pack") {
    const size_t n = elements.size();
    if (n != 2 && n != 4) return fail(slot.name, "expected 2 or 4 elements");
    element_bits = type_bits(modifiers_->types[0]) / static_cast<int>(n);
    if (element_bits < 8) return fail(slot.name, "elements are narrower than a byte");
  }
  out.kind = OperandKind::kVector;
  out.index = static_cast<uint32_t>(function_.operands.size());
  out.count = static_cast<uint32_t>(elements.size());
  function_.operands.resize(function_.operands.size() + elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    element_bits_ = element_bits;
    Operand element;
    if (!bind_scalar(slot, elements[i], element)) return false;
    function_.operands[out.index + i] = element;
  }
  return true;
}

bool OperandBinder::bind_scalar(const Slot& slot, const SyntaxScalar& scalar, Operand& out) {
  if (!scalar.is_name) return bind_literal(slot, scalar, out);
  if (slot.immediate_only) return fail(slot.name, "must be a number");
  if (scalar.is_sink()) {
    out.kind = OperandKind::kSink;
    return slot.role == OperandRole::kWrite || fail(slot.name, "is read, so it cannot be '_'");
  }
  return bind_name(slot, scalar, out);
}

bool OperandBinder::bind_literal(const Slot& slot, const SyntaxScalar& scalar, Operand& out) {
  if (slot.role != OperandRole::kRead)
    return fail(slot.name, "is written, so it must be a register");
  if (slot.register_only) return fail(slot.name, "must be a register");
  const Width width =
      slot.shape == SlotShape::kCallList ? Width{} : width_of(slot, *modifiers_, element_bits_);
  return convert_literal(scalar.literal, width, out) || fail(slot.name, "a number of another kind");
}

bool OperandBinder::bind_name(const Slot& slot, const SyntaxScalar& scalar, Operand& out) {
  const bool written = slot.role != OperandRole::kRead;
  const std::optional<Name> name = find(scope_, scalar.name);
  if (!name) {
    const auto special = find_special_register(scalar.name, scalar.component);
    if (!special) return fail(slot.name, fmt::format("'{}' is not declared", scalar.name));
    if (written || scalar.negated || scalar.offset)
      return fail(slot.name, "a special register is only read");
    const bool is_pred =
        slot.type == "pred" || (slot.type == "0" && modifiers_->type() == Type::kPred);
    if (is_pred != (special->type == Type::kPred))
      return fail(slot.name, "a predicate and a number differ");
    out = *special;
    return true;
  }
  out.index = name->index;
  if (name->elements > 1) {
    const uint32_t element = component_index(scalar.component, name->elements);
    if (element == name->elements)
      return fail(slot.name, fmt::format("'{}' is a vector of {}", scalar.name, name->elements));
    out.index += element;
  } else if (!scalar.component.empty()) {
    return fail(slot.name, fmt::format("'{}' has no components", scalar.name));
  }
  switch (name->kind) {
    case Name::Kind::kSymbol:
    case Name::Kind::kFunction:
      out.kind = name->kind == Name::Kind::kSymbol ? OperandKind::kSymbol : OperandKind::kFunction;
      out.value = scalar.offset.value_or(0);
      return !(written && slot.shape != SlotShape::kCallList) && !scalar.negated
                 ? true
                 : fail(slot.name, "is written, so it must be a register");
    case Name::Kind::kRegister: break;
    case Name::Kind::kLabel:
    case Name::Kind::kTargets:
    case Name::Kind::kCallTargets:
    case Name::Kind::kPrototype: return fail(slot.name, "must not be a label");
  }
  if (scalar.offset) return fail(slot.name, "a register takes an offset only in brackets");
  out.kind = OperandKind::kRegister;
  out.type = function_.registers[out.index].type;
  out.negated = scalar.negated;
  if (scalar.negated && (out.type != Type::kPred || written))
    return fail(slot.name, "'!' is for predicates that are read");
  if (slot.shape == SlotShape::kCallList) return true;
  const Width width = width_of(slot, *modifiers_, element_bits_);
  const int bits = type_bits(out.type);
  if (width.bits == 0) return true;
  if (bits == width.bits || (width.or_wider && width.bits > 1 && bits > width.bits)) return true;
  return fail(slot.name, fmt::format("expected a register of {} bits, found {} of {}", width.bits,
                                     scalar.name, bits));
}

Status OperandBinder::undeclared(const SyntaxInstruction& syntax, uint32_t scope) const {
  const auto check = [&](const std::vector<SyntaxScalar>& scalars) -> Status {
    for (const SyntaxScalar& scalar : scalars) {
      if (!scalar.is_name || scalar.is_sink() || find(scope, scalar.name)) continue;
      if (find_special_register(scalar.name, scalar.component)) continue;
      return invalid_argument(fmt::format("{}:{}: expected a declared name, found '{}{}{}'",
                                          scalar.position.line, scalar.position.column, scalar.name,
                                          scalar.component.empty() ? "" : ".", scalar.component));
    }
    return ok_status();
  };
  for (const SyntaxOperand& operand : syntax.operands) {
    if (Status status = check(operand.elements); !status.ok()) return status;
    for (const SyntaxOperand& part : operand.parts) {
      if (Status status = check(part.elements); !status.ok()) return status;
    }
    if (operand.after_bar) {
      if (Status status = check({*operand.after_bar}); !status.ok()) return status;
    }
  }
  return ok_status();
}

}  // namespace jitgemm::ptx
