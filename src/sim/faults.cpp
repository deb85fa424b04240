// SPDX-License-Identifier: Apache-2.0
#include "sim/faults.h"

#include <cstddef>

namespace jitgemm::sim {
namespace {

struct FaultText {
  std::string_view name, rule, section;
};

constexpr FaultText kTexts[] = {
#define JITGEMM_SIM_FAULT_TEXT(e, n, r, s) {n, r, s},
    JITGEMM_SIM_FAULTS(JITGEMM_SIM_FAULT_TEXT)
#undef JITGEMM_SIM_FAULT_TEXT
};

}  // namespace

std::string_view fault_name(FaultKind kind) {
  return kTexts[static_cast<size_t>(kind)].name;
}
std::string_view fault_rule(FaultKind kind) {
  return kTexts[static_cast<size_t>(kind)].rule;
}
std::string_view fault_section(FaultKind kind) {
  return kTexts[static_cast<size_t>(kind)].section;
}

}  // namespace jitgemm::sim
