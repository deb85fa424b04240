// SPDX-License-Identifier: Apache-2.0
// Registers are declared in runs of one type and named by run and number, which keeps both their
// ids and the text short. A module variable keeps its name; names inside a function get a number
// where another has taken them.
#include "ptx/printer.h"

#include "ptx/instruction_table.h"
#include "ptx/special_register.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace jitgemm::ptx {
namespace {

std::string_view space_word(Space space) {
  switch (space) {
    case Space::kGlobal: return ".global";
    case Space::kConst: return ".const";
    case Space::kShared: return ".shared";
    case Space::kLocal: return ".local";
    case Space::kParam: return ".param";
    case Space::kNone:
    case Space::kSharedCta:
    case Space::kSharedCluster:
    case Space::kParamEntry:
    case Space::kParamFunc: break;
  }
  return ".reg";
}

std::string_view linkage_word(Linkage linkage) {
  switch (linkage) {
    case Linkage::kInternal: return "";
    case Linkage::kVisible: return ".visible ";
    case Linkage::kWeak: return ".weak ";
    case Linkage::kExtern: return ".extern ";
    case Linkage::kCommon: return ".common ";
  }
  return "";
}

std::string offset_text(uint64_t offset) {
  const auto value = static_cast<int64_t>(offset);
  return value == 0 ? std::string() : fmt::format("+{}", value);
}

std::string immediate_text(const Operand& operand) {
  switch (operand.type) {
    case Type::kF32: return fmt::format("0f{:08X}", operand.value);
    case Type::kF64: return fmt::format("0d{:016X}", operand.value);
    case Type::kU64: return fmt::format("{}U", operand.value);
    default: return fmt::format("{}", static_cast<int64_t>(operand.value));
  }
}

// Names of one module, and of the function at hand.
class Names {
 public:
  explicit Names(const Module& module) : module_(module), symbols_(module.symbols.size()) {
    for (const Function& function : module.functions) taken_.insert(function.name);
    for (const Symbol& symbol : module.symbols) {
      if (symbol.function == kNoIndex) taken_.insert(symbol.name);
    }
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Symbol& symbol = module.symbols[i];
      symbols_[i] = symbol.function == kNoIndex ? symbol.name : unique(symbol.name);
    }
  }

  void enter(const Function& function) {
    function_ = &function;
    run_of_.resize(function.registers.size());
    first_of_run_.clear();
    for (uint32_t i = 0; i < function.registers.size(); ++i) {
      const bool starts = i == parameter_registers(function) || i == 0 ||
                          i < parameter_registers(function) ||
                          function.registers[i].type != function.registers[i - 1].type;
      if (starts) first_of_run_.push_back(i);
      run_of_[i] = static_cast<uint32_t>(first_of_run_.size() - 1);
    }
  }

  // Registers that the header declares come first.
  static uint32_t parameter_registers(const Function& function) {
    uint32_t count = 0;
    for (const auto* list : {&function.returns, &function.parameters}) {
      for (const Parameter& parameter : *list) count += parameter.in_register ? 1 : 0;
    }
    return count;
  }

  const std::string& symbol(uint32_t index) const { return symbols_[index]; }
  const std::string& function(uint32_t index) const { return module_.functions[index].name; }
  std::string reg(uint32_t index) const {
    const uint32_t run = run_of_[index];
    return fmt::format("%r{}_{}", run, index - first_of_run_[run]);
  }
  const std::vector<uint32_t>& first_of_run() const { return first_of_run_; }

 private:
  std::string unique(const std::string& name) {
    if (!name.empty() && name != "_" && taken_.insert(name).second) return name;
    // Repeated names cost one probe each: the next number is remembered.
    uint32_t& next = next_number_[name];
    while (true) {
      std::string candidate =
          fmt::format("{}${}", name.empty() || name == "_" ? "v" : name, next++);
      if (taken_.insert(candidate).second) return candidate;
    }
  }

