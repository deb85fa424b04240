// SPDX-License-Identifier: Apache-2.0
// What the planner needs to know of a GPU architecture, as one table.
#pragma once

#include "support/result.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace jitgemm {

// A compile target. The suffix is part of it: code for sm_90a runs on 9.0 only, code for sm_100f on
// 10.0 and the later members of its family (CUDA C++ Programming Guide, "Family-Specific
// Features").
enum class Arch : int32_t {
  kSm90a = 900,
  kSm100a = 1000,
  kSm100f = 1001,
  kSm103a = 1030,
  kSm103f = 1031,
};

struct ArchInfo {
  Arch arch;
  std::string_view target;   // "sm_90a", as NVRTC spells it
  int compute_capability;    // 10 * major + minor: 90, 100, 103
  int shared_bytes_per_cta;  // largest dynamic shared memory of one CTA
  int default_sm_count;      // of the part that the planner assumes when no device is at hand
  bool has_tensor_memory;    // tcgen05
  bool is_family;            // runs on every later capability of the same major version, too
};

std::span<const ArchInfo> supported_archs();
const ArchInfo& arch_info(Arch arch);
const ArchInfo* find_arch(Arch arch);
// "sm_90a", "sm90a" or "90a"; the error lists what is supported.
Result<Arch> parse_arch(std::string_view name);
// Whether code for `arch` runs on a device whose own target is `device`.
bool runs_on(Arch arch, Arch device);
// The target for a device; the error names the device's capability and what is supported.
Result<Arch> arch_for_compute_capability(int major, int minor);
// "sm_90a, sm_100a, ..."
std::string supported_arch_list();

}  // namespace jitgemm
