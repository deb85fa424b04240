// SPDX-License-Identifier: Apache-2.0
// The syntax tree: what the parser makes of tokens and the resolver turns into a Module. Names are
// still text, scopes are still marked, mnemonics are words; the text must outlive the tree. Nested
// scopes are a flat list with begin and end marks, so that no depth of nesting needs recursion.
#pragma once

#include "ptx/module.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitgemm::ptx {

struct SyntaxLiteral {
  Type type = Type::kS64;  // kS64, kU64, kF32 or kF64
  uint64_t bits = 0;
};

// A register, symbol, label or number: the smallest operand.
struct SyntaxScalar {
  bool is_name = false;
  bool negated = false;            // !p
  std::string_view name;           // "_" is the sink
  std::string_view component;      // x of %tid.x
  std::optional<uint64_t> offset;  // of name+offset
  SyntaxLiteral literal;           // where it is no name
  SourcePosition position;

  bool is_sink() const { return is_name && name == "_"; }
};

enum class SyntaxShape : uint8_t { kScalar, kVector, kAddress, kCallList };

struct SyntaxOperand {
  SyntaxShape shape = SyntaxShape::kScalar;
  std::vector<SyntaxScalar> elements;     // one for a scalar
  std::vector<SyntaxOperand> parts;       // of [a, {b}]: scalars and vectors
  std::optional<SyntaxScalar> after_bar;  // q of p|q
  SourcePosition position;
};

struct SyntaxInstruction {
  std::vector<std::string_view> words;  // the mnemonic at its dots
  std::string_view guard;               // empty: none
  bool guard_negated = false;
  std::vector<SyntaxOperand> operands;
};

// One value of an initialiser.
struct SyntaxInitialiser {
  uint64_t index = 0;  // element of the array
  SyntaxLiteral literal;
  std::string_view symbol;  // empty: the literal
  bool generic = false;
  int64_t addend = 0;
  SourcePosition position;
};

struct SyntaxVariable {
  Linkage linkage = Linkage::kInternal;
  Space space = Space::kNone;  // kNone: a register
  Type type = Type::kNone;
  uint32_t vector = 1;
  uint32_t align = 0;  // 0: natural
  std::string_view name;
  uint32_t range = 0;  // %r<range>; 0: a single name
  bool incomplete_array = false;
  uint64_t elements = 1;
  std::vector<SyntaxInitialiser> initialisers;
  SourcePosition position;
};

struct SyntaxStatement {
  enum class Kind : uint8_t {
    kInstruction,
    kLabel,
    kScopeBegin,
    kScopeEnd,
    kVariable,
    kBranchTargets,
    kCallTargets,
    kCallPrototype
  };
  Kind kind = Kind::kInstruction;
  SourcePosition position;
  uint32_t index = 0;     // kInstruction, kVariable: into the function's lists
  std::string_view name;  // of a label, a target list or a prototype
  std::vector<std::string_view> targets;
  CallPrototype prototype;
};

struct SyntaxFunction {
  Function header;  // directives, linkage, name as text
  std::vector<SyntaxVariable> returns;
  std::vector<SyntaxVariable> parameters;
  std::vector<SyntaxStatement> statements;
  std::vector<SyntaxInstruction> instructions;
  std::vector<SyntaxVariable> variables;
};

// Something well-formed that this program cannot run.
struct UnsupportedPlace {
  SourcePosition position;
  std::string text;
  std::string reason;
};

// .alias name, function;
struct SyntaxAlias {
  std::string_view name, function;
  SourcePosition position;
};

struct SyntaxModule {
  uint32_t version_major = 0, version_minor = 0;
  std::string target;
  uint32_t address_size = 64;
  std::vector<SyntaxVariable> variables;
  std::vector<SyntaxFunction> functions;
  std::vector<SyntaxAlias> aliases;
  std::vector<UnsupportedPlace> unsupported;
};

}  // namespace jitgemm::ptx
