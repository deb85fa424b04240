// SPDX-License-Identifier: Apache-2.0
#include "grouped_cases.h"

namespace jitgemm {
namespace {

constexpr GroupLayout kOffsets = GroupLayout::kEndOffsets;
constexpr GroupLayout kPointers = GroupLayout::kRowPointers;
constexpr GroupLayout kMasked = GroupLayout::kMasked;
constexpr InputKind kUniform = InputKind::kUniformCodes;

GroupedCase with(std::string name, void (*change)(GroupedCase&)) {
  GroupedCase c;
  c.name = std::move(name);
  change(c);
  return c;
}

// Every row another group, some none, some names that are no group.
std::vector<int32_t> mixed_names(int32_t groups, int rows) {
  std::vector<int32_t> names;
  for (int row = 0; row < rows; ++row) {
    names.push_back(row % 7 == 3 ? -1 : (row * 5 + row / 9) % groups);
  }
  return names;
}

void add_row_indices(std::vector<GroupedCase>& cases) {
  const auto add = [&](std::string name, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
  };
  add("indices_whole_windows", [](GroupedCase& c) { c.counts = {128, 0, 256}, c.alignment = 128; });
  add("indices_padded_groups", [](GroupedCase& c) {
    c.counts = {100, 1, 0, 129}, c.alignment = 128;
  });
  add("indices_aligned_64", [](GroupedCase& c) { c.counts = {70, 20, 64}, c.alignment = 64; });
  add("indices_aligned_32", [](GroupedCase& c) {
    c.counts = {70, 0, 20, 33}, c.alignment = 32, c.data = kUniform, c.out = DType::kBF16;
  });
  add("indices_aligned_16", [](GroupedCase& c) {
    c.counts = {3, 16, 40, 1, 17}, c.alignment = 16, c.row_alignment = 16, c.expected_m = 16;
  });
  add("indices_aligned_8", [](GroupedCase& c) {
    c.counts = {3, 16, 40, 1, 17}, c.alignment = 8, c.row_alignment = 8, c.expected_m = 8;
  });
  add("indices_any_start", [](GroupedCase& c) { c.counts = {37, 0, 5, 90, 61}; });
  add("indices_change_every_row", [](GroupedCase& c) {
    c.groups = 3, c.integers = mixed_names(3, 41), c.m = 41, c.k = 128, c.n = 72;
  });
  add("indices_change_every_row_of_few", [](GroupedCase& c) {
    c.groups = 5, c.integers = mixed_names(5, 23), c.m = 23, c.k = 128, c.n = 72, c.expected_m = 4;
  });
  add("indices_descending_and_repeated", [](GroupedCase& c) {
    c.groups = 4, c.m = 150;
    for (const auto& [group, rows] : {
             std::pair{3,  40},
             {1,  30},
             {3,  10},
             {-1, 20},
             {0,  49},
             {1,  1 }
    }) {
      c.integers.insert(c.integers.end(), static_cast<size_t>(rows), group);
    }
  });
  add("indices_one_group_has_all", [](GroupedCase& c) { c.counts = {0, 200, 0}; });
  add("indices_no_row_has_a_group",
      [](GroupedCase& c) { c.groups = 2, c.m = 130, c.integers.assign(130, -1); });
  add("indices_no_row_has_a_group_zeroed", [](GroupedCase& c) {
    c.groups = 2, c.m = 70, c.integers.assign(70, -1), c.zero_ungrouped = true;
  });
  add("indices_ungrouped_rows_zeroed", [](GroupedCase& c) {
    c.counts = {100, 3, 0, 40}, c.alignment = 64, c.zero_ungrouped = true, c.out = DType::kBF16;
  });
  add("indices_ungrouped_rows_zeroed_of_few", [](GroupedCase& c) {
    c.counts = {5, 3, 0, 9}, c.alignment = 8, c.zero_ungrouped = true, c.expected_m = 4;
  });
  add("indices_out_of_range_are_nobodys", [](GroupedCase& c) {
    c.groups = 3, c.m = 66, c.integers.assign(66, 1), c.invalid = 6;
    c.integers[0] = 3, c.integers[1] = INT32_MAX, c.integers[20] = -2, c.integers[21] = INT32_MIN;
    c.integers[64] = 1000, c.integers[65] = 3, c.integers[40] = -1;
  });
  add("indices_f16", [](GroupedCase& c) {
    c.counts = {130, 20}, c.data = kUniform, c.out = DType::kF16;
  });
}

void add_ranges(std::vector<GroupedCase>& cases) {
  const auto add = [&](std::string name, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
  };
  add("offsets_dense",
      [](GroupedCase& c) { c.layout = kOffsets, c.counts = {0, 140, 1, 0, 64, 0}; });
  add("offsets_aligned_32", [](GroupedCase& c) {
    c.layout = kOffsets, c.counts = {33, 0, 5, 70}, c.row_alignment = 32, c.data = kUniform;
    c.out = DType::kBF16;
  });
  add("offsets_out_of_range", [](GroupedCase& c) {
    c.layout = kOffsets, c.groups = 4, c.m = 50, c.integers = {-5, 20, 20, 90}, c.invalid = 2;
  });
  add("offsets_that_fall", [](GroupedCase& c) {
    c.layout = kOffsets, c.groups = 3, c.m = 50, c.integers = {30, 10, 50}, c.invalid = 1;
    c.compared = false;
  });
  add("pointers_with_empty_ends",
      [](GroupedCase& c) { c.layout = kPointers, c.counts = {0, 0, 131, 40, 0, 3, 0}; });
  add("pointers_few_rows", [](GroupedCase& c) {
    c.layout = kPointers, c.counts = {1, 0, 7, 3, 12, 0, 1, 2}, c.data = kUniform;
    c.out = DType::kBF16;
  });
  add("pointers_leave_rows_out", [](GroupedCase& c) {
    c.layout = kPointers, c.groups = 2, c.m = 90, c.integers = {10, 40, 80}, c.invalid = 0;
  });
  add("pointers_out_of_range", [](GroupedCase& c) {
    c.layout = kPointers, c.groups = 3, c.m = 60, c.integers = {-7, 20, 61, INT32_MAX},
    c.invalid = 3;
  });
  add("pointers_of_garbage", [](GroupedCase& c) {
    c.layout = kPointers, c.groups = 4, c.m = 60, c.compared = false;
    c.integers = {INT32_MIN, INT32_MAX, -1, 59, 2};
  });
  add("offsets_zeroed", [](GroupedCase& c) {
    // Groups 1, 3 and 4 are empty; of them 3 ends where its rows would begin.
    c.layout = kOffsets, c.groups = 6, c.m = 150, c.row_alignment = 32, c.zero_ungrouped = true;
    c.integers = {5, 5, 70, 96, 96, 100};
  });
  add("offsets_zeroed_of_few", [](GroupedCase& c) {
    c.layout = kOffsets, c.counts = {5, 0, 3, 9}, c.row_alignment = 8, c.expected_m = 4;
    c.zero_ungrouped = true, c.out = DType::kBF16;
  });
  add("pointers_zeroed", [](GroupedCase& c) {
    c.layout = kPointers, c.groups = 3, c.m = 150, c.integers = {70, 70, 79, 111};
    c.zero_ungrouped = true;
  });
  add("pointers_of_garbage_zeroed", [](GroupedCase& c) {
    c.layout = kPointers, c.groups = 4, c.m = 60, c.compared = false, c.zero_ungrouped = true;
    c.integers = {INT32_MAX, INT32_MIN, 59, -1, 2};
  });
  add("masked_zeroed", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 72, c.counts = {72, 0, 30, 1}, c.zero_ungrouped = true;
  });
  add("masked_zeroed_of_few", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 20, c.counts = {1, 0, 9, 20}, c.expected_m = 4, c.padding = 3;
    c.zero_ungrouped = true, c.values = ScaleValues::kPowerOfTwo;
  });
  // More tiles to be zeroed follow one with operands than a CTA is told of at once.
  add("zeroed_tiles_follow_rows_of_odd_length", [](GroupedCase& c) {
    c.groups = 1, c.m = 1200, c.n = 24, c.k = 131, c.integers.assign(1200, -1), c.integers[3] = 0;
    c.integers[1100] = 0, c.expected_m = 4, c.zero_ungrouped = true;
  });
  add("zeroed_tiles_follow_rows_of_4_bytes", [](GroupedCase& c) {
    c.groups = 1, c.m = 1200, c.n = 24, c.k = 132, c.integers.assign(1200, -1), c.integers[3] = 0;
    c.integers[1100] = 0, c.expected_m = 4, c.zero_ungrouped = true;
  });
  add("zeroed_tiles_follow_powers_of_two", [](GroupedCase& c) {
    c.groups = 1, c.m = 1200, c.n = 24, c.integers.assign(1200, -1), c.integers[3] = 0;
    c.integers[1100] = 0, c.expected_m = 4, c.zero_ungrouped = true;
    c.values = ScaleValues::kPowerOfTwo;
  });
  add("masked_full_and_empty", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 72, c.counts = {72, 0, 30, 1, 64};
  });
  add("masked_few_rows", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 40, c.counts = {1, 0, 9, 3, 40, 0, 2, 16}, c.expected_m = 4;
    c.data = kUniform, c.out = DType::kBF16;
  });
  add("masked_all_empty", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 40, c.counts = {0, 0, 0};
  });
  add("masked_out_of_range", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 20, c.groups = 4, c.integers = {21, -1, INT32_MAX, 7}, c.invalid = 3;
  });
  add("masked_padded", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 33, c.counts = {33, 0, 5}, c.padding = 16, c.out = DType::kBF16;
  });
  add("masked_padded_odd", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 33, c.counts = {33, 0, 5}, c.padding = 3;
  });
  add("masked_interleaved", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 33, c.counts = {33, 0, 5}, c.interleaved = true, c.out = DType::kBF16;
    c.n = 128;
  });
  add("masked_more_groups_than_a_page", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 3, c.n = 24, c.k = 64, c.expected_m = 1;
    for (int group = 0; group < 301; ++group) c.counts.push_back(group % 50 == 7 ? group % 4 : 0);
    c.counts.back() = 2;
  });
}

