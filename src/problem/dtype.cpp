// SPDX-License-Identifier: Apache-2.0
#include "problem/dtype.h"

#include <array>
#include <cctype>
#include <cstdlib>

namespace jitgemm {
namespace {

constexpr std::array<DTypeInfo, 7> kTable = {
    {
     {DType::kF8E4M3, "F8_E4M3", "e4m3", 1},
     {DType::kF8E5M2, "F8_E5M2", "e5m2", 1},
     {DType::kF8E8M0, "F8_E8M0", "ue8m0", 1},
     {DType::kF16, "F16", "f16", 2},
     {DType::kBF16, "BF16", "bf16", 2},
     {DType::kF32, "F32", "f32", 4},
     {DType::kI32, "I32", "i32", 4},
     }
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i]))) {
      return false;
    }
  }
  return true;
}

}  // namespace

const DTypeInfo* find_dtype(DType dtype) {
  for (const DTypeInfo& row : kTable) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

const DTypeInfo& dtype_info(DType dtype) {
  const DTypeInfo* row = find_dtype(dtype);
  if (row == nullptr) std::abort();
  return *row;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& row : kTable) {
    if (equal_ignoring_case(name, row.name) || equal_ignoring_case(name, row.short_name)) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

}  // namespace jitgemm
