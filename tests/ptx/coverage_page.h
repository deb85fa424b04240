// SPDX-License-Identifier: Apache-2.0
// docs/ptx-coverage.md: each form of the instruction table with its section, the cases that execute
// it, and what a GPU said of them.
#pragma once

#include "ptx/confirmations.h"
#include "ptx/instruction_cases.h"

#include <string>
#include <vector>

namespace jitgemm::ptx_cases {

Result<std::string> coverage_page(const std::vector<Case>& cases, const Confirmations& records);

}  // namespace jitgemm::ptx_cases
