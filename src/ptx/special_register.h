// SPDX-License-Identifier: Apache-2.0
// Names of special registers (PTX ISA 10) to their enumerator and component, and back.
#pragma once

#include "ptx/module.h"

#include <optional>
#include <string>
#include <string_view>

namespace jitgemm::ptx {

// "%tid" with component "x"; "%laneid" or "%envreg3" without. The operand's type is the register's.
std::optional<Operand> find_special_register(std::string_view name, std::string_view component);
// "%tid.x"
std::string special_register_text(const Operand& operand);

}  // namespace jitgemm::ptx
