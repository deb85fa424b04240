// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma in all kinds, dense and sparse, with .ws too (PTX ISA 9.7.16.10): checked when they
// are issued, in effect when the tensor pipe gets to them, in the order of issue. Layouts are in
// models_tmem_layout, arithmetic in models_mma.
#include "sim/exec_tcgen05.h"
#include "sim/exec_tma.h"
#include "sim/models_instruction_descriptor.h"
#include "sim/models_sparse.h"
#include "sim/models_tmem_layout.h"
#include "sim/models_zero_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace jitgemm::sim {
namespace {

// What one CTA of the group contributes.
struct Share {
  Cta* cta = nullptr;
  MatrixOperand a, b;
  std::vector<uint32_t> a_chunks, b_chunks;
  std::vector<bool> missing_rows, missing_columns;  // never written; empty: none
};

struct MmaOperation {
  Tcgen05Kind kind = Tcgen05Kind::kF16;
  InstructionDescriptor descriptor;
  int cta_group = 1;
  bool weight_stationary = false;
  std::vector<bool> zero_columns;  // of B, with .ws; empty: none
  bool a_in_tensor_memory = false;
  bool read_d = false;
  int d_shift = 0;
  TensorAddress d, a, scale_a, scale_b, metadata;
  std::array<uint32_t, 8> disabled_lanes{};
  std::vector<Share> shares;
  std::vector<TensorRegion> written, read;  // the same in each CTA
  Origin origin;
};

int rows_per_cta(const MmaOperation& o) {
  return o.descriptor.m / o.cta_group;
}

// Layouts C and F: 64 rows a CTA in 16 lanes of each 32. A pair with sparse A has layout C, whose
// CTAs have what F has.
bool half_of_lanes(const MmaOperation& o) {
  return rows_per_cta(o) == 64 && !o.weight_stationary && (o.cta_group == 1 || o.descriptor.sparse);
}

// M and the group whose layout each CTA's rows have.
struct LayoutShape {
  int m = 0, cta_group = 1;
};
LayoutShape layout_shape(const MmaOperation& o) {
  if (half_of_lanes(o)) return {64, 1};
  return {o.descriptor.m, o.cta_group};
}
// The first row of a CTA, in the rows of that layout.
uint32_t first_row(const MmaOperation& o, uint32_t cta_index) {
  return half_of_lanes(o) ? 0 : cta_index * static_cast<uint32_t>(rows_per_cta(o));
}

// Lane groups of D, A and metadata: the lower or the upper 16 of each 32 lanes, or all.
uint32_t row_lane_groups(const MmaOperation& o, const TensorAddress& at) {
  if (!half_of_lanes(o)) return kAllLaneGroups;
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

// Groups of four factors that the instruction reads from: the second only where K = 96 runs on into
// it.
uint32_t scale_groups(const MmaOperation& o, uint32_t id) {
  return (id + static_cast<uint32_t>(o.descriptor.scales_per_row) + 3) / 4;
}

uint32_t scale_group_columns(const MmaOperation& o, bool is_a) {
  const InstructionDescriptor& d = o.descriptor;
  return is_a ? scale_a_group_columns() : scale_b_group_columns(d.m, d.n, o.cta_group);
}

int stored_k(const InstructionDescriptor& d) {
  return d.sparse ? d.k / 2 : d.k;
}

MetadataLayout metadata_layout(const MmaOperation& o) {
  return format_bits(o.descriptor.a_format) > 8 ? MetadataLayout::kHalves : MetadataLayout::kRows;
}

uint32_t a_words(const MmaOperation& o) {
  uint32_t codes[8];
  return static_cast<uint32_t>(stored_k(o.descriptor)) /
         unpack_tensor_word(o.descriptor.a_format, is_packed_fp4(o.kind), 0, codes);
}

// --- completion
// -----------------------------------------------------------------------------------

struct Reader {
  Cluster& cluster;
  const MmaOperation& o;
  bool missing = false;  // a cell was never written, which no strict rule forbids

  uint32_t cell(Cta& cta, const TensorAddress& base, const TmemCell& at, const char* what) {
    const uint32_t index = TensorMemory::index(base.lane + at.lane, base.column + at.column);
    if ((cta.tensor->flags[index] & TensorMemory::kWritten) == 0 && cluster.grid.options.sanitize) {
      if (cluster.grid.options.strict) {
        cluster.raise(
            o.origin, FaultKind::kUninitialisedMemory,
            fmt::format("{}: lane {}, column {} of tensor memory of CTA rank {} was never written",
                        what, base.lane + at.lane, base.column + at.column, cta.rank));
      }
      missing = true;
    }
    return cta.tensor->cells[index];
  }
  // Was a cell missing since the last question?
  bool take_missing() { return std::exchange(missing, false); }

  // The scale factors of one row or column, whose replicas must agree.
  void scales(Cta& cta, const TensorAddress& base, uint32_t id, bool is_a, uint32_t index,
              std::vector<uint32_t>& out) {
    const InstructionDescriptor& d = o.descriptor;
    const uint32_t replicas = is_a ? scale_a_replicas() : scale_b_replicas(d.m, o.cta_group);
    uint64_t first = 0;
    for (uint32_t replica = 0; replica < replicas; ++replica) {
      const TmemPlace place = is_a ? scale_a_place(d.m, o.cta_group, index, replica)
                                   : scale_b_place(d.m, d.n, o.cta_group, index, replica);
      uint64_t word = 0;
      for (uint32_t group = 0; group < scale_groups(o, id); ++group) {
        TmemCell at = place.cell;
        at.column += group * scale_group_columns(o, is_a);
        word |= uint64_t{cell(cta, base, at, is_a ? "scale factors of A" : "scale factors of B")}
                << (32 * group);
      }
      word >>= 8 * id;
      if (replica == 0) first = word;
      if (word != first && !missing && cluster.grid.options.sanitize) {
        cluster.raise(o.origin, FaultKind::kTensorMemory,
                      fmt::format("scale factors of {} {}: {:#x} in the first copy and {:#x} in "
                                  "copy {} of the lane partitions",
                                  is_a ? "row" : "column", index, first, word, replica));
      }
    }
    for (int i = 0; i < d.scales_per_row; ++i)
      out.push_back(static_cast<uint32_t>(first >> (8 * static_cast<uint32_t>(i)) & 0xff));
  }

  void a_from_tensor_memory(Cta& cta, uint32_t cta_index, std::vector<uint32_t>& codes,
                            std::vector<bool>& missing_rows) {
    const InstructionDescriptor& d = o.descriptor;
    const auto rows = static_cast<uint32_t>(rows_per_cta(o));
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t word = 0; word < a_words(o); ++word) {
        uint32_t value = 0;
        const uint32_t replicas = o.weight_stationary
                                      ? ws_a_replicas(d.m)
                                      : a_replicas(layout_shape(o).m, layout_shape(o).cta_group);
        for (uint32_t replica = 0; replica < replicas; ++replica) {
          TmemCell at = o.weight_stationary ? ws_a_cell(d.m, row, replica)
                                            : a_place(layout_shape(o).m, layout_shape(o).cta_group,
                                                      first_row(o, cta_index) + row, replica)
                                                  .cell;
          at.column += word;
          const uint32_t here = cell(cta, o.a, at, "matrix A");
          if (replica == 0) value = here;
          if (here != value && !missing && cluster.grid.options.sanitize) {
            cluster.raise(
                o.origin, FaultKind::kTensorMemory,
                fmt::format("matrix A, row {}: the copies in the groups of lanes differ", row));
          }
        }
        uint32_t out[8];
        const uint32_t count = unpack_tensor_word(d.a_format, is_packed_fp4(o.kind), value, out);
        codes.insert(codes.end(), out, out + count);
      }
      if (take_missing()) missing_rows[row] = true;
    }
  }
};