void add_shapes(std::vector<GroupedCase>& cases) {
  const auto add = [&](std::string name, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
  };
  add("n_576", [](GroupedCase& c) {
    c.counts = {60, 0, 70}, c.n = 576, c.k = 128, c.data = kUniform;
  });
  add("n_576_few_rows", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 16, c.counts = {3, 0, 16, 9}, c.n = 576, c.expected_m = 8;
  });
  add("k_tail", [](GroupedCase& c) { c.counts = {60, 30}, c.k = 400; });
  add("k_tail_few_rows", [](GroupedCase& c) {
    c.layout = kPointers, c.counts = {6, 3, 0, 1}, c.k = 336, c.data = kUniform;
  });
  add("rows_of_4_bytes", [](GroupedCase& c) { c.counts = {40, 0, 33}, c.k = 404; });
  add("rows_of_4_bytes_few_rows", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 9, c.counts = {4, 0, 9}, c.k = 404, c.expected_m = 4;
  });
  add("rows_of_odd_bytes", [](GroupedCase& c) { c.counts = {40, 0, 33}, c.k = 259, c.n = 137; });
  add("rows_of_odd_bytes_few_rows", [](GroupedCase& c) {
    c.layout = kOffsets, c.counts = {4, 0, 9}, c.k = 259, c.n = 77;
  });
  add("unaligned_base", [](GroupedCase& c) { c.counts = {40, 0, 33}, c.alignment_bytes = 4; });
  add("smallest", [](GroupedCase& c) { c.counts = {1}, c.n = 1, c.k = 1; });
  add("padded", [](GroupedCase& c) { c.counts = {40, 0, 33}, c.padding = 16; });
  add("scales_64_x_64", [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.group_n = 64, c.group_k = 64, c.data = kUniform, c.k = 320;
  });
  add("scales_of_every_row", [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.group_n = 1, c.data = kUniform;
  });
  add("scales_in_columns", [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.data = kUniform, c.a_major = ScaleMajor::kColumn, c.k = 384;
    c.b_major = ScaleMajor::kColumn;
  });
  add("scales_in_columns_masked", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 30, c.counts = {4, 0, 30}, c.data = kUniform;
    c.a_major = ScaleMajor::kColumn, c.b_major = ScaleMajor::kColumn, c.k = 384;
  });
  add("mixed_dtypes", [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.data = kUniform, c.a = DType::kF8E5M2;
  });
  add("wide_scales", [](GroupedCase& c) { c.counts = {70, 3}, c.data = InputKind::kWideScales; });
  add("e8m0_scales", [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.scales = DType::kF8E8M0, c.data = kUniform, c.k = 400;
  });
  add("e8m0_scales_masked", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 20, c.counts = {4, 0, 20}, c.scales = DType::kF8E8M0;
    c.expected_m = 4, c.out = DType::kBF16;
  });
  add("packed_scales", [](GroupedCase& c) {
    c.counts = {40, 0, 133}, c.scales = DType::kF8E8M0, c.data = kUniform, c.k = 700;
    c.group_n = 1, c.a_major = ScaleMajor::kPacked, c.b_major = ScaleMajor::kPacked;
  });
  add("packed_scales_masked", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 21, c.counts = {4, 0, 21}, c.scales = DType::kF8E8M0;
    c.group_n = 1, c.a_major = ScaleMajor::kPacked, c.b_major = ScaleMajor::kPacked;
    c.expected_m = 4;
  });
  add("packed_scales_padded", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 21, c.counts = {4, 0, 21}, c.scales = DType::kF8E8M0;
    c.a_major = ScaleMajor::kPacked, c.padding = 16;
  });
  add("declared_powers_of_two", [](GroupedCase& c) {
    c.counts = {40, 0, 133}, c.values = ScaleValues::kPowerOfTwo, c.data = kUniform;
  });
  add("declared_powers_of_two_zeroed", [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.values = ScaleValues::kPowerOfTwo, c.alignment = 16;
    c.zero_ungrouped = true;
  });
  add("declared_powers_of_two_few_rows_zeroed", [](GroupedCase& c) {
    c.counts = {4, 0, 13}, c.values = ScaleValues::kPowerOfTwo, c.alignment = 8, c.k = 404;
    c.zero_ungrouped = true, c.expected_m = 4;
  });
  add("exact_m", [](GroupedCase& c) { c.counts = {40, 0, 33}, c.policy = MPolicy::kExact; });
  add("any_m", [](GroupedCase& c) { c.counts = {40, 0, 33}, c.policy = MPolicy::kAny; });
}

