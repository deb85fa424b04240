// SPDX-License-Identifier: Apache-2.0
#include "bench/grouped_operands.h"

#include <algorithm>

namespace jitgemm::bench {
namespace {

enum Operand : uint64_t { kA, kB, kAScales, kBScales };

// Each operand of each set and group has random numbers of its own: 2^32 of them.
uint64_t seed_of(size_t set, Operand operand, size_t group) {
  return ((static_cast<uint64_t>(set) * 4 + operand + 1) << 52) |
         (static_cast<uint64_t>(group) << 32);
}

}  // namespace

const GroupedForms& GroupedOperands::form(GroupedForm form) const {
  const auto found = std::find_if(forms_.begin(), forms_.end(),
                                  [&](const GroupedForms& f) { return f.layout.form == form; });
  return found != forms_.end() ? *found : forms_.front();
}

// Offsets of everything from the start of one allocation; its size.
uint64_t GroupedOperands::place_all(DType out_dtype, int sets) {
  uint64_t bytes = 0;
  const auto place = [&](int64_t size) {
    const uint64_t offset = bytes;
    bytes += (static_cast<uint64_t>(size) + kOperandAlignment - 1) / kOperandAlignment *
             kOperandAlignment;
    return offset;
  };
  const int64_t n = shape_.n;
  const int64_t k = shape_.k;
  for (GroupedForms& form : forms_) {
    form.group_rows = place(static_cast<int64_t>(4 * form.layout.group_rows.size()));
    form.row_pointers = place(static_cast<int64_t>(4 * form.layout.row_pointers.size()));
    form.out_bytes = static_cast<size_t>(form.layout.rows * n * dtype_info(out_dtype).bytes);
  }
  for (int i = 0; i < sets; ++i) {
    GroupedWeightSet weights;
    weights.b = place(shape_.groups * n * k);
    weights.b_scales = place(4 * shape_.groups * n_blocks() * k_blocks());
    weights.b_scales_padded = place(4 * shape_.groups * n_blocks() * padded_k_blocks());
    for (const int64_t count : counts_) {
      weights.a_scales_of_group.push_back(place(4 * k_blocks() * padded_count(count)));
    }
    weights_.push_back(std::move(weights));
    for (GroupedForms& form : forms_) {
      const FormLayout& layout = form.layout;
      GroupedRowSet set;
      set.a = place(layout.rows * k);
      set.a_scales = place(4 * layout.rows * k_blocks());
      set.a_scales_column_major = place(4 * layout.matrices * k_blocks() * layout.scale_rows());
      set.out = place(static_cast<int64_t>(form.out_bytes));
      form.sets.push_back(set);
    }
  }
  return bytes;
}

void GroupedOperands::relocate(uint64_t base) {
  for (GroupedForms& form : forms_) {
    form.group_rows += base;
    form.row_pointers += base;
    for (GroupedRowSet& set : form.sets) {
      for (uint64_t* address : {&set.a, &set.a_scales, &set.a_scales_column_major, &set.out}) {
        *address += base;
      }
    }
  }
  for (GroupedWeightSet& set : weights_) {
    for (uint64_t* address : {&set.b, &set.b_scales, &set.b_scales_padded}) *address += base;
    for (uint64_t& address : set.a_scales_of_group) address += base;
  }
}

Status GroupedOperands::draw_weights(Workbench& bench, size_t set) const {
  const GpuKernels& kernels = bench.kernels();
  CuStream stream = bench.stream();
  const GroupedWeightSet& weights = weights_[set];
  const int64_t rows = shape_.groups * n_blocks();
  JITGEMM_TRY(kernels.draw_codes(weights.b, shape_.groups * shape_.n, shape_.k, seed_of(set, kB, 0),
                                 stream));
  const uint64_t seed = seed_of(set, kBScales, 0);
  JITGEMM_TRY(
      kernels.draw_scales(weights.b_scales, {rows, k_blocks(), k_blocks(), 1}, seed, stream));
  JITGEMM_TRY(
      bench.fill(weights.b_scales_padded, 0, static_cast<size_t>(4 * rows * padded_k_blocks())));
  return kernels.draw_scales(weights.b_scales_padded, {rows, k_blocks(), padded_k_blocks(), 1},
                             seed, stream);
}

Status GroupedOperands::draw_rows(Workbench& bench, size_t set) const {
  const GpuKernels& kernels = bench.kernels();
  CuStream stream = bench.stream();
  const int64_t k = shape_.k;
  const int64_t blocks = k_blocks();
  for (size_t group = 0; group < counts_.size(); ++group) {
    const int64_t padded = padded_count(counts_[group]);
    if (padded == 0) continue;
    JITGEMM_TRY(kernels.draw_scales(weights_[set].a_scales_of_group[group],
                                    {padded, blocks, 1, padded}, seed_of(set, kAScales, group),
                                    stream));
  }
  for (const GroupedForms& form : forms_) {
    const FormLayout& layout = form.layout;
    const GroupedRowSet& rows = form.sets[set];
    const auto zero = [&](uint64_t address, int64_t bytes) {
      return bench.fill(address, 0, static_cast<size_t>(bytes));
    };
    JITGEMM_TRY(zero(rows.a, layout.rows * k));
    JITGEMM_TRY(zero(rows.a_scales, 4 * layout.rows * blocks));
    JITGEMM_TRY(
        zero(rows.a_scales_column_major, 4 * layout.matrices * blocks * layout.scale_rows()));
    for (size_t group = 0; group < counts_.size(); ++group) {
      const int64_t count = counts_[group];
      if (count == 0) continue;
      const int64_t begin = layout.begins[group];
      const int64_t matrix = begin / layout.rows_of_matrix();
      const int64_t column_begin =
          matrix * blocks * layout.scale_rows() + begin % layout.rows_of_matrix();
      const uint64_t scale_seed = seed_of(set, kAScales, group);
      JITGEMM_TRY(kernels.draw_codes(rows.a + static_cast<uint64_t>(begin * k), count, k,
                                     seed_of(set, kA, group), stream));
      JITGEMM_TRY(kernels.draw_scales(rows.a_scales + static_cast<uint64_t>(4 * begin * blocks),
                                      {count, blocks, blocks, 1}, scale_seed, stream));
      JITGEMM_TRY(
          kernels.draw_scales(rows.a_scales_column_major + static_cast<uint64_t>(4 * column_begin),
                              {count, blocks, 1, layout.scale_rows()}, scale_seed, stream));
    }
  }
  return ok_status();
}

Status GroupedOperands::copy_integers(Workbench& bench) const {
  const auto copy = [&](uint64_t to, const std::vector<int32_t>& integers) {
    return bench.device().copy_to_device(to, integers.data(), 4 * integers.size());
  };
  for (const GroupedForms& form : forms_) {
    JITGEMM_TRY(copy(form.group_rows, form.layout.group_rows));
    if (form.layout.row_pointers.empty()) continue;
    JITGEMM_TRY(copy(form.row_pointers, form.layout.row_pointers));
  }
  return ok_status();
}

Result<GroupedOperands> GroupedOperands::draw(Workbench& bench, const GroupedShape& shape,
                                              DType out_dtype, int sets) {
  GroupedOperands operands;
  operands.shape_ = shape;
  operands.counts_ = group_counts(shape);
  for (const GroupedForm form : forms_of(shape)) {
    GroupedForms of_form;
    of_form.layout = form_layout(shape, form);
    operands.forms_.push_back(std::move(of_form));
  }
  const uint64_t bytes = operands.place_all(out_dtype, sets);
  JITGEMM_ASSIGN(operands.memory_, DeviceMemory::create(bench, bytes));
  operands.relocate(operands.memory_.address());
  JITGEMM_TRY(operands.copy_integers(bench));
  for (size_t set = 0; set < operands.weights_.size(); ++set) {
    JITGEMM_TRY(operands.draw_weights(bench, set));
    JITGEMM_TRY(operands.draw_rows(bench, set));
  }
  JITGEMM_TRY(bench.synchronize());
  return operands;
}

}  // namespace jitgemm::bench