// A row of sparse A: where its stored elements stand, by the metadata (9.7.16.10.8).
void expand_rows(Cluster& cluster, const MmaOperation& o, Reader& reader, Cta& cta,
                 std::vector<uint32_t>& codes, std::vector<bool>& missing_rows) {
  const InstructionDescriptor& d = o.descriptor;
  const bool packed = is_packed_fp4(o.kind);
  const Sparsity sparsity = packed                          ? Sparsity::kTwoPairsOfFour
                            : format_bits(d.a_format) == 32 ? Sparsity::kOneOfTwo
                                                            : Sparsity::kTwoOfFour;
  const auto k = static_cast<size_t>(d.k);
  const auto chunks = static_cast<uint32_t>(d.k / (packed                          ? 8
                                                   : format_bits(d.a_format) == 32 ? 2
                                                                                   : 4));
  std::vector<uint32_t> stored(codes.size() * 2);
  stored.swap(codes);
  const auto rows = static_cast<uint32_t>(rows_per_cta(o));
  for (uint32_t row = 0; row < rows; ++row) {
    std::vector<uint8_t> metadata;
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const MetadataPlace place =
          metadata_place(metadata_layout(o), half_of_lanes(o), row, chunk, chunks);
      const uint32_t replicas = o.weight_stationary ? ws_a_replicas(d.m) : 1;
      uint32_t first = 0;
      for (uint32_t replica = 0; replica < replicas; ++replica) {
        TmemCell at = place.cell;
        at.lane += replica * static_cast<uint32_t>(d.m);
        at.column += d.sparsity_selector;
        const uint32_t bits =
            reader.cell(cta, o.metadata, at, "sparsity metadata") >> place.shift & 15;
        if (replica == 0) first = bits;
        if (bits != first && !reader.missing && cluster.grid.options.sanitize) {
          cluster.raise(o.origin, FaultKind::kTensorMemory,
                        fmt::format("sparsity metadata of row {}: the copies in the groups of "
                                    "lanes differ",
                                    row));
        }
      }
      metadata.push_back(static_cast<uint8_t>(first));
    }
    const std::vector<uint32_t> places =
        sparse_places(sparsity, metadata, !cluster.grid.options.strict);
    const bool placed =
        !places.empty() && expand_sparse_row(std::span(stored).subspan(row * k / 2, k / 2), places,
                                             std::span(codes).subspan(row * k, k));
    if (reader.take_missing()) {
      missing_rows[row] = true;
    } else if (!placed && !missing_rows[row]) {
      cluster.raise(o.origin, FaultKind::kIllegalOperand,
                    fmt::format("the sparsity metadata of row {} have an illegal index: {}", row,
                                fmt::join(metadata, " ")));
    }
  }
}

