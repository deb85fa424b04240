// SPDX-License-Identifier: Apache-2.0
#include "problem/gemm_limits.h"

#include "support/result.h"

#include <fmt/format.h>

#include <string_view>

namespace jitgemm {
namespace {

// From the first to the last of a matrix; four times as many bytes still fit a signed offset.
constexpr int64_t kMaxElements = int64_t{1} << 60;

Status check_span(std::string_view name, int64_t lines, int64_t stride) {
  int64_t elements = 0;
  if (!__builtin_mul_overflow(lines, stride, &elements) && elements <= kMaxElements)
    return ok_status();
  return invalid_argument(
      fmt::format("{}: expected at most {} elements, found {} times a stride of {}", name,
                  kMaxElements, lines, stride));
}

Status check_scale_span(std::string_view name, int64_t rows, int64_t k_blocks, ScaleMajor major,
                        int64_t stride) {
  return check_span(name, major == ScaleMajor::kRow ? rows : k_blocks, stride);
}

}  // namespace

Status check_rows(const GemmProblem& p, int64_t m) {
  if (m < 0 || m > kMaxExtent) {
    return invalid_argument(fmt::format("m: expected 0 to {}, found {}", kMaxExtent, m));
  }
  JITGEMM_TRY(check_span("a", m, p.lda_or_dense()));
  JITGEMM_TRY(check_span("out", m, p.ldo_or_dense()));
  if (p.a_scale_ld == 0) return ok_status();  // dense scales are fewer than a's elements
  return check_scale_span("a_scales", m, p.k_blocks(), p.a_scale_major, p.a_scale_ld);
}

Status check_columns(const GemmProblem& p) {
  JITGEMM_TRY(check_span("b", p.n, p.ldb_or_dense()));
  return check_scale_span("b_scales", p.n_blocks(), p.k_blocks(), p.b_scale_major,
                          p.b_scale_ld_or_dense());
}

}  // namespace jitgemm
