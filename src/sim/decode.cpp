// SPDX-License-Identifier: Apache-2.0
#include "sim/decode.h"

#include "fmt/format.h"
#include "ptx/call_graph.h"
#include "ptx/instruction_table.h"
#include "ptx/load.h"
#include "sim/decode_layout.h"
#include "sim/exec.h"
#include "sim/exec_control.h"
#include "sim/memory.h"
#include "sim/reconvergence.h"

#include <algorithm>
#include <map>

namespace jitgemm::sim {
namespace {

using ptx::kNoIndex;
using ptx::Module;
using ptx::Symbol;
using ptx::SymbolKind;
using ptx::Type;

constexpr size_t kMaxFunctions = 65535;  // Op::function
constexpr size_t kMaxCallSites = 1 << 18;
constexpr size_t kCallTargetSlot = 1;  // call (ret), f, (args), proto

// The type that an operand of this slot is read as; kNone where the slot asks for none.
Type slot_type(const ptx::Slot& slot, const ptx::Modifiers& m) {
  const std::string_view rule = slot.type;
  if (rule.empty() || rule == "0" || rule == "ge0") return m.types[0];
  if (rule == "1" || rule == "ge1") return m.types[1];
  if (rule == "2") return m.types[2];
  if (rule == "3") return m.types[3];
  if (rule == "2x") return ptx::type_bits(m.types[0]) == 16 ? Type::kB32 : Type::kB64;
  if (rule == "frag") return m.types[0] == Type::kF64 ? Type::kF64 : Type::kB32;
  return ptx::find_type(rule);
}

bool is_clock(ptx::SpecialRegister s) {
  using S = ptx::SpecialRegister;
  return s == S::kClock || s == S::kClockHi || s == S::kClock64 || s == S::kGlobaltimer ||
         s == S::kGlobaltimerLo || s == S::kGlobaltimerHi;
}

class KernelDecoder {
 public:
  KernelDecoder(const Module& module, const ptx::Function& entry,
                const std::vector<uint32_t>& cycles)
      : module_(module), cycles_(cycles), layout_(module, cycles, kernel_) {
    kernel_.function = &entry;
  }

  Result<DecodedKernel> decode() {
    collect(static_cast<uint32_t>(kernel_.function - module_.functions.data()));
    layout_.place(functions_);
    kernel_.shared_static_bytes = kSharedReserved + kernel_.function->shared_size;
    uint32_t ops = 0;
    for (uint32_t f : functions_) {
      first_op_[f] = ops;
      ops += static_cast<uint32_t>(module_.functions[f].instructions.size()) + 1;
    }
    for (uint32_t f : functions_) JITGEMM_TRY(decode_function(f));
    for (Op& op : kernel_.ops) {
      if (op.reconverge != kNoIndex) kernel_.ops[op.reconverge].flags |= kOpReconvergence;
    }
    flag_fragments();
    kernel_.file_bytes = layout_.file_bytes();
    return std::move(kernel_);
  }

 private:
  // The entry and every function that it reaches.
  void collect(uint32_t entry) {
    functions_.push_back(entry);
    std::vector<bool> seen(module_.functions.size());
    seen[entry] = true;
    for (size_t i = 0; i < functions_.size(); ++i) {
      const ptx::Function& f = module_.functions[functions_[i]];
      for (const uint32_t callee : f.callees) {
        if (seen[callee] || module_.functions[callee].is_declaration) continue;
        seen[callee] = true;
        functions_.push_back(callee);
      }
      for (const ptx::Instruction& instruction : f.instructions) {
        kernel_.uses_stack |= instruction.opcode == ptx::Opcode::kAlloca ||
                              instruction.opcode == ptx::Opcode::kStacksave ||
                              instruction.opcode == ptx::Opcode::kStackrestore;
      }
    }
  }

  template <typename Fn>
  void for_each_state(const Operand& slot, Fn fn) const {
    if (slot.kind != OperandKind::kList) return fn(slot.state);
    for (uint32_t i = 0; i < slot.count; ++i) fn(kernel_.lists[slot.offset + i].state);
  }

