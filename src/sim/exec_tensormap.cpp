// SPDX-License-Identifier: Apache-2.0
// Tensor maps that a kernel writes itself (PTX ISA 9.7.9.28 tensormap.replace, 9.7.13.16
// tensormap.cp_fenceproxy). A map begins as a copy of another one or as 128 bytes of zero; a field
// at a time is replaced, and what results is judged when a copy uses it. That the tensormap proxy
// needs a fence between is not checked.
#include "sim/access.h"
#include "sim/exec.h"
#include "sim/exec_tma.h"
#include "sim/models_tensor_map.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::sim {
namespace {

constexpr uint64_t kMapBytes = 128;

Step map_fault(Warp& w, const Op& op, uint32_t lane, std::string text) {
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMap, std::move(text));
}

// Numbers of the element types in table 33 of 9.7.9.28.
bool element_of(uint64_t number, TensorElement& element) {
  constexpr TensorElement kElements[] = {
      TensorElement::kU8,          TensorElement::kU16,         TensorElement::kU32,
      TensorElement::kS32,         TensorElement::kU64,         TensorElement::kS64,
      TensorElement::kF16,         TensorElement::kF32,         TensorElement::kF32Ftz,
      TensorElement::kF64,         TensorElement::kBf16,        TensorElement::kTf32,
      TensorElement::kTf32Ftz,     TensorElement::kU4x16Align8, TensorElement::kU4x16Align16,
      TensorElement::kU6x16Align16};
  if (number >= std::size(kElements)) return false;
  element = kElements[number];
  return true;
}

// The mode of the 128-byte swizzles with another atom; empty if there is none.
bool with_atom(SwizzleMode& mode, uint64_t atom) {
  constexpr SwizzleMode kModes[] = {SwizzleMode::k128B, SwizzleMode::k128BAtom32B,
                                    SwizzleMode::k128BAtom32BFlip8B, SwizzleMode::k128BAtom64B};
  if (atom == 0 && swizzle_width(mode) != 128) return true;
  if (atom >= std::size(kModes) || swizzle_width(mode) != 128) return false;
  mode = kModes[atom];
  return true;
}

// Empty, or what is wrong with the value.
std::string replace(TensorMap& map, ptx::TensormapField field, uint64_t ordinal, uint64_t value) {
  using Field = ptx::TensormapField;
  const uint64_t limit = field == Field::kGlobalStride ? 4 : 5;
  if (ordinal >= limit) return fmt::format("ordinal {} of a field of {}", ordinal, limit);
  switch (field) {
    case Field::kGlobalAddress: map.address = value; return "";
    case Field::kRank:
      if (value > 4) return fmt::format("rank field {}: it holds the rank less one", value);
      map.rank = static_cast<uint32_t>(value) + 1;
      return "";
    case Field::kBoxDim: map.box[ordinal] = static_cast<uint32_t>(value); return "";
    case Field::kGlobalDim: map.dims[ordinal] = value; return "";
    case Field::kGlobalStride: map.strides[ordinal] = value; return "";
    case Field::kElementStride:
      map.element_strides[ordinal] = static_cast<uint32_t>(value);
      return "";
    case Field::kElemtype:
      return element_of(value, map.element) ? "" : fmt::format("element type {}", value);
    case Field::kInterleaveLayout: return value == 0 ? "" : "interleaved layouts are not simulated";
    case Field::kSwizzleMode: {
      constexpr SwizzleMode kModes[] = {SwizzleMode::kNone, SwizzleMode::k32B, SwizzleMode::k64B,
                                        SwizzleMode::k128B};
      if (value >= std::size(kModes)) return fmt::format("swizzle mode {} is not simulated", value);
      map.swizzle = kModes[value];
      return "";
    }
    case Field::kSwizzleAtomicity:
      return with_atom(map.swizzle, value)
                 ? ""
                 : fmt::format("swizzle atomicity {} of mode {}", value, swizzle_name(map.swizzle));
    case Field::kFillMode:
      if (value > 1) return fmt::format("fill mode {}", value);
      map.nan_fill = value == 1;
      return "";
    case Field::kNone: break;
  }
  return "unknown field";
}

// Slots: address, value; or address, ordinal, value.
Step exec_replace(Warp& w, const Op& op, LaneMask active) {
  const bool has_ordinal = op.slot_count == 3;
  const Operand& value = op.slot(has_ordinal ? 2 : 1);
  if (w.require_defined(op, op.slot(0), active, "the address") == Step::kFault ||
      w.require_defined(op, value, active, "the new value") == Step::kFault) {
    return Step::kFault;
  }
  return for_each_lane(active, [&](uint32_t lane) {
    const Space space = space_of(op.modifiers().space);
    const uint64_t address = w.address(op.slot(0), lane);
    std::array<std::byte, kMapBytes> bytes;
    if (load_bytes(w, op, lane, space, address, kMapBytes, kMapBytes, bytes.data()) ==
        Step::kFault) {
      return Step::kFault;
    }
    TensorMap map;
    const bool blank =
        std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
    if (!blank && !decode_tensor_map(bytes, map)) {
      return map_fault(
          w, op, lane,
          fmt::format("the 128 bytes at {:#x} are no tensor map and not zero", address));
    }
    std::string error = replace(map, op.modifiers().tensormap_field,
                                has_ordinal ? w.value(op.slot(1), lane) : 0, w.value(value, lane));
    if (!error.empty()) return map_fault(w, op, lane, std::move(error));
    bytes = encode_tensor_map(map);
    return store_bytes(w, op, lane, space, address, kMapBytes, kMapBytes, bytes.data());
  });
}

// One copy by the warp, of its first lane's addresses. Slots: destination, source, size.
Step exec_copy(Warp& w, const Op& op, LaneMask active) {
  for (uint32_t slot = 0; slot < 2; ++slot) {
    if (w.require_defined(op, op.slot(slot), active, "an address") == Step::kFault)
      return Step::kFault;
  }
  const auto lane = static_cast<uint32_t>(std::countr_zero(active));
  if (w.value(op.slot(2), lane) != kMapBytes) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                   fmt::format("size {}: 128 is legal", w.value(op.slot(2), lane)));
  }
  std::array<std::byte, kMapBytes> bytes;
  if (load_bytes(w, op, lane, Space::kSharedCta, w.address(op.slot(1), lane), kMapBytes, kMapBytes,
                 bytes.data()) == Step::kFault) {
    return Step::kFault;
  }
  return store_bytes(w, op, lane, Space::kGlobal, w.address(op.slot(0), lane), kMapBytes, kMapBytes,
                     bytes.data());
}

}  // namespace

Choice choose_map_edit(const ptx::Function& function, const ptx::Instruction& instruction) {
  if (instruction.opcode == ptx::Opcode::kTensormapReplace) {
    // The new value of these fields is a constant (9.7.9.28): whatever is wrong with it is known.
    using Field = ptx::TensormapField;
    const Field field = instruction.modifiers.tensormap_field;
    if (field == Field::kElemtype || field == Field::kInterleaveLayout ||
        field == Field::kSwizzleMode || field == Field::kFillMode) {
      const ptx::Operand& value = function.operands_of(instruction).back();
      if (value.kind != ptx::OperandKind::kImmediate)
        return Choice::refuse("the new value of this field must be a constant");
      TensorMap any;
      if (std::string error = replace(any, field, 0, value.value); !error.empty())
        return Choice::refuse(std::move(error));
    }
    return {exec_replace, kOpMemory, 0, ""};
  }
  return {exec_copy, kOpAligned | kOpMemory, 0, ""};
}

}  // namespace jitgemm::sim
