// SPDX-License-Identifier: Apache-2.0
// Compiles the rows' notation (instruction_rows.h) into forms, and matches mnemonics against them.
#include "ptx/instruction_table.h"

#include "ptx/instruction_rows.h"
#include "ptx/modifier_words.h"

#include <algorithm>

namespace jitgemm::ptx {
namespace {

struct NamedSet {
  std::string_view name;
  std::string_view words;
};

constexpr NamedSet kSets[] = {
    {"int",         "u16|u32|u64|s16|s32|s64"                                                            },
    {"mem",         "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"                               },
    {"rnd",         "rn|rz|rm|rp"                                                                        },
    {"rndi",        "rni|rzi|rmi|rpi"                                                                    },
    {"cmp",         "eq|ne|lt|le|gt|ge|lo|ls|hi|hs|equ|neu|ltu|leu|gtu|geu|num|nan"                      },
    {"scope",       "cta|cluster|gpu|sys"                                                                },
    {"space",
     "const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster"              },
    {"cop_ld",      "ca|cg|cs|lu|cv"                                                                     },
    {"l1",          "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"},
    {"l2",          "L2::evict_normal|L2::evict_unchanged|L2::evict_first|L2::evict_last"                },
    {"prefetch",    "L2::64B|L2::128B|L2::256B"                                                          },
    {"dim",         "1d|2d|3d|4d|5d"                                                                     },
    {"cta_group",   "cta_group::1|cta_group::2"                                                          },
    {"num",         "x1|x2|x4|x8|x16|x32|x64|x128"                                                       },
    {"scale_vec",   "scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32"                          },
    {"collector_a",
     "collector::a::fill|collector::a::use|collector::a::lastuse|collector::a::discard"                  },
    {"collector_b",
     "collector::b0::fill|collector::b0::use|collector::b0::lastuse|collector::b0::discard|"
     "collector::b1::fill|collector::b1::use|collector::b1::lastuse|collector::b1::discard|"
     "collector::b2::fill|collector::b2::use|collector::b2::lastuse|collector::b2::discard|"
     "collector::b3::fill|collector::b3::use|collector::b3::lastuse|collector::b3::discard"              },
};

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':' || c == '#';
}

class RowCompiler {
 public:
  RowCompiler(std::string_view syntax, Form& form) : text_(syntax), form_(form) {}

  void run() {
    form_.first_word = word();
    while (!done() && peek() != ' ') element();
    while (!done()) {
      skip(' ');
      slot_group();
      if (!done() && !skip(',')) fail("expected ',' between slots");
    }
    if (form_.problem.empty() && at_ != text_.size()) fail("text left over");
  }

 private:
  bool done() const { return at_ >= text_.size() || !form_.problem.empty(); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!skip(c)) fail("a bracket or brace is missing");
  }
  void fail(std::string_view problem) {
    if (form_.problem.empty()) form_.problem = problem;
  }
  std::string_view word() {
    const size_t start = at_;
    while (is_word_char(peek())) ++at_;
    if (at_ == start) fail("a word is missing");
    return text_.substr(start, at_ - start);
  }

  void element() {
    MnemonicElement out;
    out.implied = skip('~');
    if (skip('{')) {
      out.optional = true;
      while (peek() == '.') choice(out);
      need('}');
    } else {
      choice(out);
    }
    form_.mnemonic.push_back(std::move(out));
  }

  void choice(MnemonicElement& out) {
    need('.');
    MnemonicElement::Choice alternatives;
    if (skip('<')) {
      do {
        if (skip('@'))
          named_set(word(), alternatives);
        else
          alternatives.words.push_back(word());
      } while (skip('|'));
      need('>');
    } else {
      alternatives.words.push_back(word());
    }
    out.sequence.push_back(std::move(alternatives));
  }

  void named_set(std::string_view name, MnemonicElement::Choice& out) {
    for (const NamedSet& set : kSets) {
      if (set.name != name) continue;
      out.comparison = name == "cmp";
      for (std::string_view rest = set.words; !rest.empty();) {
        const size_t bar = std::min(rest.find('|'), rest.size());
        out.words.push_back(rest.substr(0, bar));
        rest.remove_prefix(std::min(bar + 1, rest.size()));
      }
      return;
    }
    fail("unknown set");
  }

  // =p|=q   [a, {c}]   ?{a:b32}*4   (=ret)
  void slot_group() {
    slot(false);
    while (!done() && skip('|')) {
      const size_t q = form_.slots.size();
      slot(false);
      if (q < form_.slots.size()) form_.slots[q].joined_by_bar = true;
    }
  }

  void slot(bool inside_bracket) {
    Slot out;
    out.inside_bracket = inside_bracket;
    out.optional = skip('?');
    if (skip('[')) {
      out.shape = SlotShape::kAddress;
      out.name = word();
      out.type = "any";
      form_.slots.push_back(out);
      while (!done() && skip(',')) {
        skip(' ');
        slot(true);
      }
      need(']');
      return;
    }
    if (skip('{')) {
      out.shape = SlotShape::kVector;
      named(out);
      need('}');
    } else if (skip('(')) {
      out.shape = SlotShape::kCallList;
      named(out);
      need(')');
    } else {
      named(out);
    }
    if (skip('*')) {
      out.count = word();
      if (out.shape == SlotShape::kScalar) out.shape = SlotShape::kScalarOrVector;
    }
    if (skip('?')) out.only_with = word();
    form_.slots.push_back(out);
  }

