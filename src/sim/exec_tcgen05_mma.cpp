// SPDX-License-Identifier: Apache-2.0
// The issue of tcgen05.mma in all kinds, dense and sparse, with .ws too (PTX ISA 9.7.16.10): what
// is checked before the tensor pipe has it. Layouts are in models_tmem_layout, its effect in
// exec_tcgen05_mma_effect.cpp.
#include "sim/exec_tcgen05_mma.h"

#include "sim/exec_tma.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace jitgemm::sim {
namespace {

bool kind_of(ptx::MmaKind word, Tcgen05Kind& kind) {
  switch (word) {
    case ptx::MmaKind::kF16: kind = Tcgen05Kind::kF16; return true;
    case ptx::MmaKind::kTf32: kind = Tcgen05Kind::kTf32; return true;
    case ptx::MmaKind::kF8f6f4: kind = Tcgen05Kind::kF8f6f4; return true;
    case ptx::MmaKind::kI8: kind = Tcgen05Kind::kI8; return true;
    case ptx::MmaKind::kMxf8f6f4: kind = Tcgen05Kind::kMxf8f6f4; return true;
    case ptx::MmaKind::kMxf4: kind = Tcgen05Kind::kMxf4; return true;
    case ptx::MmaKind::kMxf4nvf4: kind = Tcgen05Kind::kMxf4nvf4; return true;
    case ptx::MmaKind::kNone: return false;
  }
  return false;
}

// Scale factors of a row in one instruction (9.7.16.10.7.1); 0: the combination does not exist.
int scales_of(Tcgen05Kind kind, ptx::ScaleVector word) {
  switch (kind) {
    case Tcgen05Kind::kMxf8f6f4:
      return word == ptx::ScaleVector::kNone || word == ptx::ScaleVector::k1X ||
                     word == ptx::ScaleVector::kBlock32
                 ? 1
                 : 0;
    case Tcgen05Kind::kMxf4:
      return word == ptx::ScaleVector::kNone || word == ptx::ScaleVector::k2X ||
                     word == ptx::ScaleVector::kBlock32
                 ? 2
                 : 0;
    case Tcgen05Kind::kMxf4nvf4:
      if (word == ptx::ScaleVector::k2X || word == ptx::ScaleVector::kBlock32) return 2;
      if (word == ptx::ScaleVector::k4X || word == ptx::ScaleVector::kBlock16) return 4;
      return 0;
    default: return 0;
  }
}

Step read_tensor_address(Warp& w, const Op& op, uint32_t lane, const Operand& slot,
                         const char* what, bool half_datapath, TensorAddress& out,
                         bool scale_factors = false) {
  if (w.require_defined(op, slot, LaneMask{1} << lane, what) == Step::kFault) return Step::kFault;
  uint64_t address = w.address(slot, lane);
  // CUTLASS keeps the scale factor id, which the instruction descriptor has too, in the upper two
  // bits of these addresses.
  if (scale_factors && !w.cta.cluster.grid.options.strict) address &= 0x3fffffff;
  out = tensor_address(address);
  if (out.lane == 0 || (half_datapath && out.lane == 16)) return Step::kNext;
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                 fmt::format("{} begins at lane {}: {} legal", what, out.lane,
                             half_datapath ? "0 and 16 are" : "0 is"));
}

bool for_sm_103a(const Warp& w) {
  return w.cta.cluster.grid.program->module.target.starts_with("sm_103a");
}

// 9.7.16.3.1.2 and 9.7.16.4.1.1: rows that go on in other 128 bytes; and rows of 48 bytes that
// would have to.
Step check_row(Warp& w, const Op& op, uint32_t lane, const MatrixOperand& operand,
               const char* what) {
  const MatrixDescriptor& d = operand.descriptor;
  if (d.leading_is_absolute) {
    if (for_sm_103a(w) && !operand.mn_major) return Step::kNext;
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
                   fmt::format("{}: bit 52 of the matrix descriptor (absolute leading-dimension "
                               "address) is legal for sm_103a and K-major matrices only",
                               what));
  }
  const uint32_t width = swizzle_width(d.swizzle);
  if (operand.mn_major || operand.k != 96 || d.swizzle == SwizzleMode::kNone ||
      d.start % width + operand.k / 2 <= width)
    return Step::kNext;
  return w.fault(
      op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
      fmt::format("{}: 48 bytes of a row from byte {} leave the {} bytes of the swizzle; "
                  "an absolute leading-dimension address says where they go on",
                  what, d.start % width, width));
}

