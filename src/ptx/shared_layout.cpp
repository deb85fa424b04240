// SPDX-License-Identifier: Apache-2.0
// A function uses a shared variable when an operand names it.
#include "ptx/shared_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace jitgemm::ptx {
namespace {

// The shared variables of a function.
std::set<uint32_t> uses_of(const Module& module, const Function& function) {
  std::set<uint32_t> symbols;
  for (const Operand& operand : function.operands) {
    const bool names_symbol =
        operand.kind == OperandKind::kSymbol ||
        (operand.kind == OperandKind::kAddress && operand.base == AddressBase::kSymbol);
    if (names_symbol && module.symbols[operand.index].space == Space::kShared)
      symbols.insert(operand.index);
  }
  return symbols;
}

std::vector<uint32_t> reachable(const Module& module, uint32_t entry) {
  std::vector<uint32_t> order{entry};
  std::vector<bool> seen(module.functions.size());
  seen[entry] = true;
  const auto add = [&](uint32_t function) {
    if (!seen[function] && !module.functions[function].is_entry) order.push_back(function);
    seen[function] = true;
  };
  for (size_t i = 0; i < order.size(); ++i) {
    for (const uint32_t callee : module.functions[order[i]].callees) add(callee);
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
  std::vector<std::set<uint32_t>> uses;
  for (const Function& function : module.functions) uses.push_back(uses_of(module, function));
  for (uint32_t i = 0; i < module.functions.size(); ++i) {
    if (!module.functions[i].is_entry) continue;
    std::set<uint32_t> symbols;
    for (const uint32_t function : reachable(module, i)) {
      symbols.insert(uses[function].begin(), uses[function].end());
    }
    if (Status status = lay_out(module, symbols, module.functions[i]); !status.ok()) return status;
  }
  return ok_status();
}

}  // namespace jitgemm::ptx
