// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma in all dense kinds without .ws (PTX ISA 9.7.16.10) and tcgen05.cp (9.7.16.9): checked
// when they are issued, in effect when the tensor pipe gets to them, in the order of issue. Layouts
// are in models_tmem_layout, arithmetic in models_mma.
#include "sim/exec_tcgen05.h"
#include "sim/exec_tma.h"
#include "sim/models_instruction_descriptor.h"
#include "sim/models_tmem_layout.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace jitgemm::sim {
namespace {

// What one CTA of the group contributes.
struct Share {
  Cta* cta = nullptr;
  MatrixOperand a, b;
  std::vector<uint32_t> a_chunks, b_chunks;
};

struct MmaOperation {
  Tcgen05Kind kind = Tcgen05Kind::kF16;
  InstructionDescriptor descriptor;
  int cta_group = 1;
  int scales_per_row = 0;
  bool a_in_tensor_memory = false;
  bool read_d = false;
  int d_shift = 0;
  TensorAddress d, a, scale_a, scale_b;
  std::array<uint32_t, 8> disabled_lanes{};
  std::vector<Share> shares;
  std::vector<TensorRegion> written, read;  // the same in each CTA
  Origin origin;
};

int rows_per_cta(const MmaOperation& o) {
  return o.descriptor.m / o.cta_group;
}

// Lane groups of D and A: with M = 64 the lower or the upper 16 of each 32 lanes (layout F).
uint32_t row_lane_groups(const MmaOperation& o, const TensorAddress& at) {
  if (o.descriptor.m != 64) return kAllLaneGroups;
  return at.lane == 0 ? 0x55u : 0xaau;
}

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

uint32_t a_words(const MmaOperation& o) {
  uint32_t codes[8];
  return static_cast<uint32_t>(o.descriptor.k) /
         unpack_tensor_word(o.descriptor.a_format, is_packed_fp4(o.kind), 0, codes);
}

// --- completion
// -----------------------------------------------------------------------------------

struct Reader {
  Cluster& cluster;
  const MmaOperation& o;

  uint32_t cell(Cta& cta, const TensorAddress& base, const TmemCell& at, const char* what) const {
    const uint32_t index = TensorMemory::index(base.lane + at.lane, base.column + at.column);
    if ((cta.tensor->flags[index] & TensorMemory::kWritten) == 0 && cluster.grid.options.sanitize) {
      cluster.raise(
          o.origin, FaultKind::kUninitialisedMemory,
          fmt::format("{}: lane {}, column {} of tensor memory of CTA rank {} was never written",
                      what, base.lane + at.lane, base.column + at.column, cta.rank));
    }
    return cta.tensor->cells[index];
  }

  // The scale factors of one row or column, whose replicas must agree.
  void scales(Cta& cta, const TensorAddress& base, uint32_t id, bool is_a, uint32_t index,
              std::vector<uint32_t>& out) const {
    const InstructionDescriptor& d = o.descriptor;
    const uint32_t replicas = is_a ? scale_a_replicas() : scale_b_replicas(d.m, o.cta_group);
    uint32_t first = 0;
    for (uint32_t replica = 0; replica < replicas; ++replica) {
      const TmemPlace place = is_a ? scale_a_place(d.m, o.cta_group, index, replica)
                                   : scale_b_place(d.m, d.n, o.cta_group, index, replica);
      const uint32_t word =
          cell(cta, base, place.cell, is_a ? "scale factors of A" : "scale factors of B");
      if (replica == 0) first = word;
      if (word >> (8 * id) != first >> (8 * id) && cluster.grid.options.sanitize) {
        cluster.raise(o.origin, FaultKind::kTensorMemory,
                      fmt::format("scale factors of {} {}: {:#x} in the first copy and {:#x} in "
                                  "copy {} of the lane partitions",
                                  is_a ? "row" : "column", index, first, word, replica));
      }
    }
    for (int i = 0; i < o.scales_per_row; ++i)
      out.push_back(first >> (8 * (id + static_cast<uint32_t>(i))) & 0xff);
  }