bool lane_disabled(const MmaOperation& o, uint32_t cta_index, uint32_t lane) {
  return (o.disabled_lanes[4 * cta_index + lane / 32] >> (lane % 32) & 1) != 0;
}

void complete_mma(Cluster& cluster, MmaOperation& o) {
  const InstructionDescriptor& d = o.descriptor;
  Reader reader{cluster, o};
  std::vector<uint32_t> b;
  std::vector<bool> missing_columns;
  for (const Share& share : o.shares) {
    gather_codes(share.b, share.cta->shared.bytes, b);
    const size_t first = missing_columns.size();
    missing_columns.resize(first + share.b.rows);
    std::copy(share.missing_columns.begin(), share.missing_columns.end(),
              missing_columns.begin() + static_cast<std::ptrdiff_t>(first));
  }
  const auto rows = static_cast<uint32_t>(rows_per_cta(o));
  const auto columns = static_cast<uint32_t>(d.n);
  const auto k = static_cast<size_t>(d.k);
  for (size_t col = 0; col < o.zero_columns.size(); ++col) {
    if (!o.zero_columns[col]) continue;
    std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(col * k), k, 0u);
    missing_columns[col] = false;
  }
  for (uint32_t index = 0; index < o.shares.size(); ++index) {
    Share& share = o.shares[index];
    Cta& cta = *share.cta;
    std::vector<uint32_t> a;
    std::vector<bool> missing_rows = share.missing_rows;
    missing_rows.resize(rows);
    std::vector<bool> missing_here = missing_columns;
    if (o.a_in_tensor_memory) {
      reader.a_from_tensor_memory(cta, index, a, missing_rows);
    } else {
      gather_codes(share.a, cta.shared.bytes, a);
    }
    if (d.sparse) expand_rows(cluster, o, reader, cta, a, missing_rows);
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
    if (d.scales_per_row != 0) {
      for (uint32_t row = 0; row < rows; ++row) {
        reader.scales(cta, o.scale_a, d.scale_a_id, true, index * rows + row, scale_a);
        if (reader.take_missing()) missing_rows[row] = true;
      }
      for (uint32_t col = 0; col < columns; ++col) {
        reader.scales(cta, o.scale_b, d.scale_b_id, false, col, scale_b);
        if (reader.take_missing()) missing_here[col] = true;
      }
      p.scale_block = d.k / d.scales_per_row;
      p.scale_format = d.scale_format;
      p.scale_a = scale_a;
      p.scale_b = scale_b;
    }
    const auto place = [&](uint32_t row, uint32_t col) {
      if (o.weight_stationary) return ws_accumulator_cell(d.m, d.n, row, col);
      const LayoutShape shape = layout_shape(o);
      return accumulator_place(shape.m, d.n, shape.cta_group, first_row(o, index) + row, col).cell;
    };
    std::vector<bool> missing_cells(o.read_d ? size_t{rows} * columns : 0);
    if (o.read_d) {
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t col = 0; col < columns; ++col) {
          words[row * columns + col] = reader.cell(cta, o.d, place(row, col), "matrix D");
          missing_cells[row * columns + col] = reader.take_missing();
        }
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
        const bool missing = missing_rows[row] || missing_here[col] ||
                             (o.read_d && missing_cells[row * columns + col]);
        cta.tensor->flags[cell] = missing ? uint8_t{0} : TensorMemory::kWritten;
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
  const auto operation = std::make_shared<MmaOperation>();
  MmaOperation& o = *operation;
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
      o.disabled_lanes[i] =
          static_cast<uint32_t>(w.value(w.cta.cluster.grid.kernel->lists[list.offset + i], lane));
    }
  }

  // Tensor memory.
  const bool half = half_of_lanes(o);
  const LayoutShape shape = layout_shape(o);
  if (read_tensor_address(w, op, lane, op.slot(0), "matrix D", half, o.d) == Step::kFault)
    return Step::kFault;
  o.written.push_back(
      {row_lane_groups(o, o.d), o.d.column,
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
    o.read.push_back({row_lane_groups(o, o.a), o.a.column, a_words(o)});
  }
  if (sparse) {
    if (read_tensor_address(w, op, lane, op.slot(3), "sparsity metadata", half, o.metadata) ==
        Step::kFault)
      return Step::kFault;
    if (o.metadata.lane != o.d.lane) {
      return w.fault(op, static_cast<int32_t>(lane), FaultKind::kTensorMemory,
                     "sparsity metadata and D must have the same lane alignment");
    }
    o.read.push_back({row_lane_groups(o, o.metadata), o.metadata.column + d.sparsity_selector,
                      metadata_columns(metadata_layout(o))});
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
      const uint32_t groups = scale_groups(o, is_a ? d.scale_a_id : d.scale_b_id);
      for (uint32_t group = 0; group < groups; ++group) {
        const uint32_t first = (is_a ? o.scale_a : o.scale_b).column;
        o.read.push_back({kAllLaneGroups, first + group * scale_group_columns(o, is_a), columns});
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
  a.k = static_cast<uint32_t>(stored_k(d));
  b.k = static_cast<uint32_t>(d.k);
  a.rows = static_cast<uint32_t>(rows_per_cta(o));
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
