// SPDX-License-Identifier: Apache-2.0
#include "problem/gemm_problem.h"

#include "problem/gemm_limits.h"
#include "problem/grouping_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace jitgemm {
namespace {

// TMA byte strides have 40 bits (CUDA Driver API, cuTensorMapEncodeTiled).
constexpr int64_t kMaxStride = int64_t{1} << 36;

Status check_extent(std::string_view name, int64_t value, int64_t least) {
  if (value >= least && value <= kMaxExtent) return ok_status();
  return invalid_argument(
      fmt::format("{}: expected {} to {}, found {}", name, least, kMaxExtent, value));
}

Status check_stride(std::string_view name, int64_t value, int64_t least, std::string_view what) {
  if (value == 0 || (value >= least && value <= kMaxStride)) return ok_status();
  return invalid_argument(fmt::format("{}: expected 0 (dense) or {} ({}) to {}, found {}", name,
                                      least, what, kMaxStride, value));
}

Status check_dtype(std::string_view name, DType dtype, bool accepted, std::string_view takes) {
  const DTypeInfo* info = find_dtype(dtype);
  if (info == nullptr) {
    return invalid_argument(
        fmt::format("{}: {} is not a dtype", name, static_cast<int32_t>(dtype)));
  }
  if (accepted) return ok_status();
  return unsupported(
      fmt::format("{}: block_scaled_mm takes {}, found {}", name, takes, info->name));
}

bool is_wide_operand(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

// FP8 in any pairing or, in groups, two operands of one 16-bit type.
Status check_operands(const GemmProblem& p) {
  if (!p.grouping.grouped() || !(is_wide_operand(p.a_dtype) || is_wide_operand(p.b_dtype))) {
    const bool grouped = p.grouping.grouped();
    JITGEMM_TRY(check_dtype("a_dtype", p.a_dtype,
                            is_fp8_operand(p.a_dtype) || (!grouped && is_quantizable(p.a_dtype)),
                            grouped ? "F8_E4M3 or F8_E5M2"
                                    : "F8_E4M3 or F8_E5M2, or F32, BF16 or F16 to be quantised"));
    JITGEMM_TRY(check_dtype("a_code_dtype", p.a_code_dtype, is_fp8_operand(p.a_code_dtype),
                            "F8_E4M3 or F8_E5M2"));
    return check_dtype("b_dtype", p.b_dtype, is_fp8_operand(p.b_dtype), "F8_E4M3 or F8_E5M2");
  }
  JITGEMM_TRY(check_dtype("a_dtype", p.a_dtype, true, ""));
  JITGEMM_TRY(check_dtype("b_dtype", p.b_dtype, true, ""));
  if (p.a_dtype != p.b_dtype) {
    return unsupported(fmt::format("b_dtype: expected {} like a_dtype, found {}",
                                   dtype_info(p.a_dtype).name, dtype_info(p.b_dtype).name));
  }
  if (p.k > kMaxExtent / 2) {
    return invalid_argument(
        fmt::format("k: expected 1 to {} for operands of 16 bits, found {}", kMaxExtent / 2, p.k));
  }
  return ok_status();
}

template <typename Enum>
Status check_enum(std::string_view name, Enum value, int32_t count) {
  const auto number = static_cast<int32_t>(value);
  if (number >= 0 && number < count) return ok_status();
  return invalid_argument(fmt::format("{}: expected 0 to {}, found {}", name, count - 1, number));
}

Status check_scale_stride(std::string_view name, int64_t value, ScaleMajor major, int64_t k_blocks,
                          int64_t rows, std::string_view rows_name) {
  if (major == ScaleMajor::kRow) return check_stride(name, value, k_blocks, "ceil(k / group_k)");
  return check_stride(name, value, rows, rows_name);
}

Status check_packed(std::string_view name, ScaleMajor major, const GemmProblem& p) {
  if (major != ScaleMajor::kPacked || p.scale_dtype == DType::kF8E8M0) return ok_status();
  return invalid_argument(
      fmt::format("{}: packed scales are words of four F8_E8M0 bytes, found scale_dtype {}", name,
                  dtype_info(p.scale_dtype).name));
}

// Fields that have no meaning for the operand that a is.
Status check_quantized(const GemmProblem& p) {
  if (!p.quantizes_a()) {
    if (p.a_code_dtype == DType::kF8E4M3) return ok_status();
    return invalid_argument(
        fmt::format("a_code_dtype: expected the default, since a is {} already, found {}",
                    dtype_info(p.a_dtype).name, dtype_info(p.a_code_dtype).name));
  }
  if (p.a_scale_major != ScaleMajor::kRow || p.a_scale_ld != 0) {
    return invalid_argument(fmt::format(
        "a_scale_major, a_scale_ld: expected the defaults, since the operation makes "
        "the scales of an a of {}, found {} and {}",
        dtype_info(p.a_dtype).name, static_cast<int32_t>(p.a_scale_major), p.a_scale_ld));
  }
  return ok_status();
}

}  // namespace

GemmProblem normalized(const GemmProblem& problem) {
  GemmProblem p = problem;
  if (p.scaled()) {
    const auto whole = [](int64_t extent) { return (extent + 127) / 128 * 128; };
    p.group_n = static_cast<int32_t>(std::min<int64_t>(p.group_n, whole(p.n)));
    p.group_k = static_cast<int32_t>(std::min<int64_t>(p.group_k, whole(p.k)));
    return p;
  }
  const GemmProblem defaults;
  p.scale_dtype = defaults.scale_dtype;
  p.group_n = defaults.group_n;
  p.group_k = defaults.group_k;
  p.a_scale_major = defaults.a_scale_major;
  p.b_scale_major = defaults.b_scale_major;
  p.scale_values = defaults.scale_values;
  p.a_scale_ld = 0;
  p.b_scale_ld = 0;
  p.grouping.a_scale_stride = 0;
  p.grouping.b_scale_stride = 0;
  return p;
}

Status validate(const GemmProblem& given) {
  // What operands without scales say of them is not looked at.
  const GemmProblem p = given.scaled() ? given : normalized(given);
  if (find_arch(p.arch) == nullptr) {
    return unsupported(fmt::format("arch: {} has no kernels; supported are {}",
                                   static_cast<int32_t>(p.arch), supported_arch_list()));
  }
  JITGEMM_TRY(check_extent("m", p.m, 0));
  JITGEMM_TRY(check_extent("n", p.n, 1));
  JITGEMM_TRY(check_extent("k", p.k, 1));
  JITGEMM_TRY(check_operands(p));
  JITGEMM_TRY(check_dtype("scale_dtype", p.scale_dtype,
                          p.scale_dtype == DType::kF32 || p.scale_dtype == DType::kF8E8M0,
                          "F32 or F8_E8M0"));
  JITGEMM_TRY(check_dtype(
      "out_dtype", p.out_dtype,
      p.out_dtype == DType::kF32 || p.out_dtype == DType::kBF16 || p.out_dtype == DType::kF16,
      "F32, BF16 or F16"));
  if (p.group_n < 1) {
    return invalid_argument(fmt::format("group_n: expected at least 1, found {}", p.group_n));
  }
  if (p.group_k < 1) {
    return invalid_argument(fmt::format("group_k: expected at least 1, found {}", p.group_k));
  }
  if (p.group_k % 32 != 0) {
    return unsupported(
        fmt::format("group_k: supported are the multiples of 32, found {}", p.group_k));
  }
  JITGEMM_TRY(check_enum("a_scale_major", p.a_scale_major, 3));
  JITGEMM_TRY(check_enum("b_scale_major", p.b_scale_major, 3));
  JITGEMM_TRY(check_packed("a_scale_major", p.a_scale_major, p));
  JITGEMM_TRY(check_packed("b_scale_major", p.b_scale_major, p));
  JITGEMM_TRY(check_enum("scale_values", p.scale_values, 2));
  JITGEMM_TRY(check_enum("m_policy", p.m_policy, 3));
  JITGEMM_TRY(check_stride("lda", p.lda, p.k, "k"));
  JITGEMM_TRY(check_stride("ldb", p.ldb, p.k, "k"));
  JITGEMM_TRY(check_stride("ldo", p.ldo, p.n, "n"));
  JITGEMM_TRY(
      check_scale_stride("a_scale_ld", p.a_scale_ld, p.a_scale_major, p.k_blocks(), p.m, "m"));
  JITGEMM_TRY(check_scale_stride("b_scale_ld", p.b_scale_ld, p.b_scale_major, p.k_blocks(),
                                 p.n_blocks(), "ceil(n / group_n)"));
  if (p.alignment < 1 || (p.alignment & (p.alignment - 1)) != 0) {
    return invalid_argument(
        fmt::format("alignment: expected a power of two, found {}", p.alignment));
  }
  JITGEMM_TRY(check_quantized(p));
  JITGEMM_TRY(check_rows(p, p.m));
  JITGEMM_TRY(check_columns(p));
  return check_grouping(p);
}

std::string to_string(const GemmProblem& p) {
  static constexpr std::string_view kPolicies[] = {"exact", "class", "any"};
  std::string a(dtype_info(p.a_dtype).short_name);
  if (p.quantizes_a()) a += fmt::format("({})", dtype_info(p.a_code_dtype).short_name);
  std::string text =
      fmt::format("{} {} m={} n={} k={} {}*{}->{} scales={} group_n={} group_k={} m_policy={}",
                  p.grouping.grouped() ? "group_gemm_fp8_nt_groupwise" : "block_scaled_mm",
                  arch_info(p.arch).target, p.m, p.n, p.k, a, dtype_info(p.b_dtype).short_name,
                  dtype_info(p.out_dtype).short_name, dtype_info(p.scale_dtype).short_name,
                  p.group_n, p.group_k, kPolicies[static_cast<int>(p.m_policy)]);
  if (p.grouping.grouped()) text += to_string(p.grouping);
  if (p.a_scale_major == ScaleMajor::kColumn) text += " a_scales=column-major";
  if (p.b_scale_major == ScaleMajor::kColumn) text += " b_scales=column-major";
  if (p.a_scale_major == ScaleMajor::kPacked) text += " a_scales=packed";
  if (p.b_scale_major == ScaleMajor::kPacked) text += " b_scales=packed";
  if (p.scale_values == ScaleValues::kPowerOfTwo) text += " scale_values=pow2";
  if (p.lda != 0) text += fmt::format(" lda={}", p.lda);
  if (p.ldb != 0) text += fmt::format(" ldb={}", p.ldb);
  if (p.ldo != 0) text += fmt::format(" ldo={}", p.ldo);
  if (p.a_scale_ld != 0) text += fmt::format(" a_scale_ld={}", p.a_scale_ld);
  if (p.b_scale_ld != 0) text += fmt::format(" b_scale_ld={}", p.b_scale_ld);
  if (p.alignment != 16) text += fmt::format(" alignment={}", p.alignment);
  if (p.batch_invariant) text += " batch_invariant";
  return text;
}

}  // namespace jitgemm