// Operands of 16 bits, without scales.
void add_unscaled(std::vector<GroupedCase>& cases) {
  const auto add = [&](std::string name, DType dtype, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
    cases.back().a = cases.back().b = dtype;
  };
  add("bf16_indices", DType::kBF16, [](GroupedCase& c) { c.counts = {37, 0, 5, 90}, c.k = 200; });
  add("bf16_masked_few_rows", DType::kBF16, [](GroupedCase& c) {
    c.layout = kMasked, c.m = 20, c.counts = {4, 0, 20}, c.expected_m = 4, c.data = kUniform;
    c.out = DType::kBF16;
  });
  add("f16_offsets", DType::kF16, [](GroupedCase& c) {
    c.layout = kOffsets, c.counts = {3, 0, 5, 30}, c.data = kUniform, c.out = DType::kF16;
  });
  add("f16_padded", DType::kF16, [](GroupedCase& c) {
    c.layout = kMasked, c.m = 21, c.counts = {4, 0, 21}, c.padding = 16, c.k = 96;
  });
  add("bf16_rows_of_4_bytes", DType::kBF16, [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.k = 202;
  });
  add("bf16_rows_of_2_bytes", DType::kBF16, [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.k = 129, c.n = 77;
  });
  add("bf16_zeroed", DType::kBF16, [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.alignment = 16, c.zero_ungrouped = true;
  });
  add("wide_bf16", DType::kBF16, [](GroupedCase& c) {
    c.counts = {128, 37, 0, 5, 90}, c.n = 200, c.out = DType::kBF16;
    c.sides = GroupedCase::Sides::kRows;
  });
  add("wide_f16_zeroed", DType::kF16, [](GroupedCase& c) {
    c.counts = {100, 3, 0, 40}, c.alignment = 64, c.zero_ungrouped = true;
    c.sides = GroupedCase::Sides::kRows;
  });
}

