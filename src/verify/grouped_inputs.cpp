// SPDX-License-Identifier: Apache-2.0
#include "verify/grouped_inputs.h"

#include "verify/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace jitgemm {
namespace {

constexpr uint32_t kCountStream = 0x67e0;

int64_t align_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// Where element (row, column) of one group's matrix lies, in bytes.
struct Placement {
  int64_t group_stride;
  int64_t row_stride;
  int64_t column_stride;
  bool packed = false;  // columns in words of four bytes
  int64_t element_bytes;

  size_t offset(int64_t group, int64_t row, int64_t column) const {
    if (packed) {
      const int64_t word = group * group_stride + row + column / 4 * column_stride;
      return static_cast<size_t>(4 * word + column % 4);
    }
    return static_cast<size_t>((group * group_stride + row * row_stride + column * column_stride) *
                               element_bytes);
  }
};

Placement scale_placement(const GemmProblem& p, ScaleMajor major, int64_t ld,
                          int64_t group_stride) {
  const int64_t bytes = dtype_info(p.scale_dtype).bytes;
  if (major == ScaleMajor::kPacked) return {group_stride, 1, ld, true, 1};
  const bool row_major = major == ScaleMajor::kRow;
  return {group_stride, row_major ? ld : 1, row_major ? 1 : ld, false, bytes};
}

// Puts rows of a dense matrix into storage that grows as needed.
void place(const HostTensor& tensor, int64_t first_row, int64_t rows, int64_t group,
           const Placement& at, std::vector<std::byte>& storage) {
  const int64_t columns = tensor.shape[1];
  if (rows == 0) return;
  const int64_t bytes = dtype_info(tensor.dtype).bytes;
  size_t end = at.offset(group, rows - 1, columns - 1) + static_cast<size_t>(bytes);
  if (at.packed) end = align_up(static_cast<int64_t>(end), 4);
  if (storage.size() < end) storage.resize(end, std::byte{0xff});
  const bool contiguous = !at.packed && at.column_stride == 1;
  for (int64_t row = 0; row < rows; ++row) {
    const std::byte* from = tensor.bytes.data() + (first_row + row) * columns * bytes;
    if (contiguous) {
      std::memcpy(&storage[at.offset(group, row, 0)], from, static_cast<size_t>(columns * bytes));
      continue;
    }
    for (int64_t column = 0; column < columns; ++column) {
      std::memcpy(&storage[at.offset(group, row, column)], from + column * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

// One group's operands as an ordinary product.
GemmProblem one_group(const GemmProblem& problem, int64_t m) {
  GemmProblem p;
  p.arch = problem.arch;
  p.m = m;
  p.n = problem.n;
  p.k = problem.k;
  p.a_dtype = problem.a_dtype;
  p.b_dtype = problem.b_dtype;
  p.scale_dtype = problem.scale_dtype;
  p.group_n = problem.group_n;
  p.group_k = problem.group_k;
  p.scale_values = problem.scale_values;
  return p;
}

}  // namespace

Result<GroupedTensors> make_grouped_tensors(const GemmProblem& problem, InputKind kind,
                                            uint64_t seed, const DrawOperand& draw) {
  GroupedTensors tensors;
  GemmProblem rows = one_group(problem, all_rows(problem));
  rows.n = 1;
  JITGEMM_ASSIGN(BlockScaledTensors of_rows, make_block_scaled_tensors(rows, kind, seed, 0, draw));
  tensors.a = std::move(of_rows.a);
  tensors.a_scales = std::move(of_rows.a_scales);
  for (int64_t group = 0; group < problem.grouping.groups; ++group) {
    const uint64_t group_seed = seed + 1 + static_cast<uint64_t>(group);
    JITGEMM_ASSIGN(BlockScaledTensors of_group,
                   make_block_scaled_tensors(one_group(problem, 1), kind, group_seed, 0, draw));
    tensors.b.push_back(std::move(of_group.b));
    tensors.b_scales.push_back(std::move(of_group.b_scales));
  }
  return tensors;
}

Result<BlockScaledStorage> lay_out(const GemmProblem& p, const GroupedTensors& tensors) {
  const int64_t row_groups = p.grouping.separate_rows() ? p.grouping.groups : 1;
  const int64_t operand_bytes = dtype_info(p.a_dtype).bytes;
  const Placement a{p.a_group_stride(), p.lda_or_dense(), 1, false, operand_bytes};
  const Placement b{p.b_group_stride(), p.ldb_or_dense(), 1, false, operand_bytes};
  const Placement a_scales =
      scale_placement(p, p.a_scale_major, p.a_scale_ld_or_dense(), p.a_scale_group_stride());
  const Placement b_scales =
      scale_placement(p, p.b_scale_major, p.b_scale_ld_or_dense(), p.b_scale_group_stride());
  BlockScaledStorage storage;
  for (int64_t group = 0; group < row_groups; ++group) {
    place(tensors.a, group * p.m, p.m, group, a, storage.a);
    place(tensors.a_scales, group * p.m, p.m, group, a_scales, storage.a_scales);
  }
  for (int64_t group = 0; group < p.grouping.groups; ++group) {
    const auto index = static_cast<size_t>(group);
    place(tensors.b[index], 0, p.n, group, b, storage.b);
    place(tensors.b_scales[index], 0, p.n_blocks(), group, b_scales, storage.b_scales);
  }
  return storage;
}

int64_t all_rows(const GemmProblem& p) {
  return p.grouping.separate_rows() ? p.grouping.groups * p.m : p.m;
}

int64_t output_offset(const GemmProblem& p, int64_t row) {
  if (!p.grouping.separate_rows()) return row * p.ldo_or_dense();
  return row / p.m * p.out_group_stride() + row % p.m * p.ldo_or_dense();
}

std::vector<int32_t> groups_of_rows(const GemmProblem& p, std::span<const int32_t> group_rows) {
  const Grouping& g = p.grouping;
  std::vector<int32_t> groups(static_cast<size_t>(all_rows(p)), -1);
  const auto bound = [&](int64_t index) {
    return std::clamp<int64_t>(group_rows[static_cast<size_t>(index)], 0, p.m);
  };
  for (int64_t group = 0; group < g.groups; ++group) {
    int64_t begin = 0;
    int64_t end = 0;
    switch (g.layout) {
      case GroupLayout::kEndOffsets:
        if (group > 0) begin = align_up(bound(group - 1), std::max(g.row_alignment, 1));
        end = bound(group);
        break;
      case GroupLayout::kRowPointers:
        begin = bound(group);
        end = bound(group + 1);
        break;
      case GroupLayout::kMasked:
        begin = group * p.m;
        end = begin + bound(group);
        break;
      default: break;
    }
    for (int64_t row = begin; row < end; ++row) {
      groups[static_cast<size_t>(row)] = static_cast<int32_t>(group);
    }
  }
  if (g.layout == GroupLayout::kRowIndices) {
    for (size_t row = 0; row < groups.size(); ++row) {
      if (group_rows[row] >= 0 && group_rows[row] < g.groups) groups[row] = group_rows[row];
    }
  }
  return groups;
}

std::string_view routing_name(Routing routing) {
  switch (routing) {
    case Routing::kEven: return "even";
    case Routing::kSkewed: return "skewed";
    case Routing::kOneGroup: return "one_group";
    case Routing::kSingles: return "singles";
  }
  return "?";
}

std::vector<int64_t> draw_group_counts(int64_t groups, int64_t rows, Routing routing,
                                       uint64_t seed) {
  std::vector<int64_t> counts(static_cast<size_t>(groups), 0);
  const RandomStream random(seed, kCountStream);
  if (routing == Routing::kOneGroup) {
    counts[static_cast<size_t>(random.integer(0, 0, static_cast<int32_t>(groups) - 1))] = rows;
    return counts;
  }
  // Zipf's weights in a random order; rows are then drawn one by one.
  std::vector<double> through(counts.size());
  double sum = 0;
  for (size_t group = 0; group < counts.size(); ++group) {
    const int32_t rank = random.integer(group, 0, static_cast<int32_t>(groups) - 1);
    sum += routing == Routing::kSkewed ? 1.0 / (1.0 + rank) : 1.0;
    through[group] = sum;
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (routing == Routing::kEven) {
      ++counts[static_cast<size_t>(row % groups)];
      continue;
    }
    const double at =
        static_cast<double>(random.uniform(static_cast<uint64_t>(groups + row))) * sum;
    const auto found = std::upper_bound(through.begin(), through.end() - 1, at);
    ++counts[static_cast<size_t>(found - through.begin())];
  }
  return counts;
}

GroupedRows place_groups(const GemmProblem& problem, std::span<const int64_t> counts,
                         int64_t alignment) {
  GroupedRows rows;
  rows.m = problem.m;
  int64_t end = 0;
  for (size_t group = 0; group < counts.size(); ++group) {
    switch (problem.grouping.layout) {
      case GroupLayout::kRowIndices:
        rows.group_rows.resize(static_cast<size_t>(align_up(end, alignment)), -1);
        rows.group_rows.insert(rows.group_rows.end(), static_cast<size_t>(counts[group]),
                               static_cast<int32_t>(group));
        end = static_cast<int64_t>(rows.group_rows.size());
        break;
      case GroupLayout::kRowPointers:
        rows.group_rows.push_back(static_cast<int32_t>(end));
        end += counts[group];
        break;
      case GroupLayout::kEndOffsets:
        end = align_up(end, std::max(problem.grouping.row_alignment, 1)) + counts[group];
        rows.group_rows.push_back(static_cast<int32_t>(end));
        break;
      default:
        rows.group_rows.push_back(static_cast<int32_t>(std::min(counts[group], problem.m)));
        break;
    }
  }
  if (problem.grouping.layout == GroupLayout::kRowPointers)
    rows.group_rows.push_back(static_cast<int32_t>(end));
  if (!problem.grouping.separate_rows()) rows.m = end;
  if (problem.grouping.layout == GroupLayout::kRowIndices) {
    rows.m = align_up(end, alignment);
    rows.group_rows.resize(static_cast<size_t>(rows.m), -1);
  }
  return rows;
}

}  // namespace jitgemm