  void a_from_tensor_memory(Cta& cta, uint32_t cta_index, std::vector<uint32_t>& codes) const {
    const InstructionDescriptor& d = o.descriptor;
    const auto rows = static_cast<uint32_t>(rows_per_cta(o));
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t word = 0; word < a_words(o); ++word) {
        uint32_t value = 0;
        for (uint32_t replica = 0; replica < a_replicas(d.m, o.cta_group); ++replica) {
          TmemCell at = a_place(d.m, o.cta_group, cta_index * rows + row, replica).cell;
          at.column += word;
          const uint32_t here = cell(cta, o.a, at, "matrix A");
          if (replica == 0) value = here;
          if (here != value && cluster.grid.options.sanitize) {
            cluster.raise(
                o.origin, FaultKind::kTensorMemory,
                fmt::format("matrix A, row {}: lanes 64-127 must repeat lanes 0-63", row));
          }
        }
        uint32_t out[8];
        const uint32_t count = unpack_tensor_word(d.a_format, is_packed_fp4(o.kind), value, out);
        codes.insert(codes.end(), out, out + count);
      }
    }
  }
};

bool lane_disabled(const MmaOperation& o, uint32_t cta_index, uint32_t lane) {
  return (o.disabled_lanes[4 * cta_index + lane / 32] >> (lane % 32) & 1) != 0;
}

void complete_mma(Cluster& cluster, MmaOperation& o) {
  const InstructionDescriptor& d = o.descriptor;
  const Reader reader{cluster, o};
  std::vector<uint32_t> b;
  for (const Share& share : o.shares) gather_codes(share.b, share.cta->shared.bytes, b);
  const auto rows = static_cast<uint32_t>(rows_per_cta(o));
  const auto columns = static_cast<uint32_t>(d.n);
  for (uint32_t index = 0; index < o.shares.size(); ++index) {
    Share& share = o.shares[index];
    Cta& cta = *share.cta;
    std::vector<uint32_t> a;
    if (o.a_in_tensor_memory) {
      reader.a_from_tensor_memory(cta, index, a);
    } else {
      gather_codes(share.a, cta.shared.bytes, a);
    }
    MmaProblem p;
    p.m = static_cast<int>(rows);
    p.n = d.n;
    p.k = d.k;
    p.a_format = d.a_format;
    p.b_format = d.b_format;
    p.result = d.result;
    p.negate_a = d.negate_a;
    p.negate_b = d.negate_b;
    p.read_d = o.read_d;
    p.d_shift = o.d_shift;
    std::vector<uint32_t> scale_a, scale_b, words(size_t{rows} * columns);
    if (o.scales_per_row != 0) {
      for (uint32_t row = 0; row < rows; ++row)
        reader.scales(cta, o.scale_a, d.scale_a_id, true, index * rows + row, scale_a);
      for (uint32_t col = 0; col < columns; ++col)
        reader.scales(cta, o.scale_b, d.scale_b_id, false, col, scale_b);
      p.scale_block = d.k / o.scales_per_row;
      p.scale_format = d.scale_format;
      p.scale_a = scale_a;
      p.scale_b = scale_b;
    }
    const auto place = [&](uint32_t row, uint32_t col) {
      return accumulator_place(d.m, d.n, o.cta_group, index * rows + row, col).cell;
    };
    if (o.read_d) {
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t col = 0; col < columns; ++col)
          words[row * columns + col] = reader.cell(cta, o.d, place(row, col), "matrix D");
      }
    }
    p.a = a;
    p.b = b;
    p.d = words;
    mma_accumulate(p, mma_numerics(cluster.grid.options.numerics), MmaFamily::kTcgen05);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t col = 0; col < columns; ++col) {
        const TmemCell at = place(row, col);
        if (lane_disabled(o, index, o.d.lane + at.lane)) continue;
        const uint32_t cell = TensorMemory::index(o.d.lane + at.lane, o.d.column + at.column);
        cta.tensor->cells[cell] = words[row * columns + col];
        cta.tensor->flags[cell] = TensorMemory::kWritten;
      }
    }
  }
  for (Share& share : o.shares) {
    end_operand_read(*share.cta, share.a_chunks);
    end_operand_read(*share.cta, share.b_chunks);
    for (const TensorRegion& region : o.read)
      for_each_part(*share.cta, region, [](TensorPart& p) { --p.async_readers; });
    for (const TensorRegion& region : o.written)
      for_each_part(*share.cta, region, [](TensorPart& p) { --p.async_writers; });
  }
}

// --- issue
// ----------------------------------------------------------------------------------------

Step read_tensor_address(Warp& w, const Op& op, uint32_t lane, const Operand& slot,
                         const char* what, bool half_datapath, TensorAddress& out) {
  if (w.require_defined(op, slot, LaneMask{1} << lane, what) == Step::kFault) return Step::kFault;
  out = tensor_address(w.address(slot, lane));
  if (out.lane == 0 || (half_datapath && out.lane == 16)) return Step::kNext;
  return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                 fmt::format("{} begins at lane {}: {} legal", what, out.lane,
                             half_datapath ? "0 and 16 are" : "0 is"));
}

