// SPDX-License-Identifier: Apache-2.0
#include "api/convert.h"

#include "api/call_guard.h"

#include <fmt/format.h>

namespace jitgemm {
namespace {

static_assert(JITGEMM_F8_E4M3 == static_cast<int>(DType::kF8E4M3) &&
              JITGEMM_F8_E5M2 == static_cast<int>(DType::kF8E5M2));
static_assert(JITGEMM_F8_E8M0 == static_cast<int>(DType::kF8E8M0) &&
              JITGEMM_F16 == static_cast<int>(DType::kF16));
static_assert(JITGEMM_BF16 == static_cast<int>(DType::kBF16) &&
              JITGEMM_F32 == static_cast<int>(DType::kF32));
static_assert(JITGEMM_ARCH_SM_90A == static_cast<int>(Arch::kSm90a) &&
              JITGEMM_ARCH_SM_100A == static_cast<int>(Arch::kSm100a));
static_assert(JITGEMM_ARCH_SM_103A == static_cast<int>(Arch::kSm103a));
static_assert(JITGEMM_ARCH_SM_100F == static_cast<int>(Arch::kSm100f) &&
              JITGEMM_ARCH_SM_103F == static_cast<int>(Arch::kSm103f));
// No padding anywhere: a field that is added later goes to the end and changes the size.
static_assert(sizeof(jitgemm_gemm_problem) == 8 + 3 * 8 + 10 * 4 + 5 * 8 + 4 * 4);
static_assert(sizeof(jitgemm_gemm_arguments) == 8 + 5 * 8 + 3 * 8 + 2 * 4);
static_assert(sizeof(jitgemm_grouped_gemm_problem) == 8 + 15 * 8 + 16 * 4);
static_assert(sizeof(jitgemm_grouped_gemm_arguments) == 8 + 6 * 8 + 4 * 8 + 2 * 4);
static_assert(JITGEMM_GROUPS_ROW_INDICES == static_cast<int>(GroupLayout::kRowIndices) &&
              JITGEMM_GROUPS_END_OFFSETS == static_cast<int>(GroupLayout::kEndOffsets));
static_assert(JITGEMM_GROUPS_ROW_POINTERS == static_cast<int>(GroupLayout::kRowPointers) &&
              JITGEMM_GROUPS_MASKED == static_cast<int>(GroupLayout::kMasked));
static_assert(JITGEMM_GROUPS_COLUMNS == static_cast<int>(GroupLayout::kColumns));

DType dtype_or(jitgemm_dtype given, DType fallback) {
  return given == 0 ? fallback : static_cast<DType>(given);
}

Status convert_flag(const char* name, int32_t given, bool& out) {
  if (given != 0 && given != 1) {
    return invalid_argument(fmt::format("{}: expected 0 or 1, found {}", name, given));
  }
  out = given != 0;
  return ok_status();
}

// The fields that both kinds of problem have.
template <typename Struct>
Status convert_common(const Struct& c, GemmProblem& p) {
  p.m = c.m;
  p.n = c.n;
  p.k = c.k;
  p.a_dtype = dtype_or(c.a_dtype, DType::kF8E4M3);
  p.b_dtype = dtype_or(c.b_dtype, DType::kF8E4M3);
  p.scale_dtype = dtype_or(c.scale_dtype, DType::kF32);
  p.out_dtype = dtype_or(c.out_dtype, DType::kBF16);
  p.group_n = c.group_n == 0 ? 128 : c.group_n;
  p.group_k = c.group_k == 0 ? 128 : c.group_k;
  p.a_scale_major = static_cast<ScaleMajor>(c.a_scale_major);
  p.b_scale_major = static_cast<ScaleMajor>(c.b_scale_major);
  p.scale_values = static_cast<ScaleValues>(c.scale_values);
  p.m_policy = static_cast<MPolicy>(c.m_policy);
  p.lda = c.lda;
  p.ldb = c.ldb;
  p.ldo = c.ldo;
  p.a_scale_ld = c.a_scale_ld;
  p.b_scale_ld = c.b_scale_ld;
  p.alignment = c.alignment == 0 ? 16 : c.alignment;
  return convert_flag("batch_invariant", c.batch_invariant, p.batch_invariant);
}

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// The fields that both kinds of arguments have.
template <typename Struct>
GemmArguments convert_arguments(const Struct& c) {
  GemmArguments arguments;
  arguments.a = address_of(c.a);
  arguments.b = address_of(c.b);
  arguments.a_scales = address_of(c.a_scales);
  arguments.b_scales = address_of(c.b_scales);
  arguments.out = address_of(c.out);
  arguments.m = c.m;
  arguments.workspace = address_of(c.workspace);
  arguments.workspace_bytes = c.workspace_bytes;
  arguments.programmatic_dependence = (c.flags & JITGEMM_LAUNCH_PROGRAMMATIC_DEPENDENCE) != 0;
  arguments.check_addresses = (c.flags & JITGEMM_LAUNCH_CHECK_ADDRESSES) != 0;
  return arguments;
}

template <typename Struct>
Status read_any_arguments(const Struct* given, Struct& out) {
  JITGEMM_TRY(read_struct("arguments", given, out));
  constexpr uint32_t kKnown =
      JITGEMM_LAUNCH_PROGRAMMATIC_DEPENDENCE | JITGEMM_LAUNCH_CHECK_ADDRESSES;
  if ((out.flags & ~kKnown) != 0) {
    return invalid_argument(
        fmt::format("arguments.flags: expected JITGEMM_LAUNCH_* (1, 2), found {:#x}", out.flags));
  }
  if (out.reserved != 0) {
    return invalid_argument(fmt::format("arguments.reserved: expected 0, found {}", out.reserved));
  }
  return ok_status();
}

}  // namespace

Status convert_unchecked(const jitgemm_gemm_problem* given, Arch arch, GemmProblem& p) {
  jitgemm_gemm_problem c;
  JITGEMM_TRY(read_struct("problem", given, c));
  p.arch = arch;
  p.a_code_dtype = dtype_or(c.a_code_dtype, DType::kF8E4M3);
  if (c.reserved != 0) {
    return invalid_argument(fmt::format("problem.reserved: expected 0, found {}", c.reserved));
  }
  return convert_common(c, p);
}

Status convert_unchecked(const jitgemm_grouped_gemm_problem* given, Arch arch, GemmProblem& p) {
  jitgemm_grouped_gemm_problem c;
  JITGEMM_TRY(read_struct("problem", given, c));
  if (c.layout == 0) {
    return invalid_argument("layout: expected 1 to 4 (JITGEMM_GROUPS_*), found 0");
  }
  p.arch = arch;
  JITGEMM_TRY(convert_common(c, p));
  Grouping& g = p.grouping;
  g.layout = static_cast<GroupLayout>(c.layout);
  g.groups = c.groups;
  g.expected_m = c.expected_m;
  g.a_stride = c.a_group_stride;
  g.b_stride = c.b_group_stride;
  g.out_stride = c.out_group_stride;
  g.a_scale_stride = c.a_scale_group_stride;
  g.b_scale_stride = c.b_scale_group_stride;
  g.row_alignment = c.row_alignment;
  JITGEMM_TRY(convert_flag("zero_ungrouped", c.zero_ungrouped, g.zero_ungrouped));
  return convert_flag("count_invalid", c.count_invalid, g.count_invalid);
}

namespace {

template <typename Problem>
Result<GemmProblem> convert_valid(const Problem* given, Arch arch) {
  GemmProblem p;
  JITGEMM_TRY(convert_unchecked(given, arch, p));
  JITGEMM_TRY(validate(p));
  return p;
}

}  // namespace

Result<GemmProblem> convert(const jitgemm_gemm_problem* given, Arch arch) {
  return convert_valid(given, arch);
}

Result<GemmProblem> convert(const jitgemm_grouped_gemm_problem* given, Arch arch) {
  return convert_valid(given, arch);
}

Result<Arch> convert_arch(int32_t arch) {
  const auto value = static_cast<Arch>(arch);
  if (find_arch(value) != nullptr) return value;
  return unsupported(fmt::format(
      "arch: {} has no kernels; supported are 900 (sm_90a), 1000 (sm_100a), 1001 (sm_100f), "
      "1030 (sm_103a), 1031 (sm_103f)",
      arch));
}

Status read_arguments(const jitgemm_gemm_arguments* given, jitgemm_gemm_arguments& out) {
  return read_any_arguments(given, out);
}

Status read_arguments(const jitgemm_grouped_gemm_arguments* given,
                      jitgemm_grouped_gemm_arguments& out) {
  return read_any_arguments(given, out);
}

GemmArguments convert(const jitgemm_gemm_arguments& c) {
  return convert_arguments(c);
}

GemmArguments convert(const jitgemm_grouped_gemm_arguments& c) {
  GemmArguments arguments = convert_arguments(c);
  arguments.group_rows = address_of(c.group_rows);
  arguments.invalid_count = address_of(c.invalid_count);
  return arguments;
}

}  // namespace jitgemm
