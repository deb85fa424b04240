// SPDX-License-Identifier: Apache-2.0
// Look-ups over special_registers.def.
#include "ptx/special_register.h"

#include <fmt/format.h>

#include <charconv>

namespace jitgemm::ptx {
namespace {

struct Row {
  std::string_view name;
  Type type;
  bool vector;
  uint32_t numbers;  // of %envreg0 .. ; 0: no number
};

// clang-format off
constexpr Row kRows[] = {
#define SPECIAL(id, text, type) {text, Type::type, false, 0},
#define SPECIAL_VECTOR(id, text) {text, Type::kU32, true, 0},
#define SPECIAL_NUMBERED(id, text, type, count) {text, Type::type, false, count},
#include "ptx/special_registers.def"
#undef SPECIAL
#undef SPECIAL_VECTOR
#undef SPECIAL_NUMBERED
};
// clang-format on

constexpr std::string_view kComponents = "xyzw";

}  // namespace

std::optional<Operand> find_special_register(std::string_view name, std::string_view component) {
  if (!name.starts_with('%')) return std::nullopt;
  name.remove_prefix(1);
  for (size_t i = 0; i < std::size(kRows); ++i) {
    const Row& row = kRows[i];
    Operand operand;
    operand.kind = OperandKind::kSpecialRegister;
    operand.index = static_cast<uint32_t>(i);
    operand.type = row.type;
    if (row.vector) {
      if (name != row.name || component.size() != 1) continue;
      const size_t at = kComponents.find(component.front());
      if (at == std::string_view::npos) continue;
      operand.component = static_cast<uint8_t>(at);
      return operand;
    }
    if (!component.empty()) continue;
    if (row.numbers == 0) {
      if (name == row.name) return operand;
      continue;
    }
    if (!name.starts_with(row.name)) continue;
    const std::string_view digits = name.substr(row.name.size());
    uint32_t number = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + digits.size()) continue;
    if (number >= row.numbers) continue;
    operand.component = static_cast<uint8_t>(number);
    return operand;
  }
  return std::nullopt;
}

std::string special_register_text(const Operand& operand) {
  const Row& row = kRows[operand.index];
  if (row.vector) return fmt::format("%{}.{}", row.name, kComponents[operand.component & 3]);
  if (row.numbers > 0) return fmt::format("%{}{}", row.name, operand.component);
  return fmt::format("%{}", row.name);
}

}  // namespace jitgemm::ptx