Step read_descriptor(Warp& w, const Op& op, uint32_t lane, const Operand& slot, const char* what,
                     MatrixDescriptor& out) {
  if (w.require_defined(op, slot, LaneMask{1} << lane, what) == Step::kFault) return Step::kFault;
  const uint64_t bits = w.value(slot, lane);
  const DecodedDescriptor decoded = decode_tcgen05_descriptor(bits);
  if (!decoded.error.empty()) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kDescriptor,
                   fmt::format("{} {:#x}: {}", what, bits, decoded.error));
  }
  out = decoded.descriptor;
  return Step::kNext;
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
  const auto operation = std::make_shared<MmaOperation>();
  MmaOperation& o = *operation;
  kind_of(m.mma_kind, o.kind);
  o.cta_group = m.cta_group;
  o.origin = w.origin(op, static_cast<int32_t>(lane));
  o.a_in_tensor_memory = op.slot(1).kind == OperandKind::kAddress;
  const bool scaled = is_block_scaled(o.kind);
  o.scales_per_row = scaled ? scales_of(o.kind, m.scale_vector) : 0;
  const Operand& enable = op.slot(scaled ? 6 : 5);
  if (w.require_defined(op, op.slot(3), bit, "the instruction descriptor") == Step::kFault ||
      w.require_defined(op, enable, bit, "enable-input-d") == Step::kFault) {
    return Step::kFault;
  }
  const DecodedInstruction decoded = decode_instruction(
      o.kind, static_cast<uint32_t>(w.value(op.slot(3), lane)), o.cta_group, o.scales_per_row);
  if (!decoded.error.empty()) {
    const bool other_part = !w.cta.cluster.grid.program->module.target.starts_with("sm_103");
    return w.fault(op, static_cast<int32_t>(lane),
                   decoded.unsupported && !other_part ? FaultKind::kUnsupportedDescriptor
                                                      : FaultKind::kDescriptor,
                   fmt::format("{:#x}: {}", w.value(op.slot(3), lane), decoded.error));
  }
  const InstructionDescriptor& d = o.descriptor = decoded.descriptor;
  o.read_d = (w.predicate(enable) >> lane & 1) != 0;
  if (!scaled && op.slot(6).kind != OperandKind::kNone) {
    // scale-input-d multiplies D by 2^-x, x in 0..15, for kinds f16 and tf32 (9.7.16.10.9.1).
    const uint64_t shift = w.value(op.slot(6), lane);
    if (shift > 15 || (o.kind != Tcgen05Kind::kF16 && o.kind != Tcgen05Kind::kTf32)) {
      return w.fault(
          op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
          fmt::format("scale-input-d {} with kind::{}", shift, tcgen05_kind_name(o.kind)));
    }
    o.d_shift = static_cast<int>(shift);
  }
  if (!scaled && op.slot(4).kind == OperandKind::kList) {
    const Operand& list = op.slot(4);
    if (list.count != 4u * static_cast<uint32_t>(o.cta_group)) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kIllegalOperand,
                     fmt::format("disable-output-lane has {} words, cta_group::{} needs {}",
                                 list.count, o.cta_group, 4 * o.cta_group));
    }
    for (uint32_t i = 0; i < list.count; ++i) {
      o.disabled_lanes[i] =
          static_cast<uint32_t>(w.value(w.cta.cluster.grid.kernel->lists[list.offset + i], lane));
    }
  }

  // Tensor memory.
  const bool half = d.m == 64;
  if (read_tensor_address(w, op, lane, op.slot(0), "matrix D", half, o.d) == Step::kFault)
    return Step::kFault;
  o.written.push_back(
      {row_lane_groups(o, o.d), o.d.column, accumulator_columns(d.m, d.n, o.cta_group)});
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
    o.read.push_back({row_lane_groups(o, o.a), o.a.column, a_words(o)});
  }
  if (scaled) {
    if (read_tensor_address(w, op, lane, op.slot(4), "scale factors of A", false, o.scale_a) ==
            Step::kFault ||
        read_tensor_address(w, op, lane, op.slot(5), "scale factors of B", false, o.scale_b) ==
            Step::kFault) {
      return Step::kFault;
    }
    o.read.push_back({kAllLaneGroups, o.scale_a.column, scale_a_columns(d.m, o.cta_group)});
    o.read.push_back({kAllLaneGroups, o.scale_b.column, scale_b_columns(d.m, d.n, o.cta_group)});
  }

  // Shared memory: each CTA of a pair holds half of the rows of A and half of the columns of B.
  MatrixOperand a, b;
  a.format = d.a_format;
  b.format = d.b_format;
  a.mn_major = d.a_mn_major;
  b.mn_major = d.b_mn_major;
  a.packed_fp4 = b.packed_fp4 = is_packed_fp4(o.kind);
  a.k = b.k = static_cast<uint32_t>(d.k);
  a.rows = static_cast<uint32_t>(rows_per_cta(o));
  b.rows = static_cast<uint32_t>(d.n / o.cta_group);
  if (!o.a_in_tensor_memory && (read_descriptor(w, op, lane, op.slot(1), "the descriptor of A",
                                                a.descriptor) == Step::kFault ||
                                check_swizzle(w, op, lane, a, "matrix A") == Step::kFault)) {
    return Step::kFault;
  }
  if (read_descriptor(w, op, lane, op.slot(2), "the descriptor of B", b.descriptor) ==
          Step::kFault ||
      check_swizzle(w, op, lane, b, "matrix B") == Step::kFault) {
    return Step::kFault;
  }
  for (Cta* cta : group_ctas(w.cta, m.cta_group)) {
    Share share;
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
    if (!o.a_in_tensor_memory && begin_operand_read(w, op, *cta, share.a, "matrix A",
                                                    share.a_chunks, lane) == Step::kFault) {
      return Step::kFault;
    }
    if (begin_operand_read(w, op, *cta, share.b, "matrix B", share.b_chunks, lane) == Step::kFault)
      return Step::kFault;
    o.shares.push_back(std::move(share));
  }
  const auto pipe = static_cast<uint16_t>(w.cta.cluster.agents.tensor_pipe(w.cluster_warp));
  for (Share& share : o.shares) {
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
  submit_tensor_operation(w, op, lane, "tcgen05.mma",
                          [operation](Cluster& cluster) { complete_mma(cluster, *operation); });
  return Step::kNext;
}

