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
  if (padding > 0) {
    p.lda = k + padding;
    p.ldb = k + padding;
    p.ldo = n + padding;
    p.a_scale_ld = (a_major == ScaleMajor::kRow ? p.k_blocks() : m) + padding;
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
      {        .name = "integers_tails_everywhere",
       .m = 130,
       .n = 200,
       .k = 400,
       .data = InputKind::kSmallIntegers},
      {                                           .name = "integers_one_row",                                                                                          .m = 1,.n = 192, .k = 256, .data = InputKind::kSmallIntegers},
      {                                .name = "integers_e5m2",
       .m = 70,
       .k = 256,
       .data = InputKind::kSmallIntegers,
       .a = kE5M2,
       .b = kE5M2},
      {                                                                    .name = "integers_per_row_scales",
       .m = 40,
       .n = 72,
       .k = 256,
       .data = InputKind::kSmallIntegers,
       .group_n = 1},
 // Arbitrary scales and codes.
      {                                             .name = "seed_bf16",
       .m = 200,
       .n = 256,
       .k = 384,
       .data = InputKind::kSeed,
       .out = DType::kBF16},
      {                                                                      .name = "uniform_f16",
       .m = 83,
       .n = 128,
       .k = 256,
       .data = InputKind::kSeed,
       .out = DType::kF16},
      {                                                                      .name = "wide_scales",                                                                                                                                                                                           .m = 96,.n = 160, .k = 384, .data = InputKind::kWideScales},
      {.name = "mixed_dtypes",.m = 64,.n = 64, .k = 256, .a = kE5M2},
      {                                                                     .name = "mixed_dtypes_other",                                                                                                                                                                                                                                                                                                                          .m = 64,                                                                                                                                                                                                                                                                                                                                                                                                                     .n = 64, .k = 256, .b = kE5M2},
      {.name = "group_64_128",.m = 72,.n = 200, .k = 256, .group_n = 64},
      {                                                                           .name = "group_128_64",                                                                                                                                                                                                                                                                                                                                                                                                                                                            .m = 72,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        .n = 136, .k = 320, .group_k = 64},
      {.name = "group_128_32",.m = 40,.n = 136, .k = 224, .group_k = 32},
      {                                                                           .name = "group_1_128",                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                     .m = 72,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                       .n = 136, .k = 256, .group_n = 1},
      {.name = "column_major_scales",
       .m = 100,
       .n = 300,
       .k = 384,
       .a_major = kColumn,
       .b_major = kColumn},
 // Few rows.
      {                                                                      .name = "rows_1",                                                                                                                                                                                           .m = 1,.n = 576, .k = 512, .out = DType::kBF16},
      {.name = "rows_7",.m = 7,.n = 576, .k = 256, .out = DType::kBF16},
      {                                                                    .name = "rows_33",                                                                                                                                                                                                                                                                                            .m = 33,                                                                                                                                                                                                                                                                                                                                                              .n = 256, .k = 512},
 // One row, one column, one code.
      {.name = "smallest",.m = 1,.n = 1, .k = 1},
      {                                                .name = "one_column",                                                                                                                                                                                                                                                                                                                                                           .m = 65,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                        .n = 1, .k = 128},
      {.name = "k_17",.m = 16,.n = 24, .k = 17},
 // Rows that TMA may not touch.
      { .name = "rows_of_4_bytes",                                                                                                                                                                                                                                                                                                                                                                                                                              .m = 66,                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                                             .n = 136, .k = 404},
      {        .name = "rows_of_odd_bytes",                                                                                         .m = 66,.n = 137, .k = 259},
      {                                          .name = "unaligned_base",                                                                                          .m = 66,.n = 136, .k = 256, .alignment = 4},
      {                                       .name = "padded_rows",                                                                                         .m = 66,.n = 120, .k = 240, .padding = 16},
      {                                    .name = "padded_rows_odd",                                                                                               .m = 66,.n = 120, .k = 240, .out = DType::kBF16, .padding = 3},
 // Policies of m.
      {                                          .name = "class_of_m",                                                                                                .m = 90,.n = 128, .k = 256, .policy = MPolicy::kClass},
      {                                        .name = "any_m",                                                                                                     .m = 90,.n = 128, .k = 256, .policy = MPolicy::kAny},
 // Powers of two.
      {                                          .name = "declared_powers_of_two",
       .m = 130,
       .n = 200,
       .k = 400,
       .values = ScaleValues::kPowerOfTwo},
      {                                          .name = "e8m0_scales",                                                                                               .m = 130,.n = 136, .k = 256, .scales = DType::kF8E8M0},
      {                                         .name = "e8m0_group_32",
       .m = 70,
       .n = 72,
       .k = 224,
       .group_k = 32,
       .scales = DType::kF8E8M0},
 // NaN, infinities, zero, negative and subnormal scales.
      {                                                      .name = "special_values",                                                                                                                                                                         .m = 96,.n = 160, .k = 384, .data = InputKind::kSpecialValues},
  };
  add_exponent_scales(cases);
  return cases;
}

}  // namespace jitgemm
