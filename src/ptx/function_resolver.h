// SPDX-License-Identifier: Apache-2.0
// Resolves one function body: scopes, registers, labels, instructions. A part of the resolver.
#pragma once

#include "ptx/instruction_table.h"
#include "ptx/module.h"
#include "ptx/scope.h"
#include "ptx/syntax.h"
#include "support/result.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace jitgemm::ptx {

// Mnemonics of the whole module, each read once.
class MnemonicCache {
 public:
  struct Entry {
    uint32_t index = 0;  // of Module::mnemonics
    std::vector<MnemonicMatch> matches;
  };
  const Entry& find(const std::vector<std::string_view>& words,
                    std::vector<std::string>& mnemonics);

 private:
  std::unordered_map<std::string, Entry> entries_;
};

// How many results and arguments a function takes.
struct Signature {
  size_t returns = 0;
  size_t parameters = 0;
};

struct FunctionContext {
  Module& module;
  const std::vector<Signature>& signatures;  // of module.functions
  const ScopeTree& module_names;
  MnemonicCache& mnemonics;
  std::vector<UnsupportedPlace>& unsupported;
};

// INVALID_ARGUMENT, "line:column: what".
Status error_at(SourcePosition position, std::string_view what);

// A symbol from its declaration; initialisers are for the module resolver.
Result<Symbol> make_symbol(const SyntaxVariable& variable, SymbolKind kind);

// Fills module.functions[index], which exists with its header.
Status resolve_function(const SyntaxFunction& syntax, uint32_t index, FunctionContext& context);

}  // namespace jitgemm::ptx
