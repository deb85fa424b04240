// SPDX-License-Identifier: Apache-2.0
// Names in nested scopes: module, function, and the braces inside a body, where inline assembly
// repeats the same register and label names many times. Part of the resolver.
#pragma once

#include "ptx/module.h"

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace jitgemm::ptx {

struct Name {
  enum class Kind : uint8_t {
    kRegister,
    kSymbol,
    kFunction,
    kLabel,
    kTargets,      // .branchtargets
    kCallTargets,  // .calltargets
    kPrototype
  };
  Kind kind = Kind::kRegister;
  uint32_t index = 0;
  uint32_t elements = 1;  // of a vector register: that many registers from index on
};

class ScopeTree {
 public:
  // The root scope exists from the start as number 0.
  ScopeTree() : scopes_(1) {}

  uint32_t add_scope(uint32_t parent);
  uint32_t parent(uint32_t scope) const { return scopes_[scope].parent; }
  // False when the scope itself has the name already.
  bool declare(uint32_t scope, std::string_view name, Name value);
  // What the scope has under this name, if anything, gives way.
  void replace(uint32_t scope, std::string_view name, Name value);
  // name0 .. name<count-1>, each of `elements` consecutive indices, from first.
  bool declare_range(uint32_t scope, std::string_view prefix, uint32_t first, uint32_t count,
                     uint32_t elements = 1);
  // Innermost scope first.
  std::optional<Name> find(uint32_t scope, std::string_view name) const;

 private:
  struct Range {
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t elements = 1;
  };
  struct Scope {
    uint32_t parent = kNoIndex;
    std::unordered_map<std::string_view, Name> names;
    std::unordered_map<std::string_view, Range> ranges;
  };
  std::optional<Name> find_here(const Scope& scope, std::string_view name) const;

  std::vector<Scope> scopes_;
};

}  // namespace jitgemm::ptx
