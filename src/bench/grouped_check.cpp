// SPDX-License-Identifier: Apache-2.0
#include "bench/grouped_check.h"

#include "verify/reference.h"

namespace jitgemm::bench {
namespace {

constexpr int64_t kRowsOfGroups = 32;
// Fewer than of a single product: each sampled group has columns of its own to be read.
constexpr int64_t kColumnsOfGroups = 128;

}  // namespace

void GroupedCheck::choose_rows() {
  int64_t total = 0;
  for (const int64_t count : operands_.counts()) total += count;
  size_t group = 0;
  int64_t before = 0;
  for (const int64_t line : sample_lines(total, kRowsOfGroups, 1)) {
    while (line >= before + operands_.counts()[group]) before += operands_.counts()[group++];
    rows_.push_back({group, line - before});
  }
}

Result<GroupedCheck> GroupedCheck::create(Workbench& bench, DType out_dtype,
                                          const GroupedOperands& operands) {
  GroupedCheck check(bench, out_dtype, operands);
  JITGEMM_ASSIGN(check.counter_, DeviceMemory::create(bench, sizeof(uint64_t)));
  check.choose_rows();
  check.columns_ = sample_lines(operands.shape().n, kColumnsOfGroups, 2);
  for (size_t first = 0; first < check.rows_.size();) {
    size_t last = first;
    while (last < check.rows_.size() && check.rows_[last].group == check.rows_[first].group) ++last;
    JITGEMM_TRY(check.compute(first, last));
    first = last;
  }
  return check;
}

Status GroupedCheck::compute(size_t first, size_t last) {
  Device& device = bench_.device();
  const GroupedShape& shape = operands_.shape();
  const size_t group = rows_[first].group;
  const auto k = static_cast<size_t>(shape.k);
  const GroupedForms& form = operands_.form(peer_form(shape));
  const GroupedWeightSet& weights = operands_.weights()[0];
  std::vector<uint8_t> a((last - first) * k);
  for (size_t i = first; i < last; ++i) {
    const int64_t row = form.layout.begins[group] + rows_[i].row;
    JITGEMM_TRY(device.copy_to_host(a.data() + (i - first) * k,
                                    form.sets[0].a + static_cast<uint64_t>(row) * k, k));
  }
  std::vector<uint8_t> b(columns_.size() * k);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const int64_t row = static_cast<int64_t>(group) * shape.n + columns_[i];
    JITGEMM_TRY(
        device.copy_to_host(b.data() + i * k, weights.b + static_cast<uint64_t>(row) * k, k));
  }
  // Scales from the layouts that ours does not read: all must hold the same.
  const auto blocks = static_cast<size_t>(operands_.k_blocks());
  const auto column_rows =
      static_cast<size_t>(GroupedOperands::padded_count(operands_.counts()[group]));
  std::vector<float> all(blocks * column_rows);
  JITGEMM_TRY(device.copy_to_host(all.data(), weights.a_scales_of_group[group], 4 * all.size()));
  std::vector<float> a_scales;
  for (size_t i = first; i < last; ++i) {
    for (size_t block = 0; block < blocks; ++block) {
      a_scales.push_back(all[block * column_rows + static_cast<size_t>(rows_[i].row)]);
    }
  }
  const auto padded = static_cast<size_t>(operands_.padded_k_blocks());
  const auto n_blocks = static_cast<size_t>(operands_.n_blocks());
  all.resize(padded * n_blocks);
  JITGEMM_TRY(device.copy_to_host(all.data(), weights.b_scales_padded + 4 * group * all.size(),
                                  4 * all.size()));
  std::vector<float> b_scales;
  for (const int64_t column : columns_) {
    const float* row = all.data() + padded * static_cast<size_t>(column / 128);
    b_scales.insert(b_scales.end(), row, row + blocks);
  }
  const auto rows = static_cast<int64_t>(last - first);
  const auto columns = static_cast<int64_t>(columns_.size());
  const auto k_blocks = static_cast<int64_t>(blocks);
  BlockScaledInputs inputs;
  inputs.a = row_major_view(a.data(), DType::kF8E4M3, rows, shape.k);
  inputs.b = row_major_view(b.data(), DType::kF8E4M3, columns, shape.k);
  inputs.a_scales = row_major_view(a_scales.data(), DType::kF32, rows, k_blocks);
  inputs.b_scales = row_major_view(b_scales.data(), DType::kF32, columns, k_blocks);
  inputs.group_n = 1;
  inputs.group_k = 128;
  JITGEMM_ASSIGN(const std::vector<double> expected, reference_block_scaled_mm(inputs));
  expected_.insert(expected_.end(), expected.begin(), expected.end());
  return ok_status();
}

Result<CheckResult> GroupedCheck::run(Contender& contender) {
  Device& device = bench_.device();
  CuStream stream = bench_.stream();
  const GroupedForms& form = operands_.form(contender.info().form);
  const uint64_t out = form.sets[0].out;
  const auto row_bytes = static_cast<uint64_t>(operands_.shape().n * dtype_info(out_dtype_).bytes);
  JITGEMM_TRY(bench_.fill(out, 0xff, form.out_bytes));
  JITGEMM_TRY(bench_.fill(counter_.address(), 0, sizeof(uint64_t)));
  JITGEMM_TRY(contender.launch(0, stream));
  for (size_t group = 0; group < operands_.counts().size(); ++group) {
    const auto count = static_cast<uint64_t>(operands_.counts()[group]);
    if (count == 0) continue;
    const auto begin = static_cast<uint64_t>(form.layout.begins[group]);
    JITGEMM_TRY(bench_.kernels().scan(out + begin * row_bytes, count * row_bytes, out_dtype_,
                                      counter_.address(), stream));
  }
  JITGEMM_TRY(bench_.synchronize());
  uint64_t not_finite = 0;
  JITGEMM_TRY(device.copy_to_host(&not_finite, counter_.address(), sizeof(not_finite)));
  HostTensor sample = make_host_tensor("out", out_dtype_,
                                       {static_cast<int64_t>(rows_.size()), operands_.shape().n});
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto row = static_cast<uint64_t>(form.layout.begins[rows_[i].group] + rows_[i].row);
    JITGEMM_TRY(
        device.copy_to_host(sample.bytes.data() + i * row_bytes, out + row * row_bytes, row_bytes));
  }
  const std::vector<double> found =
      read_matrix(view_of(sample), all_indices(static_cast<int64_t>(rows_.size())), columns_);
  return judge_sample(found, expected_, not_finite, contender.info().error_limit);
}

}  // namespace jitgemm::bench
