// SPDX-License-Identifier: Apache-2.0
// The types of PTX as an enum, with their width and kind. Used by the instruction table, the
// resolved module and the interpreter. Knows nothing of instructions or of values.
#pragma once

#include <cstdint>
#include <string_view>

namespace jitgemm::ptx {

enum class Type : uint8_t {
  kNone,
#define TYPE(name, text, bits, kind) name,
#include "ptx/types.def"
#undef TYPE
};

enum class TypeKind : uint8_t { kNone, kPredicate, kBits, kUnsigned, kSigned, kFloat };

// Bits of one operand of this type: 32 for .f16x2, 1 for .pred; 0 for kNone.
int type_bits(Type type);
TypeKind type_kind(Type type);
// The word without its dot ("f16x2"); empty for kNone.
std::string_view type_name(Type type);
// kNone when the word is no type.
Type find_type(std::string_view word);

}  // namespace jitgemm::ptx