// Wide tiles: their stores by TMA, and what replaces those at a group's end.
void add_wide_tiles(std::vector<GroupedCase>& cases) {
  const auto add = [&](std::string name, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
    cases.back().sides = GroupedCase::Sides::kRows;
  };
  for (const DType out : {DType::kF32, DType::kBF16}) {
    const std::string suffix = out == DType::kF32 ? "f32" : "bf16";
    add("wide_indices_" + suffix, [](GroupedCase& c) {
      c.counts = {128, 37, 0, 5, 90}, c.n = 200;
    });
    cases.back().out = out;
    add("wide_masked_" + suffix, [](GroupedCase& c) {
      c.layout = kMasked, c.m = 139, c.counts = {139, 0, 128, 31, 32}, c.n = 200, c.k = 128;
    });
    cases.back().out = out;
  }
  add("wide_offsets_f16", [](GroupedCase& c) {
    c.layout = kOffsets, c.counts = {140, 0, 1, 60}, c.out = DType::kF16, c.data = kUniform;
  });
  add("wide_pointers_tails", [](GroupedCase& c) {
    c.layout = kPointers, c.counts = {140, 0, 1, 60}, c.n = 204, c.k = 400, c.out = DType::kBF16;
  });
  add("wide_zeroed", [](GroupedCase& c) {
    c.counts = {100, 3, 0, 40}, c.alignment = 64, c.zero_ungrouped = true, c.out = DType::kBF16;
  });
  add("wide_masked_zeroed", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 139, c.counts = {139, 0, 31}, c.n = 200, c.k = 128;
    c.zero_ungrouped = true;
  });
  add("wide_offsets_zeroed", [](GroupedCase& c) {
    c.layout = kOffsets, c.groups = 3, c.m = 400, c.integers = {130, 130, 270};
    c.row_alignment = 128, c.zero_ungrouped = true, c.out = DType::kBF16;
  });
  add("wide_odd_rows", [](GroupedCase& c) { c.counts = {100, 3, 0, 40}, c.k = 259, c.n = 137; });
  add("wide_rows_of_4_bytes", [](GroupedCase& c) { c.counts = {100, 3, 0, 40}, c.k = 404; });
  add("wide_powers_of_two", [](GroupedCase& c) {
    c.counts = {128, 37, 0, 5, 90}, c.values = ScaleValues::kPowerOfTwo, c.out = DType::kBF16;
  });
  add("wide_powers_of_two_zeroed", [](GroupedCase& c) {
    c.counts = {100, 3, 0, 40}, c.alignment = 64, c.values = ScaleValues::kPowerOfTwo;
    c.zero_ungrouped = true;
  });
  add("wide_packed_scales", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 140, c.counts = {140, 0, 21}, c.scales = DType::kF8E8M0,
    c.group_n = 1;
    c.a_major = ScaleMajor::kPacked, c.b_major = ScaleMajor::kPacked, c.k = 384;
  });
  // Tiles of one stage, more than the ring of work has places for.
  for (const int64_t k : {100, 128}) {
    add("wide_tiles_of_one_stage_k_" + std::to_string(k), [](GroupedCase& c) {
      c.counts = {128, 37, 0, 128, 90, 256}, c.n = 264, c.out = DType::kBF16;
    });
    cases.back().k = k;
  }
  // One group with rows of its own has no scheduler.
  add("wide_one_group_masked", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 300, c.counts = {203}, c.n = 264, c.out = DType::kBF16;
  });
  add("wide_one_group_masked_beyond", [](GroupedCase& c) {
    c.layout = kMasked, c.groups = 1, c.m = 150, c.integers = {1000}, c.k = 400, c.n = 100;
  });
  add("narrow_for_many_rows", [](GroupedCase& c) { c.counts = {100, 3, 0, 90}; });
  cases.back().sides = GroupedCase::Sides::kSwapped;
}

}  // namespace

