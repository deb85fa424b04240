// SPDX-License-Identifier: Apache-2.0
#include "bench/operands.h"

namespace jitgemm::bench {
namespace {

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Each operand of each set has random numbers of its own.
uint64_t seed_of(int set, int operand) {
  return (static_cast<uint64_t>(set) * 8 + static_cast<uint64_t>(operand) + 1) << 40;
}

}  // namespace

OperandLayout operand_layout(const Shape& shape) {
  OperandLayout layout;
  layout.padded_m = round_up(shape.m, 4);
  layout.k_blocks = (shape.k + 127) / 128;
  layout.padded_k_blocks = round_up(layout.k_blocks, 4);
  return layout;
}

double operand_bytes(const Shape& shape) {
  return fewest_bytes(shape, 0);
}

Result<Operands> Operands::draw(Workbench& bench, const GemmProblem& problem, int sets) {
  const GemmProblem& p = problem;
  Operands operands;
  operands.layout_ = operand_layout({p.m, p.n, p.k});
  const OperandLayout& layout = operands.layout_;
  const int64_t n_blocks = p.n_blocks();
  operands.out_bytes_ = static_cast<size_t>(layout.padded_m * p.n * dtype_info(p.out_dtype).bytes);

  uint64_t bytes = 0;
  const auto place = [&](uint64_t size) {
    const uint64_t offset = bytes;
    bytes += (size + kOperandAlignment - 1) / kOperandAlignment * kOperandAlignment;
    return offset;
  };
  for (int i = 0; i < sets; ++i) {
    OperandSet set;
    set.a = place(static_cast<uint64_t>(layout.padded_m * p.k));
    set.b = place(static_cast<uint64_t>(p.n * p.k));
    set.a_scales = place(static_cast<uint64_t>(4 * layout.padded_m * layout.k_blocks));
    set.b_scales = place(static_cast<uint64_t>(4 * n_blocks * layout.k_blocks));
    set.out = place(operands.out_bytes_);
    set.a_scales_column_major = place(static_cast<uint64_t>(4 * layout.padded_m * layout.k_blocks));
    set.b_scales_padded = place(static_cast<uint64_t>(4 * n_blocks * layout.padded_k_blocks));
    operands.sets_.push_back(set);
  }
  JITGEMM_ASSIGN(operands.memory_, DeviceMemory::create(bench, bytes));
  const uint64_t base = operands.memory_.address();
  const GpuKernels& kernels = bench.kernels();
  for (int i = 0; i < sets; ++i) {
    OperandSet& set = operands.sets_[static_cast<size_t>(i)];
    for (uint64_t* address : {&set.a, &set.b, &set.a_scales, &set.b_scales, &set.out,
                              &set.a_scales_column_major, &set.b_scales_padded}) {
      *address += base;
    }
    CuStream stream = bench.stream();
    JITGEMM_TRY(kernels.draw_codes(set.a, layout.padded_m, p.k, seed_of(i, 0), stream));
    JITGEMM_TRY(kernels.draw_codes(set.b, p.n, p.k, seed_of(i, 1), stream));
    const int64_t blocks = layout.k_blocks;
    JITGEMM_TRY(kernels.draw_scales(set.a_scales, {p.m, blocks, blocks, 1}, seed_of(i, 2), stream));
    JITGEMM_TRY(kernels.draw_scales(set.a_scales_column_major,
                                    {layout.padded_m, blocks, 1, layout.padded_m}, seed_of(i, 2),
                                    stream));
    JITGEMM_TRY(
        kernels.draw_scales(set.b_scales, {n_blocks, blocks, blocks, 1}, seed_of(i, 3), stream));
    JITGEMM_TRY(bench.fill(set.b_scales_padded, 0,
                           static_cast<size_t>(4 * n_blocks * layout.padded_k_blocks)));
    JITGEMM_TRY(kernels.draw_scales(
        set.b_scales_padded, {n_blocks, blocks, layout.padded_k_blocks, 1}, seed_of(i, 3), stream));
  }
  JITGEMM_TRY(bench.synchronize());
  return operands;
}

}  // namespace jitgemm::bench
