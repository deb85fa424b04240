// SPDX-License-Identifier: Apache-2.0
#include "sim/models_instruction_descriptor.h"

#include <fmt/format.h>

#include <optional>

namespace jitgemm::sim {
namespace {

uint32_t field(uint32_t bits, int low, int count) {
  return (bits >> low) & ((1u << count) - 1);
}

std::optional<NumberFormat> operand_format(Tcgen05Kind kind, uint32_t code) {
  switch (kind) {
    case Tcgen05Kind::kF16:
      if (code == 0) return NumberFormat::kF16;
      if (code == 1) return NumberFormat::kBf16;
      break;
    case Tcgen05Kind::kTf32:
      if (code == 2) return NumberFormat::kTf32;
      break;
    case Tcgen05Kind::kI8:
      if (code == 0) return NumberFormat::kU8;
      if (code == 1) return NumberFormat::kS8;
      break;
    case Tcgen05Kind::kF8f6f4:
    case Tcgen05Kind::kMxf8f6f4:
      if (code == 0) return NumberFormat::kE4m3;
      if (code == 1) return NumberFormat::kE5m2;
      if (code == 3) return NumberFormat::kE2m3;
      if (code == 4) return NumberFormat::kE3m2;
      if (code == 5) return NumberFormat::kE2m1;
      break;
    case Tcgen05Kind::kMxf4:
    case Tcgen05Kind::kMxf4nvf4:
      if (code == 1) return NumberFormat::kE2m1;
      break;
  }
  return std::nullopt;
}

std::optional<MmaResult> result_type(Tcgen05Kind kind, uint32_t code, bool saturate) {
  switch (kind) {
    case Tcgen05Kind::kF16:
    case Tcgen05Kind::kF8f6f4:
      if (code == 0) return MmaResult::kF16;
      if (code == 1) return MmaResult::kF32;
      break;
    case Tcgen05Kind::kTf32:
      if (code == 1) return MmaResult::kF32;
      break;
    case Tcgen05Kind::kI8:
      if (code == 2) return saturate ? MmaResult::kS32Saturated : MmaResult::kS32;
      break;
    default: break;
  }
  return std::nullopt;
}

int instruction_k(Tcgen05Kind kind) {
  switch (kind) {
    case Tcgen05Kind::kF16: return 16;
    case Tcgen05Kind::kTf32: return 8;
    case Tcgen05Kind::kF8f6f4:
    case Tcgen05Kind::kI8:
    case Tcgen05Kind::kMxf8f6f4: return 32;
    case Tcgen05Kind::kMxf4:
    case Tcgen05Kind::kMxf4nvf4: return 64;
  }
  return 0;
}

// The table of 9.7.16.2.1 without .ws.
std::string shape_error(Tcgen05Kind kind, int m, int n, int cta_group, bool sparse) {
  const bool scaled = is_block_scaled(kind);
  bool m_legal = false;
  if (cta_group == 1) {
    m_legal = m == 128 || (m == 64 && !scaled);
  } else {
    m_legal = (m == 128 && !(scaled && sparse)) || m == 256;
  }
  if (!m_legal) {
    return fmt::format("M = {} is not legal for kind::{} with cta_group::{}", m,
                       tcgen05_kind_name(kind), cta_group);
  }
  int step = cta_group == 1 ? 8 : 16;
  if (kind == Tcgen05Kind::kI8) step = cta_group == 2 ? 32 : (n > 32 ? 16 : 8);
  if (n < step || n > 256 || n % step != 0) {
    return fmt::format(
        "N = {} is not legal for kind::{} with M = {} and cta_group::{}: steps of {}", n,
        tcgen05_kind_name(kind), m, cta_group, step);
  }
  return "";
}

// The same for .ws.
std::string shape_error_ws(Tcgen05Kind kind, int m, int n, bool sparse) {
  if (is_block_scaled(kind)) return fmt::format("kind::{} has no .ws", tcgen05_kind_name(kind));
  if (m != 32 && m != 64 && m != 128)
    return fmt::format("M = {} is not legal with .ws: 32, 64 and 128 are", m);
  if (n != 64 && n != 128 && (n != 256 || sparse))
    return fmt::format("N = {} is not legal with .ws: 64, 128 and, of dense A, 256 are", n);
  return "";
}

// Legal scale factor ids. A factor of mxf8f6f4 is any byte of the word, a pair of K = 64 a half
// word, a group of four the word; the three of K = 96 begin at any byte and the six at a half word,
// both running on into the next group of columns (9.7.16.10.7.2).
bool scale_id_legal(uint32_t id, int scales_per_row) {
  switch (scales_per_row) {
    case 2:
    case 6: return id % 2 == 0;
    case 4: return id == 0;
    default: return true;
  }
}

std::string check(Tcgen05Kind kind, uint32_t bits, int cta_group, int scales_per_row,
                  bool weight_stationary, bool sparse, InstructionDescriptor& d) {
  const bool scaled = is_block_scaled(kind);
  if (!sparse && field(bits, 2, 1) != 0) return "bit 2 (sparse A) is set for a dense instruction";
  if (sparse && field(bits, 2, 1) == 0)
    return "bit 2 (sparse A) is not set for a sparse instruction";
  d.sparse = sparse;
  d.sparsity_selector = field(bits, 0, 2);
  // 9.7.16.10.8.4: of 16- and 32-bit elements it selects one of two columns.
  const bool selects = sparse && (kind == Tcgen05Kind::kF16 || kind == Tcgen05Kind::kTf32);
  if (d.sparsity_selector > (selects ? 1u : 0u)) {
    return fmt::format("bits 0-1 (sparsity selector) = {}: {} legal here", d.sparsity_selector,
                       selects ? "0 and 1 are" : "0 is");
  }
  const bool saturate = !scaled && field(bits, 3, 1) != 0;
  if (saturate && kind != Tcgen05Kind::kI8) return "bit 3 (saturate) is legal for kind::i8 only";
  const auto a = operand_format(kind, field(bits, 7, 3));
  if (!a)
    return fmt::format("bits 7-9 (A format) = {} is not a type of this kind", field(bits, 7, 3));
  const auto b = operand_format(kind, field(bits, 10, 3));
  if (!b)
    return fmt::format("bits 10-12 (B format) = {} is not a type of this kind", field(bits, 10, 3));
  d.a_format = *a;
  d.b_format = *b;
  if (scaled) {
    d.result = MmaResult::kF32;
    d.scale_format = field(bits, 23, 1) != 0 ? NumberFormat::kUe8m0 : NumberFormat::kUe4m3;
    d.scale_a_id = field(bits, 29, 2);
    d.scale_b_id = field(bits, 4, 2);
    if (d.scale_format == NumberFormat::kUe4m3 &&
        (kind != Tcgen05Kind::kMxf4nvf4 || scales_per_row != 4)) {
      return "bit 23 (scale type) = 0 (UE4M3) is legal for kind::mxf4nvf4 with scale_vec::4X only";
    }
    const bool long_k = field(bits, 31, 1) != 0;
    if (long_k && !is_packed_fp4(kind)) return "bit 31 (K = 96) is legal for the 4-bit kinds only";
    if (long_k && sparse) return "bit 31 (K = 96) is legal for dense A only";
    d.scales_per_row = long_k ? scales_per_row / 2 * 3 : scales_per_row;
    for (const uint32_t id : {d.scale_a_id, d.scale_b_id}) {
      if (!scale_id_legal(id, d.scales_per_row)) {
        return fmt::format("scale factor id {} is not legal with {} factors a row", id,
                           d.scales_per_row);
      }
    }
  } else {
    const auto result = result_type(kind, field(bits, 4, 2), saturate);
    if (!result) {
      return fmt::format("bits 4-5 (D format) = {} is not a type of this kind", field(bits, 4, 2));
    }
    d.result = *result;
    if (kind == Tcgen05Kind::kF16 && d.result == MmaResult::kF16 &&
        (d.a_format != NumberFormat::kF16 || d.b_format != NumberFormat::kF16)) {
      return "D in f16 needs A and B in f16";
    }
    if (field(bits, 23, 1) != 0) return "bit 23 is reserved and must be 0";
    if (field(bits, 30, 2) != 0 && !weight_stationary)
      return "bits 30-31 (maximum shift) are legal with .ws only";
    constexpr uint32_t kShifts[] = {0, 8, 16, 32};
    d.max_shift = kShifts[field(bits, 30, 2)];
  }
  d.negate_a = field(bits, 13, 1) != 0;
  d.negate_b = field(bits, 14, 1) != 0;
  if (kind == Tcgen05Kind::kI8 && (d.negate_a || d.negate_b)) {
    return "bits 13-14 (negate) must be 0 for kind::i8";
  }
  d.a_mn_major = field(bits, 15, 1) != 0;
  d.b_mn_major = field(bits, 16, 1) != 0;
  // 9.7.16.10.1 and 9.7.16.10.3: packed fp4 has no transpose, nor have 4- and 6-bit elements.
  if (d.a_mn_major && (is_packed_fp4(kind) || format_bits(d.a_format) < 8)) {
    return "bit 15 (transpose A) needs elements of 8 bits or more";
  }
  if (d.b_mn_major && (is_packed_fp4(kind) || format_bits(d.b_format) < 8)) {
    return "bit 16 (transpose B) needs elements of 8 bits or more";
  }
  d.n = static_cast<int>(field(bits, 17, 6)) * 8;
  d.m = static_cast<int>(field(bits, 24, 5)) * 16;
  const bool long_k = is_packed_fp4(kind) && field(bits, 31, 1) != 0;
  d.k = long_k ? 96 : instruction_k(kind) * (sparse ? 2 : 1);
  std::string error = weight_stationary ? shape_error_ws(kind, d.m, d.n, sparse)
                                        : shape_error(kind, d.m, d.n, cta_group, sparse);
  if (error.empty() && long_k && d.m != 128 * cta_group) {
    error = fmt::format("M = {} is not legal with K = 96 and cta_group::{}", d.m, cta_group);
  }
  if (error.empty() && d.b_mn_major && format_bits(d.b_format) == 8 &&
      d.n % (16 * cta_group) != 0) {
    error =
        fmt::format("N = {} must be a multiple of {} with 8-bit transposed B", d.n, 16 * cta_group);
  }
  return error;
}

}  // namespace

std::string_view tcgen05_kind_name(Tcgen05Kind kind) {
  switch (kind) {
    case Tcgen05Kind::kF16: return "f16";
    case Tcgen05Kind::kTf32: return "tf32";
    case Tcgen05Kind::kF8f6f4: return "f8f6f4";
    case Tcgen05Kind::kI8: return "i8";
    case Tcgen05Kind::kMxf8f6f4: return "mxf8f6f4";
    case Tcgen05Kind::kMxf4: return "mxf4";
    case Tcgen05Kind::kMxf4nvf4: return "mxf4nvf4";
  }
  return "";
}

bool is_block_scaled(Tcgen05Kind kind) {
  return kind == Tcgen05Kind::kMxf8f6f4 || is_packed_fp4(kind);
}

bool is_packed_fp4(Tcgen05Kind kind) {
  return kind == Tcgen05Kind::kMxf4 || kind == Tcgen05Kind::kMxf4nvf4;
}

DecodedInstruction decode_instruction(Tcgen05Kind kind, uint32_t bits, int cta_group,
                                      int scales_per_row, bool weight_stationary, bool sparse) {
  DecodedInstruction out;
  out.error =
      check(kind, bits, cta_group, scales_per_row, weight_stationary, sparse, out.descriptor);
  if (!out.error.empty()) out.error = "instruction descriptor: " + out.error;
  return out;
}

}  // namespace jitgemm::sim