// Groups whose last pair of windows has one window, or less than half of one, in a product whose
// columns end inside a tile.
std::vector<GroupedCase> clustered_cases() {
  std::vector<GroupedCase> cases;
  const auto add = [&](std::string name, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
    cases.back().sides = GroupedCase::Sides::kSharedWeights;
  };
  add("shared_weights_indices", [](GroupedCase& c) {
    c.counts = {300, 0, 70, 129, 1}, c.n = 264, c.k = 512, c.out = DType::kBF16;
  });
  add("shared_weights_masked_zeroed", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 270, c.counts = {270, 0, 128, 31}, c.k = 512, c.zero_ungrouped = true;
  });
  // Short windows come last: of more groups than the scheduler looks at in one step.
  add("shared_weights_short_windows_of_many_groups", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 260, c.n = 72, c.k = 128, c.counts.assign(140, 0);
    c.counts[0] = 129, c.counts[1] = 260, c.counts[70] = 128, c.counts[126] = 3,
    c.counts[139] = 250;
  });
  cases.back().sides = GroupedCase::Sides::kSharedNarrowWeights;
  add("shared_weights_short_windows_pointers_zeroed", [](GroupedCase& c) {
    c.layout = kPointers, c.groups = 4, c.m = 520, c.integers = {3, 130, 130, 390, 480}, c.k = 128;
    c.zero_ungrouped = true, c.out = DType::kBF16;
  });
  cases.back().sides = GroupedCase::Sides::kSharedNarrowWeights;
  add("shared_rows_pointers", [](GroupedCase& c) {
    c.layout = kPointers, c.counts = {140, 0, 1, 60}, c.n = 200, c.k = 400, c.out = DType::kF16;
  });
  cases.back().sides = GroupedCase::Sides::kSharedRows;
  add("shared_rows_offsets_zeroed", [](GroupedCase& c) {
    c.layout = kOffsets, c.groups = 3, c.m = 400, c.integers = {130, 130, 270}, c.k = 128;
    c.row_alignment = 128, c.zero_ungrouped = true;
  });
  cases.back().sides = GroupedCase::Sides::kSharedRows;
  // An odd number of tiles along n, which ends with the first of a cluster's two.
  for (const DType out : {DType::kF32, DType::kBF16}) {
    const bool f32 = out == DType::kF32;
    add(f32 ? "shared_rows_odd_tiles_f32" : "shared_rows_odd_tiles_bf16", [](GroupedCase& c) {
      c.counts = {30, 0, 41, 19}, c.n = 192, c.k = 128;
    });
    cases.back().out = out;
    cases.back().sides = GroupedCase::Sides::kSharedRows;
  }
  add("swapped_shared_rows_masked", [](GroupedCase& c) {
    c.layout = kMasked, c.m = 90, c.counts = {90, 0, 1, 40}, c.n = 300, c.k = 512;
    c.out = DType::kBF16;
  });
  cases.back().sides = GroupedCase::Sides::kSwappedSharedRows;
  add("swapped_shared_rows_indices_zeroed", [](GroupedCase& c) {
    c.counts = {33, 0, 64, 7}, c.alignment = 8, c.n = 200, c.k = 256, c.zero_ungrouped = true;
  });
  cases.back().sides = GroupedCase::Sides::kSwappedSharedRows;
  return cases;
}

