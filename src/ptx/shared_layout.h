// SPDX-License-Identifier: Apache-2.0
// Where the static shared memory of each entry lies: variables that the entry and its callees use,
// in declaration order, dynamic arrays behind them. A pass over resolved functions.
#pragma once

#include "ptx/module.h"
#include "support/status.h"

namespace jitgemm::ptx {

// kInvalidArgument when an entry's static shared memory exceeds 32 bits.
Status lay_out_shared_memory(Module& module);

}  // namespace jitgemm::ptx