Step exec_mma(Warp& w, const Op& op, LaneMask active) {
  if (use_cta_group(w, op, op.modifiers().cta_group) == Step::kFault) return Step::kFault;
  return for_each_lane(active, [&](uint32_t lane) { return issue_mma(w, op, lane); });
}

// --- tcgen05.cp
// -----------------------------------------------------------------------------------

bool copy_shape(const ptx::Modifiers& m, TmemCopy& shape) {
  switch (m.tmem_shape) {
    case ptx::TmemShape::k128x256b: shape = TmemCopy::k128x256b; return true;
    case ptx::TmemShape::k4x256b: shape = TmemCopy::k4x256b; return true;
    case ptx::TmemShape::k128x128b: shape = TmemCopy::k128x128b; return true;
    case ptx::TmemShape::k64x128b:
      shape = m.warp_multicast == ptx::WarpMulticast::kWarpx2Lanes02And13
                  ? TmemCopy::k64x128bPairs02
                  : TmemCopy::k64x128bPairs01;
      return true;
    case ptx::TmemShape::k32x128b: shape = TmemCopy::k32x128b; return true;
    default: return false;
  }
}

Step issue_cp(Warp& w, const Op& op, uint32_t lane) {
  TmemCopy shape = TmemCopy::k32x128b;
  copy_shape(op.modifiers(), shape);
  if (w.require_defined(op, op.slot(0), LaneMask{1} << lane, "the tensor memory address") ==
      Step::kFault)
    return Step::kFault;
  const TensorAddress to = tensor_address(w.address(op.slot(0), lane));
  MatrixDescriptor source;
  if (read_descriptor(w, op, lane, op.slot(1), "the source descriptor", source) == Step::kFault)
    return Step::kFault;
  const uint32_t row_bytes = copy_row_bytes(shape);
  const uint32_t last_lane = copy_lane(shape, copy_rows(shape) - 1, copy_replicas(shape) - 1);
  if (to.lane + last_lane >= TensorMemory::kLanes) {
    return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                   fmt::format("tcgen05.cp reaches lane {} of 128", to.lane + last_lane));
  }
  const TensorRegion region{kAllLaneGroups, to.column, row_bytes / 4};
  std::vector<uint32_t> chunks;
  for (uint32_t row = 0; row < copy_rows(shape); ++row) {
    for (uint32_t chunk = 0; chunk < row_bytes / 16; ++chunk)
      chunks.push_back(k_major_address(source, row, chunk));
  }
  const std::vector<Cta*> ctas = group_ctas(w.cta, op.modifiers().cta_group);
  for (Cta* cta : ctas) {
    if (check_region(w, op, *cta, region, "tcgen05.cp") == Step::kFault ||
        check_region_settled(w, op, *cta, region, "tcgen05.cp") == Step::kFault ||
        check_tensor_order(w, op, *cta, region, true, "tcgen05.cp") == Step::kFault) {
      return Step::kFault;
    }
    for (const uint32_t at : chunks) {
      if (check_async_source(w, op, lane, *cta, at, 16, "the source of tcgen05.cp") == Step::kFault)
        return Step::kFault;
    }
  }
  for (Cta* cta : ctas) {
    for (const uint32_t at : chunks) cta->shared.shadow.begin_async_read(at, 16);
    for_each_part(*cta, region, [&](TensorPart& p) {
      ++p.async_writers;
      p.written = w.view.now();
      p.writer = static_cast<uint16_t>(cta->cluster.agents.tensor_pipe(w.cluster_warp));
      p.writing_op = op.index;
      p.writing_lane = static_cast<uint8_t>(lane);
    });
  }
  submit_tensor_operation(w, op, lane, "tcgen05.cp", [=](Cluster&) {
    for (Cta* cta : ctas) {
      const uint32_t per_row = row_bytes / 16;
      for (size_t i = 0; i < chunks.size(); ++i) {
        const auto row = static_cast<uint32_t>(i) / per_row;
        const uint32_t column = to.column + 4 * (static_cast<uint32_t>(i) % per_row);
        for (uint32_t word = 0; word < 4; ++word) {
          const auto value = cta->shared.load<uint32_t>(chunks[i] + 4 * word);
          for (uint32_t replica = 0; replica < copy_replicas(shape); ++replica) {
            const uint32_t cell =
                TensorMemory::index(to.lane + copy_lane(shape, row, replica), column + word);
            cta->tensor->cells[cell] = value;
            cta->tensor->flags[cell] = TensorMemory::kWritten;
          }
        }
        cta->shared.shadow.end_async_read(chunks[i], 16);
      }
      for_each_part(*cta, region, [](TensorPart& p) { --p.async_writers; });
    }
  });
  return Step::kNext;
}

