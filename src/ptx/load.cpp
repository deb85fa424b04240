// SPDX-License-Identifier: Apache-2.0
// Lex, parse, resolve; then collect every refusal into one status.
#include "ptx/load.h"

#include "ptx/instruction_table.h"
#include "ptx/parser.h"
#include "ptx/resolver.h"
#include "ptx/targets.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitgemm::ptx {
namespace {

constexpr size_t kMaxReported = 200;

void ask_for_refusals(const Module& module, const LoadOptions& options,
                      std::vector<UnsupportedPlace>& out) {
  const InstructionTable& table = InstructionTable::get();
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.instructions) {
      // What no row matched, or its row refuses, is in the list already.
      if (instruction.form == kNoForm || table.row(instruction).unsupported[0] != '\0') continue;
      std::string reason = options.refuse(module, function, instruction);
      if (reason.empty()) continue;
      out.push_back(
          {instruction.position, module.mnemonics[instruction.mnemonic], std::move(reason)});
    }
  }
}

// What the module's target does not have.
void ask_for_targets(const Module& module, std::vector<UnsupportedPlace>& out) {
  const std::optional<Target> target = parse_target(module.target);
  if (!target) return;  // the parser has said so
  const InstructionTable& table = InstructionTable::get();
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.instructions) {
      if (instruction.form == kNoForm || table.row(instruction).unsupported[0] != '\0') continue;
      const std::string& mnemonic = module.mnemonics[instruction.mnemonic];
      std::string problem = target_problem(*target, instruction.opcode, mnemonic);
      if (!problem.empty()) out.push_back({instruction.position, mnemonic, std::move(problem)});
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
  ask_for_targets(module, places);
  if (options.refuse) ask_for_refusals(module, options, places);
  if (!places.empty()) return report(std::move(places));
  return module;
}

}  // namespace jitgemm::ptx
