// SPDX-License-Identifier: Apache-2.0
// Lex, parse, resolve; then collect every refusal into one status.
#include "ptx/load.h"

#include "ptx/instruction_table.h"
#include "ptx/parser.h"
#include "ptx/resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace jitgemm::ptx {
namespace {

constexpr size_t kMaxReported = 200;

void ask_for_refusals(const Module& module, const LoadOptions& options,
                      std::vector<UnsupportedPlace>& out) {
  const InstructionTable& table = InstructionTable::get();
  // By mnemonic and form; a refused one is reported at every place.
  std::map<std::pair<uint32_t, uint16_t>, std::string> answers;
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.instructions) {
      // What no row matched, or its row refuses, is in the list already.
      if (instruction.form == kNoForm || table.row(instruction).unsupported[0] != '\0') continue;
      const auto [answer, asked] = answers.try_emplace({instruction.mnemonic, instruction.form});
      if (asked) answer->second = options.refuse(function, instruction);
      if (answer->second.empty()) continue;
      out.push_back({instruction.position, module.mnemonics[instruction.mnemonic], answer->second});
    }
  }
}

Status report(std::vector<UnsupportedPlace> places) {
  std::stable_sort(places.begin(), places.end(),
                   [](const UnsupportedPlace& a, const UnsupportedPlace& b) {
                     return std::pair(a.position.line, a.position.column) <
                            std::pair(b.position.line, b.position.column);
                   });
  std::string message;
  for (size_t i = 0; i < std::min(places.size(), kMaxReported); ++i) {
    const UnsupportedPlace& place = places[i];
    message += fmt::format("{}{}:{}: {}: {}", i == 0 ? "" : "\n", place.position.line,
                           place.position.column, place.text, place.reason);
  }
  if (places.size() > kMaxReported)
    message += fmt::format("\nand {} more", places.size() - kMaxReported);
  return unsupported(std::move(message));
}

}  // namespace

Result<Module> load_module(std::string_view text, const LoadOptions& options) {
  JITGEMM_ASSIGN(const SyntaxModule syntax, parse(text));
  std::vector<UnsupportedPlace> places = syntax.unsupported;
  JITGEMM_ASSIGN(Module module, resolve(syntax, places));
  if (options.refuse) ask_for_refusals(module, options, places);
  if (!places.empty()) return report(std::move(places));
  return module;
}

}  // namespace jitgemm::ptx