// 9.7.16.10.3: the mode with 32-byte atoms is for transposed 32-bit elements, and those need it.
Step check_swizzle(Warp& w, const Op& op, uint32_t lane, const MatrixOperand& operand,
                   const char* what) {
  const bool atom32 = operand.descriptor.swizzle == SwizzleMode::k128BAtom32B;
  const bool wide = format_bits(operand.format) == 32;
  if (!operand.mn_major || atom32 == wide) return Step::kNext;
  return w.fault(
      op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
      fmt::format("{}: transposed elements of {} bits with swizzle {}", what,
                  format_bits(operand.format), swizzle_name(operand.descriptor.swizzle)));
}

Step issue_mma(Warp& w, const Op& op, uint32_t lane) {
  const ptx::Modifiers& m = op.modifiers();
  const LaneMask bit = LaneMask{1} << lane;
  const auto operation = std::make_shared<Tcgen05Mma>();
  Tcgen05Mma& o = *operation;
  kind_of(m.mma_kind, o.kind);
  o.cta_group = m.cta_group;
  o.origin = w.origin(op, static_cast<int32_t>(lane));
  o.a_in_tensor_memory = op.slot(1).kind == OperandKind::kAddress;
  const bool scaled = is_block_scaled(o.kind);
  // Slots: d, a, b, (metadata,) idesc, then sa, sb, enable; mask, enable, scale-d; or of .ws
  // enable, zero mask.
  const bool ws = o.weight_stationary = op.instruction->opcode == ptx::Opcode::kTcgen05MmaWs;
  const bool sparse = m.has(ptx::Flag::kSparse);
  const auto behind = [&](uint32_t slot) -> const Operand& {
    return op.slot(slot + (sparse ? 1 : 0));
  };
  const Operand& enable = behind(scaled ? 6 : ws ? 4 : 5);
  if (w.require_defined(op, behind(3), bit, "the instruction descriptor") == Step::kFault ||
      w.require_defined(op, enable, bit, "enable-input-d") == Step::kFault) {
    return Step::kFault;
  }
  DecodedInstruction decoded =
      decode_instruction(o.kind, static_cast<uint32_t>(w.value(behind(3), lane)), o.cta_group,
                         scaled ? scales_of(o.kind, m.scale_vector) : 0, ws, sparse);
  if (decoded.error.empty() && decoded.descriptor.k == 96 && !for_sm_103a(w))
    decoded.error = "instruction descriptor: bit 31 (K = 96) is legal for sm_103a only";
  if (!decoded.error.empty()) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
                   fmt::format("{:#x}: {}", w.value(behind(3), lane), decoded.error));
  }
  const InstructionDescriptor& d = o.descriptor = decoded.descriptor;
  o.read_d = (w.predicate(enable) >> lane & 1) != 0;
  uint32_t column_shift = 0;
  if (ws && behind(5).kind != OperandKind::kNone) {
    if (w.require_defined(op, behind(5), bit, "the zero-column mask") == Step::kFault)
      return Step::kFault;
    ZeroColumns zero = decode_zero_columns(w.value(behind(5), lane), static_cast<uint32_t>(d.m),
                                           static_cast<uint32_t>(d.n), d.max_shift);
    if (!zero.error.empty())
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor, zero.error);
    o.zero_columns = std::move(zero.zero);
    column_shift = zero.shift;
  }
  if (!scaled && !ws && behind(6).kind != OperandKind::kNone) {
    // scale-input-d multiplies D by 2^-x, x in 0..15, for kinds f16 and tf32 (9.7.16.10.9.1).
    const uint64_t shift = w.value(behind(6), lane);
    if (shift > 15 || (o.kind != Tcgen05Kind::kF16 && o.kind != Tcgen05Kind::kTf32)) {
      return w.fault(
          op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
          fmt::format("scale-input-d {} with kind::{}", shift, tcgen05_kind_name(o.kind)));
    }
    o.d_shift = static_cast<int>(shift);
  }
  if (!scaled && !ws && behind(4).kind == OperandKind::kList) {
    const Operand& list = behind(4);
    if (list.count != 4u * static_cast<uint32_t>(o.cta_group)) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("disable-output-lane has {} words, cta_group::{} needs {}",
                                 list.count, o.cta_group, 4 * o.cta_group));
    }
    for (uint32_t i = 0; i < list.count; ++i) {
      o.disabled_lanes[i] = static_cast<uint32_t>(w.value(registers_of(w, list)[i], lane));
    }
  }

  // Tensor memory.
  const bool half = o.half_of_lanes();
  const Tcgen05Mma::LayoutShape shape = o.layout_shape();
  if (read_tensor_address(w, op, lane, op.slot(0), "matrix D", half, o.d) == Step::kFault)
    return Step::kFault;
  o.written.push_back(
      {o.row_lane_groups(o.d), o.d.column,
       ws ? ws_accumulator_columns(d.m, d.n) : accumulator_columns(shape.m, d.n, shape.cta_group)});
  if (o.a_in_tensor_memory) {
    if (read_tensor_address(w, op, lane, op.slot(1), "matrix A", half, o.a) == Step::kFault)
      return Step::kFault;
    if (o.a.lane != o.d.lane) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                     "A and D must have the same lane alignment");
    }
    if (d.a_mn_major) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
                     "A in tensor memory cannot be transposed");
    }
    o.read.push_back({o.row_lane_groups(o.a), o.a.column, o.a_words()});
  }
  if (sparse) {
    if (read_tensor_address(w, op, lane, op.slot(3), "sparsity metadata", half, o.metadata) ==
        Step::kFault)
      return Step::kFault;
    if (o.metadata.lane != o.d.lane) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                     "sparsity metadata and D must have the same lane alignment");
    }
    o.read.push_back({o.row_lane_groups(o.metadata), o.metadata.column + d.sparsity_selector,
                      metadata_columns(o.metadata_layout())});
  }
  if (scaled) {
    if (read_tensor_address(w, op, lane, behind(4), "scale factors of A", false, o.scale_a, true) ==
            Step::kFault ||
        read_tensor_address(w, op, lane, behind(5), "scale factors of B", false, o.scale_b, true) ==
            Step::kFault) {
      return Step::kFault;
    }
    for (const bool is_a : {true, false}) {
      const uint32_t columns =
          is_a ? scale_a_columns(d.m, o.cta_group) : scale_b_columns(d.m, d.n, o.cta_group);
      const uint32_t groups = o.scale_groups(is_a ? d.scale_a_id : d.scale_b_id);
      for (uint32_t group = 0; group < groups; ++group) {
        const uint32_t first = (is_a ? o.scale_a : o.scale_b).column;
        o.read.push_back({kAllLaneGroups, first + group * o.scale_group_columns(is_a), columns});
      }
    }
  }

  // Shared memory: each CTA of a pair holds half of the rows of A and half of the columns of B.
  MatrixOperand a, b;
  a.format = d.a_format;
  b.format = d.b_format;
  a.mn_major = d.a_mn_major;
  b.mn_major = d.b_mn_major;
  a.packed_fp4 = b.packed_fp4 = is_packed_fp4(o.kind);
  a.k = static_cast<uint32_t>(o.stored_k());
  b.k = static_cast<uint32_t>(d.k);
  a.rows = static_cast<uint32_t>(o.rows_per_cta());
  b.rows = static_cast<uint32_t>(d.n / o.cta_group);
  b.first_row = column_shift;
  if (!o.a_in_tensor_memory &&
      (read_tcgen05_descriptor(w, op, lane, op.slot(1), "the descriptor of A", a.descriptor) ==
           Step::kFault ||
       check_swizzle(w, op, lane, a, "matrix A") == Step::kFault ||
       check_row(w, op, lane, a, "matrix A") == Step::kFault)) {
    return Step::kFault;
  }
  if (read_tcgen05_descriptor(w, op, lane, op.slot(2), "the descriptor of B", b.descriptor) ==
          Step::kFault ||
      check_swizzle(w, op, lane, b, "matrix B") == Step::kFault ||
      check_row(w, op, lane, b, "matrix B") == Step::kFault) {
    return Step::kFault;
  }
  for (Cta* cta : group_ctas(w.cta, m.cta_group)) {
    Tcgen05Mma::Share share;
    share.cta = cta;
    share.a = a;
    share.b = b;
    for (const std::vector<TensorRegion>* regions : {&o.written, &o.read}) {
      for (const TensorRegion& region : *regions) {
        if (check_region(w, op, *cta, region, "tcgen05.mma") == Step::kFault ||
            check_region_settled(w, op, *cta, region, "tcgen05.mma") == Step::kFault) {
          return Step::kFault;
        }
      }
    }
    for (const TensorRegion& region : o.written) {
      if (check_tensor_order(w, op, *cta, region, true, "tcgen05.mma") == Step::kFault)
        return Step::kFault;
    }
    for (const TensorRegion& region : o.read) {
      if (check_tensor_order(w, op, *cta, region, false, "tcgen05.mma") == Step::kFault)
        return Step::kFault;
    }
    if (!o.a_in_tensor_memory &&
        begin_operand_read(w, op, *cta, share.a, "matrix A", share.a_chunks, share.missing_rows,
                           lane) == Step::kFault) {
      return Step::kFault;
    }
    if (begin_operand_read(w, op, *cta, share.b, "matrix B", share.b_chunks, share.missing_columns,
                           lane) == Step::kFault)
      return Step::kFault;
    o.shares.push_back(std::move(share));
  }
  const auto pipe = static_cast<uint16_t>(w.cta.cluster.agents.tensor_pipe(w.cluster_warp));
  for (Tcgen05Mma::Share& share : o.shares) {
    for (const TensorRegion& region : o.read) {
      for_each_part(*share.cta, region, [&](TensorPart& p) {
        ++p.async_readers;
        p.used = w.view.now();
        p.pipe = pipe;
        p.using_op = op.index;
        p.using_lane = static_cast<uint8_t>(lane);
      });
    }
    for (const TensorRegion& region : o.written) {
      for_each_part(*share.cta, region, [&](TensorPart& p) {
        ++p.async_writers;
        p.written = w.view.now();
        p.writer = pipe;
        p.writing_op = op.index;
        p.writing_lane = static_cast<uint8_t>(lane);
      });
    }
  }
  submit_tensor_operation(w, op, lane, "tcgen05.mma", [operation](Cluster& cluster) {
    complete_tcgen05_mma(cluster, *operation);
  });
  return Step::kNext;
}

Step exec_mma(Warp& w, const Op& op, LaneMask active) {
  if (use_cta_group(w, op, op.modifiers().cta_group) == Step::kFault) return Step::kFault;
  return for_each_lane(active, [&](uint32_t lane) { return issue_mma(w, op, lane); });
}

Choice choose_mma(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  if (m.has(ptx::Flag::kAshift)) return Choice::refuse("tcgen05.mma with .ashift is not simulated");
  Tcgen05Kind kind = Tcgen05Kind::kF16;
  if (!kind_of(m.mma_kind, kind))
    return Choice::refuse("this kind of tcgen05.mma is not simulated");
  if (is_block_scaled(kind) && scales_of(kind, m.scale_vector) == 0) {
    return Choice::refuse("this scale vector size does not exist for this kind");
  }
  return {exec_mma, kOpMatrix | kOpAsync, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kTcgen05Mma,   choose_mma       },
    {ptx::Opcode::kTcgen05MmaWs, choose_mma       },
    {ptx::Opcode::kTcgen05Cp,    choose_tcgen05_cp},
};

}  // namespace

std::span<const OpcodeRow> tcgen05_mma_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
