// SPDX-License-Identifier: Apache-2.0
#include "problem/arch.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace jitgemm {
namespace {

// Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability":
// 227 KB a block for 9.0, 10.0 and 10.3. SM counts: H100/H200 SXM 132, B200/B300 148.
constexpr std::array<ArchInfo, 5> kTable = {
    {
     {Arch::kSm90a, "sm_90a", 90, 232448, 132, false, false},
     {Arch::kSm100a, "sm_100a", 100, 232448, 148, true, false},
     {Arch::kSm100f, "sm_100f", 100, 232448, 148, true, true},
     {Arch::kSm103a, "sm_103a", 103, 232448, 148, true, false},
     {Arch::kSm103f, "sm_103f", 103, 232448, 148, true, true},
     }
};

}  // namespace

std::span<const ArchInfo> supported_archs() {
  return kTable;
}

const ArchInfo* find_arch(Arch arch) {
  for (const ArchInfo& row : kTable) {
    if (row.arch == arch) return &row;
  }
  return nullptr;
}

const ArchInfo& arch_info(Arch arch) {
  const ArchInfo* row = find_arch(arch);
  if (row == nullptr) std::abort();
  return *row;
}

std::string supported_arch_list() {
  std::string list;
  for (const ArchInfo& row : kTable) {
    if (!list.empty()) list += ", ";
    list += row.target;
  }
  return list;
}

Result<Arch> parse_arch(std::string_view name) {
  std::string_view bare = name;
  if (bare.starts_with("sm")) bare.remove_prefix(2);
  if (bare.starts_with("_")) bare.remove_prefix(1);
  for (const ArchInfo& row : kTable) {
    if (row.target.substr(3) == bare) return row.arch;
  }
  return unsupported(
      fmt::format("arch: '{}' has no kernels; supported are {}", name, supported_arch_list()));
}

bool runs_on(Arch arch, Arch device) {
  if (arch == device) return true;
  const ArchInfo& code = arch_info(arch);
  const int capability = arch_info(device).compute_capability;
  return code.is_family && capability >= code.compute_capability &&
         capability / 10 == code.compute_capability / 10;
}

Result<Arch> arch_for_compute_capability(int major, int minor) {
  for (const ArchInfo& row : kTable) {
    if (!row.is_family && row.compute_capability == 10 * major + minor) return row.arch;
  }
  return unsupported(
      fmt::format("arch: a device of compute capability {}.{} has no kernels; supported are {}",
                  major, minor, supported_arch_list()));
}

}  // namespace jitgemm
