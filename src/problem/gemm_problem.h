// SPDX-License-Identifier: Apache-2.0
// The exact problem: everything a caller says about one block-scaled product. A plain value that
// can be validated, printed, compared and hashed; it decides nothing.
//
//   out[m, n] = sum over k-blocks kb of
//       dot(a[m, kb], b[n, kb]) * (a_scales[m, kb] * b_scales[n / group_n, kb])
//
// With an `a` of fp32, bf16 or fp16 the operation first makes its codes and scales: 1 x group_k.
#pragma once

#include "problem/arch.h"
#include "problem/dtype.h"
#include "problem/grouping.h"
#include "support/status.h"

#include <cstdint>
#include <string>

namespace jitgemm {

// How far a kernel is tied to one m.
enum class MPolicy : int32_t {
  kExact = 0,  // m is a constant of the kernel
  kClass = 1,  // tile and upper bound are constants, m comes at run time
  kAny = 2,    // one kernel for every m
};

// Which index of a scale matrix is contiguous.
enum class ScaleMajor : int32_t {
  kRow = 0,     // k-blocks contiguous: [rows, k-blocks] as a C array
  kColumn = 1,  // rows contiguous
  kPacked = 2,  // F8_E8M0, four k-blocks of a row in a 32-bit word; words of a column contiguous
};

// What the caller promises about the values of fp32 scales.
enum class ScaleValues : int32_t {
  kAnyFloat = 0,    // arbitrary: applied exactly
  kPowerOfTwo = 1,  // declared powers of two: hardware UE8M0 scaling may be used
};

struct GemmProblem {
  Arch arch = Arch::kSm90a;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  DType a_dtype = DType::kF8E4M3;  // F32, BF16 or F16: the operation quantises a
  DType b_dtype = DType::kF8E4M3;
  DType scale_dtype = DType::kF32;  // F32, or F8_E8M0; both operands alike
  DType out_dtype = DType::kBF16;
  int32_t group_n = 128;
  int32_t group_k = 128;
  ScaleMajor a_scale_major = ScaleMajor::kRow;
  ScaleMajor b_scale_major = ScaleMajor::kRow;
  ScaleValues scale_values = ScaleValues::kAnyFloat;
  MPolicy m_policy = MPolicy::kExact;
  // Distances in elements; 0 means dense. Between rows, but for column-major scales between
  // columns.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldo = 0;
  int64_t a_scale_ld = 0;
  int64_t b_scale_ld = 0;
  // What the caller promises of the base addresses of a, b and out, in bytes; TMA needs 16.
  int32_t alignment = 16;
  // Every bit of a row's result is independent of m and of the other rows.
  bool batch_invariant = false;
  // Several products over one a, where it is grouped; then m counts the rows of all groups or, for
  // GroupLayout::kMasked, those that each group has room for.
  Grouping grouping;
  // Which codes an `a` of higher precision becomes; the default for one of FP8.
  DType a_code_dtype = DType::kF8E4M3;

  // FP8 operands have scales; those of 16 bits have none, and nothing of the problem that speaks of
  // scales matters. An a of higher precision than b is quantised: 1 x group_k.
  bool scaled() const { return is_fp8_operand(b_dtype); }
  int64_t operand_bytes() const { return scaled() ? 1 : 2; }
  int64_t k_bytes() const { return k * operand_bytes(); }
  // Whether the operation quantises a. The scale rule is then: the largest |x| of a block over the
  // largest code; rounded up to a power of two where scales are to be powers of two.
  bool quantizes_a() const { return scaled() && !is_fp8_operand(a_dtype); }
  bool power_of_two_scales() const {
    return scale_dtype == DType::kF8E8M0 || scale_values == ScaleValues::kPowerOfTwo;
  }
  int64_t k_blocks() const { return (k + group_k - 1) / group_k; }
  int64_t n_blocks() const { return (n + group_n - 1) / group_n; }
  // The distances with 0 resolved.
  int64_t lda_or_dense() const { return lda != 0 ? lda : k; }
  int64_t ldb_or_dense() const { return ldb != 0 ? ldb : k; }
  int64_t ldo_or_dense() const { return ldo != 0 ? ldo : n; }
  int64_t a_scale_ld_or_dense() const {
    if (a_scale_ld != 0) return a_scale_ld;
    return scale_ld(a_scale_major, m);
  }
  int64_t b_scale_ld_or_dense() const {
    if (b_scale_ld != 0) return b_scale_ld;
    return scale_ld(b_scale_major, n_blocks());
  }
  // The dense distance of scales with that many rows: packed columns are 16-byte aligned.
  int64_t scale_ld(ScaleMajor major, int64_t rows) const {
    if (major == ScaleMajor::kRow) return k_blocks();
    return major == ScaleMajor::kColumn ? rows : (rows + 3) / 4 * 4;
  }
  // The lines of a scale matrix: rows, columns, or columns of packed words.
  int64_t scale_lines(ScaleMajor major, int64_t rows) const {
    if (major == ScaleMajor::kRow) return rows;
    return major == ScaleMajor::kColumn ? k_blocks() : (k_blocks() + 3) / 4;
  }
  // Distances between groups with 0 resolved; of packed scales, in words.
  int64_t a_group_stride() const {
    if (!grouping.separate_rows()) return 0;
    return grouping.a_stride != 0 ? grouping.a_stride : m * lda_or_dense();
  }
  int64_t b_group_stride() const {
    return grouping.b_stride != 0 ? grouping.b_stride : n * ldb_or_dense();
  }
  int64_t out_group_stride() const {
    if (!grouping.separate_rows()) return 0;
    return grouping.out_stride != 0 ? grouping.out_stride : m * ldo_or_dense();
  }
  int64_t a_scale_group_stride() const {
    if (!grouping.separate_rows()) return 0;
    if (grouping.a_scale_stride != 0) return grouping.a_scale_stride;
    return scale_lines(a_scale_major, m) * a_scale_ld_or_dense();
  }
  int64_t b_scale_group_stride() const {
    if (grouping.b_scale_stride != 0) return grouping.b_scale_stride;
    return scale_lines(b_scale_major, n_blocks()) * b_scale_ld_or_dense();
  }

  bool operator==(const GemmProblem&) const = default;
};

// The problem with what does not matter at its default: what a plan depends on. Scale blocks that
// end behind the operand become the smallest multiple of 128 that does.
GemmProblem normalized(const GemmProblem& problem);

// INVALID_ARGUMENT for a call that is wrong, UNSUPPORTED for one that is right but has no kernel;
// the message names the parameter, what was expected and what was found.
Status validate(const GemmProblem& problem);

// One line, e.g. "block_scaled_mm sm_90a m=4096 n=4096 k=4096 e4m3*e4m3->bf16 ...".
std::string to_string(const GemmProblem& problem);

}  // namespace jitgemm
