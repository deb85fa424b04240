// SPDX-License-Identifier: Apache-2.0
// A word is looked up once for each distinct mnemonic of a module, so plain searches suffice.
#include "ptx/modifier_words.h"

#include <charconv>
#include <type_traits>

namespace jitgemm::ptx {
namespace {

struct FlagWord {
  std::string_view text;
  Flag flag;
};
// clang-format off
constexpr FlagWord kFlagWords[] = {
#define FLAG(name, text) {text, Flag::name},
#include "ptx/flags.def"
#undef FLAG
};
// clang-format on

// A decimal number that takes the whole text.
bool number(std::string_view text, uint16_t& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && !text.empty() &&
         text.front() != '0';
}

bool apply_type(std::string_view word, Modifiers& modifiers) {
  const Type type = find_type(word);
  if (type == Type::kNone) return false;
  for (Type& place : modifiers.types) {
    if (place == Type::kNone) {
      place = type;
      return true;
    }
  }
  // The scale's type of block-scaled mma.sync, the fifth, takes the place of C's, which is D's.
  modifiers.types.back() = type;
  return true;
}

// m16n8k16, m8n8
bool apply_shape(std::string_view word, Modifiers& modifiers) {
  const size_t n = word.find('n');
  if (word.empty() || word.front() != 'm' || n == std::string_view::npos) return false;
  const size_t k = word.find('k', n);
  Modifiers shaped = modifiers;
  if (!number(word.substr(1, n - 1), shaped.m)) return false;
  if (!number(word.substr(n + 1, k == std::string_view::npos ? k : k - n - 1), shaped.n))
    return false;
  if (k != std::string_view::npos && !number(word.substr(k + 1), shaped.k)) return false;
  modifiers = shaped;
  return true;
}

bool apply_number(std::string_view word, Modifiers& modifiers) {
  uint16_t value = 0;
  if (word.size() < 2) return false;
  if (word.front() == 'x' && number(word.substr(1), value) && value <= 128) {
    modifiers.count = static_cast<uint8_t>(value);
  } else if (word == "v2" || word == "v4" || word == "v8") {
    modifiers.vector = static_cast<uint8_t>(word[1] - '0');
  } else if (word.size() == 2 && word[1] == 'd' && word[0] >= '1' && word[0] <= '5') {
    modifiers.dim = static_cast<uint8_t>(word[0] - '0');
  } else if (word == "cta_group::1" || word == "cta_group::2") {
    modifiers.cta_group = static_cast<uint8_t>(word.back() - '0');
  } else {
    return false;
  }
  return true;
}

// A second word of a field goes to its second place.
void store(Space value, Modifiers& m) {
  (m.space == Space::kNone ? m.space : m.space2) = value;
}
void store(Layout value, Modifiers& m) {
  (m.layout == Layout::kNone ? m.layout : m.layout2) = value;
}
void store(L2Policy value, Modifiers& m) {
  (m.l2_policy == L2Policy::kNone ? m.l2_policy : m.l2_policy2) = value;
}
void store(Operation value, Modifiers& m) {
  (m.operation == Operation::kNone ? m.operation : m.operation2) = value;
}
void store(Rounding value, Modifiers& m) {
  m.rounding = value;
}
void store(Part value, Modifiers& m) {
  m.part = value;
}
void store(Scope value, Modifiers& m) {
  m.scope = value;
}
void store(Semantics value, Modifiers& m) {
  m.semantics = value;
}
void store(CacheOp value, Modifiers& m) {
  m.cache_op = value;
}
void store(L1Policy value, Modifiers& m) {
  m.l1_policy = value;
}
void store(Prefetch value, Modifiers& m) {
  m.prefetch = value;
}
void store(Proxy value, Modifiers& m) {
  m.proxy = value;
}
void store(Completion value, Modifiers& m) {
  m.completion = value;
}
void store(TensorMode value, Modifiers& m) {
  m.tensor_mode = value;
}
void store(TmemShape value, Modifiers& m) {
  m.tmem_shape = value;
}
void store(WarpMulticast value, Modifiers& m) {
  m.warp_multicast = value;
}
void store(MmaKind value, Modifiers& m) {
  m.mma_kind = value;
}
void store(ScaleVector value, Modifiers& m) {
  m.scale_vector = value;
}
void store(CollectorBuffer value, Modifiers& m) {
  m.collector = value;
}
void store(TensormapField value, Modifiers& m) {
  m.tensormap_field = value;
}
void store(Compare value, Modifiers& m) {
  m.compare = value;
}

bool apply_enum(std::string_view word, bool is_comparison, Modifiers& modifiers) {
  using Apply = void (*)(Modifiers&);
  struct EnumWord {
    std::string_view text;
    bool comparison;
    Apply apply;
  };
  // clang-format off
  static constexpr EnumWord kEnumWords[] = {
#define FIELD_BEGIN(type, field)
#define WORD(type, field, name, text) \
  {text, std::is_same_v<type, Compare>, [](Modifiers& m) { store(type::name, m); }},
#define FIELD_END
#include "ptx/modifiers.def"
#undef FIELD_BEGIN
#undef WORD
#undef FIELD_END
  };
  // clang-format on
  for (const EnumWord& entry : kEnumWords) {
    if (entry.text == word && entry.comparison == is_comparison) {
      entry.apply(modifiers);
      return true;
    }
  }
  return false;
}

}  // namespace

bool apply_modifier(std::string_view word, bool is_comparison, Modifiers& modifiers) {
  if (apply_enum(word, is_comparison, modifiers)) return true;
  for (const FlagWord& entry : kFlagWords) {
    if (entry.text == word) {
      modifiers.set(entry.flag);
      return true;
    }
  }
  return apply_type(word, modifiers) || apply_number(word, modifiers) ||
         apply_shape(word, modifiers);
}

}  // namespace jitgemm::ptx
