// SPDX-License-Identifier: Apache-2.0
// A function uses a shared variable when an operand names it. After an indirect call anything may
// run, so every function of the module counts as a callee.
#include "ptx/shared_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace jitgemm::ptx {
namespace {

struct Uses {
  std::set<uint32_t> symbols;  // shared variables
  bool calls_indirectly = false;
};

Uses uses_of(const Module& module, const Function& function) {
  Uses uses;
  for (const Operand& operand : function.operands) {
    const bool names_symbol =
        operand.kind == OperandKind::kSymbol ||
        (operand.kind == OperandKind::kAddress && operand.base == AddressBase::kSymbol);
    if (names_symbol && module.symbols[operand.index].space == Space::kShared)
      uses.symbols.insert(operand.index);
  }
  for (const Instruction& instruction : function.instructions) {
    if (instruction.opcode == Opcode::kCall && function.operands_of(instruction).size() > 1 &&
        function.operands_of(instruction)[1].is_register()) {
      uses.calls_indirectly = true;
    }
  }
  return uses;
}

std::vector<uint32_t> reachable(const Module& module, const std::vector<Uses>& uses,
                                uint32_t entry) {
  std::vector<uint32_t> order{entry};
  std::vector<bool> seen(module.functions.size());
  seen[entry] = true;
  const auto add = [&](uint32_t function) {
    if (!seen[function] && !module.functions[function].is_entry) order.push_back(function);
    seen[function] = true;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for (const uint32_t callee : module.functions[order[i]].callees) add(callee);
    if (!uses[order[i]].calls_indirectly) continue;
    for (uint32_t f = 0; f < module.functions.size(); ++f) add(f);
  }
  return order;
}

Status lay_out(const Module& module, const std::set<uint32_t>& symbols, Function& entry) {
  uint64_t offset = 0;
  uint64_t dynamic_align = 1;
  const auto round_up = [](uint64_t value, uint64_t align) {
    return (value + align - 1) / align * align;
  };
  for (const uint32_t index : symbols) {
    const Symbol& symbol = module.symbols[index];
    entry.shared_align = std::max(entry.shared_align, symbol.align);
    if (symbol.incomplete_array) {
      dynamic_align = std::max<uint64_t>(dynamic_align, symbol.align);
      continue;
    }
    offset = round_up(offset, symbol.align);
    entry.shared.push_back({index, static_cast<uint32_t>(offset)});
    offset += symbol.size;
    if (offset > INT32_MAX) {
      return invalid_argument(
          fmt::format("{}:{}: expected at most 2 GiB of static shared memory in {}",
                      entry.position.line, entry.position.column, entry.name));
    }
  }
  entry.shared_size = static_cast<uint32_t>(round_up(offset, dynamic_align));
  for (const uint32_t index : symbols) {
    if (module.symbols[index].incomplete_array) entry.shared.push_back({index, entry.shared_size});
  }
  return ok_status();
}

}  // namespace

Status lay_out_shared_memory(Module& module) {
  std::vector<Uses> uses;
  for (const Function& function : module.functions) uses.push_back(uses_of(module, function));
  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    if (!module.functions[i].is_entry) continue;
    std::set<uint32_t> symbols;
    for (const uint32_t function : reachable(module, uses, i)) {
      symbols.insert(uses[function].symbols.begin(), uses[function].symbols.end());
    }
    if (Status status = lay_out(module, symbols, module.functions[i]); !status.ok()) return status;
  }
  return ok_status();
}

}  // namespace jitgemm::ptx
