// SPDX-License-Identifier: Apache-2.0
// What must hold for any text that is offered as PTX: it loads, or it is refused with a status
// whose message says where; and what loads prints as text that loads as the same program. Shared by
// the fuzzer and by the test that replays its corpus.
#pragma once

#include "ptx/load.h"
#include "ptx/printer.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace jitgemm {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// True if the text is a program.
inline bool check_ptx(std::string_view text) {
  const auto module = ptx::load_module(text);
  if (!module) {
    require(!module.error().ok() && !module.error().message().empty());
    return false;
  }
  const std::string printed = ptx::print_module(*module);
  const auto again = ptx::load_module(printed);
  require(again.has_value());
  require(ptx::equivalent(*module, *again));
  return true;
}

}  // namespace jitgemm