// More tiles than the ring of work has places, splits of unequal length or of less than a quad of
// scales, rows of no group, scales and codes that come by copies.
std::vector<GroupedCase> split_cases() {
  std::vector<GroupedCase> cases;
  const auto add = [&](std::string name, GroupedCase::Sides sides, void (*change)(GroupedCase&)) {
    cases.push_back(with(std::move(name), change));
    cases.back().sides = sides;
  };
  using Sides = GroupedCase::Sides;
  add("split_masked_zeroed", Sides::kSplit, [](GroupedCase& c) {
    c.layout = kMasked, c.m = 40, c.counts = {40, 0, 1, 33, 5, 2}, c.k = 640,
    c.zero_ungrouped = true;
  });
  add("split_indices", Sides::kSplit, [](GroupedCase& c) {
    c.counts = {100, 0, 70, 129, 1}, c.n = 264, c.k = 1100, c.out = DType::kBF16;
  });
  add("split_pointers_column_major_scales", Sides::kSplit, [](GroupedCase& c) {
    c.layout = kPointers, c.counts = {70, 0, 1, 60}, c.k = 512, c.a_major = ScaleMajor::kColumn;
  });
  add("split_offsets_copied_codes_zeroed", Sides::kSplit, [](GroupedCase& c) {
    c.layout = kOffsets, c.groups = 3, c.m = 200, c.integers = {30, 130, 170}, c.k = 516;
    c.row_alignment = 8, c.zero_ungrouped = true;
  });
  // The last stage of k is short, and those of other splits are not.
  add("split_small_blocks_k_tail", Sides::kSplit, [](GroupedCase& c) {
    c.counts = {33, 0, 70}, c.k = 1088, c.group_k = 64;
  });
  add("swapped_split_smallest_blocks_k_tail", Sides::kSwappedSplit, [](GroupedCase& c) {
    c.layout = kMasked, c.m = 20, c.counts = {20, 3}, c.k = 832, c.group_k = 32;
  });
  // Copies that land some stages later, into fewer stages than that.
  add("few_stages_of_copied_bf16", Sides::kTwoStages, [](GroupedCase& c) {
    c.counts = {40, 0, 33}, c.k = 322, c.a = c.b = DType::kBF16;
  });
  add("swapped_split_one_group_masked", Sides::kSwappedSplit, [](GroupedCase& c) {
    c.layout = kMasked, c.m = 70, c.counts = {37}, c.n = 300, c.k = 1152, c.out = DType::kF16;
  });
  add("split_one_group_without_rows", Sides::kSplit, [](GroupedCase& c) {
    c.layout = kMasked, c.groups = 1, c.m = 70, c.integers = {-3}, c.k = 512;
  });
  add("swapped_split_masked", Sides::kSwappedSplit, [](GroupedCase& c) {
    c.layout = kMasked, c.m = 40, c.counts = {40, 0, 1, 33, 5, 2}, c.n = 300, c.k = 1152;
    c.out = DType::kF16;
  });
  add("swapped_split_indices_zeroed", Sides::kSwappedSplit, [](GroupedCase& c) {
    c.counts = {33, 0, 64, 7}, c.alignment = 8, c.k = 768, c.zero_ungrouped = true;
  });
  return cases;
}

