// SPDX-License-Identifier: Apache-2.0
// The effect of a tcgen05.mma, when the tensor pipe gets to it, in the order of issue: operands
// from shared and tensor memory, the product (models_mma), the accumulator back to tensor memory.
#include "sim/exec_tcgen05_mma.h"
#include "sim/models_sparse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace jitgemm::sim {
namespace {

struct Reader {
  Cluster& cluster;
  const Tcgen05Mma& o;
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
      for (uint32_t group = 0; group < o.scale_groups(id); ++group) {
        TmemCell at = place.cell;
        at.column += group * o.scale_group_columns(is_a);
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
    const auto rows = static_cast<uint32_t>(o.rows_per_cta());
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t word = 0; word < o.a_words(); ++word) {
        uint32_t value = 0;
        const uint32_t replicas = o.weight_stationary
                                      ? ws_a_replicas(d.m)
                                      : a_replicas(o.layout_shape().m, o.layout_shape().cta_group);
        for (uint32_t replica = 0; replica < replicas; ++replica) {
          TmemCell at = o.weight_stationary
                            ? ws_a_cell(d.m, row, replica)
                            : a_place(o.layout_shape().m, o.layout_shape().cta_group,
                                      o.first_row(cta_index) + row, replica)
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
void expand_rows(Cluster& cluster, const Tcgen05Mma& o, Reader& reader, Cta& cta,
                 std::vector<uint32_t>& codes, std::vector<bool>& missing_rows) {
  const InstructionDescriptor& d = o.descriptor;
  // Four-bit elements of the kinds with mixed types have a byte each.
  const int width = format_bits(d.a_format);
  const Sparsity sparsity = sparsity_of(width == 4 && !is_packed_fp4(o.kind) ? 8 : width);
  const auto k = static_cast<size_t>(d.k);
  const uint32_t chunks = static_cast<uint32_t>(d.k) / chunk_elements(sparsity);
  std::vector<uint32_t> places;
  const auto rows = static_cast<uint32_t>(o.rows_per_cta());
  for (uint32_t row = 0; row < rows; ++row) {
    std::vector<uint8_t> metadata;
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) {
      const MetadataPlace place =
          metadata_place(o.metadata_layout(), o.half_of_lanes(), row, chunk, chunks);
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
    if (reader.take_missing()) missing_rows[row] = true;
    std::vector<uint32_t> of_row = sparse_places(sparsity, metadata, !cluster.grid.options.strict);
    if (of_row.empty()) {
      if (!missing_rows[row]) {
        cluster.raise(o.origin, FaultKind::kIllegalOperand,
                      fmt::format("{}: {}", illegal_index(row), fmt::join(metadata, " ")));
      }
      of_row.assign(k / 2, kNowhere);
    }
    places.insert(places.end(), of_row.begin(), of_row.end());
  }
  for (const size_t row : expand_sparse_rows(codes, places, k)) {
    if (!missing_rows[row])
      cluster.raise(o.origin, FaultKind::kIllegalOperand, misplaced_element(row));
  }
}

bool lane_disabled(const Tcgen05Mma& o, uint32_t cta_index, uint32_t lane) {
  return (o.disabled_lanes[4 * cta_index + lane / 32] >> (lane % 32) & 1) != 0;
}

}  // namespace

void complete_tcgen05_mma(Cluster& cluster, Tcgen05Mma& o) {
  const InstructionDescriptor& d = o.descriptor;
  Reader reader{cluster, o};
  std::vector<uint32_t> b;
  std::vector<bool> missing_columns;
  for (const Tcgen05Mma::Share& share : o.shares) {
    gather_codes(share.b, share.cta->shared.bytes, b);
    const size_t first = missing_columns.size();
    missing_columns.resize(first + share.b.rows);
    std::copy(share.missing_columns.begin(), share.missing_columns.end(),
              missing_columns.begin() + static_cast<std::ptrdiff_t>(first));
  }
  const auto rows = static_cast<uint32_t>(o.rows_per_cta());
  const auto columns = static_cast<uint32_t>(d.n);
  const auto k = static_cast<size_t>(d.k);
  for (size_t col = 0; col < o.zero_columns.size(); ++col) {
    if (!o.zero_columns[col]) continue;
    std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(col * k), k, 0u);
    missing_columns[col] = false;
  }
  for (uint32_t index = 0; index < o.shares.size(); ++index) {
    Tcgen05Mma::Share& share = o.shares[index];
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
      const Tcgen05Mma::LayoutShape shape = o.layout_shape();
      return accumulator_place(shape.m, d.n, shape.cta_group, o.first_row(index) + row, col).cell;
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
  for (Tcgen05Mma::Share& share : o.shares) {
    end_operand_read(*share.cta, share.a_chunks);
    end_operand_read(*share.cta, share.b_chunks);
    for (const TensorRegion& region : o.read)
      for_each_part(*share.cta, region, [](TensorPart& p) { --p.async_readers; });
    for (const TensorRegion& region : o.written)
      for_each_part(*share.cta, region, [](TensorPart& p) { --p.async_writers; });
  }
}

}  // namespace jitgemm::sim
