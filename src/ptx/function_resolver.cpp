// SPDX-License-Identifier: Apache-2.0
// Two passes over the statements. The first numbers instructions and collects labels and target
// lists, which may be used before they stand; the second declares variables in order and binds
// instructions.
#include "ptx/function_resolver.h"

#include "ptx/control_flow.h"
#include "ptx/operand_binder.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::ptx {
namespace {

constexpr size_t kMaxRegisters = size_t{1} << 20;

uint64_t round_up(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

std::string join(const std::vector<std::string_view>& words) {
  return fmt::format("{}", fmt::join(words, "."));
}

class FunctionResolver {
 public:
  FunctionResolver(const SyntaxFunction& syntax, uint32_t index, FunctionContext& context)
      : syntax_(syntax),
        index_(index),
        context_(context),
        function_(context.module.functions[index]),
        binder_(context.module_names, names_, function_) {}

  Status run() {
    JITGEMM_TRY(parameters(syntax_.returns, function_.returns));
    JITGEMM_TRY(parameters(syntax_.parameters, function_.parameters));
    if (function_.is_declaration) return ok_status();
    JITGEMM_TRY(collect_labels());
    JITGEMM_TRY(resolve_statements());
    build_control_flow(function_);
    return ok_status();
  }

 private:
  Status parameters(const std::vector<SyntaxVariable>& from, std::vector<Parameter>& to) {
    for (const SyntaxVariable& variable : from) {
      Parameter parameter;
      if (variable.space == Space::kNone) {
        if (function_.is_entry)
          return error_at(variable.position, "expected .param of an entry, found .reg");
        parameter.in_register = true;
        parameter.index = static_cast<uint32_t>(function_.registers.size());
        function_.registers.push_back({variable.type, std::string(variable.name)});
        JITGEMM_TRY(declare(0, variable, {Name::Kind::kRegister, parameter.index}));
      } else {
        JITGEMM_ASSIGN(Symbol symbol, make_symbol(variable, SymbolKind::kParameter));
        symbol.function = index_;
        symbol.offset = round_up(function_.parameter_size, symbol.align);
        function_.parameter_size = symbol.offset + symbol.size;
        function_.parameter_align = std::max(function_.parameter_align, symbol.align);
        parameter.index = static_cast<uint32_t>(context_.module.symbols.size());
        context_.module.symbols.push_back(std::move(symbol));
        JITGEMM_TRY(declare(0, variable, {Name::Kind::kSymbol, parameter.index}));
      }
      to.push_back(parameter);
    }
    return ok_status();
  }

  Status declare(uint32_t scope, const SyntaxVariable& variable, Name name) {
    if (variable.name.empty() || variable.name == "_") return ok_status();
    if (names_.declare(scope, variable.name, name)) return ok_status();
    return error_at(variable.position, fmt::format("'{}' is declared twice", variable.name));
  }

  Status collect_labels() {
    uint32_t scope = 0;
    uint32_t instructions = 0;
    for (const SyntaxStatement& statement : syntax_.statements) {
      Name name{Name::Kind::kLabel, instructions};
      switch (statement.kind) {
        case SyntaxStatement::Kind::kScopeBegin: scope = names_.add_scope(scope); continue;
        case SyntaxStatement::Kind::kScopeEnd: scope = names_.parent(scope); continue;
        case SyntaxStatement::Kind::kVariable: continue;
        case SyntaxStatement::Kind::kInstruction: ++instructions; continue;
        case SyntaxStatement::Kind::kLabel: break;
        case SyntaxStatement::Kind::kBranchTargets:
          name = {Name::Kind::kTargets, static_cast<uint32_t>(function_.target_lists.size())};
          function_.target_lists.emplace_back();
          break;
        case SyntaxStatement::Kind::kCallTargets:
          name = {Name::Kind::kCallTargets,
                  static_cast<uint32_t>(function_.call_target_lists.size())};
          JITGEMM_TRY(call_targets(statement, function_.call_target_lists.emplace_back()));
          break;
        case SyntaxStatement::Kind::kCallPrototype:
          name = {Name::Kind::kPrototype, static_cast<uint32_t>(function_.prototypes.size())};
          function_.prototypes.push_back(statement.prototype);
          break;
      }
      if (!names_.declare(scope, statement.name, name)) {
        return error_at(statement.position, fmt::format("'{}' is declared twice", statement.name));
      }
    }
    return ok_status();
  }

  Status resolve_statements() {
    uint32_t scope = 0;
    uint32_t scopes = 0;  // numbered as in the first pass
    uint32_t lists = 0;
    function_.instructions.reserve(syntax_.instructions.size());
    for (const SyntaxStatement& statement : syntax_.statements) {
      switch (statement.kind) {
        case SyntaxStatement::Kind::kScopeBegin: scope = ++scopes; break;
        case SyntaxStatement::Kind::kScopeEnd: scope = names_.parent(scope); break;
        case SyntaxStatement::Kind::kLabel:
        case SyntaxStatement::Kind::kCallTargets:
        case SyntaxStatement::Kind::kCallPrototype: break;
        case SyntaxStatement::Kind::kVariable:
          JITGEMM_TRY(variable(syntax_.variables[statement.index], scope));
          break;
        case SyntaxStatement::Kind::kBranchTargets:
          JITGEMM_TRY(branch_targets(statement, scope, function_.target_lists[lists++]));
          break;
        case SyntaxStatement::Kind::kInstruction:
          JITGEMM_TRY(
              instruction(syntax_.instructions[statement.index], statement.position, scope));
          break;
      }
    }
    return ok_status();
  }

  Status branch_targets(const SyntaxStatement& statement, uint32_t scope,
                        std::vector<uint32_t>& out) {
    for (const std::string_view target : statement.targets) {
      const auto name = names_.find(scope, target);
      if (!name || name->kind != Name::Kind::kLabel) {
        return error_at(statement.position, fmt::format("expected a label, found '{}'", target));
      }
      out.push_back(name->index);
    }
    return ok_status();
  }

  Status call_targets(const SyntaxStatement& statement, std::vector<uint32_t>& out) {
    for (const std::string_view target : statement.targets) {
      const auto name = context_.module_names.find(0, target);
      if (!name || name->kind != Name::Kind::kFunction) {
        return error_at(statement.position, fmt::format("expected a function, found '{}'", target));
      }
      context_.module.functions[name->index].address_taken = true;
      out.push_back(name->index);
    }
    return ok_status();
  }

  Status variable(const SyntaxVariable& variable, uint32_t scope) {
    if (variable.space == Space::kNone) return registers(variable, scope);
    if (variable.range != 0)
      return error_at(variable.position, "expected a single name, found a range");
    if (!variable.initialisers.empty()) {
      return error_at(variable.position, "expected no initial value inside a function");
    }
    const bool call_param = variable.space == Space::kParam;
    JITGEMM_ASSIGN(Symbol symbol, make_symbol(variable, call_param ? SymbolKind::kCallParam
                                                                   : SymbolKind::kVariable));
    symbol.function = index_;
    if (call_param) {
      symbol.offset = round_up(function_.param_frame_size, symbol.align);
      function_.param_frame_size = symbol.offset + symbol.size;
    } else if (symbol.space == Space::kLocal) {
      symbol.offset = round_up(function_.local_frame_size, symbol.align);
      function_.local_frame_size = symbol.offset + symbol.size;
      function_.local_frame_align = std::max(function_.local_frame_align, symbol.align);
    }
    const auto index = static_cast<uint32_t>(context_.module.symbols.size());
    context_.module.symbols.push_back(std::move(symbol));
    return declare(scope, variable, {Name::Kind::kSymbol, index});
  }

  Status registers(const SyntaxVariable& variable, uint32_t scope) {
    // A vector register is as many registers of its type: v.x, v.y, ... (PTX ISA 5.4.2).
    const auto first = static_cast<uint32_t>(function_.registers.size());
    const uint32_t count = std::max(variable.range, 1U);
    const uint32_t elements = variable.vector;
    if (elements > 4 || (elements > 1 && variable.type == Type::kPred)) {
      return error_at(variable.position, "expected a vector register of 2 or 4 numbers");
    }
    if (function_.registers.size() + size_t{count} * elements > kMaxRegisters) {
      return error_at(variable.position,
                      fmt::format("expected at most {} registers", kMaxRegisters));
    }
    if (variable.elements != 1 || variable.incomplete_array || !variable.initialisers.empty()) {
      return error_at(variable.position, "expected a register, found an array");
    }
    for (uint32_t i = 0; i < count; ++i) {
      std::string name(variable.name);
      if (variable.range != 0) name += std::to_string(i);
      if (elements == 1) function_.registers.push_back({variable.type, std::move(name)});
      for (uint32_t e = 0; elements > 1 && e < elements; ++e) {
        function_.registers.push_back({variable.type, fmt::format("{}.{}", name, "xyzw"[e])});
      }
    }
    if (variable.range == 0)
      return declare(scope, variable, {Name::Kind::kRegister, first, elements});
    if (names_.declare_range(scope, variable.name, first, count, elements)) return ok_status();
    return error_at(variable.position, fmt::format("'{}<>' is declared twice", variable.name));
  }

  void report(SourcePosition position, const SyntaxInstruction& syntax, std::string_view reason) {
    context_.unsupported.push_back({position, join(syntax.words), std::string(reason)});
  }

  Status instruction(const SyntaxInstruction& syntax, SourcePosition position, uint32_t scope) {
    Instruction& out = function_.instructions.emplace_back();
    out.position = position;
    if (!syntax.guard.empty()) {
      const auto guard = binder_.find(scope, syntax.guard);
      if (!guard || guard->kind != Name::Kind::kRegister ||
          function_.registers[guard->index].type != Type::kPred) {
        return error_at(position,
                        fmt::format("expected a predicate register, found '{}'", syntax.guard));
      }
      out.guard = guard->index;
      out.guard_negated = syntax.guard_negated;
    }
    JITGEMM_TRY(binder_.undeclared(syntax, scope));
    const MnemonicCache::Entry& mnemonic =
        context_.mnemonics.find(syntax.words, context_.module.mnemonics);
    out.mnemonic = mnemonic.index;
    const InstructionTable& table = InstructionTable::get();
    std::string mismatch;
    for (const MnemonicMatch& match : mnemonic.matches) {
      const Form& form = table.form(match.form);
      if (!binder_.bind(syntax, scope, form, match.modifiers, out)) {
        if (mismatch.empty()) mismatch = binder_.mismatch();
        continue;
      }
      out.opcode = form.row->opcode;
      out.form = match.form;
      out.modifiers = match.modifiers;
      if (form.row->unsupported[0] != '\0') report(position, syntax, form.row->unsupported);
      return calls(out, position);
    }
    if (!mnemonic.matches.empty())
      report(position, syntax, mismatch);
    else if (table.knows(syntax.words[0]))
      report(position, syntax, "no instruction form has these modifiers");
    else
      report(position, syntax, "unknown instruction");
    return ok_status();
  }

  // Results and arguments of a call must be as many as its target's. Elsewhere the name of a
  // function is its address.
  Status calls(const Instruction& instruction, SourcePosition position) {
    const auto operands = function_.operands_of(instruction);
    if (instruction.opcode != Opcode::kCall) {
      for (const Operand& operand : operands) {
        if (operand.kind == OperandKind::kFunction)
          context_.module.functions[operand.index].address_taken = true;
      }
      return ok_status();
    }
    const auto check = [&](size_t returns, size_t parameters) {
      if (operands[0].count == returns && operands[2].count == parameters) return ok_status();
      return error_at(position,
                      fmt::format("expected {} results and {} arguments, found {} and {}", returns,
                                  parameters, operands[0].count, operands[2].count));
    };
    if (operands[1].kind != OperandKind::kFunction) return indirect_call(operands, position, check);
    const uint32_t callee = operands[1].index;
    const Signature& expected = context_.signatures[callee];
    JITGEMM_TRY(check(expected.returns, expected.parameters));
    if (std::find(function_.callees.begin(), function_.callees.end(), callee) ==
        function_.callees.end()) {
      function_.callees.push_back(callee);
    }
    return ok_status();
  }

  template <typename Check>
  Status indirect_call(std::span<const Operand> operands, SourcePosition position,
                       const Check& check) {
    const Operand& how = operands[3];
    if (how.kind == OperandKind::kPrototype) {
      const CallPrototype& prototype = function_.prototypes[how.index];
      return check(prototype.returns, prototype.parameters);
    }
    if (how.kind != OperandKind::kCallTargets) {
      return error_at(position, "expected a prototype or a list of targets of the indirect call");
    }
    for (const uint32_t target : function_.call_target_lists[how.index]) {
      const Signature& expected = context_.signatures[target];
      JITGEMM_TRY(check(expected.returns, expected.parameters));
    }
    return ok_status();
  }

  const SyntaxFunction& syntax_;
  uint32_t index_;
  FunctionContext& context_;
  Function& function_;
  ScopeTree names_;
  OperandBinder binder_;
};

}  // namespace

Status error_at(SourcePosition position, std::string_view what) {
  return invalid_argument(fmt::format("{}:{}: {}", position.line, position.column, what));
}

const MnemonicCache::Entry& MnemonicCache::find(const std::vector<std::string_view>& words,
                                                std::vector<std::string>& mnemonics) {
  const auto [entry, added] = entries_.try_emplace(join(words));
  if (added) {
    entry->second.index = static_cast<uint32_t>(mnemonics.size());
    entry->second.matches = InstructionTable::get().match(words);
    mnemonics.push_back(entry->first);
  }
  return entry->second;
}

Result<Symbol> make_symbol(const SyntaxVariable& variable, SymbolKind kind) {
  const int bits = type_bits(variable.type);
  if (variable.type == Type::kPred || bits < 8) {
    return error_at(
        variable.position,
        fmt::format("expected a type with a size in memory, found .{}", type_name(variable.type)));
  }
  Symbol symbol;
  symbol.name = variable.name;
  symbol.kind = kind;
  symbol.linkage = variable.linkage;
  symbol.space = variable.space;
  symbol.type = variable.type;
  const uint64_t element = static_cast<uint64_t>(bits) / 8 * variable.vector;
  symbol.size = variable.incomplete_array ? 0 : element * variable.elements;
  symbol.incomplete_array = variable.incomplete_array;
  symbol.align =
      variable.align != 0 ? variable.align : static_cast<uint32_t>(std::min<uint64_t>(element, 16));
  return symbol;
}

Status resolve_function(const SyntaxFunction& syntax, uint32_t index, FunctionContext& context) {
  return FunctionResolver(syntax, index, context).run();
}

}  // namespace jitgemm::ptx
