// SPDX-License-Identifier: Apache-2.0
// Look-ups over types.def.
#include "ptx/types.h"

#include <array>

namespace jitgemm::ptx {
namespace {

struct TypeRow {
  std::string_view text;
  int bits;
  TypeKind kind;
};

// clang-format off
constexpr TypeRow kTypes[] = {
    {"", 0, TypeKind::kNone},
#define TYPE(name, text, bits, kind) {text, bits, TypeKind::kind},
#include "ptx/types.def"
#undef TYPE
};
// clang-format on

const TypeRow& row_of(Type type) {
  return kTypes[static_cast<size_t>(type)];
}

}  // namespace

int type_bits(Type type) {
  return row_of(type).bits;
}
TypeKind type_kind(Type type) {
  return row_of(type).kind;
}
std::string_view type_name(Type type) {
  return row_of(type).text;
}

Type find_type(std::string_view word) {
  for (size_t i = 1; i < std::size(kTypes); ++i) {
    if (kTypes[i].text == word) return static_cast<Type>(i);
  }
  return Type::kNone;
}

}  // namespace jitgemm::ptx
