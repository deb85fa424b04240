// SPDX-License-Identifier: Apache-2.0
#include "plan/kernel_family.h"

#include <array>
#include <cstdlib>

namespace jitgemm {
namespace {

constexpr std::array<KernelFamilyInfo, 6> kTable = {
    {
     {KernelFamily::kReference, "reference", "gemm_reference.cu", 0},
     {KernelFamily::kSm90, "sm90", "gemm_sm90.cu", 9},
     {KernelFamily::kSm90Swap, "sm90_swap", "gemm_sm90.cu", 9},
     {KernelFamily::kSm100, "sm100", "gemm_sm100.cu", 10},
     {KernelFamily::kSm100Mx, "sm100_mx", "gemm_sm100_mx.cu", 10},
     {KernelFamily::kSm100Plain, "sm100_plain", "gemm_sm100_mx.cu", 10},
     }
};

}  // namespace

const KernelFamilyInfo& kernel_family_info(KernelFamily family) {
  for (const KernelFamilyInfo& row : kTable) {
    if (row.family == family) return row;
  }
  std::abort();
}

std::optional<KernelFamily> parse_kernel_family(std::string_view name) {
  for (const KernelFamilyInfo& row : kTable) {
    if (row.name == name) return row.family;
  }
  return std::nullopt;
}

std::string kernel_family_list() {
  std::string list;
  for (const KernelFamilyInfo& row : kTable) {
    if (!list.empty()) list += ", ";
    list += row.name;
  }
  return list;
}

}  // namespace jitgemm