  // Slots 0 and 1 of wgmma are D and A.
  void flag_fragments() {
    const auto is_wgmma = [](const Op& op) {
      return op.instruction != nullptr && op.instruction->opcode == ptx::Opcode::kWgmmaMmaAsync;
    };
    std::vector<bool> fragments(kernel_.state_count);
    for (const Op& op : kernel_.ops) {
      if (!is_wgmma(op)) continue;
      for (uint32_t i = 0; i < 2; ++i) {
        if (op.slot(i).kind == OperandKind::kList)
          for_each_state(op.slot(i), [&](uint32_t state) { fragments[state] = true; });
      }
    }
    fragments[0] = false;  // constants
    for (Op& op : kernel_.ops) {
      if (is_wgmma(op)) continue;
      bool touches = false;
      for (uint32_t i = 0; i < op.slot_count; ++i)
        for_each_state(op.slot(i), [&](uint32_t state) { touches |= fragments[state]; });
      if (touches) op.flags |= kOpFragments;
    }
  }

  // A value of `type` that moves at a call: register, constant or bytes of a frame.
  Status set_end(uint32_t f, const ptx::Operand& o, Type type, bool is_from, ParamCopy& copy,
                 uint64_t& bytes) {
    if (o.kind == ptx::OperandKind::kSymbol) {
      const Symbol& s = module_.symbols[o.index];
      const bool own = s.kind == SymbolKind::kParameter;
      if (s.kind == SymbolKind::kVariable || (own && module_.functions[f].is_entry))
        return unsupported(fmt::format("'{}' is no parameter that a call can pass", s.name));
      const uint64_t base = own ? layout_.parameter_frame(f) : layout_.call_frame(f);
      (is_from ? copy.from : copy.to) = static_cast<uint32_t>(base + s.offset);
      (is_from ? copy.from_frame : copy.to_frame) = kernel_.stack_frames.contains(f);
      bytes = s.size;
      return ok_status();
    }
    JITGEMM_ASSIGN(Operand value, layout_.operand(f, o, type, ptx::OperandRole::kRead));
    (is_from ? copy.from_register : copy.to_register) = true;
    (is_from ? copy.from_operand : copy.to_operand) = value;
    return ok_status();
  }

  Status add_copies(uint32_t caller, uint32_t callee, std::span<const ptx::Operand> actual,
                    const std::vector<ptx::Parameter>& formal, bool to_callee,
                    std::vector<ParamCopy>& copies) {
    if (actual.size() != formal.size()) {
      return unsupported(fmt::format("a call of '{}' passes {} values, it takes {}",
                                     module_.functions[callee].name, actual.size(), formal.size()));
    }
    for (size_t i = 0; i < actual.size(); ++i) {
      ParamCopy copy;
      ptx::Operand inner;
      Type type;
      uint64_t formal_bytes = 0, actual_bytes = 0;
      if (formal[i].in_register) {
        inner.kind = ptx::OperandKind::kRegister;
        type = module_.functions[callee].registers[formal[i].index].type;
        formal_bytes = static_cast<uint64_t>(std::max(8, ptx::type_bits(type))) / 8;
      } else {
        inner.kind = ptx::OperandKind::kSymbol;
        type = module_.symbols[formal[i].index].type;
        formal_bytes = module_.symbols[formal[i].index].size;
      }
      inner.index = formal[i].index;
      if (type == Type::kPred) return unsupported("a predicate as parameter of a call");
      actual_bytes = formal_bytes;
      uint64_t ignored = 0;
      JITGEMM_TRY(set_end(callee, inner, type, !to_callee, copy, ignored));
      JITGEMM_TRY(set_end(caller, actual[i], type, to_callee, copy, actual_bytes));
      copy.bytes = static_cast<uint32_t>(std::min(formal_bytes, actual_bytes));
      copies.push_back(copy);
    }
    return ok_status();
  }

