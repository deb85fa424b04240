// SPDX-License-Identifier: Apache-2.0
#include "bench/sampled_check.h"

#include "verify/reference.h"

#include <algorithm>

namespace jitgemm::bench {
namespace {

constexpr int64_t kSampledRows = 32;
constexpr int64_t kSampledColumns = 512;

}  // namespace

Result<SampledCheck> SampledCheck::create(Workbench& bench, const GemmProblem& problem,
                                          const Operands& operands) {
  SampledCheck check(bench, problem, operands);
  JITGEMM_ASSIGN(check.counter_, DeviceMemory::create(bench, sizeof(uint64_t)));
  JITGEMM_TRY(check.read_sample());
  return check;
}

Status SampledCheck::read_sample() {
  const GemmProblem& p = problem_;
  const OperandSet& set = operands_.sets()[0];
  Device& device = bench_.device();
  rows_ = sample_lines(p.m, kSampledRows, 1);
  columns_ = sample_lines(p.n, kSampledColumns, 2);
  const auto k = static_cast<size_t>(p.k);
  const auto gather = [&](uint64_t from, const std::vector<int64_t>& lines,
                          std::vector<uint8_t>& to) -> Status {
    to.resize(lines.size() * k);
    for (size_t i = 0; i < lines.size(); ++i) {
      JITGEMM_TRY(
          device.copy_to_host(to.data() + i * k, from + static_cast<uint64_t>(lines[i] * p.k), k));
    }
    return ok_status();
  };
  JITGEMM_TRY(gather(set.a, rows_, a_));
  JITGEMM_TRY(gather(set.b, columns_, b_));
  // Scales from the layout that ours does not read: the two must hold the same.
  const OperandLayout& layout = operands_.layout();
  const auto blocks = static_cast<size_t>(layout.k_blocks);
  std::vector<float> all(blocks * static_cast<size_t>(layout.padded_m));
  JITGEMM_TRY(device.copy_to_host(all.data(), set.a_scales_column_major, 4 * all.size()));
  for (const int64_t row : rows_) {
    for (size_t block = 0; block < blocks; ++block) {
      a_scales_.push_back(
          all[block * static_cast<size_t>(layout.padded_m) + static_cast<size_t>(row)]);
    }
  }
  const auto padded = static_cast<size_t>(layout.padded_k_blocks);
  all.resize(padded * static_cast<size_t>(p.n_blocks()));
  JITGEMM_TRY(device.copy_to_host(all.data(), set.b_scales_padded, 4 * all.size()));
  for (const int64_t column : columns_) {
    const float* row = all.data() + padded * static_cast<size_t>(column / p.group_n);
    b_scales_.insert(b_scales_.end(), row, row + blocks);
  }
  return ok_status();
}

Result<const std::vector<double>*> SampledCheck::reference(Product product) {
  std::optional<std::vector<double>>& cached =
      product == Product::kBlockScaled ? block_ : tensorwise_;
  if (cached) return &*cached;
  std::vector<float> a_scales = a_scales_;
  std::vector<float> b_scales = b_scales_;
  if (product == Product::kTensorwise) {
    std::fill(a_scales.begin(), a_scales.end(), kTensorwiseScale);
    std::fill(b_scales.begin(), b_scales.end(), kTensorwiseScale);
  }
  const GemmProblem& p = problem_;
  const auto rows = static_cast<int64_t>(rows_.size());
  const auto columns = static_cast<int64_t>(columns_.size());
  BlockScaledInputs inputs;
  inputs.a = row_major_view(a_.data(), p.a_dtype, rows, p.k);
  inputs.b = row_major_view(b_.data(), p.b_dtype, columns, p.k);
  inputs.a_scales = row_major_view(a_scales.data(), DType::kF32, rows, p.k_blocks());
  inputs.b_scales = row_major_view(b_scales.data(), DType::kF32, columns, p.k_blocks());
  inputs.group_n = 1;
  inputs.group_k = p.group_k;
  JITGEMM_ASSIGN(cached, reference_block_scaled_mm(inputs));
  return &*cached;
}

Result<CheckResult> SampledCheck::run(Contender& contender) {
  const GemmProblem& p = problem_;
  const OperandSet& set = operands_.sets()[0];
  Device& device = bench_.device();
  CuStream stream = bench_.stream();
  JITGEMM_TRY(bench_.fill(set.out, 0xff, operands_.out_bytes()));
  JITGEMM_TRY(bench_.fill(counter_.address(), 0, sizeof(uint64_t)));
  JITGEMM_TRY(contender.launch(0, stream));
  const int64_t element = dtype_info(p.out_dtype).bytes;
  JITGEMM_TRY(bench_.kernels().scan(set.out, static_cast<uint64_t>(p.m * p.n * element),
                                    p.out_dtype, counter_.address(), stream));
  JITGEMM_TRY(bench_.synchronize());
  uint64_t not_finite = 0;
  JITGEMM_TRY(device.copy_to_host(&not_finite, counter_.address(), sizeof(not_finite)));

  HostTensor out = make_host_tensor("out", p.out_dtype, {static_cast<int64_t>(rows_.size()), p.n});
  const auto row_bytes = static_cast<size_t>(p.n * element);
  for (size_t i = 0; i < rows_.size(); ++i) {
    JITGEMM_TRY(device.copy_to_host(out.bytes.data() + i * row_bytes,
                                    set.out + static_cast<uint64_t>(rows_[i]) * row_bytes,
                                    row_bytes));
  }
  const std::vector<double> found =
      read_matrix(view_of(out), all_indices(static_cast<int64_t>(rows_.size())), columns_);
  JITGEMM_ASSIGN(const std::vector<double>* expected, reference(contender.info().product));
  return judge_sample(found, *expected, not_finite, contender.info().error_limit);
}

}  // namespace jitgemm::bench
