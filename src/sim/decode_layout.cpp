// SPDX-License-Identifier: Apache-2.0
#include "sim/decode_layout.h"

#include "fmt/format.h"
#include "sim/decode.h"
#include "sim/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace jitgemm::sim {
namespace {

using ptx::kNoIndex;
using ptx::Module;
using ptx::Symbol;
using ptx::SymbolKind;
using ptx::Type;

constexpr uint64_t kStackBytes = 16 << 10;  // of a thread, in kernels that need a stack
constexpr uint64_t kReturnAddressBytes = 16;

// Bytes a lane of a register or value of this type occupies; 1 is a predicate.
uint8_t slot_bytes(Type type) {
  if (type == Type::kPred) return 1;
  const int bits = ptx::type_bits(type);
  return bits <= 32 ? 4 : bits <= 64 ? 8 : 16;
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

Operand without_displacement(Operand o) {
  o.displacement = 0;
  return o;
}

}  // namespace

KernelLayout::KernelLayout(const Module& module, const std::vector<uint32_t>& cycles,
                           DecodedKernel& kernel)
    : module_(module), cycles_(cycles), kernel_(kernel) {
  scratch_.kind = OperandKind::kSink;
  scratch_.written = true;
}

void KernelLayout::place(const std::vector<uint32_t>& functions) {
  place_frames(functions);
  place_registers(functions);
}

uint32_t KernelLayout::take_file(uint32_t bytes_per_lane) {
  const uint32_t align = bytes_per_lane == 1 ? 4 : bytes_per_lane;
  file_ = (file_ + align - 1) / align * align;
  const uint32_t offset = file_;
  file_ += bytes_per_lane == 1 ? 4 : bytes_per_lane * kLanes;
  return offset;
}

void KernelLayout::place_registers(const std::vector<uint32_t>& functions) {
  for (uint32_t f : functions) {
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
void KernelLayout::place_frames(const std::vector<uint32_t>& functions) {
  for (uint32_t f : functions) {
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

Operand KernelLayout::constant(uint64_t value, uint8_t bytes) {
  Operand o;
  o.bank = 1;
  o.bytes = bytes;
  o.kind = bytes == 1 ? OperandKind::kPredicate : OperandKind::kValue;
  const auto [found, fresh] = constants_.try_emplace({value, bytes}, 0);
  if (fresh) found->second = new_constant(value, bytes);
  o.offset = found->second;
  return o;
}

uint32_t KernelLayout::new_constant(uint64_t value, uint8_t bytes) {
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

Operand KernelLayout::register_operand(uint32_t f, uint32_t index) const {
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
Operand KernelLayout::initial(InitialValue v) {
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
Operand KernelLayout::frame_address(uint32_t f, uint64_t offset, int64_t addend, bool parameter,
                                    uint8_t bytes) {
  const uint64_t value = (parameter ? kParamFrameBit : 0) + offset + static_cast<uint64_t>(addend);
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

// The address of a symbol plus an offset, in the symbol's own space.
Result<Operand> KernelLayout::symbol_address(uint32_t f, uint32_t index, int64_t addend,
                                             uint8_t bytes) {
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

Result<Operand> KernelLayout::operand(uint32_t f, const ptx::Operand& source, Type type,
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
          JITGEMM_ASSIGN(o, symbol_address(f, source.index, static_cast<int64_t>(source.value), 8));
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

}  // namespace jitgemm::sim