  Status decode_call(uint32_t f, const ptx::Instruction& instruction,
                     std::span<const ptx::Operand> operands, Op& op) {
    const ptx::Function& function = module_.functions[f];
    uint32_t callee = kNoIndex;
    std::span<const ptx::Operand> results, arguments;
    const auto& form = ptx::InstructionTable::get().form(instruction.form);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].kind == ptx::OperandKind::kFunction) callee = operands[i].index;
      if (operands[i].kind == ptx::OperandKind::kVector) {
        (form.slots[i].role == ptx::OperandRole::kWrite ? results : arguments) =
            function.elements_of(operands[i]);
      }
    }
    if (op.guard_state != 0 || callee == kNoIndex) op.reconverge = op.index + 1;
    if (callee == kNoIndex) {
      std::map<uint32_t, uint32_t> sites;
      for (const uint32_t target : ptx::indirect_targets(module_, function, instruction)) {
        if (module_.functions[target].is_declaration) continue;
        JITGEMM_ASSIGN(sites[target], add_call_site(f, target, results, arguments));
      }
      op.payload = kernel_.indirect_calls.size();
      kernel_.indirect_calls.push_back(std::move(sites));
      return ok_status();
    }
    if (module_.functions[callee].is_declaration) {
      CallSite site;
      op.execute = external_function(module_.functions[callee].name);
      for (const ptx::Operand& result : results) {
        ParamCopy zero;
        zero.from_register = true;
        zero.from_operand = layout_.constant(0, 8);
        uint64_t bytes = 4;
        JITGEMM_TRY(set_end(f, result, Type::kB32, false, zero, bytes));
        zero.bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, 8));
        site.results.push_back(zero);
      }
      for (const ptx::Operand& actual : arguments) {
        ParamCopy copy;
        uint64_t bytes = 8;
        JITGEMM_TRY(set_end(f, actual, Type::kB64, true, copy, bytes));
        copy.bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, 8));
        site.arguments.push_back(copy);
      }
      op.payload = kernel_.call_sites.size();
      kernel_.call_sites.push_back(std::move(site));
      return ok_status();
    }
    JITGEMM_ASSIGN(op.payload, add_call_site(f, callee, results, arguments));
    op.target = first_op_[callee];
    return ok_status();
  }

  Result<uint32_t> add_call_site(uint32_t caller, uint32_t callee,
                                 std::span<const ptx::Operand> results,
                                 std::span<const ptx::Operand> arguments) {
    if (kernel_.call_sites.size() == kMaxCallSites) {
      return Status(unsupported(fmt::format(
          "more than {} pairs of a call and a function that it may reach", kMaxCallSites)));
    }
    CallSite site;
    site.callee = callee;
    site.callee_first_op = first_op_[callee];
    site.reenters = cycles_[caller] != kNoIndex && cycles_[caller] == cycles_[callee];
    const ptx::Function& target = module_.functions[callee];
    JITGEMM_TRY(add_copies(caller, callee, arguments, target.parameters, true, site.arguments));
    JITGEMM_TRY(add_copies(caller, callee, results, target.returns, false, site.results));
    kernel_.call_sites.push_back(std::move(site));
    return static_cast<uint32_t>(kernel_.call_sites.size() - 1);
  }

  Status decode_function(uint32_t f) {
    const ptx::Function& function = module_.functions[f];
    const ptx::InstructionTable& table = ptx::InstructionTable::get();
    const uint32_t base = first_op_[f];
    const uint32_t end = base + static_cast<uint32_t>(function.instructions.size());
    std::vector<uint32_t> block_of(function.instructions.size(), 0);
    for (uint32_t b = 0; b < function.blocks.size(); ++b) {
      for (uint32_t i = function.blocks[b].first; i < function.blocks[b].end; ++i) block_of[i] = b;
    }
    const std::vector<uint32_t> meets = reconvergence_blocks(function);
    for (uint32_t i = 0; i < function.instructions.size(); ++i) {
      const ptx::Instruction& instruction = function.instructions[i];
      at_ = &instruction;
      const auto operands = function.operands_of(instruction);
      const ptx::Form& form = table.form(instruction.form);
      const Choice choice = choose(module_, function, instruction);
      if (choice.execute == nullptr) return unsupported(choice.unsupported);
      Op op;
      op.execute = choice.execute;
      op.flags = choice.flags;
      op.payload = choice.payload;
      op.instruction = &instruction;
      op.index = base + i;
      op.function = static_cast<uint16_t>(f);
      if (instruction.guard != kNoIndex) {
        const Operand guard = layout_.register_operand(f, instruction.guard);
        op.guard_offset = guard.offset;
        op.guard_state = guard.state;
        op.guard_negated = instruction.guard_negated;
      }
      if (const uint32_t m = meets[block_of[i]]; m == kFunctionEnd) {
        op.reconverge = end;
      } else if (m != kNoIndex) {
        op.reconverge = base + function.blocks[m].first;
      }
      const bool branches =
          instruction.opcode == ptx::Opcode::kBra || instruction.opcode == ptx::Opcode::kBrxIdx;
      if (!branches) op.reconverge = kNoIndex;
      std::vector<Operand> slots;
      for (uint32_t s = 0; s < operands.size(); ++s) {
        const ptx::Operand& o = operands[s];
        if (o.kind == ptx::OperandKind::kLabel) op.target = base + o.index;
        if (o.kind == ptx::OperandKind::kTargets) {
          op.payload = kernel_.target_lists.size();
          std::vector<uint32_t> targets = function.target_lists[o.index];
          for (uint32_t& t : targets) t += base;
          kernel_.target_lists.push_back(std::move(targets));
        }
        const bool call = instruction.opcode == ptx::Opcode::kCall;
        if (call && !(s == kCallTargetSlot && o.is_register())) continue;
        JITGEMM_ASSIGN(Operand decoded,
                       layout_.operand(f, o, slot_type(form.slots[s], instruction.modifiers),
                                       form.slots[s].role));
        slots.push_back(decoded);
      }
      if (instruction.opcode == ptx::Opcode::kCall)
        JITGEMM_TRY(decode_call(f, instruction, operands, op));
      if (instruction.opcode == ptx::Opcode::kRet && !function.is_entry) op.target = end;
      op.slot_count = static_cast<uint8_t>(slots.size());
      kernel_.slot_storage.push_back(std::move(slots));
      op.slots = kernel_.slot_storage.back().data();
      kernel_.ops.push_back(op);
    }
    Op last;
    last.execute = function.is_entry ? execute_exit : execute_function_end;
    last.index = end;
    last.function = static_cast<uint16_t>(f);
    kernel_.ops.push_back(last);
    return ok_status();
  }

 public:
  // Where decode() failed.
  const ptx::Instruction* place() const { return at_; }

  static Choice choose(const Module& module, const ptx::Function& function,
                       const ptx::Instruction& instruction) {
    Choice choice = choose_instruction(function, instruction);
    if (choice.execute == nullptr) return choice;
    const auto operands = function.operands_of(instruction);
    for (const ptx::Operand& o : operands) {
      if (o.kind == ptx::OperandKind::kSpecialRegister &&
          is_clock(static_cast<ptx::SpecialRegister>(o.index)) &&
          instruction.opcode != ptx::Opcode::kMov) {
        return Choice::refuse("a clock register is read by mov only");
      }
      if (o.kind == ptx::OperandKind::kFunction) {
        const ptx::Function& target = module.functions[o.index];
        const bool called = instruction.opcode == ptx::Opcode::kCall;
        if (target.is_entry) return Choice::refuse("an entry is launched, not called");
        if (target.is_declaration && !(called && external_function(target.name) != nullptr)) {
          return Choice::refuse(
              fmt::format("function '{}' is not defined in the module", target.name));
        }
        if (!called && o.value != 0)
          return Choice::refuse("a number is added to the address of a function");
      }
    }
    return choice;
  }

 private:
  const Module& module_;
  const std::vector<uint32_t>& cycles_;  // ptx::call_cycles
  DecodedKernel kernel_;
  KernelLayout layout_;                   // fills it, too
  const ptx::Instruction* at_ = nullptr;  // being decoded
  std::vector<uint32_t> functions_;
  std::map<uint32_t, uint32_t> first_op_;
};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t first = 0; first < text.size();) {
    const size_t end = std::min(text.find('\n', first), text.size());
    lines.emplace_back(text.substr(first, end - first));
    first = end + 1;
  }
  return lines;
}

}  // namespace