  void named(Slot& out) {
    if (skip('='))
      out.role = OperandRole::kWrite;
    else if (skip('+'))
      out.role = OperandRole::kReadWrite;
    out.immediate_only = skip('#');
    out.register_only = skip('$');
    const std::string_view name_and_type = word();
    const size_t colon = name_and_type.find(':');
    out.name = name_and_type.substr(0, colon);
    if (colon == std::string_view::npos) return;
    out.type = name_and_type.substr(colon + 1);
    if (out.type == "label") out.shape = SlotShape::kLabel;
    if (out.type == "targets") out.shape = SlotShape::kTargets;
    if (out.type == "function") out.shape = SlotShape::kFunction;
    if (out.type == "prototype") out.shape = SlotShape::kPrototype;
  }

  std::string_view text_;
  Form& form_;
  size_t at_ = 0;
};

using Words = std::span<const std::string_view>;

// The word of a choice that a word fits; nullptr when none does.
const std::string_view* find_word(const MnemonicElement::Choice& choice, std::string_view word) {
  const auto found = std::find_if(choice.words.begin(), choice.words.end(),
                                  [&](std::string_view entry) { return fits_word(entry, word); });
  return found == choice.words.end() ? nullptr : &*found;
}

bool sequence_fits(const MnemonicElement& element, Words words) {
  if (words.size() < element.sequence.size()) return false;
  for (size_t i = 0; i < element.sequence.size(); ++i) {
    if (find_word(element.sequence[i], words[i]) == nullptr) return false;
  }
  return true;
}

// Chooses for each element whether it is written. Optional elements are few, so trying both is
// cheap; taken[i] is set for the elements that are written.
bool match_in_order(const std::vector<MnemonicElement>& elements, size_t at, Words words,
                    std::vector<bool>& taken) {
  if (at == elements.size()) return words.empty();
  const MnemonicElement& element = elements[at];
  if (element.implied) return match_in_order(elements, at + 1, words, taken);
  if (sequence_fits(element, words)) {
    taken[at] = true;
    if (match_in_order(elements, at + 1, words.subspan(element.sequence.size()), taken))
      return true;
    taken[at] = false;
  }
  return element.optional && match_in_order(elements, at + 1, words, taken);
}

// Each word to the first element that takes it and has none yet.
bool match_in_any_order(const std::vector<MnemonicElement>& elements, Words words,
                        std::vector<bool>& taken) {
  while (!words.empty()) {
    size_t at = 0;
    while (at < elements.size() &&
           (taken[at] || elements[at].implied || !sequence_fits(elements[at], words))) {
      ++at;
    }
    if (at == elements.size()) return false;
    taken[at] = true;
    words = words.subspan(elements[at].sequence.size());
  }
  for (size_t i = 0; i < elements.size(); ++i) {
    if (!taken[i] && !elements[i].optional && !elements[i].implied) return false;
  }
  return true;
}

bool in_comparison(const Form& form, const std::vector<bool>& taken, std::string_view word) {
  for (size_t i = 0; i < form.mnemonic.size(); ++i) {
    if (!taken[i]) continue;
    for (const auto& choice : form.mnemonic[i].sequence) {
      if (choice.comparison && find_word(choice, word) != nullptr) return true;
    }
  }
  return false;
}

Modifiers decode(const Form& form, const std::vector<bool>& taken, Words words) {
  Modifiers modifiers;
  for (const MnemonicElement& element : form.mnemonic) {
    if (element.implied) apply_modifier(element.sequence[0].words[0], false, modifiers);
  }
  // Words without a field (those that only name the family) leave the modifiers alone.
  for (const std::string_view word : words) {
    apply_modifier(word, in_comparison(form, taken, word), modifiers);
  }
  return modifiers;
}

}  // namespace

bool fits_word(std::string_view choice, std::string_view word) {
  const size_t hash = choice.find('#');
  if (hash == std::string_view::npos) return choice == word;
  const std::string_view tail = choice.substr(hash + 1);
  if (word.size() < choice.size() || !word.starts_with(choice.substr(0, hash)) ||
      !word.ends_with(tail)) {
    return false;
  }
  const std::string_view digits = word.substr(hash, word.size() - hash - tail.size());
  return digits.size() <= 4 && digits.front() != '0' &&
         digits.find_first_not_of("0123456789") == std::string_view::npos;
}

InstructionTable::InstructionTable() {
  const std::span<const FormRow> families[] = {
      integer_rows(),          float_rows(),       compare_and_logic_rows(),
      move_and_convert_rows(), memory_rows(),      copy_rows(),
      control_and_sync_rows(), warp_matrix_rows(), tensor_core_rows()};
  for (const auto& rows : families) {
    for (const FormRow& row : rows) {
      Form& form = forms_.emplace_back();
      form.row = &row;
      RowCompiler(row.syntax, form).run();
    }
  }
}

const InstructionTable& InstructionTable::get() {
  static const InstructionTable table;
  return table;
}

bool InstructionTable::knows(std::string_view first_word) const {
  return std::any_of(forms_.begin(), forms_.end(),
                     [&](const Form& form) { return form.first_word == first_word; });
}

std::vector<MnemonicMatch> InstructionTable::match(Words words) const {
  std::vector<MnemonicMatch> matches;
  if (words.empty()) return matches;
  for (const bool in_order : {true, false}) {
    for (size_t i = 0; i < forms_.size(); ++i) {
      const Form& form = forms_[i];
      if (form.first_word != words[0]) continue;
      std::vector<bool> taken(form.mnemonic.size());
      const Words rest = words.subspan(1);
      if (in_order ? match_in_order(form.mnemonic, 0, rest, taken)
                   : match_in_any_order(form.mnemonic, rest, taken)) {
        matches.push_back({static_cast<uint16_t>(i), decode(form, taken, rest)});
      }
    }
    if (!matches.empty()) break;
  }
  return matches;
}

}  // namespace jitgemm::ptx
