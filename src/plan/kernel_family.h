// SPDX-License-Identifier: Apache-2.0
// The kernel templates as a table: which file, which archs. A new template is a row here.
#pragma once

#include "problem/arch.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jitgemm {

enum class KernelFamily : int32_t {
  kReference,   // one thread an output; any arch, any shape; chosen by override only
  kSm90,        // TMA + wgmma, promotion per k-block
  kSm90Swap,    // the same with the operands swapped: weights on the 64-row side, few tokens
  kSm100,       // TMA + tcgen05, promotion per k-block
  kSm100Mx,     // TMA + tcgen05 block-scaled: power-of-two scales in hardware
  kSm100Plain,  // TMA + tcgen05 for 16-bit operands without scales
};

struct KernelFamilyInfo {
  KernelFamily family;
  std::string_view name;           // as in --kernel and in plans
  std::string_view template_file;  // under kernels/templates
  int major;                       // compute capability major it is for; 0 means any
};

const KernelFamilyInfo& kernel_family_info(KernelFamily family);
std::optional<KernelFamily> parse_kernel_family(std::string_view name);
// "reference, sm90, ..."
std::string kernel_family_list();

}  // namespace jitgemm