Result<std::shared_ptr<const DecodedProgram>> decode_module(ptx::Module module,
                                                            std::string_view text) {
  auto program = std::make_shared<DecodedProgram>();
  program->module = std::move(module);
  program->lines = split_lines(text);
  if (program->module.functions.size() > kMaxFunctions)
    return Status(unsupported(fmt::format("more than {} functions", kMaxFunctions)));
  const std::vector<uint32_t> cycles = ptx::call_cycles(program->module);
  std::string refused;
  for (const ptx::Function& function : program->module.functions) {
    if (!function.is_entry || function.is_declaration) continue;
    KernelDecoder decoder(program->module, function, cycles);
    Result<DecodedKernel> kernel = decoder.decode();
    if (kernel) {
      program->kernels.push_back(std::move(*kernel));
      continue;
    }
    const ptx::SourcePosition at =
        decoder.place() != nullptr ? decoder.place()->position : function.position;
    refused += fmt::format("{}{}:{}: entry '{}': {}", refused.empty() ? "" : "\n", at.line,
                           at.column, function.name, kernel.error().message());
  }
  if (!refused.empty()) return Status(unsupported(std::move(refused)));
  return std::shared_ptr<const DecodedProgram>(std::move(program));
}

Result<std::shared_ptr<const DecodedProgram>> decode_program(std::string_view text) {
  ptx::LoadOptions options;
  options.refuse = [](const Module& module, const ptx::Function& function,
                      const ptx::Instruction& instruction) {
    const Choice choice = KernelDecoder::choose(module, function, instruction);
    return choice.execute == nullptr ? choice.unsupported : std::string();
  };
  JITGEMM_ASSIGN(ptx::Module module, ptx::load_module(text, options));
  return decode_module(std::move(module), text);
}

}  // namespace jitgemm::sim
