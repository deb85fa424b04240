// SPDX-License-Identifier: Apache-2.0
#include "sim/decode.h"

#include "fmt/format.h"
#include "ptx/call_graph.h"
#include "ptx/instruction_table.h"
#include "ptx/load.h"
#include "sim/exec.h"
#include "sim/exec_control.h"
#include "sim/memory.h"
#include "sim/reconvergence.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <tuple>

namespace jitgemm::sim {
namespace {

using ptx::kNoIndex;
using ptx::Module;
using ptx::Symbol;
using ptx::SymbolKind;
using ptx::Type;

constexpr uint64_t kStackBytes = 16 << 10;  // of a thread, in kernels that need a stack
constexpr uint64_t kReturnAddressBytes = 16;
constexpr size_t kMaxFunctions = 65535;  // Op::function
constexpr size_t kMaxCallSites = 1 << 18;
constexpr size_t kCallTargetSlot = 1;  // call (ret), f, (args), proto

// Bytes a lane of a register or value of this type occupies; 1 is a predicate.
uint8_t slot_bytes(Type type) {
  if (type == Type::kPred) return 1;
  const int bits = ptx::type_bits(type);
  return bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
}

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

// The bits of an immediate as a value of `type`.
uint64_t immediate_bits(const ptx::Operand& operand, Type type) {
  if (operand.type == Type::kF64 && type == Type::kF32) {
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.value)));
  }
  if (operand.type == Type::kF32 && type == Type::kF64) {
    return std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(operand.value))));
  }
  const int bits = ptx::type_bits(type);
  return bits > 0 && bits < 64 && bits >= 8 ? operand.value & ((uint64_t{1} << bits) - 1)
                                            : operand.value;
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
      : module_(module), cycles_(cycles) {
    kernel_.function = &entry;
    scratch_.kind = OperandKind::kSink;
    scratch_.written = true;
  }

  Result<DecodedKernel> decode() {
    collect(static_cast<uint32_t>(kernel_.function - module_.functions.data()));
    place_frames();
    place_registers();
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
    kernel_.file_bytes = file_;
    return std::move(kernel_);
  }

 private:
  struct Placed {
    uint32_t offset = 0, state = 0;
  };

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

  uint32_t take_file(uint32_t bytes_per_lane) {
    const uint32_t align = bytes_per_lane == 1 ? 4 : bytes_per_lane;
    file_ = (file_ + align - 1) / align * align;
    const uint32_t offset = file_;
    file_ += bytes_per_lane == 1 ? 4 : bytes_per_lane * kLanes;
    return offset;
  }

  void place_registers() {
    for (uint32_t f : functions_) {
      std::vector<Placed>& placed = registers_[f];
      for (const ptx::Register& r : module_.functions[f].registers) {
        placed.push_back({take_file(slot_bytes(r.type)), kernel_.state_count++});
      }
      if (const auto frame = kernel_.stack_frames.find(f); frame != kernel_.stack_frames.end()) {
        for (uint32_t r = 0; r < placed.size(); ++r)
          frame->second.registers.push_back(register_operand(f, r));
      }
    }
    scratch_.offset = take_file(16);
    scratch_.state = kernel_.state_count++;
    scratch_.bytes = 16;
  }

  // Locals, call parameters and parameters of each function: in a place of their own, or from 0 in
  // a frame on the stack if the function may run again before it has returned.
  void place_frames() {
    for (uint32_t f : functions_) {
      const ptx::Function& function = module_.functions[f];
      const bool on_stack = cycles_[f] != kNoIndex;
      uint64_t frame = 0;
      uint64_t& bytes = on_stack ? frame : kernel_.local_bytes;
      const auto align = [&](uint64_t a) {
        a = std::max<uint64_t>(a, 16);
        bytes = (bytes + a - 1) / a * a;
      };
      align(function.local_frame_align);
      local_frame_[f] = bytes;
      bytes += function.local_frame_size;
      align(16);
      call_frame_[f] = bytes;
      bytes += function.param_frame_size;
      align(function.parameter_align);
      parameter_frame_[f] = bytes;
      if (!function.is_entry) bytes += function.parameter_size;
      // What a GPU keeps there too; it also bounds the depth of calls.
      if (on_stack) kernel_.stack_frames[f].bytes = frame + kReturnAddressBytes;
    }
    kernel_.local_bytes = (kernel_.local_bytes + 15) / 16 * 16;
    kernel_.stack_base = kernel_.local_bytes;
    kernel_.uses_stack |= !kernel_.stack_frames.empty();
    if (kernel_.uses_stack) kernel_.local_bytes += kStackBytes;
  }

  Operand constant(uint64_t value, uint8_t bytes) {
    Operand o;
    o.bank = 1;
    o.bytes = bytes;
    o.kind = bytes == 1 ? OperandKind::kPredicate : OperandKind::kValue;
    const auto [found, fresh] = constants_.try_emplace({value, bytes}, 0);
    if (fresh) found->second = new_constant(value, bytes);
    o.offset = found->second;
    return o;
  }

  uint32_t new_constant(uint64_t value, uint8_t bytes) {
    std::vector<std::byte>& c = kernel_.constants;
    const size_t align = bytes == 1 ? 4 : bytes;
    c.resize((c.size() + align - 1) / align * align);
    const uint32_t offset = static_cast<uint32_t>(c.size());
    if (bytes == 1) {
      const LaneMask all = (value & 1) != 0 ? kAllLanes : 0;
      c.resize(offset + 4);
      std::memcpy(c.data() + offset, &all, 4);
      return offset;
    }
    c.resize(offset + size_t{bytes} * kLanes);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      std::memcpy(c.data() + offset + lane * bytes, &value, std::min<size_t>(bytes, 8));
    }
    return offset;
  }

  Operand register_operand(uint32_t f, uint32_t index) const {
    const Placed& p = registers_.at(f)[index];
    Operand o;
    o.bytes = slot_bytes(module_.functions[f].registers[index].type);
    o.kind = o.bytes == 1 ? OperandKind::kPredicate : OperandKind::kValue;
    o.is_register = true;
    o.offset = p.offset;
    o.state = p.state;
    return o;
  }

  // A value written into the warp's file when the warp starts.
  Operand initial(InitialValue v) {
    const auto key = std::make_tuple(static_cast<int>(v.kind), static_cast<int>(v.special),
                                     v.component, v.bytes, v.generic, v.value);
    auto found = initial_.find(key);
    if (found == initial_.end()) {
      v.offset = take_file(v.bytes);
      kernel_.initial_values.push_back(v);
      found = initial_.emplace(key, v.offset).first;
    }
    Operand o;
    o.kind = v.bytes == 1 ? OperandKind::kPredicate : OperandKind::kValue;
    o.bytes = v.bytes;
    o.offset = found->second;
    return o;
  }

  // An address in the frame or parameter block of a function, `offset` bytes into it.
  Operand frame_address(uint32_t f, uint64_t offset, int64_t addend, bool parameter,
                        uint8_t bytes) {
    const uint64_t value =
        (parameter ? kParamFrameBit : 0) + offset + static_cast<uint64_t>(addend);
    const auto frame = kernel_.stack_frames.find(f);
    if (frame == kernel_.stack_frames.end()) return constant(value, bytes);
    for (const Operand& known : frame->second.addresses) {
      if (known.displacement == static_cast<int64_t>(value) && known.bytes == bytes)
        return without_displacement(known);
    }
    Operand o;
    o.kind = OperandKind::kValue;
    o.bytes = bytes;
    o.offset = take_file(bytes);
    o.displacement = static_cast<int64_t>(value);
    frame->second.addresses.push_back(o);
    return without_displacement(o);
  }

  static Operand without_displacement(Operand o) {
    o.displacement = 0;
    return o;
  }

  // The address of a symbol plus an offset, in the symbol's own space.
  Result<Operand> symbol_address(uint32_t f, uint32_t index, int64_t addend, uint8_t bytes) {
    const Symbol& s = module_.symbols[index];
    switch (s.kind) {
      case SymbolKind::kCallParam:
        return frame_address(f, call_frame_[f] + s.offset, addend, true, bytes);
      case SymbolKind::kParameter:
        if (module_.functions[f].is_entry)
          return constant(s.offset + static_cast<uint64_t>(addend), bytes);
        return frame_address(f, parameter_frame_[f] + s.offset, addend, true, bytes);
      case SymbolKind::kVariable: break;
    }
    if (s.space == ptx::Space::kLocal) {
      if (s.function == kNoIndex)
        return Status(unsupported(fmt::format("module-scope .local variable '{}'", s.name)));
      return frame_address(f, local_frame_[f] + s.offset, addend, false, bytes);
    }
    if (s.space == ptx::Space::kShared) {
      InitialValue v;
      v.kind = InitialValue::Kind::kSharedAddress;
      v.bytes = bytes;
      const auto& placements = kernel_.function->shared;
      const auto placed =
          std::find_if(placements.begin(), placements.end(),
                       [&](const ptx::SharedPlacement& p) { return p.symbol == index; });
      if (placed == placements.end())
        return Status(internal_error(fmt::format("shared variable '{}' has no place", s.name)));
      v.value = static_cast<int64_t>(kSharedReserved) + placed->offset + addend;
      return initial(v);
    }
    // Global and constant variables: the address is known when a run starts.
    const auto [found, fresh] = variables_.try_emplace({index, addend, bytes}, 0);
    if (fresh) {
      found->second = new_constant(0, bytes);
      kernel_.variable_addresses.push_back({index, addend, found->second, bytes});
    }
    Operand o;
    o.kind = OperandKind::kValue;
    o.bank = 1;
    o.bytes = bytes;
    o.offset = found->second;
    return o;
  }

  Result<Operand> operand(uint32_t f, const ptx::Operand& source, Type type,
                          ptx::OperandRole role) {
    Operand o;
    const uint8_t bytes = type == Type::kNone ? uint8_t{4} : slot_bytes(type);
    switch (source.kind) {
      case ptx::OperandKind::kNone:
      case ptx::OperandKind::kLabel:
      case ptx::OperandKind::kTargets:
      case ptx::OperandKind::kCallTargets:
      case ptx::OperandKind::kPrototype: return o;
      case ptx::OperandKind::kFunction: return constant(function_address(source.index), bytes);
      case ptx::OperandKind::kSink: return scratch_;
      case ptx::OperandKind::kRegister:
        o = register_operand(f, source.index);
        o.negated = source.negated;
        o.written = role != ptx::OperandRole::kRead;
        return o;
      case ptx::OperandKind::kImmediate:
        return constant(immediate_bits(source, type),
                        type == Type::kNone && source.value >> 32 != 0 ? 8 : bytes);
      case ptx::OperandKind::kSpecialRegister: {
        InitialValue v;
        v.special = static_cast<ptx::SpecialRegister>(source.index);
        v.component = source.component;
        v.bytes = bytes;
        o = initial(v);
        o.negated = source.negated;
        return o;
      }
      case ptx::OperandKind::kSymbol:
        return symbol_address(f, source.index, static_cast<int64_t>(source.value), bytes);
      case ptx::OperandKind::kAddress: {
        switch (source.base) {
          case ptx::AddressBase::kRegister: {
            o = register_operand(f, source.index);
            o.displacement = static_cast<int64_t>(source.value);
            break;
          }
          case ptx::AddressBase::kSymbol: {
            JITGEMM_ASSIGN(o,
                           symbol_address(f, source.index, static_cast<int64_t>(source.value), 8));
            break;
          }
          case ptx::AddressBase::kAbsolute: o = constant(source.value, 8); break;
        }
        o.kind = OperandKind::kAddress;
        return o;
      }
      case ptx::OperandKind::kVector: {
        const auto elements = module_.functions[f].elements_of(source);
        std::vector<Operand> decoded;
        for (const ptx::Operand& e : elements) {
          JITGEMM_ASSIGN(Operand element, operand(f, e, type, role));
          decoded.push_back(element);
        }
        o.kind = OperandKind::kList;
        o.offset = static_cast<uint32_t>(kernel_.lists.size());
        o.count = static_cast<uint32_t>(decoded.size());
        o.written = role != ptx::OperandRole::kRead;
        kernel_.lists.insert(kernel_.lists.end(), decoded.begin(), decoded.end());
        return o;
      }
    }
    return o;
  }

  // A value of `type` that moves at a call: register, constant or bytes of a frame.
  Status set_end(uint32_t f, const ptx::Operand& o, Type type, bool is_from, ParamCopy& copy,
                 uint64_t& bytes) {
    if (o.kind == ptx::OperandKind::kSymbol) {
      const Symbol& s = module_.symbols[o.index];
      const bool own = s.kind == SymbolKind::kParameter;
      if (s.kind == SymbolKind::kVariable || (own && module_.functions[f].is_entry))
        return unsupported(fmt::format("'{}' is no parameter that a call can pass", s.name));
      const uint64_t base = own ? parameter_frame_[f] : call_frame_[f];
      (is_from ? copy.from : copy.to) = static_cast<uint32_t>(base + s.offset);
      (is_from ? copy.from_frame : copy.to_frame) = kernel_.stack_frames.contains(f);
      bytes = s.size;
      return ok_status();
    }
    JITGEMM_ASSIGN(Operand value, operand(f, o, type, ptx::OperandRole::kRead));
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
        zero.from_operand = constant(0, 8);
        uint64_t bytes = 4;
        JITGEMM_TRY(set_end(f, result, Type::kB32, false, zero, bytes));
        zero.bytes = static_cast<uint32_t>(std::min<uint64_t>(bytes, 8));
        site.results.push_back(zero);
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
        const Placed& guard = registers_[f][instruction.guard];
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
        JITGEMM_ASSIGN(
            Operand decoded,
            operand(f, o, slot_type(form.slots[s], instruction.modifiers), form.slots[s].role));
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
  const ptx::Instruction* at_ = nullptr;  // being decoded
  Operand scratch_;
  uint32_t file_ = 0;
  std::vector<uint32_t> functions_;
  std::map<uint32_t, uint32_t> first_op_;
  std::map<uint32_t, std::vector<Placed>> registers_;
  std::map<uint32_t, uint64_t> local_frame_, call_frame_, parameter_frame_;
  std::map<std::pair<uint64_t, uint8_t>, uint32_t> constants_;
  std::map<std::tuple<uint32_t, int64_t, uint8_t>, uint32_t> variables_;
  std::map<std::tuple<int, int, uint8_t, uint8_t, bool, int64_t>, uint32_t> initial_;
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
