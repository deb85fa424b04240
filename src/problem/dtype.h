// SPDX-License-Identifier: Apache-2.0
// Element types: one table of name, width and role. Names are spelt as safetensors spells them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace jitgemm {

// The numbers are part of the C ABI (jitgemm_dtype) and never change.
enum class DType : int32_t {
  kF8E4M3 = 1,
  kF8E5M2 = 2,
  kF8E8M0 = 3,
  kF16 = 4,
  kBF16 = 5,
  kF32 = 6,
  kI32 = 7,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;        // "F8_E4M3"
  std::string_view short_name;  // "e4m3", as used in kernel names
  int bytes;
};

// Null for a value outside the enumeration, which a C caller can pass.
const DTypeInfo* find_dtype(DType dtype);
// The same for a dtype known to be valid.
const DTypeInfo& dtype_info(DType dtype);
// By either name; upper or lower case.
std::optional<DType> parse_dtype(std::string_view name);

inline bool is_fp8_operand(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

// What can be quantised to FP8.
inline bool is_quantizable(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32;
}

}  // namespace jitgemm