PlanOverrides GroupedCase::overrides(Arch arch) const {
  PlanOverrides forced;
  if (sides == Sides::kPlanned) return forced;
  const auto force = [&](KernelFamily family, int tile_m, int tile_n, int cluster,
                         int split) -> PlanOverrides& {
    forced.family = family;
    forced.tile_m = tile_m;
    forced.tile_n = tile_n;
    forced.cluster = cluster;
    forced.split_k = split;
    return forced;
  };
  // The number is Spec::kShare.
  const auto share = [&](KernelFamily family, int tile_m, int tile_n, int64_t operand) {
    force(family, tile_m, tile_n, 2, 1).constants.emplace_back("kShare", operand);
    return forced;
  };
  switch (sides) {
    case Sides::kSharedWeights: return share(KernelFamily::kSm90, 128, 256, 1);
    case Sides::kSharedNarrowWeights: return share(KernelFamily::kSm90, 128, 64, 1);
    case Sides::kSharedRows: return share(KernelFamily::kSm90, 128, 64, 2);
    case Sides::kSwappedSharedRows: return share(KernelFamily::kSm90Swap, 64, 128, 1);
    case Sides::kTwoStages: force(KernelFamily::kSm90, 64, 64, 1, 1).stages = 2; return forced;
    case Sides::kSplit: return force(KernelFamily::kSm90, 128, 64, 2, 2);
    case Sides::kSwappedSplit: return force(KernelFamily::kSm90Swap, 32, 128, 3, 3);
    default: break;
  }
  const bool rows = sides == Sides::kRows;
  if (!arch_info(arch).has_tensor_memory) {
    forced.family = rows ? KernelFamily::kSm90 : KernelFamily::kSm90Swap;
    if (!rows) return forced;
  }
  // Blackwell's lanes are the side of 128.
  forced.tile_m = rows ? 128 : 32;
  forced.tile_n = rows ? 64 : 128;
  return forced;
}

