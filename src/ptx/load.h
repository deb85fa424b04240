// SPDX-License-Identifier: Apache-2.0
// PTX text to a resolved module in one call: lex, parse, resolve, and refuse at once everything
// that could not run. Malformed text is kInvalidArgument with "line:column: what was expected";
// well-formed text that this program cannot run is kUnsupported with one line for every place.
#pragma once

#include "ptx/module.h"
#include "support/result.h"

#include <functional>
#include <string>
#include <string_view>

namespace jitgemm::ptx {

struct LoadOptions {
  // Asked for every instruction: the reason why it cannot be executed, or an empty string. The
  // interpreter passes what it implements; without it every known form is taken.
  std::function<std::string(const Module&, const Function&, const Instruction&)> refuse;
};

Result<Module> load_module(std::string_view text, const LoadOptions& options = {});

}  // namespace jitgemm::ptx
