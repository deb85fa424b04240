// SPDX-License-Identifier: Apache-2.0
// The modifiers of one instruction, decoded from its dotted words into enums (modifiers.def,
// flags.def). The interpreter reads these and never the text. Plain data: knows no instruction.
#pragma once

#include "ptx/types.h"

#include <array>
#include <cstdint>

namespace jitgemm::ptx {

// clang-format off
#define FIELD_BEGIN(type, field) enum class type : uint8_t { kNone,
#define WORD(type, field, name, text) name,
#define FIELD_END };
#include "ptx/modifiers.def"
#undef FIELD_BEGIN
#undef WORD
#undef FIELD_END
// clang-format on

enum class Flag : uint8_t {
#define FLAG(name, text) name,
#include "ptx/flags.def"
#undef FLAG
};

struct Modifiers {
  // Types in the order of the mnemonic: {destination, source} of cvt, {d, a, b, c} of mma.
  std::array<Type, 4> types{};
#define FIELD_BEGIN(type, field) type field = type::kNone;
#define WORD(type, field, name, text)
#define FIELD_END
#include "ptx/modifiers.def"
#undef FIELD_BEGIN
#undef WORD
#undef FIELD_END
  Space space2 = Space::kNone;              // the source space of a copy (space is its destination)
  Operation operation2 = Operation::kNone;  // a second operation word, where a form has two
  Layout layout2 = Layout::kNone;           // layout of b (layout is that of a)
  L2Policy l2_policy2 = L2Policy::kNone;    // createpolicy's secondary priority
  uint8_t vector = 0;                       // .v2 .v4 .v8; 0 when absent
  uint8_t count = 0;                        // .x1 .. .x128; 0 when absent
  uint8_t dim = 0;                          // .1d .. .5d
  uint8_t cta_group = 0;                    // .cta_group::1, ::2
  uint16_t m = 0, n = 0, k = 0;             // .m64n128k32; .m8n8 leaves k at 0
  uint64_t flags = 0;                       // bit i is Flag i

  Type type() const {
    return types[0];
  }
  bool has(Flag flag) const {
    return (flags >> static_cast<unsigned>(flag) & 1) != 0;
  }
  void set(Flag flag) {
    flags |= uint64_t{1} << static_cast<unsigned>(flag);
  }
  friend bool operator==(const Modifiers&, const Modifiers&) = default;
};

}  // namespace jitgemm::ptx