GemmProblem GroupedCase::problem(Arch arch) const {
  GemmProblem p;
  p.arch = arch;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a_dtype = a;
  p.b_dtype = b;
  p.scale_dtype = scales;
  p.out_dtype = out;
  p.group_n = group_n;
  p.group_k = group_k;
  p.a_scale_major = a_major;
  p.b_scale_major = b_major;
  p.scale_values = values;
  p.m_policy = policy;
  p.alignment = alignment_bytes;
  Grouping& g = p.grouping;
  g.layout = layout;
  g.groups = counts.empty() ? groups : static_cast<int64_t>(counts.size());
  g.expected_m = expected_m;
  g.row_alignment = row_alignment;
  g.zero_ungrouped = zero_ungrouped;
  g.count_invalid = invalid >= 0;
  if (!counts.empty()) p.m = place_groups(p, counts, alignment).m;
  if (padding > 0) {
    p.lda = k + padding;
    p.ldb = k + padding;
    p.ldo = n + padding;
    p.a_scale_ld = p.scale_ld(a_major, p.m) + padding;
    p.b_scale_ld = p.scale_ld(b_major, p.n_blocks()) + padding;
    g.b_stride = p.n * p.ldb + padding;
    g.b_scale_stride = p.scale_lines(b_major, p.n_blocks()) * p.b_scale_ld + padding;
    if (g.separate_rows()) {
      g.a_stride = p.m * p.lda + padding;
      g.out_stride = p.m * p.ldo + padding;
      g.a_scale_stride = p.scale_lines(a_major, p.m) * p.a_scale_ld + padding;
    }
  }
  if (interleaved) {
    p.lda = g.groups * k;
    p.ldo = g.groups * n;
    g.a_stride = k;
    g.out_stride = n;
  }
  return p;
}

std::vector<int32_t> GroupedCase::group_rows() const {
  if (counts.empty()) return integers;
  return place_groups(problem(Arch::kSm90a), counts, alignment).group_rows;
}

std::vector<GroupedCase> grouped_cases() {
  std::vector<GroupedCase> cases;
  add_row_indices(cases);
  add_ranges(cases);
  add_shapes(cases);
  add_wide_tiles(cases);
  add_unscaled(cases);
  return cases;
}

}  // namespace jitgemm
