// SPDX-License-Identifier: Apache-2.0
#include "gemm_cases.h"

namespace jitgemm {

GemmProblem GemmCase::problem(Arch arch) const {
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
  p.alignment = alignment;
  p.a_code_dtype = a_codes;
  if (padding > 0) {
    p.lda = k + padding;
    p.ldb = k + padding;
    p.ldo = n + padding;
    if (!p.quantizes_a()) {
      p.a_scale_ld = (a_major == ScaleMajor::kRow ? p.k_blocks() : m) + padding;
    }
    p.b_scale_ld = (b_major == ScaleMajor::kRow ? p.k_blocks() : p.n_blocks()) + padding;
  }
  return p;
}

namespace {

// Scales of one byte, in columns or packed in words.
void add_exponent_scales(std::vector<GemmCase>& cases) {
  GemmCase c;
  c.scales = DType::kF8E8M0;
  c.n = 136;
  c.name = "e8m0_scales_in_columns";
  c.m = 70;
  c.k = 400;
  c.a_major = c.b_major = ScaleMajor::kColumn;
  cases.push_back(c);
  c.name = "packed_scales";
  c.m = 130;
  c.k = 800;
  c.group_n = 1;
  c.a_major = c.b_major = ScaleMajor::kPacked;
  cases.push_back(c);
  c.name = "packed_scales_few_rows";
  c.m = 5;
  c.k = 640;
  c.group_n = 128;
  c.b_major = ScaleMajor::kRow;
  cases.push_back(c);
}

}  // namespace

std::vector<GemmCase> gemm_cases() {
  constexpr DType kE5M2 = DType::kF8E5M2;
  constexpr ScaleMajor kColumn = ScaleMajor::kColumn;
  std::vector<GemmCase> cases = {
  // Every right implementation gives these bits.
      {.name = "integers_one_tile",       .data = InputKind::kSmallIntegers},
      {                                    .name = "integers_tails_everywhere",
       .m = 130,
       .n = 200,
       .k = 400,
       .data = InputKind::kSmallIntegers},
      {                                                                       .name = "integers_one_row",                                                                                          .m = 1,.n = 192, .k = 256, .data = InputKind::kSmallIntegers},
      {                                                            .name = "integers_e5m2",
       .m = 70,
       .k = 256,
       .data = InputKind::kSmallIntegers,
       .a = kE5M2,
       .b = kE5M2},
      {                                                                                                .name = "integers_per_row_scales",
       .m = 40,
       .n = 72,
       .k = 256,
       .data = InputKind::kSmallIntegers,
       .group_n = 1},
 // Arbitrary scales and codes.
      {                                                                         .name = "seed_bf16",
       .m = 200,
       .n = 256,
       .k = 384,
       .data = InputKind::kSeed,
       .out = DType::kBF16},
      {                                                                                                  .name = "uniform_f16",
       .m = 83,
       .n = 128,
       .k = 256,
       .data = InputKind::kSeed,
       .out = DType::kF16},
      {                                                                                                  .name = "wide_scales",                                                                                                                                                                                                                       .m = 96,.n = 160, .k = 384, .data = InputKind::kWideScales},
      {.name = "mixed_dtypes",.m = 64,.n = 64, .k = 256, .a = kE5M2},
      {                                                                                                 .name = "mixed_dtypes_other",                                                                                                                                                                                                                                                                                                                                                                                  .m = 64,                                                                                                                                                                                                                                                                                                                                                                                                                                                                             .n = 64, .k = 256, .b = kE5M2},
      {.name = "group_64_128",.m = 72,.n = 200, .k = 256, .group_n = 64},
      {                                                                                                       .name = "group_128_64",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                .m = 72,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            .n = 136, .k = 320, .group_k = 64},
      {.name = "group_128_32",.m = 40,.n = 136, .k = 224, .group_k = 32},
      {                                                                                                       .name = "group_1_128",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     .m = 72,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                               .n = 136, .k = 256, .group_n = 1},
      {.name = "column_major_scales",
       .m = 100,
       .n = 300,
       .k = 384,
       .a_major = kColumn,
       .b_major = kColumn},
 // Few rows.
      {                                                                                                  .name = "rows_1",                                                                                                                                                                                                                       .m = 1,.n = 576, .k = 512, .out = DType::kBF16},
      {.name = "rows_7",.m = 7,.n = 576, .k = 256, .out = DType::kBF16},
      {                                                                                                .name = "rows_33",                                                                                                                                                                                                                                                                                                                                                    .m = 33,                                                                                                                                                                                                                                                                                                                                                                                                                      .n = 256, .k = 512},
 // One row, one column, one code.
      {.name = "smallest",.m = 1,.n = 1, .k = 1},
      {                                                                            .name = "one_column",                                                                                                                                                                                                                                                                                                                                                                                                                                               .m = 65,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                            .n = 1, .k = 128},
      {.name = "k_17",.m = 16,.n = 24, .k = 17},
 // Rows that TMA may not touch.
      {                             .name = "rows_of_4_bytes",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                              .m = 66,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                         .n = 136, .k = 404, .align_rows = false},
      {                 .name = "rows_of_odd_bytes",                                                                                                                                    .m = 66,.n = 137, .k = 259, .align_rows = false},
      {                 .name = "aligned_rows_of_4_bytes",                                                                                                                                    .m = 66,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                   .n = 136, .k = 404, .align_rows = true},
      {                  .name = "aligned_rows_of_odd_bytes",                                                                                                                                     .m = 66,.n = 137, .k = 259, .align_rows = true},
      {                  .name = "aligned_padded_rows",
       .m = 70,
       .n = 40,
       .k = 250,
       .out = DType::kBF16,
       .policy = MPolicy::kClass,
       .padding = 3,
       .align_rows = true},
      {                                                                                       .name = "unaligned_base",                                                                                                                                                                                                      .m = 66,.n = 136, .k = 256, .alignment = 4},
      {.name = "padded_rows",.m = 66,.n = 120, .k = 240, .padding = 16},
      {                                                                                          .name = "scales_too_unaligned_for_tma",
       .m = 150,
       .n = 250,
       .k = 640 * 4,
       .out = DType::kBF16,
       .scale_shift = 4},
      {                                                                                                  .name = "scales_unaligned_split",
       .m = 5,
       .n = 192,
       .k = 512 * 8,
       .out = DType::kBF16,
       .scale_shift = 8},
      {.name = "small_blocks_split_k_tail",                                                                                                                                                                                                                         .m = 2,.n = 256, .k = 4160, .group_k = 64},
      {                                                                                        .name = "padded_rows_odd",                                                                                                                                                                                                                    .m = 66,.n = 120, .k = 240, .out = DType::kBF16, .padding = 3},
 // Policies of m.
      {                                                                               .name = "class_of_m",                                                                                  .m = 90,.n = 128, .k = 256, .policy = MPolicy::kClass},
      {                                                              .name = "any_m",                                                                                                                                                                                 .m = 90,.n = 128, .k = 256, .policy = MPolicy::kAny},
 // Powers of two.
      {                      .name = "declared_powers_of_two",
       .m = 130,
       .n = 200,
       .k = 400,
       .values = ScaleValues::kPowerOfTwo},
      {                                                   .name = "e8m0_scales",                                                                                                                                                                      .m = 130,                                              .n = 136, .k = 256, .scales = DType::kF8E8M0},
      {                                                                        .name = "e8m0_group_32",
       .m = 70,
       .n = 72,
       .k = 224,
       .group_k = 32,
       .scales = DType::kF8E8M0},
 // NaN, infinities, zero, negative and subnormal scales.
      { .name = "special_values",                                                                                                                    .m = 96,.n = 160, .k = 384, .data = InputKind::kSpecialValues},
  };
  add_exponent_scales(cases);
  return cases;
}

std::vector<GemmCase> quantizing_cases() {
  constexpr DType kF16 = DType::kF16;
  constexpr DType kBF16 = DType::kBF16;
  constexpr DType kF32 = DType::kF32;
  const auto make = [](std::string name, DType a, int64_t m, int64_t n, int64_t k, InputKind data) {
    GemmCase c;
    c.name = "quantize_" + std::move(name);
    c.m = m;
    c.n = n;
    c.k = k;
    c.a = a;
    c.data = data;
    return c;
  };
  const auto with = [](GemmCase c, auto change) {
    change(c);
    return c;
  };
  return {
      // The scale of every block is 1, and every right implementation gives these bits.
      make("integers_f32", kF32, 66, 64, 384, InputKind::kSmallIntegers),
      make("integers_bf16", kBF16, 130, 72, 256, InputKind::kSmallIntegers),
      make("integers_f16", kF16, 9, 64, 512, InputKind::kSmallIntegers),
      make("normal_bf16", kBF16, 70, 128, 512, InputKind::kSeed),
      make("wide_f16", kF16, 33, 64, 256, InputKind::kWideScales),
      make("one_row", kBF16, 1, 192, 256, InputKind::kSeed),
      // NaN, infinities, zeros, the least and the largest values.
      make("special_f32", kF32, 40, 64, 300, InputKind::kSpecialValues),
      make("special_bf16", kBF16, 40, 64, 256, InputKind::kSpecialValues),
      with(make("special_f16_to_e5m2", kF16, 40, 64, 256, InputKind::kSpecialValues),
           [](GemmCase& c) { c.a_codes = DType::kF8E5M2; }),
      // Vectors of every width, rows that start anywhere, a short last block.
      make("k_of_odd_length", kBF16, 20, 40, 259, InputKind::kSeed),
      make("k_of_two", kF32, 20, 40, 2, InputKind::kSeed),
      with(make("padded_rows", kBF16, 20, 40, 260, InputKind::kSeed),
           [](GemmCase& c) { c.padding = 3; }),
      with(make("unaligned_base", kBF16, 20, 40, 256, InputKind::kSeed),
           [](GemmCase& c) { c.alignment = 2; }),
      with(make("group_k_32", kF32, 20, 40, 224, InputKind::kSeed),
           [](GemmCase& c) { c.group_k = 32; }),
      with(make("group_k_96", kBF16, 20, 40, 200, InputKind::kSeed),
           [](GemmCase& c) { c.group_k = 96; }),
      with(make("group_k_beyond_registers", kBF16, 6, 24, 2100, InputKind::kSeed),
           [](GemmCase& c) { c.group_k = 2048; }),
      with(make("powers_of_two", kBF16, 66, 64, 256, InputKind::kSeed),
           [](GemmCase& c) { c.values = ScaleValues::kPowerOfTwo; }),
      with(make("e8m0", kBF16, 66, 64, 256, InputKind::kSeed),
           [](GemmCase& c) { c.scales = DType::kF8E8M0; }),
      with(make("e8m0_special", kF32, 40, 64, 256, InputKind::kSpecialValues),
           [](GemmCase& c) { c.scales = DType::kF8E8M0; }),
      with(make("class_of_m", kBF16, 50, 64, 256, InputKind::kSeed),
           [](GemmCase& c) { c.policy = MPolicy::kClass; }),
  };
}

}  // namespace jitgemm