Step exec_cp(Warp& w, const Op& op, LaneMask active) {
  if (use_cta_group(w, op, op.modifiers().cta_group) == Step::kFault) return Step::kFault;
  return for_each_lane(active, [&](uint32_t lane) { return issue_cp(w, op, lane); });
}

Choice choose_mma(const ptx::Function&, const ptx::Instruction& instruction) {
  const ptx::Modifiers& m = instruction.modifiers;
  if (m.has(ptx::Flag::kSparse)) return Choice::refuse("sparse tcgen05.mma is not simulated");
  if (m.has(ptx::Flag::kAshift)) return Choice::refuse("tcgen05.mma with .ashift is not simulated");
  Tcgen05Kind kind = Tcgen05Kind::kF16;
  if (!kind_of(m.mma_kind, kind))
    return Choice::refuse("this kind of tcgen05.mma is not simulated");
  if (is_block_scaled(kind) && scales_of(kind, m.scale_vector) == 0) {
    return Choice::refuse("this scale vector size does not exist for this kind");
  }
  return {exec_mma, kOpMatrix | kOpAsync, 0, ""};
}

Choice choose_cp(const ptx::Function&, const ptx::Instruction& instruction) {
  TmemCopy shape = TmemCopy::k32x128b;
  if (!copy_shape(instruction.modifiers, shape))
    return Choice::refuse("unknown shape of tcgen05.cp");
  if (instruction.modifiers.types[0] != ptx::Type::kNone) {
    return Choice::refuse("tcgen05.cp with decompression is not simulated");
  }
  return {exec_cp, kOpAsync, 0, ""};
}

constexpr OpcodeRow kRows[] = {
    {ptx::Opcode::kTcgen05Mma, choose_mma},
    {ptx::Opcode::kTcgen05Cp,  choose_cp },
};

}  // namespace

std::span<const OpcodeRow> tcgen05_mma_rows() {
  return kRows;
}

}  // namespace jitgemm::sim