  const Module& module_;
  const Function* function_ = nullptr;
  std::vector<std::string> symbols_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, uint32_t> next_number_;
  std::vector<uint32_t> run_of_;
  std::vector<uint32_t> first_of_run_;
};

class Printer {
 public:
  explicit Printer(const Module& module) : module_(module), names_(module) {}

  std::string module_text() {
    put(".version {}.{}\n.target {}\n.address_size {}\n\n", module_.version_major,
        module_.version_minor, module_.target, module_.address_size);
    if (needs_prototypes()) {
      for (const Function& function : module_.functions) prototype_of(function);
      put("\n");
    }
    for (uint32_t i = 0; i < module_.symbols.size(); ++i) {
      if (module_.symbols[i].function == kNoIndex) variable(i, "");
    }
    for (uint32_t i = 0; i < module_.functions.size(); ++i) function_text(i);
    return std::move(out_);
  }

  std::string instruction_text(const Function& function, const Instruction& instruction) {
    names_.enter(function);
    print_one(function, instruction);
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void declarator(uint32_t index) {
    const Symbol& symbol = module_.symbols[index];
    const uint64_t element = static_cast<uint64_t>(type_bits(symbol.type)) / 8;
    put("{} .align {} .{} {}", space_word(symbol.space), symbol.align, type_name(symbol.type),
        names_.symbol(index));
    if (symbol.incomplete_array)
      put("[]");
    else if (symbol.size != element)
      put("[{}]", symbol.size / element);
  }

  void variable(uint32_t index, std::string_view indent) {
    const Symbol& symbol = module_.symbols[index];
    put("{}{}", indent, linkage_word(symbol.linkage));
    declarator(index);
    if (!symbol.data.empty()) initial_values(symbol);
    put(";\n");
  }

  void initial_values(const Symbol& symbol) {
    const uint64_t bytes = static_cast<uint64_t>(type_bits(symbol.type)) / 8;
    std::unordered_map<uint64_t, const Relocation*> relocations;
    for (const Relocation& relocation : symbol.relocations)
      relocations[relocation.offset] = &relocation;
    const bool array = symbol.size != bytes;
    put(" = {}", array ? "{" : "");
    for (uint64_t offset = 0; offset < symbol.size; offset += bytes) {
      if (offset > 0) put(", ");
      if (const auto found = relocations.find(offset); found != relocations.end()) {
        relocation_text(*found->second);
        continue;
      }
      uint64_t bits = 0;
      std::memcpy(&bits, symbol.data.data() + offset, std::min<uint64_t>(bytes, sizeof(bits)));
      if (symbol.type == Type::kF32)
        put("0f{:08X}", bits);
      else if (symbol.type == Type::kF64)
        put("0d{:016X}", bits);
      else
        put("{}", bits);
    }
    put("{}", array ? "}" : "");
  }

  void relocation_text(const Relocation& relocation) {
    const std::string& name = relocation.is_function ? names_.function(relocation.index)
                                                     : names_.symbol(relocation.index);
    put("{}", relocation.generic ? fmt::format("generic({})", name) : name);
    if (relocation.addend != 0) put("+{}", relocation.addend);
  }

  void parameter_list(const std::vector<Parameter>& list, const Function& function) {
    put("(");
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) put(", ");
      if (list[i].in_register) {
        put(".reg .{} {}", type_name(function.registers[list[i].index].type),
            names_.reg(list[i].index));
      } else {
        declarator(list[i].index);
      }
    }
    put(")");
  }

  void directives(const Function& function) {
    const auto three = [&](std::string_view word, const std::array<uint32_t, 3>& value) {
      if (value[0] != 0) put("\n.{} {}, {}, {}", word, value[0], value[1], value[2]);
    };
    const auto one = [&](std::string_view word, uint32_t value) {
      if (value != 0) put("\n.{} {}", word, value);
    };
    if (function.noreturn) put("\n.noreturn");
    three("maxntid", function.maxntid);
    three("reqntid", function.reqntid);
    three("reqnctapercluster", function.reqnctapercluster);
    one("minnctapersm", function.minnctapersm);
    one("maxnreg", function.maxnreg);
    one("maxclusterrank", function.maxclusterrank);
    if (function.explicitcluster) put("\n.explicitcluster");
    if (function.blocksareclusters) put("\n.blocksareclusters");
  }

  // PTX wants a function declared before its address or a call; all are then, to keep their order.
  bool needs_prototypes() const {
    for (const Function& function : module_.functions) {
      if (function.address_taken) return true;
    }
    for (uint32_t i = 0; i < module_.functions.size(); ++i) {
      for (const uint32_t callee : module_.functions[i].callees) {
        if (callee > i) return true;
      }
    }
    return false;
  }

  void header(const Function& function) {
    put("\n{}{} ", linkage_word(function.linkage), function.is_entry ? ".entry" : ".func");
    if (!function.returns.empty()) {
      parameter_list(function.returns, function);
      put(" ");
    }
    put("{}", function.name);
    parameter_list(function.parameters, function);
  }

  void prototype_of(const Function& function) {
    names_.enter(function);
    header(function);
    if (function.noreturn) put("\n.noreturn");
    put(";");
  }

  void function_text(uint32_t index) {
    const Function& function = module_.functions[index];
    names_.enter(function);
    header(function);
    directives(function);
    if (function.is_declaration) {
      put(";\n");
      return;
    }
    put("\n{{\n");
    declarations(index);
    body(function);
    put("}}\n");
  }

  void declarations(uint32_t index) {
    const Function& function = module_.functions[index];
    const auto& starts = names_.first_of_run();
    for (size_t run = 0; run < starts.size(); ++run) {
      if (starts[run] < Names::parameter_registers(function)) continue;
      const size_t end = run + 1 < starts.size() ? starts[run + 1] : function.registers.size();
      put("  .reg .{} %r{}_<{}>;\n", type_name(function.registers[starts[run]].type), run,
          end - starts[run]);
    }
    for (uint32_t i = 0; i < module_.symbols.size(); ++i) {
      if (module_.symbols[i].function == index && module_.symbols[i].kind != SymbolKind::kParameter)
        variable(i, "  ");
    }
    for (size_t i = 0; i < function.prototypes.size(); ++i) prototype(i, function.prototypes[i]);
    for (size_t i = 0; i < function.call_target_lists.size(); ++i) {
      put("  $calls{}: .calltargets ", i);
      for (size_t j = 0; j < function.call_target_lists[i].size(); ++j) {
        put("{}{}", j > 0 ? ", " : "", names_.function(function.call_target_lists[i][j]));
      }
      put(";\n");
    }
  }

  void formal_list(const std::vector<FormalParameter>& list) {
    put("(");
    for (size_t i = 0; i < list.size(); ++i) {
      const FormalParameter& formal = list[i];
      if (i > 0) put(", ");
      if (formal.in_register) {
        put(".reg .{} _", type_name(formal.type));
        continue;
      }
      put(".param .align {} .{} _", formal.align, type_name(formal.type));
      const uint64_t element = static_cast<uint64_t>(type_bits(formal.type) + 7) / 8;
      if (formal.size != element) put("[{}]", formal.size / element);
    }
    put(")");
  }

  void prototype(size_t index, const CallPrototype& prototype) {
    put("  $prototype{}: .callprototype ", index);
    if (prototype.returns > 0) formal_list(prototype.return_list);
    put(" _ ");
    formal_list(prototype.parameter_list);
    put("{};\n", prototype.noreturn ? " .noreturn" : "");
  }

  void body(const Function& function) {
    std::set<uint32_t> targets;
    for (const auto& list : function.target_lists) targets.insert(list.begin(), list.end());
    for (const Instruction& instruction : function.instructions) {
      if (instruction.opcode == Opcode::kBra)
        targets.insert(function.operands_of(instruction)[0].index);
    }
    for (size_t i = 0; i < function.target_lists.size(); ++i) {
      put("  $targets{}: .branchtargets ", i);
      for (size_t j = 0; j < function.target_lists[i].size(); ++j) {
        put("{}$L{}", j > 0 ? ", " : "", function.target_lists[i][j]);
      }
      put(";\n");
    }
    for (uint32_t i = 0; i < function.instructions.size(); ++i) {
      if (targets.contains(i)) put("$L{}:\n", i);
      put("  ");
      print_one(function, function.instructions[i]);
      put(";\n");
    }
    if (const auto end = static_cast<uint32_t>(function.instructions.size());
        targets.contains(end)) {
      put("$L{}:\n", end);
    }
  }

  void print_one(const Function& function, const Instruction& instruction) {
    if (instruction.guard != kNoIndex) {
      put("@{}{} ", instruction.guard_negated ? "!" : "", names_.reg(instruction.guard));
    }
    put("{}", module_.mnemonics[instruction.mnemonic]);
    const auto operands = function.operands_of(instruction);
    const auto slots = InstructionTable::get().slots(instruction);
    bool first = true;
    bool open = false;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (open && !slots[i].inside_bracket) {
        put("]");
        open = false;
      }
      if (!operands[i].present()) continue;
      put("{}", first ? " " : slots[i].joined_by_bar ? "|" : ", ");
      first = false;
      open = open || slots[i].shape == SlotShape::kAddress;
      operand_text(function, operands[i], slots[i]);
    }
    if (open) put("]");
  }

  void operand_text(const Function& function, const Operand& operand, const Slot& slot) {
    switch (operand.kind) {
      case OperandKind::kNone: break;
      case OperandKind::kRegister:
        put("{}{}", operand.negated ? "!" : "", names_.reg(operand.index));
        break;
      case OperandKind::kImmediate: put("{}", immediate_text(operand)); break;
      case OperandKind::kSpecialRegister: put("{}", special_register_text(operand)); break;
      case OperandKind::kSymbol:
        put("{}{}", names_.symbol(operand.index), offset_text(operand.value));
        break;
      case OperandKind::kAddress: address_text(operand); break;
      case OperandKind::kVector: vector_text(function, operand, slot); break;
      case OperandKind::kLabel: put("$L{}", operand.index); break;
      case OperandKind::kTargets: put("$targets{}", operand.index); break;
      case OperandKind::kFunction: put("{}", names_.function(operand.index)); break;
      case OperandKind::kPrototype: put("$prototype{}", operand.index); break;
      case OperandKind::kCallTargets: put("$calls{}", operand.index); break;
      case OperandKind::kSink: put("_"); break;
    }
  }

  void address_text(const Operand& operand) {
    put("[");
    switch (operand.base) {
      case AddressBase::kAbsolute: put("{}U", operand.value); break;
      case AddressBase::kRegister:
        put("{}{}", names_.reg(operand.index), offset_text(operand.value));
        break;
      case AddressBase::kSymbol:
        put("{}{}", names_.symbol(operand.index), offset_text(operand.value));
        break;
    }
  }

  void vector_text(const Function& function, const Operand& operand, const Slot& slot) {
    const bool list = slot.shape == SlotShape::kCallList;
    put("{}", list ? "(" : "{");
    const auto elements = function.elements_of(operand);
    for (size_t i = 0; i < elements.size(); ++i) {
      if (i > 0) put(", ");
      operand_text(function, elements[i], slot);
    }
    put("{}", list ? ")" : "}");
  }

  const Module& module_;
  Names names_;
  std::string out_;
};

}  // namespace

std::string print_module(const Module& module) {
  return Printer(module).module_text();
}

std::string print_instruction(const Module& module, const Function& function,
                              const Instruction& instruction) {
  return Printer(module).instruction_text(function, instruction);
}

}  // namespace jitgemm::ptx
